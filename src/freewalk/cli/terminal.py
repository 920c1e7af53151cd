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
    pace = _Pace()
    if not sys.stderr.isatty():
        with _lines(pace.words):
            yield pace.tell
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
    began = time.monotonic()

    def tell(label: str, done: int, total: int, walks: int, measures: Mapping[str, float] = _NOTHING) -> None:
        if time.monotonic() - began < PATIENCE:
            return
        pace.tell(label, done, total, walks, measures)
        if not bar.task_ids:
            bar.add_task(label, total=total, completed=done, rate="", measured="")
            bar.start()
        measured = ", ".join(pace.measured())
        bar.update(bar.task_ids[0], description=label, completed=done, total=total, rate=pace.rate(), measured=measured)

    try:
        yield tell
    finally:
        if bar.task_ids:
            bar.stop()


class _Pace:
    """How far a run is, and its speed since the first report."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None
        self.last: tuple[float, str, int, int, int] = (0.0, "", 0, 1, 1)
        self.measures: Mapping[str, float] = _NOTHING

    def tell(self, label: str, done: int, total: int, walks: int, measures: Mapping[str, float] = _NOTHING) -> None:
        now = time.monotonic()
        self.first = self.first or (now, done)
        self.last = now, label, done, total, walks
        self.measures = measures

    def speed(self) -> float:
        """Steps per second; 0 if not known yet."""
        (began, before), (now, _, done, *_) = self.first or (0.0, 0), self.last
        return (done - before) / (now - began) if self.first is not None and now > began else 0.0

    def rate(self) -> str:
        return f"{_short(self.speed() * self.last[-1])} updates/s" if self.speed() > 0 else ""

    def measured(self) -> list[str]:
        return [f"{name} {value:.3g}" for name, value in self.measures.items()]

    def words(self) -> str:
        _, label, done, total, _ = self.last
        if not label or done >= total:
            return ""
        left = f"about {_duration((total - done) / self.speed())} left" if self.speed() > 0 else ""
        return ", ".join(filter(None, [f"{label}: {100 * done // total} %", *self.measured(), self.rate(), left]))


@contextmanager
def parts_bar(quiet: bool = False) -> "Iterator[Callable[[str, int, int], None] | None]":
    """A progress bar on stderr for work in few long parts, once it has taken a while; lines if that is no terminal."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _latest() as show:
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
        with _latest() as show:
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
def _latest() -> Iterator[Callable[[str], None]]:
    """Write the latest message from time to time."""
    said = [""]
    with _lines(lambda: said[0]):
        yield lambda words: said.__setitem__(0, words)


@contextmanager
def _lines(words: Callable[[], str]) -> Iterator[None]:
    """Write a line to stderr every ten seconds, for logs; in a thread, because a part may take long."""
    done, stream = Event(), sys.stderr

    def write() -> None:
        while not done.wait(INTERVAL):
            with suppress(OSError, ValueError):  # nobody reads it any more
                line = words()
                if line:
                    print(line, file=stream, flush=True)

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
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
