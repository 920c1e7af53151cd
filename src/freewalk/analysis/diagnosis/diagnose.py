"""How a diagnosis decides: whether importance sampling is entrapped, whether it pays, and which design is best.

`diagnose` computes, in this order and within one time budget:

1. the traps of the importance walk (`traps/sets.py`): a set is a trap if its memory is at least `FACTOR` times that of
   the uniform walk, and longer by at least one update per node. This alone decides *entrapped*;
2. for each design its stationary distribution, its messages, and its excess visits to the worst set;
3. the race (`learning/race.py`), for least squares only: each design gets the step that settles at the goal, and the
   exact recursion counts updates, first for the uniform walk, then for all others until `PATIENCE` times as many. It
   decides *slower* and *best*.

The words *entrapped*, *slower* and *best* follow from these numbers in `findings.py`. A part that fails or finds no
time is left out, and named, and the rest still counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check
from freewalk.analysis.chain.times import sojourn_times
from freewalk.analysis.chain.traffic import messages_per_visit
from freewalk.analysis.diagnosis.findings import Diagnosis, Forecast, Goal
from freewalk.analysis.diagnosis.words import IMPORTANCE, UNIFORM
from freewalk.analysis.learning.model import is_distribution, start_law
from freewalk.analysis.learning.race import Race, largest_settling, race
from freewalk.analysis.learning.recursion import Recursion
from freewalk.analysis.theory import importance_pays
from freewalk.analysis.traps.returns import Returns
from freewalk.analysis.traps.sets import FACTOR, held_sets, name_nodes, traps_among
from freewalk.checks import cores, show
from freewalk.designs import MHLJ, Design, Metropolis, NonBacktracking
from freewalk.designs.design import check_importance
from freewalk.designs.kernel import Kernel, check_graph
from freewalk.errors import AnalysisError, KernelError
from freewalk.graphs import Graph
from freewalk.linear import deadline
from freewalk.linear.arrays import Floats, Ints
from freewalk.linear.deadline import OutOfTime
from freewalk.objectives import LeastSquares, Objective
from freewalk.rules import SGD

#: The designs to compare: the two in question, the paper's walk, and three that sample less unevenly.
DESIGNS: Mapping[str, Design] = {
    UNIFORM: Metropolis(power=0.0),
    IMPORTANCE: Metropolis(power=1.0),
    "MHLJ, jump 0.1": MHLJ(0.1, 0.5, 3),
    "MHLJ, jump 0.5": MHLJ(0.5, 0.5, 3),
    "MH tempered": Metropolis(power=0.5),
    "NonBacktracking, tempered": NonBacktracking(Metropolis(power=0.5)),
    "MHLJ corrected, tempered": MHLJ(0.5, 0.5, 3, power=0.5, corrected=True),
}

#: The updates of a design are predicted up to this many nodes, and this many numbers in the state of the recursion.
MOST_NODES, MOST_NUMBERS = 2000, 150_000
#: A design that needs more than this many times the updates of the uniform walk is given up.
PATIENCE = 20.0
MOST_UPDATES = 1_000_000
#: The steady error for which steps are chosen, and the error at which counting stops, as fractions of the optimal loss.
SETTLE, REACH = 0.25, 0.5

Result = TypeVar("Result")


def diagnose(
    graph: Graph,
    importance: ArrayLike | Objective,
    *,
    start: str | ArrayLike = "uniform",
    dim: int = 5,
    samples: int = 1,
    equal: bool = False,
    designs: Mapping[str, Design] | None = None,
    budget: float = 60.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Diagnosis:
    """Predict, before any training, whether importance sampling pays or is entrapped, and what to use instead.

    *Entrapped* is judged by `find_traps`: importance makes the walk keep returning to some nodes, for ten times as long
    as the uniform walk, and longer by at least as many updates as the graph has nodes. This predicts that importance
    sampling needs at least twice the updates it would need if the graph slowed it down no more than it slows down the
    uniform walk. It may still pay.

    For a least-squares problem, designs race on its data: each gets the step at which its expected loss settles at
    1.25 × the optimum (or 1 / max w_v L_v, the largest step that is tried, if that settles lower), and the exact
    recursion counts the updates until 1.5 × the optimum. Of any other objective, and of importance alone, only traps
    and messages are known: no design and no step are recommended.

    Parameters
    ----------
    graph
        The graph to walk on.
    importance
        The problem itself, or one positive number per node, such as `problem.smoothness`.
    start
        A node, nodes, a distribution, "uniform", or "heaviest" (the node with the largest importance). Nodes are given
        by number or, if the graph has names, by name.
    dim, samples
        Without effect. Earlier versions drew data of this size to stand in for yours.
    equal
        If the uniform walk cannot take a step large enough to settle at the desired error, lower the error for all
        designs to the one it settles at, so that the steady errors are exactly equal. Importance sampling then seldom
        pays, because raising that step limit is its advantage.
    designs
        What to compare with the uniform and the importance walk, by label; None uses `DESIGNS`.
    budget
        The time limit in seconds. Parts not finished by then are omitted, and listed in `left_out`. Small graphs (a
        thousand nodes with ten edges each, ten features) take about ten seconds.
    progress
        Called with the next part, the number of parts done, and their total number.

    Returns
    -------
    Diagnosis
        Print it; its fields have the numbers. `best` is the design to use, None if the problem is not least squares.

    Raises
    ------
    FreewalkError
        If the graph, the importance or the start is invalid.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(60)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    >>> found = fw.diagnose(graph, problem, start=0)
    >>> found.entrapped, found.slower, found.traps[0].nodes
    (True, True, (0, 1, 2, 59))
    >>> found.best, found.rule.step
    (Metropolis(power=0), 0.00267)
    >>> found = fw.diagnose(graph, problem.smoothness)
    >>> found.entrapped, found.slower, found.best
    (True, None, None)
    """
    check_graph("diagnose", graph)
    check.function("diagnose", "progress", progress, ("label", "done", "total"))
    check.flag("diagnose", "equal", equal)
    budget = check.real("diagnose", "budget", budget, above=0.0, finite=False, remedy="it is in seconds")
    for name, value in (("dim", dim), ("samples", samples)):
        check.whole("diagnose", name, value, 1)
    listed = _listed(designs)
    given: Any = importance
    values = check_importance("diagnose", given.smoothness if issubclass(type(given), Objective) else given, graph)
    problem = given if issubclass(type(given), LeastSquares) else None
    if problem is not None:
        levels(problem)  # raises if there is nothing to learn
    first = start_law("diagnose", start, graph, values)
    kernels = {label: design.kernel(graph, values, label=label) for label, design in listed.items()}
    parts = _Parts(progress, total=1 + 3 * len(kernels) + (0 if problem is None else 1 + len(kernels)))
    with deadline.within(budget):
        with deadline.within(budget / 2):
            held, unjudged = parts.compute("traps", lambda: held_sets("diagnose", kernels[IMPORTANCE])) or ([], 0)
        if unjudged:
            parts.left_out[f"{unjudged} of the sets that may be traps"] = "no time left"
        nodes = np.array(held[0].nodes if held else [int(values.argmax())])
        forecasts = {label: _forecast(listed[label], kernel, nodes, parts) for label, kernel in kernels.items()}
        goal, races = (None, {}) if problem is None else _races(problem, kernels, first, equal, parts)
    forecasts |= {label: replace(forecasts[label], race=raced) for label, raced in races.items()}
    return Diagnosis(
        graph=graph,
        importance=values,
        rates=importance_pays(values),
        traps=tuple(traps_among(held, FACTOR, graph.n, 10)),
        held=held[0] if held else None,
        stays=sojourn_times(kernels[IMPORTANCE]),
        forecasts=forecasts,
        start=_start_in_words(start, first, graph, values),
        exact=problem is not None,
        goal=goal,
        budget=budget,
        left_out=parts.left_out,
    )


class _Parts:
    """The parts of a diagnosis: each is announced, and may be omitted without affecting the rest."""

    def __init__(self, progress: Callable[[str, int, int], None] | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._lock = Lock()
        self._told: dict[str, None] = {}
        self.left_out: dict[str, str] = {}

    def compute(self, what: str, part: Callable[[], Result]) -> Result | None:
        """Compute a part; None if time has run out, or its numbers do not allow it."""
        with self._lock:
            if self._progress is not None and what not in self._told:
                self._progress(what, len(self._told), self._total)
            self._told[what] = None
        try:
            deadline.check()
            with np.errstate(all="ignore"):
                return part()
        except OutOfTime:
            self.left_out[what] = "no time left"
        except (AnalysisError, KernelError) as error:
            self.left_out[what] = str(error).split(";")[0]
        except (np.linalg.LinAlgError, ArithmeticError, MemoryError) as error:
            self.left_out[what] = f"its numbers are too large or too small for it, {type(error).__name__}"
        return None


def _listed(designs: Mapping[str, Design] | None) -> dict[str, Design]:
    """The two designs that the verdict is about, and those to compare with them."""
    expected = "designs by label, such as {'mine': fw.designs.MHLJ(0.1, 0.5, 3)}"
    given = DESIGNS if designs is None else designs
    check.instance("diagnose", "designs", given, Mapping, expected)
    listed = {label: DESIGNS[label] for label in (UNIFORM, IMPORTANCE)}
    for label, design in given.items():
        check.text("diagnose", "a label of designs", label)
        check.instance("diagnose", f"designs[{label!r}]", design, Design, "a design, such as fw.designs.SimpleWalk()")
        if label in listed and repr(design) != repr(listed[label]):
            raise AnalysisError(f"diagnose: {label!r} is {listed[label]!r}, expected another label for {show(design)}")
        listed[label] = design
    return listed


def levels(problem: LeastSquares) -> tuple[float, float]:
    """The steady error for which steps are chosen, and the one at which counting stops, as losses above the optimum.

    They are fractions of the optimal loss or, if that is nearly 0 or nearly the loss of the zero model, of the first
    error.
    """
    best = problem.loss(problem.optimum())
    first = problem.loss(np.zeros(problem.dim)) - best
    if not first > 1e-12 * best:
        raise AnalysisError("diagnose: the zero model is already optimal on these data, expected something to learn")
    scale = float(np.clip(best, 1e-4 * first, 0.2 * first))
    return SETTLE * scale, REACH * scale


def _goal(problem: LeastSquares, kernels: Mapping[str, Kernel], equal: bool) -> Goal:
    """The goal of the race; if steady errors must be equal, one at which both walks can settle."""
    settle = levels(problem)[0]
    for label in (UNIFORM, IMPORTANCE) if equal else ():
        settle = min(settle, largest_settling(Recursion("diagnose", problem, kernels[label], SGD(1.0))))
    best = problem.loss(problem.optimum())
    return Goal(settle, settle * REACH / SETTLE, best, problem.loss(np.zeros(problem.dim)) - best, MOST_UPDATES)


def _races(
    problem: LeastSquares, kernels: Mapping[str, Kernel], first: Floats, equal: bool, parts: _Parts
) -> tuple[Goal | None, dict[str, Race | None]]:
    """The goal, and the race of each design; none of a problem whose race would take more than about a minute."""
    numbers = problem.n * (problem.dim + 1) * (problem.dim + 2) // 2
    if problem.n > MOST_NODES or numbers > MOST_NUMBERS:
        most = f"{MOST_NODES:,} nodes and {MOST_NUMBERS:,} numbers in the recursion"
        parts.left_out["updates"] = f"they are predicted up to {most}, here {problem.n:,} and {numbers:,}"
        return None, {}
    goal = parts.compute("the goal", partial(_goal, problem, kernels, equal))
    if goal is None:
        return None, {}

    def run(label: str, goal: Goal) -> Race | None:
        return parts.compute(f"updates of {label}", partial(_race, problem, kernels[label], goal, first))

    uniform = run(UNIFORM, goal)
    if uniform is not None:
        goal = replace(goal, most=min(MOST_UPDATES, PATIENCE * max(uniform.updates, 10.0)))
    # Side by side: compiled loops and linear algebra release the interpreter. A thread starts without the limits that
    # are set here, so they are copied.
    with ThreadPoolExecutor(cores()) as pool:
        rest = {label: pool.submit(copy_context().run, run, label, goal) for label in kernels if label != UNIFORM}
    return goal, {UNIFORM: uniform, **{label: one.result() for label, one in rest.items()}}


def _race(problem: LeastSquares, kernel: Kernel, goal: Goal, first: Floats) -> Race:
    """The race of one design; one that changes with time is evaluated at its first step."""
    return race(problem, kernel.at(0), settle=goal.settle, reach=goal.reach, start=first, most=int(goal.most))


def _forecast(design: Design, kernel: Kernel, nodes: Ints, parts: _Parts) -> Forecast:
    """What one design would do, without its race."""
    label, kernel = kernel.label, kernel.at(0)
    found = parts.compute(f"stationary distribution of {label}", lambda: Returns("diagnose", kernel))
    if found is None:
        return Forecast(label, design, np.nan, np.nan, np.nan, race=None)
    distance = float(np.abs(found.law - np.asarray(kernel.target)).sum() / 2)
    messages = parts.compute(f"messages of {label}", lambda: float(found.law @ messages_per_visit(kernel)[0]))
    excess = parts.compute(f"returns of {label}", lambda: found.excess(nodes))
    excess, messages = (np.nan if value is None else value for value in (excess, messages))
    return Forecast(label, design, excess, distance, messages, race=None)


def _start_in_words(start: str | ArrayLike, law: Floats, graph: Graph, importance: Floats) -> str:
    if isinstance(start, str) and start == "uniform":
        return "a uniformly random node"
    if is_distribution(start):
        return "a given distribution over the nodes"
    nodes = np.flatnonzero(law).tolist()
    named = name_nodes([graph.node_name(node) for node in nodes])
    if len(nodes) > 1:
        return f"one of {named}"
    return named + (", the heaviest" if nodes[0] == importance.argmax() else "")
