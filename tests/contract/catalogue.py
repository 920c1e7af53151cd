"""An example of everything that can be plugged in: the contract tests walk through this catalogue.

Whatever is listed in an `__all__` of `designs`, `objectives`, `rules`, `exchanges`, `runtimes` or `data.partitioners`
has an example here, and so has what a user may write: a design, two rules, a loss with a slope and one without. Other
tests take their examples from here: properties of designs, updates of rules, calls with wrong arguments.
"""

import math
import os
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

import freewalk as fw
from freewalk.designs import (
    MHLJ,
    Centralized,
    ClosedFormMHLJ,
    Decaying,
    FromMatrix,
    HistoryDriven,
    Metropolis,
    NonBacktracking,
    SelfRepellent,
    SimpleWalk,
    Stay,
)
from freewalk.exchanges import Average, Gossip, Meet
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
from freewalk.objectives import LeastSquares, Logistic
from freewalk.runtimes import CPU, CUDA, Job, Ray, Reference, State, Torch
from freewalk.runtimes.engine import MARKS, joined
from freewalk.schedules import Exponential, Inverse

# Graphs: regular and periodic, as irregular as can be, and random.

GRAPHS = {
    "ring": fw.graphs.ring(10),
    "star": fw.graphs.star(8),
    "random": fw.graphs.barabasi_albert(16, 2, seed=4),
}


def importance_of(graph):
    """Three orders of magnitude, with a heavy node where walks start."""
    values = np.exp(np.random.default_rng(graph.n).standard_normal(graph.n))
    values[0] = 300.0
    return values


# Designs.


@dataclass(frozen=True)
class Lazy(fw.Design):
    """Stay with probability `stay`, otherwise take a simple step."""

    stay: float = 0.5

    def moves(self, graph, importance):
        return [fw.Move(self.stay, hops=0), fw.Move(1 - self.stay, hops=1)]

    def target(self, graph, importance):
        return graph.degrees


def _rows(graph, seed):
    matrix = (graph.adjacency().toarray() + np.eye(graph.n)) * np.random.default_rng(seed).uniform(
        0.1, 1, (graph.n,) * 2
    )
    return matrix / matrix.sum(axis=1, keepdims=True)


def designs_on(graph):
    """Examples of every design, by a name that begins with that of the design."""
    return {
        "SimpleWalk": SimpleWalk(),
        "Metropolis, uniform": Metropolis(),
        "Metropolis, importance": Metropolis(power=1),
        "Metropolis, tempered": Metropolis(power=0.5),
        "Metropolis, target": Metropolis(target=np.arange(1, graph.n + 1)),
        "Metropolis, proposal": Metropolis(power=0.5, proposal=_rows(graph, 1)),
        "MHLJ": MHLJ(0.3, 0.5, 3),
        "MHLJ, jumps only": MHLJ(1.0, 0.3, 5),
        "MHLJ, corrected": MHLJ(0.6, 0.4, 4, power=0.5, corrected=True),
        "ClosedFormMHLJ": ClosedFormMHLJ(0.5, 0.5, 3),
        "Decaying": Decaying(MHLJ(0.9, 0.5, 3), Inverse(1.0, scale=10)),
        "Decaying, jumps only": Decaying(MHLJ(1.0, 0.05, 7, corrected=True), Exponential(1.0, half_life=7)),
        "FromMatrix": FromMatrix(_rows(graph, 2)),
        "FromMatrix, target": FromMatrix(_rows(graph, 3), target=np.arange(1, graph.n + 1)),
        "Centralized, uniform": Centralized(),
        "Centralized, importance": Centralized(power=1),
        "Centralized, partial": Centralized(power=1, uniform=0.5),
        "Stay": Stay(),
        "NonBacktracking": NonBacktracking(SimpleWalk()),
        "NonBacktracking, importance": NonBacktracking(Metropolis(power=1), forget=0.2),
        "NonBacktracking, proposal": NonBacktracking(Metropolis(power=0.5, proposal=_rows(graph, 1))),
        "SelfRepellent": SelfRepellent(Metropolis(power=0.6), alpha=30),
        "SelfRepellent, at nodes": SelfRepellent(SimpleWalk(), alpha=2.5, fading=1, memory_at="nodes"),
        "HistoryDriven": HistoryDriven(Metropolis(power=0.5), alpha=5),
        "HistoryDriven, at nodes": HistoryDriven(
            Metropolis(power=0.5, proposal=_rows(graph, 1)), alpha=0.5, fading=0.8, memory_at="nodes"
        ),
        "Lazy (a user's)": Lazy(0.25),
    }


DESIGNS = list(designs_on(GRAPHS["ring"]))


@cache
def kernel_of(design, graph_name):
    graph = GRAPHS[graph_name]
    return designs_on(graph)[design].kernel(graph, importance_of(graph), label=design)


# Objectives on the random graph: one sample per node, uneven numbers of them, or none at some; with and without ridge.

LARGEST_STEP = 2.0


def soften(error):
    return math.tanh(error / LARGEST_STEP)


class LogCosh(fw.Predictor):
    """A user's loss: it grows linearly, calls a helper that uses a constant, and knows no optimum."""

    curvature = 0.5

    @staticmethod
    def value(prediction, target):
        size = abs(prediction - target) / LARGEST_STEP
        return LARGEST_STEP * (size + math.log1p(math.exp(-2.0 * size)) - math.log(2.0))

    @staticmethod
    def slope(prediction, target):
        return soften(prediction - target)

    def optimum(self):
        raise NotImplementedError


class Centres(fw.Objective):
    """A user's loss that is not one of a linear prediction: f_v(x) = ½‖x − c_v‖²."""

    def __init__(self, centres):
        self.centres = np.asarray(centres, dtype=np.float64)

    @property
    def n(self):
        return len(self.centres)

    @property
    def dim(self):
        return self.centres.shape[1]

    @property
    def smoothness(self):
        return np.ones(self.n)

    def loss(self, x):
        return float(0.5 * np.mean(np.sum((x - self.centres) ** 2, axis=1)))

    def gradient(self, node, x, sample=None):
        return np.asarray(x - self.centres[node])

    def optimum(self):
        return self.centres.mean(axis=0)


_N = GRAPHS["random"].n
_UNEVEN = 1 + np.arange(_N) * 7 % 5
_SEPARABLE = LeastSquares.synthetic(_N, dim=9, noise=0.0, seed=4)
_SOME = LeastSquares.synthetic(_N, dim=6, samples=_UNEVEN, noise=0.5, heavy=1, heavy_variance=9.0, seed=5)


def _relaying(kind, features, targets, ridge):
    """Every sample counts the same, and the first, the last and one more node have none."""
    kept = ~np.isin(_SOME.nodes, (0, 3, _N - 1))
    options = {"weight_by": "sample", "relays": True, "graph": GRAPHS["random"]}
    return kind(features[kept], targets[kept], _SOME.nodes[kept], ridge, **options)


PROBLEMS = {
    "LeastSquares": LeastSquares.synthetic(_N, dim=3, heavy=2, heavy_variance=9.0, noise=0.3, seed=1),
    "LeastSquares, uneven, ridge": LeastSquares.synthetic(_N, dim=5, samples=_UNEVEN, noise=0.3, ridge=0.1, seed=2),
    "Logistic, uneven, ridge": Logistic.synthetic(_N, dim=4, samples=_UNEVEN, ridge=0.05, seed=3),
    "Logistic, without an optimum": Logistic(_SEPARABLE.features, _SEPARABLE.targets > 0),
    "LeastSquares, pooled, relays": _relaying(LeastSquares, _SOME.features[:, :5], _SOME.targets, 0.1),
    "Logistic, pooled, relays": _relaying(Logistic, _SOME.features[:, :4], _SOME.targets > 0, 0.05),
    "LogCosh (a user's), uneven": LogCosh(_SOME.features, _SOME.targets, _SOME.nodes, ridge=0.01),
}
SLOPELESS = Centres(np.random.default_rng(6).standard_normal((_N, 3)))


# Rules.


@dataclass(frozen=True)
class HeavyBall(fw.Rule):
    """A user's rule that carries one vector, its velocity."""

    step: float = 0.02
    weighted: bool = True
    local_steps: int = 1
    sampled: bool = False
    carries: ClassVar[tuple[str, ...]] = ("velocity",)

    @property
    def update(self):
        return heavy_ball

    def rates(self, steps):
        return np.full(steps.shape, self.step)


MOMENTUM = 0.8


def heavy_ball(visit, numbers, x, gradient, velocity):
    velocity = MOMENTUM * velocity - visit.rate * visit.weight * gradient
    return x + velocity, velocity


@dataclass(frozen=True)
class Moments(HeavyBall):
    """A user's rule that carries two vectors and looks at the count (Adam)."""

    step: float = 0.05
    local_steps: int = 2
    carries: ClassVar[tuple[str, ...]] = ("first", "second")

    @property
    def update(self):
        return moments


def moments(visit, numbers, x, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.99 * second + 0.01 * gradient * gradient
    slow = first / (1.0 - 0.9 ** (visit.count + 1))
    wide = second / (1.0 - 0.99 ** (visit.count + 1))
    return x - visit.rate * visit.weight * slow / (math.sqrt(wide) + 1e-3), first, second


@dataclass(frozen=True)
class Scaled(fw.Rule):
    """A user's rule that divides by what it carries (AdaGrad), and has a number of its own."""

    step: float = 0.02
    floor: float = 0.0
    carries: ClassVar[tuple[str, ...]] = ("total",)

    @staticmethod
    def update(visit, numbers, x, gradient, total):
        total = total + gradient * gradient
        return x - visit.rate * visit.weight * gradient / (numbers.floor + math.sqrt(total)), total


LISTED_RULES = {
    "SGD": fw.SGD(step=0.02),
    "SGD, decaying": fw.SGD(step=Inverse(0.05, scale=10, power=0.7)),
    "SGD, unweighted": fw.SGD(step=0.02, weighted=False),
    "SGD, local steps": fw.SGD(step=0.01, local_steps=3),
    "SGD, sampled": fw.SGD(step=0.02, sampled=True, local_steps=2),
    "SGD, average": fw.SGD(step=0.02, average=True),
    "SGD, all at once": fw.SGD(
        step=Exponential(0.05, half_life=20), weighted=False, local_steps=3, average=True, sampled=True
    ),
}
# Rules with vectors that travel, stay at the nodes, and count.
MEMORY_RULES = {
    "SGD, average of the last half": fw.SGD(step=0.02, average="half"),
    "Momentum": fw.rules.Momentum(step=0.005, momentum=0.7),
    "Momentum, local steps, sampled": fw.rules.Momentum(step=0.005, momentum=0.5, local_steps=2, sampled=True),
    "AdaGrad": fw.rules.AdaGrad(step=0.05),
    "AdaGrad, at the nodes": fw.rules.AdaGrad(step=0.05, keeper="node"),
    "SAG": fw.rules.SAG(step=0.02),
    "Walkman": fw.rules.Walkman(),
    "GradientTracking": fw.rules.GradientTracking(step=0.002),
    "CombineFirst": fw.rules.CombineFirst(step=0.01),
    "VisitWeighted": fw.rules.VisitWeighted(step=0.01),
    "VisitWeighted, sampled": fw.rules.VisitWeighted(step=0.01, prior=30.0, sampled=True),
}
OWN_RULES = {
    "HeavyBall (a user's)": HeavyBall(),
    "Moments (a user's)": Moments(sampled=True),
    "Scaled (a user's)": Scaled(),  # it divides 0 by 0 wherever it sees a coordinate that does not exist
}
RULES = LISTED_RULES | MEMORY_RULES | OWN_RULES

#: Every listed objective with every kind of SGD; what a user writes with least squares and with the plain rules. Each
#: pair of an objective's class and an update costs a compilation.
LISTED_PROBLEMS = [name for name in PROBLEMS if "a user's" not in name]
LESSONS = [
    *((problem, rule) for problem in LISTED_PROBLEMS if "relays" not in problem for rule in LISTED_RULES),
    # Rules with memory: where every node has one sample, where it has several, and where slopes are computed together.
    *(("LeastSquares", rule) for rule in MEMORY_RULES),
    *(("Logistic, uneven, ridge", rule) for rule in ("Momentum, local steps, sampled", "SAG", "Walkman")),
    *(("Logistic, without an optimum", rule) for rule in ("SAG", "VisitWeighted")),
    # Factors and relays are compiled in: one rule that carries nothing, one of a user's that carries something, and
    # those for which a relay is a node like any other.
    *(
        (problem, rule)
        for problem in LISTED_PROBLEMS
        if "relays" in problem
        for rule in ("SGD", "HeavyBall (a user's)", "SAG", "Walkman")
    ),
    *(
        (problem, rule)
        for problem in LISTED_PROBLEMS
        if problem.startswith("LeastSquares") and "relays" not in problem
        for rule in OWN_RULES
    ),
    *(
        (problem, rule)
        for problem in PROBLEMS
        if "a user's" in problem
        for rule in LISTED_RULES
        if not RULES[rule].average
    ),
]
#: Those that `make test` learns; all others are `long`. Each listed rule with least squares, one of a user's, and each
#: way in which problems differ by plain SGD, whose variants are compiled with it.
QUICK_LESSONS = [
    *(("LeastSquares", rule) for rule in (*LISTED_RULES, *MEMORY_RULES, "HeavyBall (a user's)")),
    *(
        (problem, rule)
        for problem, rule in LESSONS
        if problem not in ("LeastSquares", "Logistic, without an optimum", "Logistic, pooled, relays")
        and rule in LISTED_RULES
        and not RULES[rule].average
    ),
]


def phases_of(names):
    """A switch between three designs on one graph."""
    first, second, third = (kernel_of(name, "random") for name in names)
    return [
        Phase(9, first, RULES["SGD"]),
        Phase(20, second, RULES["SGD, average"]),
        Phase(None, third, RULES["SGD, average"]),
    ]


# Exchanges.

WALK = MHLJ(0.3, 0.5, 3).kernel(GRAPHS["random"], PROBLEMS["LeastSquares"].smoothness)
PARKED = Stay().kernel(GRAPHS["random"])


@dataclass(frozen=True)
class Pair(fw.Exchange):
    """A user's exchange: two tokens, drawn at random, average."""

    every: int = 2

    def weights(self, gathering):
        tokens = gathering.nodes.size
        one, other = np.argsort(gathering.words(tokens))[:2]
        weights = np.eye(tokens)
        weights[np.ix_([one, other], [one, other])] = 0.5
        return weights


@dataclass(frozen=True)
class Circle(fw.Exchange):
    """A user's exchange of parked tokens that never changes."""

    constant: ClassVar[bool] = True

    def weights(self, gathering):
        tokens = gathering.nodes.size
        return 0.75 * np.eye(tokens) + 0.25 * np.roll(np.eye(tokens), 1, axis=0)


#: By name: the kernel, the number of tokens and the exchange.
EXCHANGES = {
    "apart": (WALK, 5, None),
    "Meet": (WALK, 5, Meet()),
    "Meet, seldom": (WALK, 20, Meet(every=3)),
    "Average": (WALK, 5, Average()),
    "Average, seldom, many": (WALK, 37, Average(every=7)),
    "Average, parked": (PARKED, _N, Average(every=2, down=False)),
    "Gossip": (PARKED, _N, Gossip()),
    "Gossip, seldom": (PARKED, _N, Gossip(every=3)),
    "Pair (a user's)": (WALK, 5, Pair()),
    "Circle (a user's)": (PARKED, 6, Circle()),
    "Circle (a user's), moving": (WALK, 6, Circle()),
}
TOKEN_LESSONS = [
    *((setting, "SGD") for setting in EXCHANGES),
    *((setting, rule) for setting in ("Meet", "Average", "Gossip") for rule in ("Momentum", "SAG")),
    *((setting, "GradientTracking") for setting in ("Gossip", "Meet", "Pair (a user's)")),
    ("Gossip", "CombineFirst"),
    ("Meet, seldom", "VisitWeighted"),
    ("Average", "SGD, average"),
    ("Average", "SGD, sampled"),
]


# Partitioners.

PARTITIONERS = {
    "IID": fw.data.IID(),
    "Dirichlet": fw.data.Dirichlet(0.1),
    "Quantity": fw.data.Quantity(0.1),
    "Shards": fw.data.Shards(2),
    "FeatureShift": fw.data.FeatureShift(0.5),
}


# Runtimes.

RUNTIMES = {
    "Reference": [Reference()],
    "CPU": [CPU(threads=1), CPU(threads=2)],
    "CUDA": [CUDA(), CUDA(walks_at_once=15)],
    "Ray": [Ray(tasks=1, cpus=1), Ray(tasks=2, cpus=1), Ray(tasks=7, cpus=1)],  # test_ray_contract.py
    "Torch": [Torch()],  # it learns other objectives: tests/torch
}
#: Those that are tested: with $FREEWALK_TEST_RUNTIME = CUDA the card, or numba's simulator of one.
COMPILED = RUNTIMES[os.environ.get("FREEWALK_TEST_RUNTIME", "CPU")]


# Driving an engine by hand.


def job_of(problem, kernel, rule=None, seed=3, precision="float64"):
    phases = kernel if isinstance(kernel, list) else [Phase(None, kernel, rule)]
    return Job(problem, arguments.phases(phases, None, problem), seed, precision)


def begin(job, walks, steps, initial=0.0):
    """The first state of walks that start apart and keep their paths."""
    models = np.full((walks, job.dim), initial, dtype=job.precision)
    nodes = (np.arange(walks) * 3 % job.kernel.graph.n).astype(np.int32)
    return State.begin(job, nodes, models, steps, np.arange(walks))


def advance(engine, state, stops, marks):
    """Advance through the stops, as the loop of a run does; the measures at all marks."""
    parts = []
    for stop in sorted(stops):
        inside = np.array([mark for mark in marks if state.step < mark <= stop], dtype=np.int64)
        parts.append(engine.advance(state, stop, inside))
    engine.settle(state)
    return joined(parts, MARKS)


COUNTS = ("nodes", "paths", "messages", "probes", "visits")


def assert_close(result, expected, rtol=1e-9, atol=1e-12):
    """Counts are equal, floats agree as runtimes promise."""
    (state, measures), (true_state, true_measures) = result, expected
    for name in (*COUNTS, "exchanged", "seen"):
        assert np.array_equal(getattr(state, name), getattr(true_state, name)), name
    for name in ("models", "carried", "stored"):
        np.testing.assert_allclose(getattr(state, name), getattr(true_state, name), rtol, atol, err_msg=name)
    assert set(measures) == set(true_measures)
    for name, values in true_measures.items():
        np.testing.assert_allclose(measures[name], values, rtol, atol, err_msg=name)


def assert_identical(result, expected):
    """To the last bit; the walks of a result are the first of those expected."""
    (state, measures), (true_state, true_measures) = result, expected
    assert np.array_equal(state.models, true_state.models[: state.rows])
    assert np.array_equal(state.carried, true_state.carried[:, : state.rows])
    for name, values in true_measures.items():
        assert np.array_equal(measures[name], values[: state.walks], equal_nan=True), name
