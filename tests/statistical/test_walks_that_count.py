"""Walks that count their visits: the law of their second move, enumerated, and the variance that theory promises."""

import numpy as np
import pytest
from exact import LEVEL, p_value

import freewalk as fw
from freewalk.designs import HistoryDriven, Metropolis, SelfRepellent, SimpleWalk

GRAPH = fw.graphs.barabasi_albert(9, 2, seed=3)
IMPORTANCE = np.exp(np.random.default_rng(9).standard_normal(9))
BASE = Metropolis(power=0.6).kernel(GRAPH, IMPORTANCE)
ALPHA, FADING, N = 3.5, 0.6, GRAPH.n
WALKS = 100_000


def repelled(visits, node, alpha):
    """The row of a self-repellent walk."""
    row = BASE.matrix().toarray()[node] * (visits / BASE.target) ** -alpha
    return row / row.sum()


def driven(visits, node, alpha):
    """The row of a history-driven walk: Metropolis with uniform proposals."""
    pull = np.asarray(BASE.target) * (visits / BASE.target) ** -alpha / GRAPH.degrees
    row = np.zeros(N)
    for other in GRAPH.neighbours(node):
        row[other] = min(1.0, pull[other] / pull[node]) / GRAPH.degrees[node]
    row[node] = 1.0 - row.sum()
    return row


def second(row_of, alpha=ALPHA, fading=FADING, counts=True):
    """The law of the nodes after two moves from node 0, flattened over both."""
    law, visits = np.zeros((N, N)), np.asarray(BASE.target).copy()
    if counts:
        visits += (np.eye(N)[0] - visits) / N
    for one, share in enumerate(row_of(visits, 0, alpha)):
        later = visits + (np.eye(N)[one] - visits) * (1 + 1 / N) ** -fading / N if counts else visits
        law[one] = share * row_of(later, one, alpha)
    return law.reshape(-1)


@pytest.mark.parametrize(
    ("design", "row_of"), [(SelfRepellent, repelled), (HistoryDriven, driven)], ids=["repelled", "driven"]
)
def test_two_moves_follow_their_law(design, row_of):
    """And mistakes would be seen: another power, visits counted after the move or not at all, the base chain."""
    kernel = design(Metropolis(power=0.6), alpha=ALPHA, fading=FADING).kernel(GRAPH, IMPORTANCE)
    path = fw.walk(kernel, steps=2, walks=WALKS, start=0, seed=5, paths=WALKS).data.path.values
    pairs = path[:, 1] * N + path[:, 2]
    assert p_value(pairs, second(row_of)) > LEVEL
    for mistake in ({"alpha": ALPHA + 0.5}, {"alpha": -ALPHA}, {"counts": False}, {"alpha": 0.0}):
        assert p_value(pairs, second(row_of, **mistake)) < LEVEL


@pytest.mark.parametrize("alpha", [1.0, pytest.param(4.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("design", [SelfRepellent, HistoryDriven])
def test_visits_vary_as_little_as_theory_says(design, alpha):
    """With plain counts, the variance of the share of visits falls to 1 / (1 + 2α(1 + λ)) of that of the walk without
    memory in every eigenmode of eigenvalue λ, or to 1 / (1 + 2α) if it is driven by its history.

    Doshi, Hu, Eun (2023) and Hu, Ma, Eun (2025). Each estimate is within five standard errors of a chi-square variable
    and 8 % for the finite length of the walks.
    """
    graph, steps, walks = fw.graphs.watts_strogatz(12, 4, 0.3, seed=2), 30_000, 2000
    walk = SimpleWalk()
    base = walk.kernel(graph)
    scale = np.sqrt(np.asarray(base.target))
    values, modes = np.linalg.eigh(scale[:, None] * base.matrix().toarray() / scale)
    kernel = design(walk, alpha=alpha, fading=1.0).kernel(graph)
    visits = fw.walk(kernel, steps=steps, walks=walks, every=steps, seed=6).data.visits.values
    shares = (visits / steps - base.target) / scale @ modes
    variance = steps * (shares[:, :-1] ** 2).mean(axis=0)
    plain = (1 + values[:-1]) / (1 - values[:-1])
    promised = plain / (1 + 2 * alpha * ((1 + values[:-1]) if design is SelfRepellent else 1))
    allowed = 5 * np.sqrt(2 / walks) + 0.08
    assert np.abs(variance / promised - 1).max() < allowed
    assert (variance < plain / 1.5).all()  # and without repulsion it would be seen
