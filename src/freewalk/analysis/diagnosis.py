"""Before any training: will importance sampling pay or be entrapped, where, and what would each design do instead."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from freewalk import rng
from freewalk.analysis.findings import IMPORTANCE, UNIFORM, Diagnosis, Forecast, Goal
from freewalk.analysis.law import distance_to_target, stationary
from freewalk.analysis.model import start_law
from freewalk.analysis.moments import Floats
from freewalk.analysis.race import Race, largest_settling, race
from freewalk.analysis.recursion import Recursion
from freewalk.analysis.sets import Trap, find_traps, name_nodes
from freewalk.analysis.theory import importance_pays
from freewalk.analysis.times import escape_time, sojourn_times
from freewalk.analysis.traffic import messages_per_visit
from freewalk.designs import MHLJ, Design, Metropolis
from freewalk.designs.design import check_importance
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.kernel import Kernel, check_graph
from freewalk.learning import SGD
from freewalk.objectives import LeastSquares, Objective

#: What is compared: the two that the question is about, the paper's walk, and two that sample less unevenly.
DESIGNS: Mapping[str, Design] = {
    UNIFORM: Metropolis(power=0.0),
    IMPORTANCE: Metropolis(power=1.0),
    "MHLJ, jump 0.1": MHLJ(0.1, 0.5, 3),
    "MHLJ, jump 0.5": MHLJ(0.5, 0.5, 3),
    "MH tempered": Metropolis(power=0.5),
    "MHLJ corrected, tempered": MHLJ(0.5, 0.5, 3, power=0.5, corrected=True),
}

#: The updates of a design are predicted up to so many nodes, and so many numbers in the state of the recursion.
MOST_NODES, MOST_NUMBERS = 2000, 150_000
#: Stand-in data are drawn this often, the verdict being the middle one; once for more than so many numbers.
DRAWS, FEW_NUMBERS = 5, 20_000
#: A design that needs more than so many times the updates of the uniform walk is not followed further.
PATIENCE = 20.0
MOST_UPDATES = 1_000_000
#: The steady error that steps are chosen for, and the error at which the clock stops, in parts of the optimal loss.
SETTLE, REACH = 0.25, 0.5

_DIRECTIONS, _TRUTH, _NOISE = 101, 102, 103  # streams of the stand-in data


def diagnose(
    graph: Graph,
    importance: ArrayLike | Objective,
    *,
    start: str | ArrayLike = "uniform",
    dim: int = 5,
    samples: int = 1,
    equal: bool = False,
    designs: Mapping[str, Design] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Diagnosis:
    """Say before any training whether importance sampling pays on this graph, or is entrapped, and what to use instead.

    Each design gets the step at which its expected loss settles at 1.25 × the optimum (or 1 / max w_v L_v, the largest
    that is tried, where that settles lower), and the exact recursion counts the updates until 1.5 × the optimum. Given
    a least-squares problem that is done on its data; given the importance alone, on stand-in data with that importance:
    features in random directions, one optimum for all nodes, equal noise; of five draws, the one with the middle ratio.

    Parameters
    ----------
    graph
        The graph to walk.
    importance
        A positive number a node, such as `problem.smoothness`, or the problem itself.
    start
        A node, nodes, a law, "uniform", or "heaviest", the node of the largest importance.
    dim, samples
        What is known of the data besides the importance: the number of features, and of samples a node. Not used with a
        least-squares problem.
    equal
        Where the uniform walk cannot take a step so large that it settles at the wanted error, lower the error for all
        to what it settles at, so that the steady errors are equal to the digit. Importance sampling then seldom pays:
        what it lifts is that limit.
    designs
        What to compare with the uniform and the importance walk, by label; None takes `DESIGNS`.
    progress
        Called with the label of each design before its turn.

    Returns
    -------
    Diagnosis
        Print it; its fields have the numbers.

    Raises
    ------
    FreewalkError
        If graph, importance or start do not fit.

    Examples
    --------
    >>> import freewalk as fw
    >>> found = fw.diagnose(fw.graphs.ring(60), [80.0, 80.0] + 58 * [1.0], start=0)
    >>> found.entrapped, found.slower, found.traps[0].nodes
    (True, True, (0, 1))
    """
    check_graph("diagnose", graph)
    values, problems = _data(graph, importance, dim, samples)
    if isinstance(start, str) and start == "heaviest":
        start = int(values.argmax())
    law = start_law("diagnose", start, graph.n)
    kernels = {label: design.kernel(graph, values, label=label) for label, design in _listed(designs).items()}
    traps = tuple(find_traps(kernels[IMPORTANCE]))
    races: dict[str, Race | None] = {}
    goal = None
    tell = progress if callable(progress) else (lambda label: None)
    if _is_small(problems[0]):
        problem, goal, races = _middle(problems, kernels, law, equal, tell)
        for label in list(kernels)[2:]:
            tell(label)
            races[label] = _race(problem, kernels[label], goal, law)
    forecasts = {label: _forecast(label, kernel, traps, races.get(label)) for label, kernel in kernels.items()}
    return Diagnosis(
        graph=graph,
        importance=values,
        rates=importance_pays(values),
        traps=traps,
        stays=sojourn_times(kernels[IMPORTANCE]),
        forecasts=forecasts,
        start=_start_in_words(start, values),
        exact=isinstance(importance, LeastSquares),
        goal=goal,
    )


def _listed(designs: Mapping[str, Design] | None) -> dict[str, Design]:
    """The two designs that the verdict is about, and those to compare with them."""
    if designs is not None and not (
        isinstance(designs, Mapping) and all(isinstance(design, Design) for design in designs.values())
    ):
        raise AnalysisError(
            f"diagnose: designs = {designs!r}, expected designs by label, such as {{'mine': fw.designs...}}"
        )
    listed = {label: DESIGNS[label] for label in (UNIFORM, IMPORTANCE)}
    for label, design in (DESIGNS if designs is None else designs).items():
        if label in listed and repr(design) != repr(listed[label]):
            raise AnalysisError(
                f"diagnose: {label!r} names {listed[label]!r} here; expected another label for {design!r}"
            )
        listed[label] = design
    return listed


def levels(problem: LeastSquares) -> tuple[float, float]:
    """The steady error that steps are chosen for, and the one at which the clock stops, as losses above the optimum.

    They are parts of the optimal loss; where that is nearly 0, or nearly what the zero model has, of the first error.
    """
    best = problem.loss(problem.optimum())
    first = problem.loss(np.zeros(problem.dim)) - best
    if not first > 1e-12 * best:
        raise AnalysisError("diagnose: the zero model is optimal on these data already, expected something to learn")
    scale = float(np.clip(best, 1e-4 * first, 0.2 * first))
    return SETTLE * scale, REACH * scale


def _goal(problem: LeastSquares, kernels: Mapping[str, Kernel], equal: bool) -> Goal:
    """What to race for; where steady errors shall be equal, what both walks can settle at."""
    settle = levels(problem)[0]
    for label in (UNIFORM, IMPORTANCE) if equal else ():
        recursion = Recursion("diagnose", problem, kernels[label], SGD(1.0))
        settle = min(settle, largest_settling(recursion, stationary(kernels[label])))
    best = problem.loss(problem.optimum())
    return Goal(settle, settle * REACH / SETTLE, best, problem.loss(np.zeros(problem.dim)) - best, MOST_UPDATES)


def _middle(
    problems: list[LeastSquares], kernels: Mapping[str, Kernel], law: Floats, equal: bool, tell: Callable[[str], None]
) -> tuple[LeastSquares, Goal, dict[str, Race | None]]:
    """Of several draws of the data the one with the middle ratio, and the uniform and the importance walk on it."""
    tried: list[tuple[float, int, Goal, dict[str, Race | None]]] = []
    for number, problem in enumerate(problems):
        goal = _goal(problem, kernels, equal)
        if not tried:
            tell(UNIFORM)
        uniform = _race(problem, kernels[UNIFORM], goal, law)
        if uniform is not None:
            goal = replace(goal, most=min(MOST_UPDATES, PATIENCE * max(uniform.updates, 10.0)))
        if not tried:
            tell(IMPORTANCE)
        importance = _race(problem, kernels[IMPORTANCE], goal, law)
        ratio = 0.0
        if uniform is not None and importance is not None:
            ratio = min(importance.updates, goal.most) / max(min(uniform.updates, MOST_UPDATES), 1.0)
        tried.append((ratio, number, goal, {UNIFORM: uniform, IMPORTANCE: importance}))
    known = [one for one in tried if None not in one[3].values()] or tried
    _, number, goal, races = sorted(known, key=lambda one: one[:2])[len(known) // 2]
    return problems[number], goal, races


def _race(problem: LeastSquares, kernel: Kernel, goal: Goal, law: Floats) -> Race | None:
    """The race of one design; None where numbers do not allow it, which must not cost the rest."""
    try:
        return race(problem, kernel.at(0), settle=goal.settle, reach=goal.reach, start=law, most=int(goal.most))
    except AnalysisError:
        return None


def _is_small(problem: LeastSquares) -> bool:
    """Whether updates can be predicted in a minute or so."""
    return problem.n <= MOST_NODES and _numbers(problem) <= MOST_NUMBERS


def _numbers(problem: LeastSquares) -> int:
    return problem.n * (problem.dim + 1) * (problem.dim + 2) // 2


def stand_in(importance: Floats, dim: int, samples: int, draw: int = 0) -> LeastSquares:
    """Data with the given importance: random directions, one optimum, and noise that makes it 1 % of the first loss."""
    n = importance.size
    rows = rng.generator(draw, _DIRECTIONS).standard_normal((n, samples, dim))
    largest = np.linalg.eigvalsh(np.einsum("vsi,vsj->vij", rows, rows) / samples)[:, -1]
    features = (rows * np.sqrt(importance / largest)[:, None, None]).reshape(n * samples, dim)
    truth = rng.generator(draw, _TRUTH).standard_normal(dim)
    scores = features @ truth
    noise = rng.generator(draw, _NOISE).standard_normal(n * samples) * np.sqrt(np.mean(scores**2) / 100.0)
    return LeastSquares(features, scores + noise, np.repeat(np.arange(n), samples))


def _data(graph: Graph, importance: ArrayLike | Objective, dim: int, samples: int) -> tuple[Floats, list[LeastSquares]]:
    if isinstance(importance, Objective):
        values = check_importance("diagnose", importance.smoothness, graph.n)
        if isinstance(importance, LeastSquares):
            return values, [importance]
        dim, samples = min(importance.dim, dim), max(1, round(np.mean([importance.samples(v) for v in range(graph.n)])))
    else:
        values = check_importance("diagnose", importance, graph.n)
    for name, number in (("dim", dim), ("samples", samples)):
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
            raise AnalysisError(f"diagnose: {name} = {number!r}, expected a whole number >= 1")
    first = stand_in(values, int(dim), int(samples))
    draws = DRAWS if _numbers(first) <= FEW_NUMBERS else 1
    return values, [first, *(stand_in(values, int(dim), int(samples), draw) for draw in range(1, draws))]


def _forecast(label: str, kernel: Kernel, traps: tuple[Trap, ...], raced: Race | None) -> Forecast:
    kernel = kernel.at(0)
    law = stationary(kernel)
    return Forecast(
        label=label,
        stay=float(escape_time(kernel, traps[0].nodes, "entry")) if traps and kernel.is_local else float("nan"),
        distance=distance_to_target(kernel),
        messages_per_update=float(law @ messages_per_visit(kernel)[0]),
        race=raced,
    )


def _start_in_words(start: str | ArrayLike, values: Floats) -> str:
    if isinstance(start, str):
        return "a uniformly random node"
    nodes = np.asarray(start)
    if nodes.dtype.kind not in "iu":
        return "a given law over the nodes"
    if nodes.ndim:
        return f"one of {name_nodes(tuple(np.unique(nodes).tolist()))}"
    return f"node {int(nodes)}" + (", the heaviest" if int(nodes) == int(values.argmax()) else "")
