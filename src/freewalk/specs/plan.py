"""The contents of a spec, created and checked, ready to run."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from freewalk.checks import Checks
from freewalk.errors import FreewalkError, SpecError
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase, label_of
from freewalk.jobs.prepare import MOST_STEPS, PRECISIONS, Start, blamed_on, is_foreign, kernel_of, place, prepare
from freewalk.objectives import Objective
from freewalk.run.learn import Method
from freewalk.runtimes import Job, runtime_for
from freewalk.specs import catalogue
from freewalk.specs.datasets import Origin
from freewalk.specs.keys import Tables, Walk, place_of
from freewalk.specs.own import Importer, blame
from freewalk.storage.files import regular

_check = Checks(FreewalkError)


@dataclass(frozen=True, eq=False)
class Plan:
    """The contents of a spec, ready to run: its problem, and the job and the methods of each walk, by label."""

    problem: Objective
    jobs: dict[str, Job]
    methods: dict[str, list[Method]]  # one for each phase
    options: dict[str, Any]  # the other arguments of `learn`
    files: dict[str, str] = field(default_factory=dict)  # the SHA-256 of those that were read, by path in the spec
    classes: tuple[type, ...] = ()  # of the user
    origin: Origin = field(default_factory=Origin)

    @property
    def graph(self) -> Graph:
        """The graph of the walks."""
        return next(iter(self.jobs.values())).kernel.graph

    @property
    def walks(self) -> dict[str, list[Phase]]:
        """The phases of each walk, by label."""
        return {label: list(job.phases) for label, job in self.jobs.items()}

    def options_of(self, label: str) -> dict[str, Any]:
        """The arguments of `learn` for one walk; tokens with their own nodes start there."""
        tokens = self.methods[label][0].tokens
        start = None if isinstance(tokens, str) else self.options["start"]
        return {**self.options, "tokens": tokens, "start": start}

    def outside(self, label: str) -> dict[str, Any]:
        """The arguments of `resume` for one walk: what a record does not contain, because it is code."""
        rules = [phase.rule for phase in self.jobs[label].phases]
        code = [None if rule is None or rule.stored else rule for rule in rules]
        return {"types": self.classes, "objective": None if self.problem.stored else self.problem, "rule": code}

    def start(self, label: str) -> Start:
        """Where the tokens of a walk start: token t of replica w has the number w · tokens + t."""
        options = self.options_of(label)
        names = ("steps", "walks", "every", "start", "paths", "tokens")
        return place("run", self.jobs[label], **{name: options[name] for name in names})

    @property
    def in_phases(self) -> list[str]:
        """The labels of walks with several phases, which `compare` cannot run."""
        return [label for label, methods in self.methods.items() if len(methods) > 1]

    @property
    def contestants(self) -> list[Method]:
        """The walks as `compare` takes them, without those in phases."""
        found = [methods[0] for methods in self.methods.values() if len(methods) == 1]
        if not found:
            words = f"{self.in_phases[0]!r} has phases, expected one design and one rule, or a method"
            raise FreewalkError(f"{words}: one step is chosen for the whole run; add a walk without phases")
        return found


class Part(NamedTuple):
    """A phase of a walk as written in the spec, by family, and its name in error messages."""

    where: str
    until: int | None
    tables: dict[str, dict[str, Any]]


def parts_of(tables: Tables, source: str) -> list[tuple[str, list[Part]]]:
    """For each walk, its name in error messages and its phases."""
    values = {"walk": [{"label": walk.label} for walk in tables.walk]}
    listed = []
    for number, walk in enumerate(tables.walk):
        where = f"{source}: {place_of(['walk', number], values)}"
        _check_parts(walk, where)
        parts = []
        for index, phase in enumerate(walk.phase):
            words = f"{source}: {place_of(['walk', number, 'phase', index], values)}"
            parts.append(Part(words, phase.until, _given(phase, "design", "rule", "exchange")))
        listed.append((where, parts or [Part(where, None, _given(walk, "design", "rule", "exchange", "method"))]))
    return listed


def _check_parts(walk: Walk, where: str) -> None:
    """Reject a walk with missing or conflicting keys."""
    given = _given(walk, "design", "rule", "exchange")
    if walk.phase and walk.method is not None:
        raise SpecError(f"{where} has phases as well as a method; leave one of them out")
    if walk.phase and given:
        words = "an exchange" if "exchange" in given and len(given) == 1 else "a design or a rule"
        raise SpecError(f"{where} has phases as well as {words}; each phase names its own")
    if walk.method is not None and (given or walk.tokens is not None):
        other = next(iter(given), "tokens")
        raise SpecError(f"{where} has a method as well as the key {other!r}; a method sets that itself")
    if not walk.phase and walk.method is None and not {"design", "rule"} <= given.keys():
        missing = "rule" if "design" in given else "design"
        raise SpecError(f"{where} needs the key {missing!r}, or a method, or tables [[walk.phase]]")


def _given(table: Any, *families: str) -> dict[str, dict[str, Any]]:
    return {family: getattr(table, family) for family in families if getattr(table, family) is not None}


class Posed(NamedTuple):
    """The problem of a spec: the graph, the objective and the origin of its data."""

    graph: Graph
    problem: Objective
    origin: Origin


def make_problem(tables: Tables, source: str, importer: Importer) -> Posed:
    """Create the problem alone, without the walks; `source` is the name of the spec in error messages."""
    graph = catalogue.build("graph", tables.graph, f"{source}: [graph]", importer)
    origin = Origin()
    given = {"n": graph.n, "graph": graph, "origin": origin}
    return Posed(graph, catalogue.build("problem", tables.problem, f"{source}: [problem]", importer, **given), origin)


def make_plan(tables: Tables, source: str, importer: Importer) -> Plan:
    """Create everything that a spec names, and check that it fits together, as `learn` would."""
    graph, problem, origin = make_problem(tables, source, importer)
    files = {name: digest(importer.folder / name) for name in files_of(tables)}
    options = tables.run.model_dump(exclude={"checkpoint"})
    if isinstance(options["runtime"], dict):
        options["runtime"] = catalogue.build("runtime", options["runtime"], f"{source}: [run]: runtime", importer)
    with blamed_on(f"{source}: [run]", SpecError):
        runtime_for(options["runtime"], problem, ())
        _check.whole("run", "steps", options["steps"], 1, MOST_STEPS)
        if options["precision"] is not None:
            _check.choice("run", "precision", options["precision"], PRECISIONS)
    plan = Plan(problem, {}, {}, options, files, origin=origin)
    places = {}
    for walk, (where, parts) in zip(tables.walk, parts_of(tables, source), strict=True):
        methods = _methods(walk, parts, importer)
        with blamed_on(where, SpecError):
            places[_add(plan, walk, parts, methods, graph)] = where
    with blamed_on(f"{source}: [run]", SpecError):
        if options["start"] is not None and all(isinstance(made[0].tokens, str) for made in plan.methods.values()):
            remedy = 'leave it out: with tokens = "nodes" each token starts at its own node'
            raise _check.fail("run", "start", options["start"], "nothing", remedy)
        for job in plan.jobs.values():
            arguments.goal(options["goal"], problem, job.tokens, "run")
        starts = {label: plan.start(label) for label in plan.jobs}
    for name, where in places.items():
        job = plan.jobs[name]
        own = next((phase.exchange for phase in job.phases if is_foreign(phase.exchange)), None)
        with blamed_on(where, SpecError), _blamed_on_user(own, "fails on these tokens"):
            arguments.exchanges(job.phases, job.tokens, starts[name].nodes)
    return replace(plan, classes=tuple(importer.classes.values()))


def _methods(walk: Walk, parts: list[Part], importer: Importer) -> list[Method]:
    """The method of each phase of a walk; only a listed method already has its own label."""

    def build(part: Part, family: str) -> Any:
        table = part.tables.get(family)
        return None if table is None else catalogue.build(family, table, f"{part.where}: {family}", importer)

    if walk.method is not None:
        return [build(parts[0], "method")]
    label, tokens = walk.label or "walk", walk.tokens or 1
    return [Method(label, build(one, "design"), build(one, "rule"), tokens, build(one, "exchange")) for one in parts]


def _add(plan: Plan, walk: Walk, parts: list[Part], methods: list[Method], graph: Graph) -> str:
    """Add a walk to the plan; returns its label."""
    label = walk.label or (methods[0].label if walk.method is not None else None)
    phases = []
    for part, method in zip(parts, methods, strict=True):
        with _blamed_on_user(method.design, "fails on this graph"):
            kernel = kernel_of(method.design, graph, plan.problem, label if len(methods) == 1 else None)
        phases.append(Phase(part.until, kernel, method.rule, method.exchange))
    options = {name: plan.options[name] for name in ("steps", "seed", "precision")}
    job = prepare("learn", plan.problem, phases, tokens=methods[0].tokens, **options)
    name = label or label_of(phases, job.tokens)
    if name in plan.jobs:
        raise SpecError(f"another [[walk]] is also called {name!r}; give each its own label")
    plan.jobs[name], plan.methods[name] = job, [replace(method, label=name) for method in methods]
    return name


@contextmanager
def _blamed_on_user(made: Any, words: str) -> Iterator[None]:
    """Report the errors of an object of the user, whose code may raise any error."""
    try:
        yield
    except FreewalkError:
        raise
    except Exception as error:
        if not is_foreign(made):
            raise
        raise SpecError(f"{type(made).__name__} {words} ({blame(error)})") from error


def files_of(tables: Tables) -> list[str]:
    """The files that a spec names, as written there."""
    named = [tables.graph.get("path") if tables.graph.get("kind") == "read" else None, tables.problem.get("data")]
    return [name for name in named if isinstance(name, str)]


def digest(file: Path) -> str:
    """The SHA-256 of a file, to detect changes."""
    with regular(file).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
