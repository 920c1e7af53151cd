"""The folder of a run: the spec, the record, the figure, the table, and what it takes to resume after Ctrl-C."""

import filecmp
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from freewalk.checks import in_bytes
from freewalk.errors import FreewalkError, RecordError, SpecError
from freewalk.experiment.own import Tell
from freewalk.experiment.plan import Plan, Posed, digest
from freewalk.experiment.spec import INPUTS, SPEC, Progress, Spec, load, provenance_of
from freewalk.files import replacing, write
from freewalk.record import Record
from freewalk.signals import held

RECORD, CURVES, TABLE, PARTS, NEW = "record.npz", "curves.png", "table.txt", "parts", "new"
_FILES = (TABLE, CURVES, INPUTS, RECORD, SPEC)  # in the order in which a new run takes the place of an old one
_LARGE = 200e6  # bytes of a record, of which a third or so reach the disk


@dataclass(frozen=True)
class RunFolder:
    """A folder with `spec.toml`, `record.npz`, `curves.png` and `table.txt`.

    While a run is under way or interrupted there is also `parts/`, with the record of each walk so far. That of the
    walk under way is brought up to date as often as the spec says; whenever the process is killed, the folder can be
    resumed. A run that replaces another is made in `new/`, within the folder, and takes its place when it is complete.
    If the spec names files or classes, `inputs.json` says where they are and holds the SHA-256 of the files.
    """

    path: Path
    spec: Spec
    plan: Plan | None = field(default=None, repr=False)
    tell: Tell | None = field(default=None, repr=False)

    @property
    def work(self) -> Path:
        """Where the run is made: the folder, or `new` within it."""
        new = self.path / NEW
        return new if (new / SPEC).is_file() else self.path

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be done."""
        return self.work == self.path and not self._missing() and not (self.path / PARTS).exists()

    @staticmethod
    def create(path: Path, spec: Spec, *, force: bool = False, tell: Tell | None = None) -> "RunFolder":
        """Make the folder and put a copy of the spec into it, once it is sure that the spec can be run.

        Parameters
        ----------
        path
            The folder; it must not exist yet.
        spec
            What will be run.
        force
            Replace the run that is there, as soon as the new one is complete; other files in the folder stay.
        tell
            Told what the user should know: code that is imported, a large record.

        Raises
        ------
        SpecError
            If the spec cannot be run; if the folder exists already, or with `force` is not the folder of a run.
        """
        plan = spec.plan(tell)
        _try_runtime(spec, plan)
        exists = path.exists() or path.is_symlink()
        if force and _is_bare(path):  # killed before there was a spec in it
            exists = False
        if exists and not force:
            begun = (path / PARTS).is_dir() or (path / NEW / SPEC).is_file()
            other = f"resume it with: freewalk resume {path}; or choose" if begun else "choose"
            raise SpecError(f"{path} exists already; {other} another with --out, or replace it with --force")
        if exists and (path.is_symlink() or not (path / SPEC).is_file()):
            raise SpecError(f"{path} is not the folder of a run, so it is not replaced; choose another with --out")
        work = path / NEW if exists else path
        if work.exists() and not (work / SPEC).is_file() and not _is_bare(work, path):
            raise SpecError(f"{work} is in the way of the new run and is not one itself; move it elsewhere")
        try:
            with unbroken():
                _clear(work)
                work.mkdir(parents=True, exist_ok=True)
                if spec.files or spec.code:
                    inputs = {"folder": str(spec.folder.resolve()), "files": plan.files}
                    text = json.dumps(inputs, indent=2, ensure_ascii=False)
                    write(work / INPUTS, f"{text}\n")
                write(work / SPEC, spec.text)
        except BaseException:
            _clear_if_empty(work)
            raise
        return RunFolder(path, spec, plan, tell)

    @staticmethod
    def open(path: Path, *, allow_code: bool = False, tell: Tell | None = None) -> "RunFolder":
        """The folder of an earlier run.

        Parameters
        ----------
        path
            The folder.
        allow_code
            Whether classes that its spec names as "module:Name" may be imported, which executes their code.
        tell
            As for `create`.

        Raises
        ------
        RecordError
            If there is none, or it needs code and that is not allowed.
        """
        if not (path / SPEC).is_file():
            raise RecordError(f"{path}: is not the folder of a run (there is no {path / SPEC})")
        work = path / NEW if (path / NEW / SPEC).is_file() else path
        spec = load(work / SPEC)
        folder = RunFolder(path, spec, None, tell)
        if spec.code and not allow_code and not folder.complete:
            raise RecordError(
                f"{spec.source}: names code ({', '.join(spec.code)}), which is not imported without your consent; "
                f"if you trust it: freewalk resume {path} --allow-code"
            )
        return folder

    def run(self, progress: Progress | None = None) -> Record:
        """Run what is missing, and write record, figure and table.

        Walks that are complete are not run again and one that was interrupted is resumed, so that the result is the
        same as without the interruption, be it by Ctrl-C, SIGTERM, a crash or `kill -9`. Ctrl-C and SIGTERM wait while
        a file is written.

        Returns
        -------
        Record
            All walks side by side; partial after Ctrl-C or SIGTERM.

        Raises
        ------
        RecordError
            If the spec in the folder or a file that it names was changed since, or nothing is missing.
        """
        if self.complete:
            raise RecordError(f"{self.path}: the run is complete, there is nothing to resume")
        made = Record.load(self.work / RECORD) if (self.work / RECORD).is_file() else None
        if made is not None and not made.partial:  # interrupted while its figure was drawn
            with unbroken():
                self._finish(made)
            return made
        done = self._parts()
        plan = self.plan
        if plan is None and (len(done) < len(self.spec.tables.walk) or self.spec.must_be_planned):
            plan = self._plan_again()
        last = len(self.spec.tables.walk) - 1
        announced: set[int] = set()

        def keep(number: int, part: Record) -> None:
            if part.partial or number < last:  # the last one comes with the record at once
                with_spec = Record(
                    part.data, {**part.provenance, "spec": self.spec.text}, part.continuation, part.graph
                )
                with unbroken():
                    file = self.work / PARTS / f"{number:02d}.npz"
                    if self._save(with_spec, file, announce=number not in announced):
                        announced.add(number)

        try:
            record = self.spec.run(progress, plan=plan, done=done, keep=keep)
        except Exception:  # also of the user's own code
            if self.plan is not None:  # the folder is new: what another process made stays
                _clear_if_empty(self.work)
            raise
        if self.spec.files:
            record.provenance.setdefault("files", provenance_of(self.spec.folder, self._inputs()))
        with unbroken():
            self._save(record, self.work / RECORD)
            self._finish(record)
        return record

    def _finish(self, record: Record) -> None:
        """Write what is drawn from the record and, where it is complete, put it in the place of an earlier run."""
        from freewalk.report import curves, summary

        if not record.partial:
            shutil.rmtree(self.work / PARTS, ignore_errors=True)  # they are all in the record
        with replacing(self.work / TABLE) as file:
            file.write_text(summary.text(record), encoding="utf-8")
        curves(record, self.work / CURVES)
        if not record.partial and self.work != self.path:
            new = self.work
            shutil.rmtree(self.path / PARTS, ignore_errors=True)
            # Whoever is killed here does it all again: the new run is whole until its spec has moved, the last of all.
            for name in _FILES:
                if not (new / name).is_file():
                    (self.path / name).unlink(missing_ok=True)
                elif name == SPEC:
                    os.replace(new / name, self.path / name)
                else:
                    _share(new / name, self.path / name)
            _clear(new)
            _remove_if_empty(new)

    def _save(self, record: Record, path: Path, *, announce: bool = True) -> bool:
        """Write a record; whether it is large, which the user is told."""
        large = self.tell is not None and record.nbytes > _LARGE
        if self.tell is not None and large and announce:
            self.tell(f"writing a record of {in_bytes(record.nbytes)}, before compression, to {path}")
        record.save(path)
        return large

    def _missing(self) -> list[str]:
        return [name for name in (SPEC, RECORD, TABLE, CURVES) if not (self.path / name).is_file()]

    def pose_again(self) -> Posed:
        """Make again what an earlier run has learned, from the same files as then.

        Raises
        ------
        RecordError
            If a file that the spec names was changed since.
        """
        self._check_files()
        return self.spec.pose(self.tell)

    def _plan_again(self) -> Plan:
        """The plan of a run that began earlier, from the same files as then."""
        self._check_files()
        return self.spec.plan(self.tell)

    def _check_files(self) -> None:
        then = self._inputs() if self.spec.files else {}
        for name in self.spec.files:
            file = self.spec.folder / name
            try:
                fine = digest(file) == then.get(name)
            except OSError as error:
                raise RecordError(
                    f"{file}: cannot be read ({error.strerror}), and the run needs it; restore it"
                ) from error
            if not fine:
                raise RecordError(
                    f"{file}: was changed since the run began, so the walks would not fit together; restore it, or run "
                    "the spec again with --force"
                )

    def _inputs(self) -> dict[str, str]:
        """The SHA-256 of the files that the spec names, when the run began."""
        try:
            files = json.loads((self.work / INPUTS).read_text(encoding="utf-8"))["files"]
            return {str(name): str(sha) for name, sha in files.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise RecordError(f"{self.work / INPUTS}: is missing or damaged; run the spec again with --force") from None

    def _parts(self) -> list[Record]:
        """The records of the first walks, as far as there are any."""
        files = {int(file.stem): file for file in (self.work / PARTS).glob("*.npz") if file.stem.isdecimal()}
        if sorted(files) != list(range(len(files))):
            raise RecordError(f"{self.work / PARTS}: a file is missing before {max(files):02d}.npz; restore it")
        parts = [Record.load(files[number]) for number in sorted(files)]
        if any(part.provenance.pop("spec", None) != self.spec.text for part in parts):
            raise RecordError(
                f"{self.work / SPEC}: was changed since the run began, so the walks would not fit together; run it "
                "again with --force"
            )
        if parts and parts[-1].partial and parts[-1].continuation is None:
            why = parts.pop().provenance.get("not_resumable", "it lacks what that takes")
            if self.tell is not None:
                self.tell(f"{files[len(parts)]}: cannot be resumed ({why}); this walk starts again")
        return parts


def _try_runtime(spec: Spec, plan: Plan) -> None:
    """Make the first walks ready, so that a missing graphics card is found before anything is written."""
    from freewalk.runtimes import runtime_for

    jobs = list(plan.jobs.values())
    try:
        plan.problem.admit(np.atleast_2d(plan.problem.initial(1, plan.options["seed"]))[0])
    except FreewalkError as error:
        raise SpecError(f"{spec.source}: [problem]: {error}") from error
    several = [job for job in jobs if job.tokens > 1]  # what not every runtime can do
    try:
        for job in dict.fromkeys([jobs[0], *several]):
            runtime_for(plan.options["runtime"], job.objective, job.phases).engine(job)
    except FreewalkError as error:
        raise SpecError(f"{spec.source}: [run]: {error}") from error


def _clear(folder: Path) -> None:
    """Remove what a run writes, and nothing else, in an order in which what is left can be resumed at any moment."""
    for file in sorted((folder / PARTS).glob("*.npz"), reverse=True):
        file.unlink(missing_ok=True)
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    for name in (TABLE, CURVES, RECORD, SPEC, INPUTS):
        (folder / name).unlink(missing_ok=True)


def _is_bare(folder: Path, run: Path | None = None) -> bool:
    """Whether a killed process left a folder: before a spec was in it, or once all files were those of a `run`."""
    if folder.is_symlink() or not folder.is_dir():
        return False

    def is_ours(file: Path) -> bool:
        if file.name == INPUTS or file.name.startswith((f".{INPUTS}.", f".{SPEC}.")):
            return file.is_file()
        there = None if run is None else run / file.name
        moved = file.name in _FILES and there is not None and there.is_file() and file.is_file()
        return moved and filecmp.cmp(file, str(there), shallow=False)

    return all(is_ours(file) for file in folder.iterdir())


def _share(file: Path, place: Path) -> None:
    """Put a file in another place as well, without copying it where the file system can do that."""
    with replacing(place) as temporary:
        try:
            temporary.unlink()
            os.link(file, temporary)
        except OSError:
            shutil.copyfile(file, temporary)


def _clear_if_empty(folder: Path) -> None:
    """Leave no trace where nothing was computed, so that the same command can be given again."""
    if folder.is_dir() and not any((folder / PARTS).glob("*.npz")) and not (folder / RECORD).exists():
        _clear(folder)
        _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


@contextmanager
def unbroken() -> Iterator[None]:
    """Let a Ctrl-C or SIGTERM wait until the block is done."""
    with held() as stop:
        yield
    stop.act()


def record_of(path: Path) -> Record:
    """The record of a run, given its folder or the file itself.

    Raises
    ------
    RecordError
        If there is none.
    """
    if not path.suffix and not path.exists() and not path.with_suffix(".npz").exists():
        raise RecordError(f"{path}: there is no such file or folder")
    if path.is_dir() and not (path / SPEC).is_file() and not (path / RECORD).exists():
        raise RecordError(f"{path}: is not the folder of a run (there is neither {RECORD} nor {SPEC} in it)")
    if path.is_dir() and not (path / RECORD).exists():
        raise RecordError(
            f"{path}: has no {RECORD}; if the run was interrupted, resume it with: freewalk resume {path}"
        )
    return Record.load(path / RECORD if path.is_dir() else path)
