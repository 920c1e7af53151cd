"""The contents of a spec, created and checked, ready to run."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.baselines import Method, is_foreign, kernel_of
from freewalk.designs import Design
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError, SpecError
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.jobs.phase import Phase, label_of
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.runtimes import Job
from freewalk.specs import catalogue
from freewalk.specs.datasets import Origin
from freewalk.specs.own import Importer, blame
from freewalk.specs.tables import Run, Tables, Walk, place


@dataclass(frozen=True, eq=False)
class Plan:
    """The contents of a spec, ready to run.

    Attributes
    ----------
    problem
        The objective to learn.
    walks
        The phases of each walk, by label.
    options
        The other arguments of `learn`, except the tokens.
    designs
        The designs of these phases.
    files
        The SHA-256 of each file that was read, by its path as the spec writes it.
    classes
        The imported classes of the user.
    tokens
        The tokens of each walk, by label, as `learn` takes them.
    origin
        The origin of the data and the held-out samples, if they come from a data set.
    """

    problem: Objective
    walks: dict[str, list[Phase]]
    options: dict[str, Any]
    designs: dict[str, list[Design]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    classes: tuple[type, ...] = ()
    tokens: dict[str, int | str] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)

    @property
    def graph(self) -> Graph:
        """The graph of the walks."""
        return next(iter(self.walks.values()))[0].kernel.graph

    @property
    def jobs(self) -> dict[str, Job]:
        """The walks as runtimes take them, by label."""
        return {label: self._job(label, phases) for label, phases in self.walks.items()}

    def _job(self, label: str, phases: list[Phase]) -> Job:
        tokens = self.tokens.get(label, 1)
        count = self.graph.n if isinstance(tokens, str) else tokens
        precision = self.options["precision"] or self.problem.precision
        return Job(self.problem, tuple(phases), self.options["seed"], precision, count)

    def options_of(self, label: str) -> dict[str, Any]:
        """The arguments of `learn` for one walk; tokens with their own nodes start there."""
        tokens = self.tokens.get(label, 1)
        start = None if isinstance(tokens, str) else self.options["start"]
        return {**self.options, "tokens": tokens, "start": start}

    def starts(self, label: str) -> NDArray[np.int32]:
        """The initial node of each token of a walk: token t of replica w has the number w · tokens + t."""
        return _nodes(self, label)

    @property
    def in_phases(self) -> list[str]:
        """The labels of walks with several phases, which `compare` cannot run."""
        return [label for label, phases in self.walks.items() if len(phases) > 1]

    @property
    def contestants(self) -> list[Method]:
        """The walks as `compare` takes them, without those in phases.

        Raises
        ------
        FreewalkError
            If all have phases.
        """
        if len(self.in_phases) == len(self.walks):
            raise FreewalkError(
                f"{self.in_phases[0]!r} has phases, expected one design and one rule, or a method: one step is chosen "
                "for the whole run; add a walk without phases"
            )
        return [
            Method(label, self.designs[label][0], phases[0].rule, self.tokens[label], phases[0].exchange)  # type: ignore[arg-type]
            for label, phases in self.walks.items()
            if len(phases) == 1
        ]


class Part(NamedTuple):
    """A phase of a walk as written in the spec, by family, and its name in error messages."""

    where: str
    until: int | None
    tables: dict[str, dict[str, Any]]


def parts_of(tables: Tables, source: str) -> list[tuple[str, list[Part]]]:
    """For each walk, its name in error messages and its phases.

    Raises
    ------
    SpecError
        If a walk does not have exactly one of phases, a method, or a design with a rule.
    """
    values = {"walk": [{"label": walk.label} for walk in tables.walk]}
    listed = []
    for number, walk in enumerate(tables.walk):
        where = f"{source}: {place(['walk', number], values)}"
        _check_parts(walk, where)
        if walk.phase:
            places = [place(["walk", number, "phase", index], values) for index in range(len(walk.phase))]
            parts = [
                Part(f"{source}: {words}", phase.until, _given(phase, "design", "rule", "exchange"))
                for words, phase in zip(places, walk.phase, strict=True)
            ]
        else:
            parts = [Part(where, None, _given(walk, "design", "rule", "exchange", "method"))]
        listed.append((where, parts))
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


def make_plan(tables: Tables, source: str, importer: Importer) -> Plan:
    """Create everything that a spec names, and check that it fits together.

    Parameters
    ----------
    tables
        The spec.
    source
        Its name in error messages.
    importer
        Imports the user classes that the spec names; files are relative to its folder.

    Raises
    ------
    SpecError
        If a value is out of its range; the message names the table.
    """
    graph, problem, origin = make_problem(tables, source, importer)
    files = {name: digest(importer.folder / name) for name in files_of(tables)}
    options = tables.run.model_dump(exclude={"checkpoint"})
    if isinstance(options["runtime"], dict):
        options["runtime"] = catalogue.build("runtime", options["runtime"], f"{source}: [run]: runtime", importer)
    plan = Plan(problem, {}, options, {}, files, origin=origin)
    places = {}
    for walk, (where, parts) in zip(tables.walk, parts_of(tables, source), strict=True):
        made = _made(walk, parts, importer)
        try:
            name = _add(plan, walk.label, made, graph, tables.run.steps)
        except FreewalkError as error:
            raise SpecError(f"{where}: {str(error).removeprefix('learn: ').removeprefix('run: ')}") from error
        places[name] = where
    plan = replace(plan, classes=tuple(importer.classes.values()))
    try:
        _check_run(tables.run, plan)
    except FreewalkError as error:
        raise SpecError(f"{source}: [run]: {str(error).removeprefix('run: ')}") from error
    for name, where in places.items():
        try:
            _check_exchanges(plan, name)
        except FreewalkError as error:
            raise SpecError(f"{where}: {error}") from error
    return plan


class Posed(NamedTuple):
    """The problem of a spec: the graph, the objective and the origin of its data."""

    graph: Graph
    problem: Objective
    origin: Origin


def make_problem(tables: Tables, source: str, importer: Importer) -> Posed:
    """Create the problem alone, without the walks; parameters and errors as for `make_plan`."""
    graph = catalogue.build("graph", tables.graph, f"{source}: [graph]", importer)
    origin = Origin()
    given = {"n": graph.n, "graph": graph, "origin": origin}
    return Posed(graph, catalogue.build("problem", tables.problem, f"{source}: [problem]", importer, **given), origin)


class _Made(NamedTuple):
    """The parts of a walk; each list has one entry per phase."""

    label: str | None
    until: list[int | None]
    designs: list[Design]
    rules: list[Rule]
    exchanges: list[Exchange | None]
    tokens: int | str


def _made(walk: Walk, parts: list[Part], importer: Importer) -> _Made:
    def build(part: Part, family: str) -> Any:
        return catalogue.build(family, part.tables[family], f"{part.where}: {family}", importer)

    if walk.method is not None:
        method: Method = build(parts[0], "method")
        return _Made(method.label, [None], [method.design], [method.rule], [method.exchange], method.tokens)
    return _Made(
        None,
        [part.until for part in parts],
        [build(part, "design") for part in parts],
        [build(part, "rule") for part in parts],
        [build(part, "exchange") if "exchange" in part.tables else None for part in parts],
        1 if walk.tokens is None else walk.tokens,
    )


def _add(plan: Plan, label: str | None, made: _Made, graph: Graph, steps: int) -> str:
    """Add a walk to the plan; returns its label."""
    from freewalk.jobs import arguments

    label = label or made.label
    kernels = [
        _kernel(design, graph, plan.problem, label if len(made.designs) == 1 else None) for design in made.designs
    ]
    phases = [Phase(*one) for one in zip(made.until, kernels, made.rules, made.exchanges, strict=True)]
    arguments.phases_cover(arguments.phases(phases, None, plan.problem), steps)
    arguments.schedules(tuple(phases), steps)
    count = arguments.tokens(made.tokens, graph)
    name = label or label_of(phases, count)
    if name in plan.walks:
        raise SpecError(f"another [[walk]] is also called {name!r}; give each its own label")
    plan.walks[name], plan.designs[name], plan.tokens[name] = phases, made.designs, made.tokens
    return name


def _kernel(design: Design, graph: Graph, problem: Objective, label: str | None) -> Kernel:
    """The kernel of a design on a graph; a user's design may raise any error."""
    try:
        return kernel_of(design, graph, problem, label)
    except FreewalkError:
        raise
    except Exception as error:
        if not is_foreign(design):
            raise
        raise SpecError(f"{type(design).__name__} fails on this graph ({blame(error)})") from error


def _check_run(run: Run, plan: Plan) -> None:
    """Check what `learn` would reject, before any walk starts."""
    from freewalk.jobs import arguments
    from freewalk.run import checkpoint
    from freewalk.runtimes import runtime_for

    runtime_for(plan.options["runtime"], plan.problem, ())
    arguments.check.whole("run", "steps", run.steps, 1, checkpoint.MOST_STEPS)
    if run.precision is not None:
        arguments.check.choice("run", "precision", run.precision, arguments.PRECISIONS)
    if run.start is not None and all(isinstance(tokens, str) for tokens in plan.tokens.values()):
        remedy = 'leave it out: with tokens = "nodes" each token starts at its own node'
        raise arguments.check.fail("run", "start", run.start, "nothing", remedy)
    for job in plan.jobs.values():
        arguments.goal(run.goal, plan.problem, job.tokens, "run")
        checkpoint.check_room(job, run.walks, run.steps, run.every)
        kept = int((arguments.paths(run.paths, run.walks * job.tokens, job.tokens) >= 0).sum())
        checkpoint.check_room(job, run.walks, run.steps, run.every, kept)
    for label in plan.walks:
        _nodes(plan, label)


def _nodes(plan: Plan, label: str) -> NDArray[np.int32]:
    """Where the tokens of a walk start."""
    from freewalk.jobs import arguments

    options = plan.options_of(label)
    importance = arguments.importance(options["start"], plan.problem, plan.walks[label][0].kernel)
    return arguments.start(
        options["start"], options["seed"], options["walks"], plan.graph, importance, options["tokens"]
    )


def _check_exchanges(plan: Plan, label: str) -> None:
    """Try the exchanges of a walk; a user's exchange may raise any error."""
    from freewalk.jobs import arguments

    job = plan.jobs[label]
    try:
        arguments.exchanges(job.phases, job.tokens, _nodes(plan, label))
    except FreewalkError:
        raise
    except Exception as error:
        own = [phase.exchange for phase in job.phases if is_foreign(phase.exchange)]
        if not own:
            raise
        raise SpecError(f"{type(own[0]).__name__} fails on these tokens ({blame(error)})") from error


def files_of(tables: Tables) -> list[str]:
    """The files that a spec names, as written there."""
    named = [tables.graph.get("path") if tables.graph.get("kind") == "read" else None, tables.problem.get("data")]
    return [name for name in named if isinstance(name, str)]


def digest(file: Path) -> str:
    """The SHA-256 of a file, to detect changes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
