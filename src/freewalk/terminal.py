"""What a command shows while it works, and where: results on stdout, all else on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.status import Status

    from freewalk.experiment.spec import Progress

PATIENCE = 2.0  # seconds before anything appears


@contextmanager
def progress_bar() -> "Iterator[Progress | None]":
    """A bar on stderr, once a run has taken a while; nothing where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
    began = time.monotonic()
    first: tuple[float, int] | None = None

    def tell(label: str, done: int, total: int, walks: int) -> None:
        nonlocal first
        now = time.monotonic()
        if now - began < PATIENCE:
            return
        if first is None:
            first = now, done
            bar.add_task(label, total=total, completed=done, rate="")
            bar.start()
        elapsed = now - first[0]
        rate = f"{_short((done - first[1]) * walks / elapsed)} updates/s" if elapsed > 0 else ""
        bar.update(bar.task_ids[0], description=label, completed=done, rate=rate)

    try:
        yield tell
    finally:
        if first is not None:
            bar.stop()


@contextmanager
def parts_bar() -> "Iterator[Callable[[str, int, int], None] | None]":
    """A bar for work in few long parts, on stderr, once it has taken a while; nothing where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)
    with _after_a_while(bar):
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)


@contextmanager
def status_line(doing: str) -> "Iterator[Callable[[str], None] | None]":
    """What is under way, on stderr, once it has taken a while; nothing where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    status = Console(stderr=True).status(Text(doing))
    with _after_a_while(status):
        yield lambda label: status.update(Text(f"{doing} {label}"))


@contextmanager
def _after_a_while(shown: "Bar | Status") -> Iterator[None]:
    """Start something that is shown when there has been nothing to see for a while, and stop it in the end."""
    from threading import Timer

    # A timer, because the first part of the work may itself take long.
    timer = Timer(PATIENCE, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        shown.stop()


def _short(number: float) -> str:
    """A rate in three digits.

    Examples
    --------
    >>> _short(43_210_000), _short(512)
    ('43.2 M', '512')
    """
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def console() -> "Console":
    """Standard output; wide enough for a table where it is not a terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=110, color_system=None)


def say(message: str, style: str) -> None:
    """A line on stderr."""
    from rich.console import Console

    Console(stderr=True).print(message, style=style, markup=False, highlight=False, soft_wrap=True)
