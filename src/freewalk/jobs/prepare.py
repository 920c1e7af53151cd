"""Prepare a run: a checked job, the nodes where its tokens start, and its first state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks
from freewalk.designs import Design
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError, KernelError
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Phase, count_marks
from freewalk.objectives import Objective
from freewalk.rules import Rule

PRECISIONS = ("float64", "float32")
MOST_STEPS = 2**62  # sums of two such numbers fit into 64 bits
_MOST_ROWS = 2**32 - 1  # draws number them with 32 bits
_check = Checks(FreewalkError)


def prepare(
    who: str,
    objective: Objective | None,
    kernel: Kernel | Sequence[Phase],
    rule: Rule | None = None,
    *,
    steps: int,
    exchange: Exchange | None = None,
    tokens: float | str = 1,
    seed: int = 0,
    precision: str | None = None,
) -> Job:
    """A job whose parts fit each other and run this many steps; `who` is the caller in error messages."""
    phases = arguments.phases(kernel, rule, objective, who, exchange)
    steps = _check.whole("run", "steps", _check.whole("run", "steps", steps, 1), 1, MOST_STEPS)
    for phase in phases[:-1]:
        if phase.until is not None and phase.until >= steps:
            got = f"one begins at step {phase.until}, but the run ends at {steps}"
            raise FreewalkError(f"phases: {got}; remove it or run longer")
    end = phases[-1].until
    if end is not None and end < steps:
        got = f"the last ends at step {end}, before the {steps} steps of the run"
        raise FreewalkError(f"phases: {got}; set its until to None")
    # All schedules are evaluated over the whole run in advance, so that an invalid value does not end it half-way.
    grid = np.unique(np.linspace(0, steps - 1, 1000).astype(np.int64))
    for phase in phases:
        phase.kernel.probabilities(grid)
        if phase.rule is not None:
            owner, remedy = type(phase.rule).__name__, "give one number for each of the steps"
            _check.floats(owner, "rates()", phase.rule.rates(grid), grid.shape, low=0.0, remedy=remedy)
    count = arguments.tokens("run", tokens, phases[0].kernel.graph.n)
    if precision is None:
        precision = "float64" if objective is None else objective.precision
    _check.choice(who, "precision", precision, PRECISIONS)
    return Job(objective, phases, _check.seed(who, seed), precision, count)


class Start(NamedTuple):
    """Where the tokens of a job start, and how long it runs."""

    nodes: NDArray[np.int32]
    path_of: NDArray[np.int64]  # for each token, the row of its path, or -1
    steps: int
    every: int


def place(
    who: str,
    job: Job,
    *,
    steps: int,
    walks: int,
    every: int,
    start: str | ArrayLike | None,
    tokens: float | str,
    paths: int | Sequence[int] = 0,
) -> Start:
    """Where the tokens of a job start, if there is enough memory for all of them; `tokens` as in `prepare`."""
    steps = _check.whole("run", "steps", steps, 1)
    walks, every = _check.whole(who, "walks", walks, 1), _check.whole("run", "every", every, 1)
    check_room(job, walks, steps, every)
    path_of = arguments.paths(paths, walks * job.tokens, job.tokens)
    if kept := int((path_of >= 0).sum()):
        check_room(job, walks, steps, every, kept)
    importance = job.kernel.target
    if isinstance(start, str) and start == "heaviest" and job.objective is not None:
        importance = job.objective.smoothness  # not computed otherwise, since it may take long
    own = tokens if isinstance(tokens, str) else job.tokens
    nodes = arguments.start(start, job.seed, walks, job.kernel.graph, importance, own)
    return Start(nodes, path_of, steps, every)


def first_state(job: Job, start: Start, initial: ArrayLike | None = None) -> State:
    """The state in which a job begins; what the rules and exchanges need of its start nodes is checked."""
    nodes = start.nodes
    models: NDArray[Any] = np.zeros((nodes.size, 0))
    if job.objective is not None:
        walks = nodes.size // job.tokens
        models = arguments.models(initial, job.objective, walks, job.seed, job.precision, job.tokens)
        job.objective.admit(models[0])
    if any(phase.exchange is not None for phase in job.phases):
        arguments.exchanges(job.phases, job.tokens, nodes)
    if any(phase.rule is not None and phase.rule.needs_every_node for phase in job.phases):
        arguments.visits_everywhere(job.phases, nodes)
    if job.objective is not None:
        arguments.targets(job.phases)  # last, because it computes something
    return State.begin(job, nodes, models, start.steps, start.path_of)


@contextmanager
def blamed_on(where: str, error: type[FreewalkError] = FreewalkError) -> Iterator[None]:
    """Errors within name this place, instead of the function that would have been called."""
    try:
        yield
    except FreewalkError as found:
        words = str(found).removeprefix("learn: ").removeprefix("run: ")
        raise error(f"{where}: {words}") from found


def check_room(job: Job, walks: int, steps: int, every: int, kept: int = 0) -> None:
    """Raise an error unless a run fits into memory, before any of it is allocated."""
    count = count_marks(steps, every, steps)
    columns = len(job.measured) + 1  # one more: they are joined one after the other
    model, n, rows = max(job.message_bytes(phase.rule) for phase in job.phases), job.kernel.graph.n, walks * job.tokens
    who = f"{walks:,} walks" if job.tokens == 1 else f"{walks:,} walks × {job.tokens:,} tokens"
    copies = 1 + (job.tokens > 1)  # exchanges need memory to mix
    sizes = [rows * (32.0 + copies * model), 8.0 * walks * count * columns, 8.0 * kept * (steps + 1)]
    _check.room("run", f"the models of {who}", sizes[0], "run fewer at a time")
    _check.whole("run", f"number of {'walks' if job.tokens == 1 else 'walks × tokens'}", rows, 1, _MOST_ROWS)
    stored = [0.0]
    if any(phase.kernel.memory is not None and phase.kernel.memory.counts for phase in job.phases):
        remedy = "run fewer walks at a time, or use NonBacktracking, which remembers one node"
        _check.room("run", f"the visit counts of {who} on {n:,} nodes", 8.0 * rows * n, remedy)
    for rule in (phase.rule for phase in job.phases if phase.rule is not None and job.objective is not None):
        item, stores = np.dtype(job.precision).itemsize, len(rule.stores)
        keepers, which = (walks, f"{walks:,} walks") if rule.shared else (rows, who)
        vectors = f"{stores} vector{'s' * (stores != 1)} of {job.dim:,} numbers × {item} bytes"
        counts = " and a count of 8 bytes" * rule.counts_visits
        what = f"what stays at the nodes ({which} × {n:,} nodes × {vectors}{counts})"
        size = float(n) * (keepers * stores * job.dim * item + rows * 8 * rule.counts_visits)
        _check.room(type(rule).__name__, what, size, "run fewer walks at a time, or take precision='float32'")
        stored.append(size)
    _check.room("run", f"measuring {walks:,} walks {count:,} times", sizes[1], "increase `every`")
    _check.room("run", f"{kept:,} paths of {steps:,} steps", sizes[2], "keep fewer paths")
    # When a rule begins, the vectors of the previous one are still in memory.
    most = max(one + other for one, other in pairwise([*stored, 0.0]))
    _check.room("run", "models, measurements, paths and what stays at the nodes", sum(sizes) + most, "run fewer walks")


def kernel_of(design: Design, graph: Graph, problem: Objective, label: str | None = None) -> Kernel:
    """Compile a design for a graph; a smoothness that must be estimated is computed only if the design needs it."""
    known = problem.known_smoothness
    if known is None and not _is_foreign_within(design):  # estimating it may take long
        try:
            return design.kernel(graph, None, label)
        except KernelError:
            pass
    return design.kernel(graph, problem.smoothness if known is None else known, label)


def is_foreign(thing: Any) -> bool:
    """Whether an object is an instance of a user-defined class."""
    return thing is not None and type(thing).__module__.partition(".")[0] != "freewalk"


def _is_foreign_within(design: Design) -> bool:
    """Whether a design, or one within it, is user-defined, so that its needs are unknown."""
    inner = [part for part in vars(design).values() if isinstance(part, Design)]
    return is_foreign(design) or any(map(_is_foreign_within, inner))
