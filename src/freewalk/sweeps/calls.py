"""Calls of functions by a crew, once for each set of arguments; results are stored as JSON."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from freewalk.specs.plan import digest
from freewalk.sweeps.compute import Task, compute
from freewalk.sweeps.crews import Crew, Look, Work, crew_of
from freewalk.sweeps.hashes import hash_of
from freewalk.sweeps.store import Store

#: Called with the name of the work, the amount done, and the total.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Call(Work):
    """A function that other processes can import, and its arguments.

    Attributes
    ----------
    function
        The function.
    arguments
        Its arguments: values that JSON can hold, or dataclasses of such values.

    Examples
    --------
    >>> Call(divmod, (7, 2)).run()
    b'[3, 1]'
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self, look: Look | None = None) -> bytes:
        """The result of the function as JSON; dataclasses become objects, other tuples become lists."""
        return _json(self.function(*self.arguments)).encode()

    def key(self, inputs: Any) -> str:
        """The hash of the function, its source file, its arguments, and its other inputs."""
        file = getattr(sys.modules.get(self.function.__module__), "__file__", None)
        source = digest(Path(file)) if file is not None and Path(file).is_file() else ""
        name = f"{self.function.__module__}:{self.function.__qualname__}"
        return hash_of(function=name, source=source, arguments=json.loads(_json(self.arguments)), inputs=inputs)


@dataclass(frozen=True)
class Caller:
    """Calls functions and stores their results; see `calling`."""

    store: Store
    crew: Crew
    inputs: Any = None
    tell: Tell | None = None

    def each(self, what: str, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each set of arguments.

        Parameters
        ----------
        what
            Its name in messages and progress.
        function
            A function at the top level of a module that returns something that JSON can hold.
        arguments
            The arguments, one tuple per call.

        Returns
        -------
        list
            The results as JSON reads them, in the order of the arguments.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C or SIGTERM; finished results are kept.
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
    """A caller of functions in other processes that stores their results.

    Parameters
    ----------
    folder
        Where results are stored, so that an interrupted computation can resume; None: nowhere.
    workers
        The number of processes. Default: one per core.
    inputs
        What the results depend on besides the arguments.
    tell
        Called with the progress.
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
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
