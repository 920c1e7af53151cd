"""The folder of a sweep: its spec, the record of each point, and the figures and tables made from them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from freewalk.errors import FreewalkError, RecordError, SpecError
from freewalk.specs.own import Tell as Say
from freewalk.specs.spec import INPUTS, SPEC, SWEEP
from freewalk.storage.files import write
from freewalk.sweeps.crews import Lost, crew_of
from freewalk.sweeps.dataset import Walks, gather
from freewalk.sweeps.points import Point, Sweep, plan_of, sweep_of
from freewalk.sweeps.resume import Outcome, Results, Tell, compute

if TYPE_CHECKING:
    import xarray

POINTS = "points"
_SHOWN = 3  # failed points listed in a message


@dataclass(frozen=True)
class SweepFolder:
    """A folder with `sweep.toml`, and `points/`, with the record of each point under its hash.

    `inputs.json` holds the location of the files and modules that the spec names. Points that are no longer part of
    the sweep stay on disk and are used again if the spec is changed back.
    """

    path: Path
    sweep: Sweep

    @property
    def results(self) -> Results:
        """The records of the points."""
        return Results(self.path / POINTS)

    @property
    def finished(self) -> list[Point]:
        """The finished points."""
        return [point for point in self.sweep.points if self.results.has(point.key)]

    @property
    def missing(self) -> list[Point]:
        """The points that are not finished."""
        return [point for point in self.sweep.points if not self.results.has(point.key)]

    @staticmethod
    def create(path: Path | None, sweep: Sweep, say: Say | None = None) -> "SweepFolder":
        """Create the folder, or reuse that of an earlier sweep, after checking that the first point can be run.

        The default is runs/<name of the sweep>. `say` is called with messages for the user: imported code.
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
        """The folder of an earlier sweep: the folder itself, or `out` if the TOML file of the sweep is given."""
        if not path.is_dir():
            sweep = sweep_of(path)
            return SweepFolder(Path("runs") / sweep.name if out is None else out, sweep)
        if not (path / SWEEP).is_file():
            raise RecordError(f"{path}: is not the folder of a sweep (there is no {path / SWEEP})")
        return SweepFolder(path, sweep_of(path / SWEEP))

    def run(self, on: str, workers: int | None, address: str | None, tell: Tell | None) -> Outcome:
        """Compute the missing points; see `fw.sweep`. Whatever ends it, finished points are kept."""
        try:
            with crew_of(on, workers, address) as crew:
                found = compute(self.sweep.points, self.results, crew, tell)
            self.results.tidy()
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
        return gather(self.sweep, lambda point: self.results.path(point.key), walks)
