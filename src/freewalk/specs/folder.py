"""The folder of a run: spec, record, figure, table, and everything needed to resume an interrupted run."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from freewalk.checks import in_bytes
from freewalk.errors import FreewalkError, RecordError, SpecError
from freewalk.run.loop import Progress
from freewalk.run.record import Record
from freewalk.specs.own import Tell
from freewalk.specs.plan import Plan, Posed, digest
from freewalk.specs.spec import INPUTS, SPEC, Spec, load, provenance_of
from freewalk.storage.files import replacing, unbroken, write
from freewalk.storage.locks import claim, holder

RECORD, CURVES, TABLE, PARTS, NEW, LOCK = "record.npz", "curves.png", "table.txt", "parts", "new", "lock"
_FILES = (TABLE, CURVES, INPUTS, RECORD, SPEC)  # in the order in which a new run replaces an old one
_WHERE = "`freewalk run` writes a run to runs/<name of the spec>"
_CHANGED = "has changed since the run began, so the walks would not match"
_LARGE = 200e6  # bytes of a record; compressed, about a third reach the disk


@dataclass(frozen=True)
class RunFolder:
    """A folder with `spec.toml`, `record.npz`, `curves.png` and `table.txt`.

    While a run is in progress or interrupted, `parts/` holds the record of each walk so far. The record of the current
    walk is updated as often as the spec says, so that the folder can be resumed whenever the process is killed. A run
    that replaces another is written to `new/` within the folder, and moved when it is complete. If the spec names files
    or classes, `inputs.json` holds their locations and the SHA-256 of the files.
    """

    path: Path
    spec: Spec
    plan: Plan | None = field(default=None, repr=False)
    tell: Tell | None = field(default=None, repr=False)

    @property
    def work(self) -> Path:
        """Where the run is written: the folder, or `new` within it."""
        new = self.path / NEW
        return new if (new / SPEC).is_file() else self.path

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        written = all((self.path / name).is_file() for name in (SPEC, RECORD, TABLE, CURVES))
        return self.work == self.path and written and not (self.path / PARTS).exists()

    @staticmethod
    def create(path: Path, spec: Spec, *, force: bool = False, tell: Tell | None = None) -> "RunFolder":
        """Create the folder with a copy of the spec, after checking that the spec can be run."""
        plan = spec.plan(tell)
        _try_runtime(spec, plan)
        _place(path, force)  # nothing is written to what is not ours
        work = None
        try:
            with unbroken(), _alone(path):
                work = _place(path, force or _is_bare(path))
                _clear(work)
                work.mkdir(parents=True, exist_ok=True)
                if spec.files or spec.code:
                    inputs = {"folder": str(spec.folder.resolve()), "files": plan.files}
                    write(work / INPUTS, json.dumps(inputs, indent=2, ensure_ascii=False) + "\n")
                write(work / SPEC, spec.text)
        except BaseException:  # also a signal, which is raised at the end of the block
            if work is not None:
                with suppress(RecordError), _alone(path):
                    _clear_if_empty(work)
            raise
        return RunFolder(path, spec, plan, tell)

    @staticmethod
    def open(path: Path, *, allow_code: bool = False, tell: Tell | None = None) -> "RunFolder":
        """The folder of an earlier run."""
        if not (path / SPEC).is_file():
            raise RecordError(f"{path}: is not the folder of a run (there is no {path / SPEC}); {_WHERE}")
        work = path / NEW if (path / NEW / SPEC).is_file() else path
        spec = load(work / SPEC)
        folder = RunFolder(path, spec, None, tell)
        if spec.code and not allow_code and not folder.complete:
            words = f"names code ({', '.join(spec.code)}), which is not imported without your consent"
            raise RecordError(f"{spec.source}: {words}; if you trust it: freewalk resume {path} --allow-code")
        return folder

    def run(self, progress: Progress | None = None) -> Record:
        """Run what is missing, and write the record, the figure and the table.

        Complete walks are not run again and an interrupted one is resumed, so that the result is identical to that of
        an uninterrupted run, whether Ctrl-C, SIGTERM, a crash or `kill -9` stopped it. Ctrl-C and SIGTERM take effect
        only after a file is written.
        """
        if self.complete:
            raise RecordError(f"{self.path}: the run is complete, there is nothing to resume")
        with _alone(self.path):
            if not (self.work / SPEC).is_file() or (self.work / SPEC).read_bytes() != self.spec.text.encode():
                raise RecordError(f"{self.work / SPEC}: another process has begun another run there; begin again")
            return self._run(progress)

    def _run(self, progress: Progress | None) -> Record:
        made = Record.load(self.work / RECORD) if (self.work / RECORD).is_file() else None
        if made is not None and not made.partial:  # interrupted while drawing its figure
            with unbroken():
                self._finish(made)
            return made
        done = self._parts()
        plan = self.plan
        if plan is None and (len(done) < len(self.spec.tables.walk) or self.spec.must_be_planned):
            self._check_files()
            plan = self.spec.plan(self.tell)
        last = len(self.spec.tables.walk) - 1
        announced: set[int] = set()

        def keep(number: int, part: Record) -> None:
            if part.partial or number < last:  # the last one is written with the record
                with_spec = replace(part, provenance={**part.provenance, "spec": self.spec.text})
                file = self.work / PARTS / f"{number:02d}.npz"
                with unbroken():
                    if self._save(with_spec, file, announce=number not in announced):
                        announced.add(number)

        try:
            record = self.spec.run(progress, plan=plan, done=done, keep=keep)
        except Exception:  # also from user code
            if self.plan is not None:  # only a new folder: results of another process stay
                _clear_if_empty(self.work)
            raise
        if self.spec.files:
            record.provenance.setdefault("files", provenance_of(self.spec.folder, self._inputs()))
        with unbroken():
            self._save(record, self.work / RECORD)
            self._finish(record)
        return record

    def _finish(self, record: Record) -> None:
        """Write the figure and the table and, if the record is complete, replace an earlier run."""
        from freewalk.report import curves, summary

        if not record.partial:
            shutil.rmtree(self.work / PARTS, ignore_errors=True)  # all parts are in the record
        write(self.work / TABLE, summary.text(record))
        curves(record, self.work / CURVES)
        if not record.partial and self.work != self.path:
            new = self.work
            shutil.rmtree(self.path / PARTS, ignore_errors=True)
            # If the process is killed here, all of this is repeated: the spec, moved last, keeps the new run complete.
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
        """Write a record, and tell the user if it is large; returns whether it is."""
        large = self.tell is not None and record.nbytes > _LARGE
        if self.tell is not None and large and announce:
            self.tell(f"writing a record of {in_bytes(record.nbytes)}, before compression, to {path}")
        record.save(path)
        return large

    def pose_again(self) -> Posed:
        """Rebuild the problem of an earlier run from the same files."""
        self._check_files()
        return self.spec.pose(self.tell)

    def _check_files(self) -> None:
        then = self._inputs() if self.spec.files else {}
        for name in self.spec.files:
            file = self.spec.folder / name
            try:
                fine = digest(file) == then.get(name)
            except OSError as error:
                raise RecordError(f"{file}: cannot be read ({error.strerror}); restore it for the run") from error
            if not fine:
                raise RecordError(f"{file}: {_CHANGED}; restore it, or run the spec again with --force")

    def _inputs(self) -> dict[str, str]:
        """The SHA-256, at the start of the run, of the files that the spec names."""
        try:
            files = json.loads((self.work / INPUTS).read_text(encoding="utf-8"))["files"]
            return {str(name): str(sha) for name, sha in files.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise RecordError(f"{self.work / INPUTS}: is missing or damaged; run the spec again with --force") from None

    def _parts(self) -> list[Record]:
        """The records of the walks so far."""
        files = {int(file.stem): file for file in (self.work / PARTS).glob("*.npz") if file.stem.isdecimal()}
        if sorted(files) != list(range(len(files))):
            raise RecordError(f"{self.work / PARTS}: a file is missing before {max(files):02d}.npz; restore it")
        parts = [Record.load(files[number]) for number in sorted(files)]
        if any(part.provenance.pop("spec", None) != self.spec.text for part in parts):
            raise RecordError(f"{self.work / SPEC}: {_CHANGED}; run it again with --force")
        if parts and parts[-1].partial and parts[-1].continuation is None:
            why = parts.pop().provenance.get("not_resumable", "it lacks the state needed to resume")
            if self.tell is not None:
                self.tell(f"{files[len(parts)]}: cannot be resumed ({why}); this walk starts again")
        return parts


def _try_runtime(spec: Spec, plan: Plan) -> None:
    """Prepare the first walks, so that a missing GPU is found before anything is written."""
    from freewalk.runtimes import runtime_for

    jobs = list(plan.jobs.values())
    try:
        plan.problem.admit(np.atleast_2d(plan.problem.initial(1, plan.options["seed"]))[0])
    except FreewalkError as error:
        raise SpecError(f"{spec.source}: [problem]: {error}") from error
    several = [job for job in jobs if job.tokens > 1]  # not every runtime supports several tokens
    try:
        for job in dict.fromkeys([jobs[0], *several]):
            runtime_for(plan.options["runtime"], job.objective, job.phases).engine(job)
    except FreewalkError as error:
        raise SpecError(f"{spec.source}: [run]: {error}") from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes out of the folder of a run until the block ends."""
    lock = claim(path / LOCK)
    if lock is None:
        words = f"{path}: another process is running this ({holder(path / LOCK)})"
        raise RecordError(f"{words}; wait until it ends, or choose another folder with --out")
    try:
        yield
    finally:
        lock.release()
        _remove_if_empty(path)


def _place(path: Path, force: bool) -> Path:
    """Where a new run is to be written: the folder or, if it replaces a run, `new` within it."""
    killed = force and _is_bare(path)  # before the spec was written
    exists = (path.exists() or path.is_symlink()) and not killed
    if exists and not force:
        begun = (path / PARTS).is_dir() or (path / NEW / SPEC).is_file()
        other = f"resume it with: freewalk resume {path}; or choose" if begun else "choose"
        raise SpecError(f"{path} exists already; {other} another with --out, or replace it with --force")
    if exists and (path.is_symlink() or not (path / SPEC).is_file()):
        raise SpecError(f"{path} is not the folder of a run, so it is not replaced; choose another with --out")
    work = path / NEW if exists else path
    if exists and work.exists() and not (work / SPEC).is_file() and not _is_bare(work, (*_FILES, PARTS)):
        raise SpecError(f"{work} is not a run but is where the new run would be written; move it elsewhere")
    return work


def _clear(folder: Path) -> None:
    """Remove the files of a run, and nothing else, in an order that keeps the rest resumable at any moment."""
    for file in sorted((folder / PARTS).glob("*.npz"), reverse=True):
        file.unlink(missing_ok=True)
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    for name in (TABLE, CURVES, RECORD, SPEC, INPUTS):
        (folder / name).unlink(missing_ok=True)


def _is_bare(folder: Path, names: tuple[str, ...] = (INPUTS, LOCK)) -> bool:
    """Whether a folder has only files of these names, or of saves that were killed: the remains of a run."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    unfinished = tuple(f".{name}." for name in (*names, SPEC))
    return all(
        (file.name in names and (file.is_file() or file.name == PARTS))
        or (file.name.startswith(unfinished) and file.is_file())
        for file in folder.iterdir()
    )


def _share(file: Path, place: Path) -> None:
    """Make a file available in another place too: as a hard link if the file system allows it, else as a copy."""
    with replacing(place) as temporary:
        try:
            temporary.unlink()
            os.link(file, temporary)
        except OSError:
            shutil.copyfile(file, temporary)


def _clear_if_empty(folder: Path) -> None:
    """Remove the folder if nothing was computed, so that the same command can be repeated."""
    if folder.is_dir() and not any((folder / PARTS).glob("*.npz")) and not (folder / RECORD).exists():
        _clear(folder)
        _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # it is not empty
        folder.rmdir()


def record_of(path: Path) -> Record:
    """The record of a run, given its folder or the file itself."""
    if not path.suffix and not path.exists() and not path.with_suffix(".npz").exists():
        raise RecordError(f"{path}: there is no such file or folder; {_WHERE}")
    if path.is_dir() and not (path / SPEC).is_file() and not (path / RECORD).exists():
        raise RecordError(f"{path}: is not the folder of a run (there is neither {RECORD} nor {SPEC} in it)")
    if path.is_dir() and not (path / RECORD).exists():
        remedy = f"if the run was interrupted, resume it with: freewalk resume {path}"
        raise RecordError(f"{path}: has no {RECORD}; {remedy}")
    return Record.load(path / RECORD if path.is_dir() else path)
