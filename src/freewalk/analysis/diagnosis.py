"""Before any training: will importance sampling pay or be entrapped, where, and what would each design do instead."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from freewalk import rng
from freewalk.analysis.law import distance_to_target, stationary
from freewalk.analysis.model import start_law
from freewalk.analysis.moments import Floats
from freewalk.analysis.race import Race, largest_settling, race
from freewalk.analysis.recursion import Recursion
from freewalk.analysis.sets import Trap, find_traps, name_nodes
from freewalk.analysis.theory import ImportanceRates, importance_pays
from freewalk.analysis.times import escape_time, sojourn_times
from freewalk.analysis.traffic import messages_per_visit
from freewalk.designs import MHLJ, Design, Metropolis
from freewalk.designs.design import check_importance
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.kernel import Kernel, check_graph
from freewalk.learning import SGD
from freewalk.objectives import LeastSquares, Objective

UNIFORM, IMPORTANCE = "MH uniform", "MH importance"

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
#: The steady error that steps are chosen for, and the error at which the clock stops, in parts of the optimal loss.
SETTLE, REACH = 0.25, 0.5

_DIRECTIONS, _TRUTH, _NOISE = 101, 102, 103  # streams of the stand-in data


@dataclass(frozen=True)
class Forecast:
    """What one design would do.

    Attributes
    ----------
    label
        Its name.
    stay
        The mean length of a visit to the worst trap of importance sampling, in updates; NaN where there is none.
    distance
        The total variation between its stationary law and its target; 0 is unbiased.
    messages_per_update
        What it sends in the long run.
    race
        Step, updates and messages to the wanted error; None where that was not computed.
    """

    label: str
    stay: float
    distance: float
    messages_per_update: float
    race: Race | None


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found; printing it says it in words.

    Attributes
    ----------
    graph, importance
        What was asked about.
    rates
        What importance sampling would bring if nodes could be drawn at will.
    traps
        The sets that hold the importance walk, the largest factor first; empty where it is free.
    stays
        The mean stay of the importance walk at each node.
    forecasts
        What each design would do, by label.
    start
        Where the walk starts, in words.
    exact
        Whether updates were computed on the data themselves, or on a stand-in with the same importance.
    """

    graph: Graph
    importance: Floats
    rates: ImportanceRates
    traps: tuple[Trap, ...]
    stays: Floats = field(repr=False)
    forecasts: Mapping[str, Forecast]
    start: str
    exact: bool

    @property
    def entrapped(self) -> bool:
        """Whether some set holds the importance walk far longer than its share warrants."""
        return bool(self.traps)

    @property
    def ratio(self) -> float:
        """Updates of the importance walk over those of the uniform walk; NaN where they were not computed."""
        pair = [self.forecasts[label].race for label in (IMPORTANCE, UNIFORM)]
        if pair[0] is None or pair[1] is None:
            return float("nan")
        return pair[0].updates / max(pair[1].updates, 1.0) if np.isfinite(pair[1].updates) else float("nan")

    @property
    def slower(self) -> bool | None:
        """The verdict: whether Metropolis for importance needs more updates than the uniform one; None: not known."""
        return None if np.isnan(self.ratio) else bool(self.ratio > 1)

    @property
    def best(self) -> str | None:
        """The design that needs the fewest updates; None where they were not computed."""
        known = {label: one.race.updates for label, one in self.forecasts.items() if one.race is not None}
        reached = {label: updates for label, updates in known.items() if np.isfinite(updates)}
        return min(reached, key=lambda label: reached[label]) if reached else None

    def __str__(self) -> str:
        """All of it in plain words."""
        return "\n".join(_sentences(self))

    def as_dict(self) -> dict[str, Any]:
        """All of it for scripts, as plain numbers; None stands for what is not known or not finite."""
        return {
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "start": self.start,
            "importance": {"least": _plain(self.importance.min()), "mean": _plain(self.importance.mean()),
                           "most": _plain(self.importance.max())},
            "entrapped": self.entrapped,
            "slower": self.slower,
            "ratio": _plain(self.ratio),
            "best": self.best,
            "on_data": self.exact,
            "traps": [{**vars(trap), "nodes": list(trap.nodes)} for trap in self.traps],
            "designs": {
                label: {
                    "stay": _plain(one.stay),
                    "distance": _plain(one.distance),
                    "messages_per_update": _plain(one.messages_per_update),
                    **({} if one.race is None else {name: _plain(value) for name, value in vars(one.race).items()}),
                }
                for label, one in self.forecasts.items()
            },
        }  # fmt: skip


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
    listed = {label: DESIGNS[label] for label in (UNIFORM, IMPORTANCE)} | dict(DESIGNS if designs is None else designs)
    kernels = {label: design.kernel(graph, values, label=label) for label, design in listed.items()}
    traps = tuple(find_traps(kernels[IMPORTANCE]))
    races: dict[str, Race] = {}
    tell = progress or (lambda label: None)
    if _is_small(problems[0]):
        problem, races = _middle(problems, kernels, law, equal, tell)
        wanted = _levels(problem, kernels, equal)
        patience = PATIENCE * max(races[UNIFORM].updates, 10.0)
        for label in list(kernels)[2:]:
            tell(label)
            races[label] = _race(problem, kernels[label], wanted, law, patience)
    forecasts = {label: _forecast(kernel, traps, races.get(label)) for label, kernel in kernels.items()}
    return Diagnosis(
        graph=graph,
        importance=values,
        rates=importance_pays(values),
        traps=traps,
        stays=sojourn_times(kernels[IMPORTANCE]),
        forecasts=forecasts,
        start=_start_in_words(start, values),
        exact=isinstance(importance, LeastSquares),
    )


def levels(problem: LeastSquares) -> tuple[float, float]:
    """The steady error that steps are chosen for, and the one at which the clock stops, as losses above the optimum.

    They are parts of the optimal loss; where that is nearly 0, or nearly what the zero model has, of the first error.
    """
    best = problem.loss(problem.optimum())
    first = problem.loss(np.zeros(problem.dim)) - best
    scale = float(np.clip(best, 1e-4 * first, 0.2 * first))
    return SETTLE * scale, REACH * scale


def _levels(problem: LeastSquares, kernels: Mapping[str, Kernel], equal: bool) -> tuple[float, float]:
    """The levels; where they shall be equal, lowered to the steady errors of the two walks at their largest steps."""
    settle = levels(problem)[0]
    for label in (UNIFORM, IMPORTANCE) if equal else ():
        recursion = Recursion("diagnose", problem, kernels[label], SGD(1.0))
        settle = min(settle, largest_settling(recursion, stationary(kernels[label])))
    return settle, settle * REACH / SETTLE


def _middle(
    problems: list[LeastSquares], kernels: Mapping[str, Kernel], law: Floats, equal: bool, tell: Callable[[str], None]
) -> tuple[LeastSquares, dict[str, Race]]:
    """Of several draws of the data the one with the middle ratio, and the uniform and the importance walk on it."""
    tried: list[tuple[float, int, dict[str, Race]]] = []
    for number, problem in enumerate(problems):
        wanted = _levels(problem, kernels, equal)
        if not tried:
            tell(UNIFORM)
        uniform = _race(problem, kernels[UNIFORM], wanted, law, np.inf)
        if not tried:
            tell(IMPORTANCE)
        patience = PATIENCE * max(uniform.updates, 10.0)
        importance = _race(problem, kernels[IMPORTANCE], wanted, law, patience)
        ratio = min(importance.updates, patience) / max(uniform.updates, 1.0)
        tried.append((ratio, number, {UNIFORM: uniform, IMPORTANCE: importance}))
    _, number, races = sorted(tried, key=lambda one: one[:2])[len(tried) // 2]
    return problems[number], races


def _race(problem: LeastSquares, kernel: Kernel, wanted: tuple[float, float], law: Floats, patience: float) -> Race:
    settle, reach = wanted
    most = int(min(patience, 1e6))
    return race(problem, kernel.at(0), settle=settle, reach=reach, start=law, most=most)


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


def _forecast(kernel: Kernel, traps: tuple[Trap, ...], raced: Race | None) -> Forecast:
    kernel = kernel.at(0)
    law = stationary(kernel)
    return Forecast(
        label=kernel.label,
        stay=float(escape_time(kernel, traps[0].nodes, "entry")) if traps and kernel.is_local else float("nan"),
        distance=distance_to_target(kernel),
        messages_per_update=float(law @ messages_per_visit(kernel)[0]),
        race=raced,
    )


def _start_in_words(start: str | ArrayLike, values: Floats) -> str:
    if isinstance(start, str):
        return "a uniformly random node"
    nodes = np.asarray(start)
    if nodes.ndim or nodes.dtype.kind not in "iu":
        return "a given law over the nodes"
    return f"node {int(nodes)}" + (", the heaviest" if int(nodes) == int(values.argmax()) else "")


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _sentences(found: Diagnosis) -> list[str]:
    """The diagnosis, sentence by sentence."""
    values = found.importance
    lines = [
        f"{found.graph.name}: {found.graph.n} nodes; importance from {values.min():.3g} to {values.max():.3g}, mean "
        f"{values.mean():.3g}.",
        f"By the rates of centralized learning, {found.rates}.",
        _entrapment(found),
        _verdict(found),
    ]
    if found.best is not None:
        winner = found.forecasts[found.best].race
        if winner is not None:
            words = "The uniform walk is the best" if found.best == UNIFORM else f"{found.best} is the fastest"
            lines.append(
                f"{words} of the designs below: {winner.updates:,.0f} updates and {winner.messages:,.0f} messages, "
                f"with step {winner.step:.3g}."
            )
    return [line for line in lines if line]


def _entrapment(found: Diagnosis) -> str:
    if not found.entrapped:
        return "Importance sampling by Metropolis is not entrapped here: no set of nodes holds it for long."
    worst = found.traps[0]
    others = sum(trap.factor >= 0.1 * worst.factor for trap in found.traps[1:])  # the rest is not worth a word
    more = f", and in {others} other set{'s' * (others > 1)}" if others else ""
    return (
        f"Importance sampling by Metropolis is entrapped at {name_nodes(worst.nodes)}{more}: a visit lasts "
        f"{worst.stay:,.0f} updates, {worst.factor:.1f} times what the share of {100 * worst.share:.1f} % warrants."
    )


def _verdict(found: Diagnosis) -> str:
    uniform, importance = (found.forecasts[label].race for label in (UNIFORM, IMPORTANCE))
    if uniform is None or importance is None:
        return f"Updates are predicted for up to {MOST_NODES} nodes; here only laws, stays and messages are given."
    if not np.isfinite(uniform.updates):
        return "The uniform walk itself does not get there: no verdict."
    data = "on these data" if found.exact else "on stand-in data with this importance"
    if not np.isfinite(importance.updates):
        times = f"more than {PATIENCE:g} times as many as the uniform walk ({uniform.updates:,.0f})"
        return f"Started at {found.start}, {data}, it needs {times}: do not use it."
    times = f"{found.ratio:.2g} times the {uniform.updates:,.0f} of the uniform walk"
    verdict = "it is slower" if found.slower else "it pays"
    return (
        f"Started at {found.start}, {data}, it needs {importance.updates:,.0f} updates to come within 1.5 times the "
        f"optimal loss, {times}, with steps chosen for the same steady error: {verdict}."
    )
