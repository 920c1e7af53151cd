"""A spec: a TOML file that says what to run, and the run that it describes."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freewalk.checks import Checks, takes
from freewalk.errors import SpecError
from freewalk.run.loop import MEASURES, Progress
from freewalk.run.record import Record, concat
from freewalk.specs import catalogue, own
from freewalk.specs.keys import Tables, names_in, read_tables
from freewalk.specs.plan import Plan as Plan
from freewalk.specs.plan import Posed, files_of, make_plan, make_problem, parts_of

#: Called with the number of a walk and its record: with partial records during the walk, then with the complete one.
Keep = Callable[[int, Record], None]

#: The copy of a spec in the folder of a run and of a sweep, and the file with the locations of the files that it names.
SPEC, SWEEP, INPUTS = "spec.toml", "sweep.toml", "inputs.json"
_LARGEST = 10_000_000  # bytes of the largest spec

check = Checks(SpecError)


@dataclass(frozen=True)
class Spec:
    """A checked spec."""

    text: str
    source: str  # its name in error messages
    tables: Tables = field(repr=False)
    folder: Path = Path()  # of the files and modules that it names

    @property
    def name(self) -> str:
        """Its name, or that of its file."""
        return self.tables.name or Path(self.source).stem

    @property
    def files(self) -> list[str]:
        """The files that it names: a graph, data."""
        return files_of(self.tables)

    @property
    def code(self) -> list[str]:
        """The user classes that it names, as "module:Name"."""
        return names_in(self.tables.model_dump())

    @property
    def must_be_planned(self) -> bool:
        """Whether even a run whose walks are all recorded needs what the spec names: code, a data set."""
        return bool(self.code) or isinstance(self.tables.problem.get("data"), dict)

    def replaced(self, **options: str | int) -> "Spec":
        """The same spec with other options in its table [run]; its text is changed too, keeping comments and layout."""
        import tomlkit

        document = tomlkit.parse(self.text)
        for key, value in options.items():
            check.instance(self.source, key, value, (str, int), "a text or a whole number")
            document["run"][key] = value
        return parse(document.as_string(), self.source, self.folder)

    def plan(self, tell: own.Tell | None = None) -> Plan:
        """Create everything that the spec names, and check that it fits together.

        User classes are imported, which executes their code: do not plan a spec that you do not trust.
        """
        return make_plan(self.tables, self.source, own.Importer(self.folder, self.source, tell))

    def pose(self, tell: own.Tell | None = None) -> Posed:
        """Create the problem alone: the graph, the objective and its data; parameters and errors as for `plan`."""
        return make_problem(self.tables, self.source, own.Importer(self.folder, self.source, tell))

    def check(self) -> None:
        """Check every name in the spec, without creating or importing anything."""
        catalogue.check("graph", self.tables.graph, f"{self.source}: [graph]")
        catalogue.check("problem", self.tables.problem, f"{self.source}: [problem]")
        if isinstance(self.tables.run.runtime, dict):
            catalogue.check("runtime", self.tables.run.runtime, f"{self.source}: [run]: runtime")
        for _, parts in parts_of(self.tables, self.source):
            for part in parts:
                for family, table in part.tables.items():
                    catalogue.check(family, table, f"{part.where}: {family}")

    def run(
        self,
        progress: Progress | None = None,
        *,
        plan: Plan | None = None,
        done: Sequence[Record] = (),
        keep: Keep | None = None,
    ) -> Record:
        """Run all walks, one after the other, and concatenate their records."""
        if plan is None and (len(done) < len(self.tables.walk) or self.must_be_planned):
            plan = self.plan()
        recorded = zip(self.tables.walk, done, strict=True)
        labels = [walk.label or record.label for walk, record in recorded] if plan is None else list(plan.jobs)
        records: list[Record] = []
        stopped = ""
        for number, label in enumerate(labels):
            earlier = done[number] if number < len(done) else None
            try:
                teller = None if progress is None else self._teller(progress, plan, label, earlier, records)
                watch = {"progress": teller, **self._checkpoints(number, label, keep)}
                record = self._part(plan, label, earlier, watch)
                records.append(record)
                if keep is not None and record is not earlier:
                    keep(number, record)
            except KeyboardInterrupt as interrupt:
                if not records:
                    raise
                stopped = str(interrupt) or "SIGINT"
            interruptions = 0 if earlier is None else earlier.provenance.get("interruptions", 0)
            if records[-1].partial or records[-1].provenance.get("interruptions", 0) > interruptions:
                stopped = stopped or records[-1].provenance.get("interrupted_by", "SIGINT")
            if stopped:
                break
        record = concat(records, labels[: len(records)])
        record.data.attrs["partial"] = int(len(records) < len(labels) or records[-1].partial)
        record.data.attrs["name"] = self.name
        record.provenance = {"spec": self.text, **record.provenance}
        if plan is not None and plan.files:
            record.provenance["files"] = provenance_of(self.folder, plan.files)
        if plan is not None and plan.origin.story:
            record.provenance["data"] = plan.origin.story
        if stopped:
            record.provenance["interrupted_by"] = stopped
        return record

    def _part(self, plan: Plan | None, label: str, earlier: Record | None, watch: Mapping[str, Any]) -> Record:
        """The record of one walk, given that of an earlier process."""
        from freewalk.run.learn import learn
        from freewalk.run.resume import resume

        record = earlier
        if record is None:
            assert plan is not None  # without one, all walks have begun
            record = learn(plan.problem, plan.jobs[label].phases, **plan.options_of(label), **watch)
        elif record.partial:
            record = resume(record, **({} if plan is None else plan.outside(label)), **watch)
        record.data.attrs["label"] = label
        return record

    def _checkpoints(self, number: int, label: str, keep: Keep | None) -> dict[str, Any]:
        """The arguments with which `learn` saves partial records."""
        if keep is None or self.tables.run.checkpoint == 0:
            return {}

        def save(record: Record) -> None:
            record.data.attrs["label"] = label
            keep(number, record)

        return {"checkpoint": save, "checkpoint_every": self.tables.run.checkpoint}

    def _teller(
        self, progress: Progress, plan: Plan | None, label: str, earlier: Record | None, records: Sequence[Record]
    ) -> Progress:
        """A progress callback for one walk that reports the progress of all, given the records of other walks."""
        run = self.tables.run
        done = sum(int(record.data.step.values[-1]) for record in records)  # with a goal some may have ended early
        total = done + (len(self.tables.walk) - len(records)) * run.steps
        tokens, names = _tokens_and_shown(plan, label, earlier)

        def tell(step: int, steps: int, /, *, measures: Mapping[str, float]) -> None:
            more = {MEASURES: {name: measures[name] for name in names}} if takes(progress, MEASURES) else {}
            progress(label, done + step, total - run.steps + steps, run.walks * tokens, **more)

        return tell


def _tokens_and_shown(plan: Plan | None, label: str, earlier: Record | None) -> tuple[int, list[str]]:
    """The tokens of a walk, and the measures to show, the primary one first."""
    if plan is not None:
        problem = plan.problem
        return plan.jobs[label].tokens, list(dict.fromkeys((problem.primary, *problem.rising)))
    assert earlier is not None  # without a plan, all walks have begun
    data = earlier.data
    rising = [str(name) for name, values in data.data_vars.items() if values.attrs.get("better") == "higher"]
    first = [data.attrs["primary"]] if data.attrs.get("primary") in data.data_vars else []
    return data.sizes.get("token", 1), list(dict.fromkeys((*first, *rising)))


def load(path: str | os.PathLike[str]) -> Spec:
    """Read and check a spec. Nothing that it names is imported or read until it is run."""
    file = check.path("load", "path", path)
    try:
        with file.open("rb") as stream:  # which may be a pipe, as shells make them
            content = stream.read(_LARGEST + 1)
        text = content.decode()
    except OSError as error:
        raise SpecError(f"{file}: cannot be read ({error.strerror or error}), expected a TOML file") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{file}: is not a text in UTF-8, expected a TOML file") from error
    if len(content) > _LARGEST:
        raise SpecError(f"{file}: has more than {_LARGEST:,} bytes, expected a spec")
    return parse(text, str(file), _folder_of(file))


def parse(text: str, source: str = "spec", folder: Path = Path()) -> Spec:
    """Check a spec given as text; paths in it are relative to `folder`. See `load`."""
    check.text("parse", "source", source)
    check.instance(source, "text", text, str, "a spec as a text in TOML; experiment.load reads a file")
    try:
        values: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "; several walks are tables [[walk]], with two brackets" if "'walk'" in str(error) else ""
        raise SpecError(f"{source}: is not TOML: {error}{hint}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, tables within tables
        raise SpecError(f"{source}: is not TOML that can be read ({' '.join(str(error).split())})") from error
    spec = Spec(text, source, read_tables(dict(values), source), folder)
    spec.check()
    return spec


def provenance_of(folder: Path, files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The provenance of a record: the files it depends on, with their SHA-256."""
    return {name: {"path": str((folder / name).resolve()), "sha256": sha} for name, sha in files.items()}


def _folder_of(file: Path) -> Path:
    """The folder of the files that a spec names: its own, or that of the original of a copy in a run or sweep."""
    try:
        inputs = json.loads((file.parent / INPUTS).read_text(encoding="utf-8")) if file.name in (SPEC, SWEEP) else {}
        return Path(inputs["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return file.parent


def shipped(name: str) -> Path:
    """The path of a spec that comes with the package: "demo.toml", "digits.toml", "example.toml" or "sweep.toml"."""
    folder = Path(__file__).parent / "examples"
    return folder / check.choice("shipped", "name", name, sorted(file.name for file in folder.glob("*.toml")))
