"""A spec: one TOML file that says what to run, and the run that it describes."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freewalk.errors import FreewalkError, SpecError
from freewalk.experiment import catalogue
from freewalk.experiment.tables import Tables, place, read_tables
from freewalk.objectives import Objective
from freewalk.phases import Phase
from freewalk.record import Record, concat

#: Called with the label of the design under way, the steps done so far and the steps of all designs, and how many walks
#: make each step.
Progress = Callable[[str, int, int, int], None]
#: Called with the number of a walk and its record, as soon as there is one.
Keep = Callable[[int, Record], None]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a spec describes, made: nothing in it can be wrong any more."""

    problem: Objective
    walks: dict[str, list[Phase]]
    options: dict[str, Any]


@dataclass(frozen=True)
class Spec:
    """A checked spec.

    Attributes
    ----------
    text
        The file as it was written.
    source
        How errors call it.
    tables
        What it says.
    """

    text: str
    source: str
    tables: Tables = field(repr=False)

    @property
    def name(self) -> str:
        """Its name, or else that of its file."""
        return self.tables.name or Path(self.source).stem

    def replaced(self, **options: str | int) -> "Spec":
        """The same spec with other options in its table [run], also in its text.

        Raises
        ------
        SpecError
            If an option is not valid, or the text is written in a way that cannot be edited safely.

        Examples
        --------
        >>> spec = load(shipped("example.toml")).replaced(seed=3)
        >>> spec.tables.run.seed, "seed = 3" in spec.text
        (3, True)
        """
        values = tomllib.loads(self.text)
        values["run"] = {**values["run"], **options}
        expected = read_tables(values, self.source)
        text = self.text
        for key, value in options.items():
            line = f"{key} = {value!r}".replace("'", '"')
            table = re.compile(r"(^\[run\][^\n]*\n)(.*?)(?=^\s*\[|\Z)", re.DOTALL | re.MULTILINE)
            found = table.search(text)
            if found is not None:
                body, count = re.subn(rf"^\s*{key}\s*=[^\n#]*", f"{line}  ", found[2], count=1, flags=re.MULTILINE)
                text = text[: found.start(2)] + (body if count else f"{line}\n{body}") + text[found.end(2) :]
        edited = parse(text, self.source)
        if edited.tables != expected:
            raise SpecError(
                f"{self.source}: cannot change its table [run] ({', '.join(options)}); edit the file instead"
            )
        return edited

    def plan(self) -> Plan:
        """Make everything that the spec names, and check that it fits together.

        Raises
        ------
        SpecError
            If a value is out of its range; the message names the table.
        """
        from freewalk import entering
        from freewalk.runtimes import runtime_named

        tables, run = self.tables, self.tables.run
        graph = catalogue.build("graph", tables.graph, f"{self.source}: [graph]")
        problem = catalogue.build("problem", tables.problem, f"{self.source}: [problem]", n=graph.n)
        walks: dict[str, list[Phase]] = {}
        for number, (where, parts) in enumerate(self._walks()):
            label = tables.walk[number].label
            try:
                phases = [
                    Phase(
                        until,
                        catalogue.build("design", design, f"{at}: design").kernel(
                            graph, problem.smoothness, label if len(parts) == 1 else None
                        ),
                        catalogue.build("rule", rule, f"{at}: rule"),
                    )
                    for at, until, design, rule in parts
                ]
                entering.phases_cover(entering.phases(phases, None, problem), run.steps)
            except SpecError:
                raise
            except FreewalkError as error:
                raise SpecError(f"{where}: {error}") from error
            name = label or " → ".join(phase.kernel.label for phase in phases)
            if name in walks:
                raise SpecError(f"{where}: another [[walk]] is called {name!r} as well; give each a label of its own")
            walks[name] = phases
        options = run.model_dump()
        if run.start == "heaviest":
            options["start"] = int(problem.smoothness.argmax())
        try:
            runtime_named(run.runtime)
            entering.precision(run.precision)
            entering.start(options["start"], int(entering.seed(run.seed)), run.walks, graph.n)
            entering.paths(run.paths, run.walks)
        except FreewalkError as error:
            hint = ' ("heaviest" is a start as well)' if isinstance(run.start, str) and "start" in str(error) else ""
            raise SpecError(f"{self.source}: [run]: {error}{hint}") from error
        return Plan(problem, walks, options)

    def _walks(self) -> list[tuple[str, list[tuple[str, int | None, dict[str, Any], dict[str, Any]]]]]:
        """By walk: how errors call it, and its phases as (how errors call it, until, design, rule)."""
        values = {"walk": [{"label": walk.label} for walk in self.tables.walk]}
        listed = []
        for number, walk in enumerate(self.tables.walk):
            where = f"{self.source}: {place(['walk', number], values)}"
            if walk.phase and (walk.design is not None or walk.rule is not None):
                raise SpecError(f"{where} has phases as well as a design or a rule; each phase names its own")
            if walk.phase:
                parts = [
                    (f"{self.source}: {place(['walk', number, 'phase', index], values)}", p.until, p.design, p.rule)
                    for index, p in enumerate(walk.phase)
                ]
            elif walk.design is None or walk.rule is None:
                missing = "design" if walk.design is None else "rule"
                raise SpecError(f"{where} needs the key {missing!r}, or tables [[walk.phase]]")
            else:
                parts = [(where, None, walk.design, walk.rule)]
            listed.append((where, parts))
        return listed

    def check(self) -> None:
        """Check every name in the spec, without making anything.

        Raises
        ------
        SpecError
            If a kind or a parameter is unknown, missing or of the wrong type.
        """
        catalogue.check("graph", self.tables.graph, f"{self.source}: [graph]")
        catalogue.check("problem", self.tables.problem, f"{self.source}: [problem]")
        for _, parts in self._walks():
            for where, _, design, rule in parts:
                catalogue.check("design", design, f"{where}: design")
                catalogue.check("rule", rule, f"{where}: rule")

    def run(
        self,
        progress: Progress | None = None,
        *,
        plan: Plan | None = None,
        done: Sequence[Record] = (),
        keep: Keep | None = None,
    ) -> Record:
        """Run every walk, one after the other, and put their records side by side.

        Parameters
        ----------
        progress
            Called a few times a second.
        plan
            What `plan` made, where that was done before.
        done
            Records of the first walks from an earlier run; the last of them may be partial.
        keep
            Called with each record as soon as there is one.

        Returns
        -------
        Record
            By `design`. After Ctrl-C it holds the walks so far, the last of them perhaps in part, and is partial.

        Raises
        ------
        SpecError
            If the spec cannot be run.
        KeyboardInterrupt
            If there is nothing yet to return.
        """
        plan = self.plan() if plan is None else plan
        records: list[Record] = []
        stopped = False
        for number, label in enumerate(plan.walks):
            earlier = done[number] if number < len(done) else None
            try:
                record = self._part(plan, number, label, earlier, progress)
                records.append(record)
                if keep is not None and record is not earlier:
                    keep(number, record)
            except KeyboardInterrupt:
                if not records:
                    raise
                stopped = True
            interruptions = 0 if earlier is None else earlier.provenance.get("interruptions", 0)
            if stopped or records[-1].partial or records[-1].provenance.get("interruptions", 0) > interruptions:
                break
        record = concat(records, list(plan.walks)[: len(records)])
        record.data.attrs["partial"] = int(len(records) < len(plan.walks) or records[-1].partial)
        record.data.attrs["name"] = self.name
        record.provenance = {"spec": self.text, **record.provenance}
        return record

    def _part(self, plan: Plan, number: int, label: str, earlier: Record | None, progress: Progress | None) -> Record:
        from freewalk.run import learn, resume

        steps = self.tables.run.steps

        def tell(step: int, _: int) -> None:
            if progress is not None:
                progress(label, number * steps + step, len(plan.walks) * steps, self.tables.run.walks)

        if earlier is None:
            return learn(plan.problem, plan.walks[label], **plan.options, progress=tell)
        return resume(earlier, progress=tell) if earlier.partial else earlier


def load(path: str | os.PathLike[str]) -> Spec:
    """Read and check a spec.

    Parameters
    ----------
    path
        A TOML file; `freewalk example` prints one that explains itself.

    Returns
    -------
    Spec
        Ready to `run`.

    Raises
    ------
    SpecError
        If the file cannot be read, is not TOML, or does not say what to run.

    Examples
    --------
    >>> spec = load(shipped("demo.toml"))
    >>> spec.name, spec.tables.run.walks
    ('demo', 1000)
    """
    try:
        text = Path(path).read_bytes().decode()
    except OSError as error:
        raise SpecError(f"{path}: cannot be read ({error.strerror or error}), expected a TOML file") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not a text in UTF-8, expected a TOML file") from error
    return parse(text, str(path))


def parse(text: str, source: str = "spec") -> Spec:
    """Check a spec that is already a text; see `load`."""
    try:
        values: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "; several walks are tables [[walk]], with two brackets" if "'walk'" in str(error) else ""
        raise SpecError(f"{source}: is not TOML: {error}{hint}") from error
    spec = Spec(text, source, read_tables(dict(values), source))
    spec.check()
    return spec


def shipped(name: str) -> Path:
    """The path of a spec that comes with the package: "demo.toml" or "example.toml"."""
    path = Path(__file__).parent / "specs" / name
    if not path.is_file():
        raise SpecError(f"{name}: no such spec comes with freewalk")
    return path
