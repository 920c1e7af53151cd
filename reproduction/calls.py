"""Calls of functions by a crew, once for each set of arguments; results are stored as JSON."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from freewalk.run.loop import Progress
from freewalk.specs.plan import digest
from freewalk.sweeps.crews import Crew, Look, Work, crew_of
from freewalk.sweeps.hashes import hash_of
from freewalk.sweeps.resume import Results, compute


@dataclass(frozen=True)
class Call(Work):
    """A function that other processes can import, and its arguments: JSON values, or dataclasses of them."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self, look: Look | None = None) -> bytes:
        """The result of the function as JSON; dataclasses become objects, other tuples become lists."""
        return _json(self.function(*self.arguments)).encode()


def key_of_call(function: Callable[..., Any], arguments: tuple[Any, ...], inputs: Any = None) -> str:
    """The hash of a function, its source file, its arguments, and its other inputs."""
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    source = digest(Path(file)) if file is not None and Path(file).is_file() else ""
    name = f"{function.__module__}:{function.__qualname__}"
    return hash_of(function=name, source=source, arguments=json.loads(_json(arguments)), inputs=inputs)


@dataclass(frozen=True)
class Caller:
    """Calls functions and stores their results; see `calling`."""

    results: Results
    crew: Crew
    inputs: Any = None
    tell: Progress | None = None

    def each(self, what: str, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function at the top level of a module with each set of arguments; messages call the work `what`.

        The results are what JSON holds of them, in the order of the arguments. After Ctrl-C or SIGTERM, finished
        results are kept.
        """
        keys = [key_of_call(function, one, self.inputs) for one in arguments]
        calls = [Call(function, one, key=key, words=f"{what} {one}") for key, one in zip(keys, arguments, strict=True)]
        told = 0

        def tell(there: int, total: int, done: int, whole: int) -> None:
            nonlocal told
            while self.tell is not None and told < there:
                told += 1
                self.tell(what, told, total)

        _, failed = compute(calls, self.results, self.crew, tell)
        for error in failed.values():
            raise error
        return [json.loads(self.results.path(key).read_bytes()) for key in keys]


@contextmanager
def calling(
    folder: Path | None,
    workers: int | None = None,
    *,
    inputs: Any = None,
    tell: Progress | None = None,
    on: str = "processes",
) -> Iterator[Caller]:
    """A caller of functions, in other processes by default, that stores their results in a folder, unless it is None.

    An interrupted computation resumes. `inputs` is what the results depend on besides the arguments.
    """
    with TemporaryDirectory() as temporary, crew_of(on, workers) as crew:
        results = Results(Path(temporary) if folder is None else folder, ".json")
        yield Caller(results, crew, inputs, tell)
        results.tidy()


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
