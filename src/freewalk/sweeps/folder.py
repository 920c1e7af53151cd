"""The folder of a sweep: its spec, the record of each point, and the figures and tables made from them."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freewalk.checks import Checks
from freewalk.errors import FreewalkError, RecordError, SpecError
from freewalk.specs.own import Tell as Say
from freewalk.specs.spec import INPUTS, SPEC, Spec
from freewalk.storage.files import write
from freewalk.sweeps.compute import Computed, Tell, compute
from freewalk.sweeps.crews import Lost, crew_of
from freewalk.sweeps.dataset import Walks, gather
from freewalk.sweeps.points import Point, Sweep, load, of_spec, parse
from freewalk.sweeps.store import Store
from freewalk.sweeps.work import plan_of, task_of

if TYPE_CHECKING:
    import xarray

#: The copy of the spec, and the folder of the records.
SWEEP, POINTS = "sweep.toml", "points"
_SHOWN = 3  # failed points listed in a message
_check = Checks(SpecError)


@dataclass(frozen=True)
class SweepFolder:
    """A folder with `sweep.toml`, and `points/`, with the record of each point under its hash.

    `inputs.json` holds the locations of the files and modules that the spec names. Points that are no longer part of
    the sweep stay on disk and are used again if the spec is changed back.

    Attributes
    ----------
    path
        The folder.
    sweep
        The sweep.
    """

    path: Path
    sweep: Sweep

    @property
    def store(self) -> Store:
        """The records of the points."""
        return Store(self.path / POINTS)

    @property
    def finished(self) -> list[Point]:
        """The finished points."""
        return [point for point in self.sweep.points if self.store.has(point.key)]

    @property
    def missing(self) -> list[Point]:
        """The points that are not finished."""
        return [point for point in self.sweep.points if not self.store.has(point.key)]

    @staticmethod
    def create(path: Path | None, sweep: Sweep, say: Say | None = None) -> "SweepFolder":
        """Create the folder, or reuse that of an earlier sweep, after checking that the first point can be run.

        Parameters
        ----------
        path
            The folder. Default: runs/<name of the sweep>.
        sweep
            The sweep; it replaces the one that was in the folder before.
        say
            Called with messages for the user: imported code.

        Raises
        ------
        SpecError
            If the sweep cannot be run, or the folder is not that of a sweep.
        """
        place = Path("runs") / sweep.name if path is None else path
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise SpecError(f"{place} is not a folder, expected one to write to; choose another with --out")
        if (place / SPEC).exists() or (place.is_dir() and any(place.iterdir()) and not (place / POINTS).is_dir()):
            raise SpecError(
                f"{place} is not the folder of a sweep, so nothing is written to it; choose another with --out"
            )
        folder = SweepFolder(place, sweep)
        missing = folder.missing
        if missing:
            plan_of(missing[0].spec, say)
        (place / POINTS).mkdir(parents=True, exist_ok=True)
        if sweep.spec.files or sweep.spec.code:
            write(place / INPUTS, json.dumps({"folder": str(sweep.spec.folder.resolve())}, indent=2) + "\n")
        write(place / SWEEP, sweep.spec.text)
        return folder

    @staticmethod
    def open(path: Path, out: Path | None = None) -> "SweepFolder":
        """The folder of an earlier sweep, given the folder or the TOML file of the sweep.

        Parameters
        ----------
        path
            The folder of a sweep, or its TOML file.
        out
            The folder, if `path` is a TOML file. Default: runs/<name>.

        Raises
        ------
        RecordError
            If there is none.
        """
        if path.is_dir():
            if not (path / SWEEP).is_file():
                raise RecordError(f"{path}: is not the folder of a sweep (there is no {path / SWEEP})")
            text = (path / SWEEP).read_text(encoding="utf-8")
            return SweepFolder(path, parse(text, str(path / SWEEP), _inputs(path)))
        sweep = load(path)
        return SweepFolder(Path("runs") / sweep.name if out is None else out, sweep)

    def run(
        self,
        *,
        on: str = "threads",
        workers: int | None = None,
        address: str | None = None,
        tell: Tell | None = None,
    ) -> Computed:
        """Compute the missing points; see `fw.sweep`.

        Returns
        -------
        Computed
            The points computed here.

        Raises
        ------
        SpecError
            If points could not be computed; the others are kept.
        RecordError
            If a result cannot be written; finished points are kept.
        KeyboardInterrupt
            After Ctrl-C or SIGTERM; finished points are kept.
        """
        try:
            with crew_of(on, workers, address) as crew:
                found = compute(map(task_of, self.sweep.points), self.store, crew, tell)
            self.store.tidy()
        except (RecordError, Lost) as error:
            remedy = "free some space, then" if isinstance(error, RecordError) else "then"
            kept = f"{len(self.finished)} of {len(self.sweep)} points are finished and intact in {self.path}"
            raise type(error)(f"{error}; {kept}: {remedy} resume with the same command") from error
        if found.failed:
            raise self._objection(found.failed)
        return found

    def _objection(self, failed: Mapping[str, FreewalkError]) -> SpecError:
        """An error that names the points that could not be computed, and why."""
        words = {point.key: point.words for point in self.sweep.points}
        lines = [f"at {words[key]}: {error}" for key, error in failed.items()]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        count = f"{len(failed)} of {len(self.sweep)} points could not be computed"
        told = "; ".join([*lines[:_SHOWN], *more])
        return SpecError(f"{self.sweep.spec.source}: {count}, the others are in {self.path}; {told}")

    def gather(self, walks: Walks = "all") -> "xarray.Dataset":
        """All finished points, combined."""
        return gather(self.sweep, lambda point: self.store.path(point.key), walks)


def sweep_of(spec: Any, over: Mapping[str, Any] | None = None) -> Sweep:
    """The first arguments of `fw.sweep` as a sweep."""
    if isinstance(spec, Sweep):
        return spec if over is None else of_spec(spec.spec, over)
    if isinstance(spec, Spec):
        return of_spec(spec, over)
    from freewalk.specs.spec import load as load_spec

    if not isinstance(spec, (str, os.PathLike)):
        raise _check.fail("sweep", "spec", spec, "the path of a TOML file, or a spec that experiment.load made")
    return of_spec(load_spec(_check.path("sweep", "spec", spec)), over)


def _inputs(folder: Path) -> Path:
    """The folder of the files that the spec names."""
    try:
        return Path(json.loads((folder / INPUTS).read_text(encoding="utf-8"))["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder
