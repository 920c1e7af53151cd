"""Where walks are: the compiled walk against the exact law of `kernel.matrix()`, and mistakes that must be caught.

The node of a walk after t steps from node 0 has the law e₀P^t exactly, and walks are independent: their nodes are
multinomial, whatever t. So nothing here rests on mixing or on estimated errors, except where long runs are compared.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from exact import LEVEL, law_after, mean_p_value, p_value, stationary

import freewalk as fw
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk

WALKS, STEPS = 60_000, 12
GRAPHS = {
    "ring": fw.graphs.ring(9),
    "star": fw.graphs.star(7),
    "random": fw.graphs.barabasi_albert(25, 2, seed=3),
}


def importance_of(graph):
    values = np.exp(0.7 * np.random.default_rng(graph.n).standard_normal(graph.n))
    values[0] = 20.0
    return values


def lazy(graph):
    matrix = graph.adjacency().toarray() * np.arange(1, graph.n + 1) + np.eye(graph.n)
    return matrix / matrix.sum(axis=1, keepdims=True)


DESIGNS = {
    "SimpleWalk": lambda graph: SimpleWalk(),
    "Metropolis, uniform": lambda graph: Metropolis(),
    "Metropolis, importance": lambda graph: Metropolis(power=1),
    "Metropolis, proposal": lambda graph: Metropolis(power=0.5, proposal=lazy(graph)),
    "MHLJ": lambda graph: MHLJ(0.3, 0.5, 3),
    "MHLJ, jumps only": lambda graph: MHLJ(1.0, 0.2, 6),
    "MHLJ, corrected": lambda graph: MHLJ(0.5, 0.5, 3, power=0.5, corrected=True),
    "ClosedFormMHLJ": lambda graph: ClosedFormMHLJ(0.5, 0.5, 3),
    "Decaying": lambda graph: Decaying(MHLJ(0.9, 0.5, 3), fw.schedules.Inverse(1.0, scale=5)),
    "FromMatrix": lambda graph: FromMatrix(lazy(graph)),
    "Centralized": lambda graph: Centralized(power=1),
}


def kernel_of(design, graph):
    return DESIGNS[design](GRAPHS[graph]).kernel(GRAPHS[graph], importance_of(GRAPHS[graph]))


def nodes_after(kernel, steps=STEPS, seed=1):
    return fw.walk(kernel, steps=steps, walks=WALKS, every=steps, start=0, seed=seed).data["at"].values


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("design", DESIGNS)
def test_nodes_follow_the_exact_law(design, graph):
    """60 000 walks after 12 steps; a walk that is right fails with probability 1e-6."""
    kernel = kernel_of(design, graph)
    assert p_value(nodes_after(kernel), law_after(kernel, 0, STEPS)) > LEVEL


@pytest.mark.parametrize("design", ["MHLJ", "Decaying", "Metropolis, proposal"])
def test_nodes_follow_the_exact_law_over_one_step_from_anywhere(design):
    """A uniform start, then one step; a walk that is right fails with probability 1e-6."""
    kernel = kernel_of(design, "random")
    nodes = fw.walk(kernel, steps=1, walks=WALKS, seed=3).data["at"].values
    assert p_value(nodes, law_after(kernel, np.full(kernel.graph.n, 1 / kernel.graph.n), 1)) > LEVEL


def test_uniform_starts_are_uniform():
    """Fails for a walk that is right with probability 1e-6."""
    data = fw.walk(kernel_of("SimpleWalk", "random"), steps=1, walks=WALKS, seed=5, paths=WALKS).data
    assert p_value(data.path.values[:, 0], np.full(25, 1 / 25)) > LEVEL


def long_run(kernel, seed, walks=2000, steps=1500):
    """The share of its time that each walk spends at each node, from a start drawn from the stationary law."""
    law = stationary(kernel)
    starts = np.random.default_rng(seed).choice(law.size, size=walks, p=law / law.sum())
    visits = fw.walk(kernel, steps=steps, walks=walks, every=steps, start=starts, seed=seed).data.visits
    return visits.values / steps


@pytest.mark.parametrize("graph", ["star", "random"])
@pytest.mark.parametrize("design", ["SimpleWalk", "Metropolis, importance", "MHLJ", "MHLJ, corrected", "FromMatrix"])
def test_long_run_visits_follow_the_stationary_law(design, graph):
    """2000 walks of 1500 steps: in the stationary law the expected share of visits is that law, exactly.

    Student's test at each node, Bonferroni over the nodes: a walk that is right fails with probability about 1e-6.
    """
    kernel = kernel_of(design, graph)
    assert mean_p_value(long_run(kernel, seed=7), stationary(kernel)) > LEVEL


def test_corrected_walks_and_metropolis_walks_have_their_target_for_stationary_law():
    for design in ("Metropolis, importance", "MHLJ, corrected", "SimpleWalk", "FromMatrix"):
        kernel = kernel_of(design, "random")
        assert stationary(kernel) == pytest.approx(kernel.target, abs=1e-12)
    assert np.abs(stationary(kernel_of("MHLJ", "random")) - kernel_of("MHLJ", "random").target).max() > 0.01


# The power of these tests: mistakes that are easy to make and must be caught.


@dataclass(frozen=True)
class OneHopTooMany(fw.Design):
    """`while d >= 0` in place of d hops."""

    def moves(self, graph, importance):
        metropolis, *jumps = MHLJ(0.3, 0.5, 3).moves(graph, importance)
        return [metropolis, *(fw.Move(jump.probability, hops=jump.hops + 1) for jump in jumps)]

    def target(self, graph, importance):
        return importance


@dataclass(frozen=True)
class LoopInTheDegree(fw.Design):
    """Each node counted as a neighbour of its own: it holds with 1 / (deg + 1)."""

    def moves(self, graph, importance):
        rows = graph.adjacency().toarray() + np.eye(graph.n)
        return [fw.Move(1.0, rows=rows / rows.sum(axis=1, keepdims=True))]

    def target(self, graph, importance):
        return graph.degrees + 1


@dataclass(frozen=True)
class LoopInTheRatio(fw.Design):
    """Uniform hops accepted with s / (deg + 1) in place of s / deg."""

    def moves(self, graph, importance):
        return [fw.Move(1.0, ratio=importance / (graph.degrees + 1))]

    def target(self, graph, importance):
        return importance


@dataclass(frozen=True)
class NoDegreeInTheRatio(fw.Design):
    """Uniform hops accepted with s alone."""

    def moves(self, graph, importance):
        return [fw.Move(1.0, ratio=importance)]

    def target(self, graph, importance):
        return importance


MISTAKES = [
    ("MHLJ", OneHopTooMany(), "ring"),
    ("MHLJ", OneHopTooMany(), "random"),
    ("MHLJ", ClosedFormMHLJ(0.3, 0.5, 3), "random"),
    ("SimpleWalk", LoopInTheDegree(), "star"),
    ("SimpleWalk", LoopInTheDegree(), "random"),
    ("Metropolis, importance", LoopInTheRatio(), "star"),
    ("Metropolis, importance", LoopInTheRatio(), "random"),
    ("Metropolis, importance", NoDegreeInTheRatio(), "random"),
]


@pytest.mark.parametrize(("right", "mistake", "graph"), MISTAKES, ids=lambda value: str(value))
def test_the_test_of_nodes_catches_mistakes(right, mistake, graph):
    """Not by a hair: p below 1e-12, where right walks pass at 1e-6."""
    wrong = mistake.kernel(GRAPHS[graph], importance_of(GRAPHS[graph]))
    law = law_after(kernel_of(right, graph), 0, STEPS)
    assert p_value(nodes_after(wrong), law) < 1e-12


@pytest.mark.parametrize(("right", "mistake", "graph"), [m for m in MISTAKES if m[2] != "ring"], ids=lambda v: str(v))
def test_the_test_of_long_runs_catches_mistakes(right, mistake, graph):
    """Not by a hair: p below 1e-12, where right walks pass at 1e-6."""
    wrong = mistake.kernel(GRAPHS[graph], importance_of(GRAPHS[graph]))
    assert mean_p_value(long_run(wrong, seed=7), stationary(kernel_of(right, graph))) < 1e-12


def test_the_test_of_nodes_catches_a_jump_probability_that_is_off():
    """.3 against .32: what 60 000 walks can see."""
    wrong = MHLJ(0.32, 0.5, 3).kernel(GRAPHS["random"], importance_of(GRAPHS["random"]))
    law = law_after(kernel_of("MHLJ", "random"), 0, 3)
    assert p_value(nodes_after(wrong, steps=3), law) < LEVEL


def test_a_visit_to_an_impossible_node_is_caught_at_once():
    assert p_value(np.array([0] * 1000 + [1]), np.array([1.0, 0.0])) == 0.0
