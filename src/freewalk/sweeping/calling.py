"""Functions called by a crew, each with its arguments once; their results, which JSON can hold, are kept."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from freewalk.experiment.plan import digest
from freewalk.sweeping.computing import Task, compute
from freewalk.sweeping.crews import Crew, Look, Work, crew_of
from freewalk.sweeping.hashing import hash_of
from freewalk.sweeping.store import Store

#: Called with what is being done, how much of it is, and how much there is.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Call(Work):
    """A function that other processes can import, and its arguments.

    Attributes
    ----------
    function
        What is called.
    arguments
        With what: values that JSON can hold, or dataclasses of such values.

    Examples
    --------
    >>> Call(divmod, (7, 2)).run()
    b'[3, 1]'
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self, look: Look | None = None) -> bytes:
        """What the function returns, as JSON; dataclasses become objects, and other tuples lists."""
        return _json(self.function(*self.arguments)).encode()

    def key(self, inputs: Any) -> str:
        """The hash of the function, the file that it stands in, its arguments, and what else it depends on."""
        file = getattr(sys.modules.get(self.function.__module__), "__file__", None)
        source = digest(Path(file)) if file is not None and Path(file).is_file() else ""
        name = f"{self.function.__module__}:{self.function.__qualname__}"
        return hash_of(function=name, source=source, arguments=json.loads(_json(self.arguments)), inputs=inputs)


@dataclass(frozen=True)
class Caller:
    """Calls functions and keeps what they return; see `calling`."""

    store: Store
    crew: Crew
    inputs: Any = None
    tell: Tell | None = None

    def each(self, what: str, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each of some arguments.

        Parameters
        ----------
        what
            How messages and progress call it.
        function
            It stands at the top of a module, and what it returns JSON can hold.
        arguments
            What it is called with, a tuple for each call.

        Returns
        -------
        list
            What JSON makes of the results, in the order of the arguments.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C or SIGTERM; what is finished is kept.
        """
        calls = [Call(function, one) for one in arguments]
        keys = [call.key(self.inputs) for call in calls]
        tasks = [Task(key, call, f"{what} {call.arguments}") for key, call in zip(keys, calls, strict=True)]
        told = 0

        def tell(there: int, total: int, done: int, whole: int) -> None:
            nonlocal told
            while self.tell is not None and told < there:
                told += 1
                self.tell(what, told, total)

        for error in compute(tasks, self.store, self.crew, tell).failed.values():
            raise error
        return [json.loads(self.store.path(key).read_bytes()) for key in keys]


@contextmanager
def calling(
    folder: Path | None,
    workers: int | None = None,
    *,
    inputs: Any = None,
    tell: Tell | None = None,
    on: str = "processes",
) -> Iterator[Caller]:
    """Whoever calls functions in other processes and keeps what they return.

    Parameters
    ----------
    folder
        Where results are kept, so that whoever is interrupted continues; None: nowhere.
    workers
        How many processes; None: one for each core.
    inputs
        What the results depend on beside the arguments.
    tell
        Told about the progress.
    on
        "processes", "threads" or "ray".
    """
    with TemporaryDirectory() as temporary, crew_of(on, workers) as crew:
        store = Store(Path(temporary) if folder is None else folder, ".json")
        yield Caller(store, crew, inputs, tell)
        store.tidy()


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")
