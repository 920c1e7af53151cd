"""The folder of a run: the spec, the record, the figure, the table, and what it takes to go on after Ctrl-C."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from freewalk.errors import FreewalkError, RecordError, SpecError
from freewalk.experiment.spec import Plan, Progress, Spec, parse
from freewalk.record import Record

SPEC, RECORD, CURVES, TABLE, PARTS = "spec.toml", "record.npz", "curves.png", "table.txt", "parts"


@dataclass(frozen=True)
class RunFolder:
    """A folder with `spec.toml`, `record.npz`, `curves.png` and `table.txt`.

    While a run is under way or interrupted there is also `parts/`, with the record of each walk so far.
    """

    path: Path
    plan: Plan | None = field(default=None, repr=False)

    @staticmethod
    def create(path: Path, spec: Spec, *, force: bool = False) -> "RunFolder":
        """Make the folder and put a copy of the spec into it, once it is sure that the spec can be run.

        Parameters
        ----------
        path
            The folder; it must not exist yet.
        spec
            What will be run.
        force
            Replace the run that is there; other files in the folder stay.

        Raises
        ------
        SpecError
            If it exists already, or with `force` is not the folder of a run; if the spec cannot be run.
        """
        exists = path.exists() or path.is_symlink()
        if exists and not force:
            begun = (path / PARTS).is_dir()
            other = f"go on with it: freewalk resume {path}; or choose" if begun else "choose"
            raise SpecError(f"{path} exists already; {other} another with --out, or replace it with --force")
        if exists and (path.is_symlink() or not (path / SPEC).is_file()):
            raise SpecError(f"{path} is not the folder of a run, so it is not replaced; choose another with --out")
        folder = RunFolder(path, spec.plan())
        folder._clear()
        path.mkdir(parents=True, exist_ok=True)
        (path / SPEC).write_bytes(spec.text.encode())
        return folder

    @staticmethod
    def open(path: Path) -> "RunFolder":
        """The folder of an earlier run.

        Raises
        ------
        RecordError
            If there is none.
        """
        if not (path / SPEC).is_file():
            raise RecordError(f"{path}: is not the folder of a run (there is no {path / SPEC})")
        return RunFolder(path)

    def run(self, progress: Progress | None = None) -> Record:
        """Run what is missing, and write record, figure and table.

        Walks that are complete are not run again and one that was interrupted goes on, so that the result is the same
        as without the interruption.

        Returns
        -------
        Record
            All walks side by side; partial after Ctrl-C.

        Raises
        ------
        RecordError
            If the spec in the folder was changed since, or nothing is missing.
        """
        from freewalk.report import figures, summary

        spec = parse((self.path / SPEC).read_bytes().decode(), str(self.path / SPEC))
        last = len(spec.tables.walk) - 1

        def keep(number: int, part: Record) -> None:
            if part.partial or number < last:  # the last one comes with the record at once
                self._keep(spec, number, part)

        done = self._parts(spec)
        try:
            record = spec.run(progress, plan=self.plan, done=done, keep=keep)
        except FreewalkError:
            self._clear_if_empty()
            raise
        record.save(self.path / RECORD)
        (self.path / TABLE).write_text(summary.text(record), encoding="utf-8")
        figures.curves(record, self.path / CURVES)
        if not record.partial:
            shutil.rmtree(self.path / PARTS, ignore_errors=True)  # they are all in the record
        return record

    def _keep(self, spec: Spec, number: int, part: Record) -> None:
        with_spec = Record(part.data, {**part.provenance, "spec": spec.text}, part.continuation)
        with_spec.save(self.path / PARTS / f"{number:02d}.npz")

    def _parts(self, spec: Spec) -> list[Record]:
        if not (self.path / PARTS).is_dir():
            if (self.path / RECORD).exists():
                raise RecordError(f"{self.path}: the run is complete, there is nothing to resume")
            return []
        parts = [Record.load(file) for file in sorted((self.path / PARTS).glob("*.npz"))]
        if any(part.provenance.pop("spec", None) != spec.text for part in parts):
            raise RecordError(
                f"{self.path / SPEC}: was changed since the run began, so the walks would not fit together; run it anew"
            )
        return parts

    def _clear(self) -> None:
        """Remove what a run writes, and nothing else."""
        shutil.rmtree(self.path / PARTS, ignore_errors=True)
        for name in (RECORD, CURVES, TABLE, SPEC):
            (self.path / name).unlink(missing_ok=True)

    def _clear_if_empty(self) -> None:
        """Leave no trace where nothing was computed, so that the same command can be given again."""
        if not (self.path / PARTS).exists() and not (self.path / RECORD).exists():
            self._clear()
            if not any(self.path.iterdir()):
                self.path.rmdir()


def record_of(path: Path) -> Record:
    """The record of a run, given its folder or the file itself.

    Raises
    ------
    RecordError
        If there is none.
    """
    if path.is_dir() and not (path / SPEC).is_file() and not (path / RECORD).exists():
        raise RecordError(f"{path}: is not the folder of a run (there is neither {RECORD} nor {SPEC} in it)")
    if path.is_dir() and not (path / RECORD).exists():
        raise RecordError(f"{path}: has no {RECORD}; if the run was interrupted, go on with: freewalk resume {path}")
    return Record.load(path / RECORD if path.is_dir() else path)
