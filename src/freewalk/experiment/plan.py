"""What a spec describes, made and checked: nothing in it can be wrong any more."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from freewalk.designs import Design
from freewalk.errors import FreewalkError, SpecError
from freewalk.experiment import catalogue
from freewalk.experiment.own import Importer, blame
from freewalk.experiment.tables import Run, Tables, place
from freewalk.graphs import Graph
from freewalk.kernel import Kernel
from freewalk.objectives import Objective
from freewalk.phases import Phase
from freewalk.runtimes import Job


@dataclass(frozen=True, eq=False)
class Plan:
    """What a spec describes.

    Attributes
    ----------
    problem
        What is learned.
    walks
        The phases of each walk, by its label.
    options
        The other arguments of `learn`.
    designs
        The designs of these phases.
    files
        The SHA-256 of each file that was read, by its path as the spec writes it.
    classes
        The classes of the user's own that were imported.
    """

    problem: Objective
    walks: dict[str, list[Phase]]
    options: dict[str, Any]
    designs: dict[str, list[Design]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    classes: tuple[type, ...] = ()

    @property
    def graph(self) -> Graph:
        """Where the walks walk."""
        return self.first_job.kernel.graph

    @property
    def first_job(self) -> Job:
        """The first walk as runtimes take it, to see whether they do."""
        phases = tuple(next(iter(self.walks.values())))
        return Job(self.problem, phases, self.options["seed"], self.options["precision"])


class Part(NamedTuple):
    """A phase of a walk as the spec writes it, and how errors call it."""

    where: str
    until: int | None
    design: dict[str, Any]
    rule: dict[str, Any]


def parts_of(tables: Tables, source: str) -> list[tuple[str, list[Part]]]:
    """By walk: how errors call it, and its phases.

    Raises
    ------
    SpecError
        If a walk has neither phases nor a design and a rule, or both.
    """
    values = {"walk": [{"label": walk.label} for walk in tables.walk]}
    listed = []
    for number, walk in enumerate(tables.walk):
        where = f"{source}: {place(['walk', number], values)}"
        if walk.phase and (walk.design is not None or walk.rule is not None):
            raise SpecError(f"{where} has phases as well as a design or a rule; each phase names its own")
        if walk.phase:
            parts = [
                Part(f"{source}: {place(['walk', number, 'phase', index], values)}", p.until, p.design, p.rule)
                for index, p in enumerate(walk.phase)
            ]
        elif walk.design is None or walk.rule is None:
            missing = "design" if walk.design is None else "rule"
            raise SpecError(f"{where} needs the key {missing!r}, or tables [[walk.phase]]")
        else:
            parts = [Part(where, None, walk.design, walk.rule)]
        listed.append((where, parts))
    return listed


def make_plan(tables: Tables, source: str, importer: Importer) -> Plan:
    """Make everything that a spec names, and check that it fits together.

    Parameters
    ----------
    tables
        The spec.
    source
        How errors call it.
    importer
        Imports the classes of the user's own that it names; its folder is also where files are.

    Raises
    ------
    SpecError
        If a value is out of its range; the message names the table.
    """
    from freewalk import entering

    graph = catalogue.build("graph", tables.graph, f"{source}: [graph]", importer)
    problem = catalogue.build("problem", tables.problem, f"{source}: [problem]", importer, n=graph.n, graph=graph)
    walks: dict[str, list[Phase]] = {}
    designs: dict[str, list[Design]] = {}
    for walk, (where, parts) in zip(tables.walk, parts_of(tables, source), strict=True):
        made = [catalogue.build("design", part.design, f"{part.where}: design", importer) for part in parts]
        rules = [catalogue.build("rule", part.rule, f"{part.where}: rule", importer) for part in parts]
        try:
            label = walk.label if len(parts) == 1 else None
            kernels = [_kernel(design, graph, problem, label) for design in made]
            phases = [Phase(*phase) for phase in zip([part.until for part in parts], kernels, rules, strict=True)]
            entering.phases_cover(entering.phases(phases, None, problem), tables.run.steps)
            entering.schedules(tuple(phases), tables.run.steps)
        except FreewalkError as error:
            raise SpecError(f"{where}: {str(error).removeprefix('learn: ')}") from error
        name = walk.label or " → ".join(kernel.label for kernel in kernels)
        if name in walks:
            raise SpecError(f"{where}: another [[walk]] is called {name!r} as well; give each a label of its own")
        walks[name], designs[name] = phases, made
    files = {name: digest(importer.folder / name) for name in files_of(tables)}
    plan = Plan(problem, walks, tables.run.model_dump(), designs, files, tuple(importer.classes.values()))
    try:
        _check_run(tables.run, plan)
    except FreewalkError as error:
        raise SpecError(f"{source}: [run]: {str(error).removeprefix('run: ')}") from error
    return plan


def _kernel(design: Design, graph: Graph, problem: Objective, label: str | None) -> Kernel:
    try:
        return design.kernel(graph, problem.smoothness, label)
    except FreewalkError:
        raise
    except Exception as error:
        if type(design).__module__.partition(".")[0] == "freewalk":
            raise
        raise SpecError(f"{type(design).__name__} fails on this graph ({blame(error)})") from error


def _check_run(run: Run, plan: Plan) -> None:
    """What `learn` would object to, before any of the walks."""
    from freewalk import entering, loop
    from freewalk.runtimes import runtime_named

    runtime_named(run.runtime)
    entering.check.whole("run", "steps", run.steps, 1, loop.MOST_STEPS)
    entering.check.choice("run", "precision", run.precision, entering.PRECISIONS)
    loop.check_room(plan.first_job, run.walks, run.steps, run.every)
    entering.start(run.start, run.seed, run.walks, plan.graph, plan.problem.smoothness)
    kept = int((entering.paths(run.paths, run.walks) >= 0).sum())
    loop.check_room(plan.first_job, run.walks, run.steps, run.every, kept)


def files_of(tables: Tables) -> list[str]:
    """The files that a spec names, as it writes them."""
    named = [tables.graph.get("path") if tables.graph.get("kind") == "read" else None, tables.problem.get("data")]
    return [name for name in named if isinstance(name, str)]


def digest(file: Path) -> str:
    """The SHA-256 of a file, by which a changed one is known."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
