"""What a command shows while it works: results on stdout, everything else on stderr."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread, Timer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.status import Status

    from freewalk.run.loop import Progress

PATIENCE = 2.0  # seconds before anything appears on a terminal
INTERVAL = 10.0  # seconds between lines in a log
_NOTHING: Mapping[str, float] = MappingProxyType({})


@contextmanager
def progress_bar(quiet: bool = False) -> "Iterator[Progress | None]":
    """A progress bar on stderr once a run has taken a while; if stderr is no terminal, a line from time to time."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _lines() as show:
            yield _Pace(show).tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[measured]}", markup=False),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
    began, pace = time.monotonic(), _Pace()

    def tell(label: str, done: int, total: int, walks: int, measures: Mapping[str, float] = _NOTHING) -> None:
        if time.monotonic() - began < PATIENCE:
            return
        pace.tell(label, done, total, walks, measures)
        if not bar.task_ids:
            bar.add_task(label, total=total, completed=done, rate="", measured="")
            bar.start()
        bar.update(bar.task_ids[0], description=label, completed=done, total=total)
        bar.update(bar.task_ids[0], rate=pace.rate, measured=pace.measured)

    try:
        yield tell
    finally:
        if bar.task_ids:
            bar.stop()


class _Pace:
    """How far a run is, and its speed since the first report; `show` gets that in words, "" at the end."""

    def __init__(self, show: Callable[[str], None] = lambda _: None) -> None:
        self.show = show
        self.first: tuple[float, int] | None = None

    def tell(self, label: str, done: int, total: int, walks: int, measures: Mapping[str, float] = _NOTHING) -> None:
        now = time.monotonic()
        began, before = self.first = self.first or (now, done)
        speed = (done - before) / (now - began) if now > began else 0.0
        self.measured = ", ".join(f"{name} {value:.3g}" for name, value in measures.items())
        self.rate = f"{_short(speed * walks)} updates/s" if speed > 0 else ""
        words = []
        if label and done < total:
            left = f"about {_duration((total - done) / speed)} left" if speed > 0 else ""
            words = [f"{label}: {100 * done // total} %", self.measured, self.rate, left]
        self.show(", ".join(filter(None, words)))


@contextmanager
def parts_bar(quiet: bool = False) -> "Iterator[Callable[[str, int, int], None] | None]":
    """A progress bar on stderr for work in few long parts, once it has taken a while; lines if that is no terminal."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _lines() as show:
            yield lambda label, done, total: show(f"{label}: part {done + 1} of {total}" if done < total else label)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)
    with _after_a_while(bar):
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)


@contextmanager
def status_line(doing: str, quiet: bool = False) -> "Iterator[Callable[[str], None] | None]":
    """A status on stderr once work has taken a while; if stderr is no terminal, a line from time to time."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _lines() as show:
            yield lambda label: show(f"{doing} {label}")
        return
    from rich.console import Console
    from rich.text import Text

    status = Console(stderr=True).status(Text(doing))
    with _after_a_while(status):
        yield lambda label: status.update(Text(f"{doing} {label}"))


@contextmanager
def _after_a_while(shown: "Bar | Status") -> Iterator[None]:
    """Show a bar or a status after a delay, and stop it in the end."""
    # A timer, because the first part of the work may take long.
    timer = Timer(PATIENCE, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        shown.stop()


@contextmanager
def _lines() -> Iterator[Callable[[str], None]]:
    """Write the latest message to stderr every ten seconds, for logs; in a thread, because a part may take long."""
    done, stream, said = Event(), sys.stderr, [""]

    def write() -> None:
        while not done.wait(INTERVAL):
            with suppress(OSError, ValueError):  # nobody reads it any more
                if said[0]:
                    print(said[0], file=stream, flush=True)

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield lambda words: said.__setitem__(0, words)
    finally:
        done.set()
        thread.join()


def _short(number: float) -> str:
    """A rate in three digits."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _duration(seconds: float) -> str:
    """A remaining time."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def console(quiet: bool = False) -> "Console":
    """Standard output, wide enough for a table if it is no terminal; if quiet, a console that prints nothing."""
    from rich.console import Console

    options: dict[str, Any] = {} if sys.stdout.isatty() else {"width": 110, "color_system": None}
    return Console(quiet=quiet, highlight=False, **options)


def out(words: object, quiet: bool = False) -> None:
    """Print lines on stdout as they are: not wrapped, and without markup."""
    console(quiet).out(words)


def say(message: str, style: str = "") -> None:
    """Print a line on stderr, with control characters escaped so that text from a file cannot control the terminal."""
    from rich.console import Console

    line = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in message)
    Console(stderr=True).print(line, style=style, markup=False, highlight=False, soft_wrap=True)
