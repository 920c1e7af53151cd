"""Walks that avoid to step back: where each turns, by where it came from, against the formula.

Given the pair (last node, present node), the next node of a walk has an exact law, whatever else happened. So the turns
from each pair are independent draws from one law, in paths of any length, and a first step is one by P.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from exact import LEVEL, mean_p_value, p_value

import freewalk as fw
from freewalk.analysis import exact_curve
from freewalk.designs import FromMatrix, Metropolis, NonBacktracking, SimpleWalk

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from pairs import designs_on, written_out

GRAPHS = {
    "ring": fw.graphs.ring(7),
    "star": fw.graphs.star(6),
    "path of two": fw.graphs.path(2),
    "random": fw.graphs.barabasi_albert(12, 2, seed=3),
}
#: At the first node a Metropolis walk stays for thousands of steps.
IMPORTANCE = {name: np.append(2000.0, np.linspace(1, 3, graph.n - 1)) for name, graph in GRAPHS.items()}
WALKS, STEPS = 400, 500


def kernel_of(graph, design, forget):
    made = designs_on(GRAPHS[graph], 1)[design]
    return NonBacktracking(made, forget).kernel(GRAPHS[graph], IMPORTANCE[graph])


def paths_of(kernel, seed=1):
    starts = np.arange(WALKS) % kernel.graph.n
    return fw.walk(kernel, steps=STEPS, walks=WALKS, paths=WALKS, start=starts, seed=seed).data.path.values


def turns_p_value(paths, kernel):
    """The smallest p-value of the turns from any pair and of the first steps, with Bonferroni's correction."""
    matrix, pairs, _ = written_out(kernel)
    number = {pair: place for place, pair in enumerate(pairs)}
    base, n = kernel.without_memory().matrix().toarray(), kernel.graph.n
    last, now, then = paths[:, :-2].ravel(), paths[:, 1:-1].ravel(), paths[:, 2:].ravel()
    found = [p_value(paths[paths[:, 0] == node, 1], np.where(base[node] < 1e-15, 0, base[node])) for node in range(n)]
    for (here, before), place in number.items():
        law = np.zeros(n)
        for there in range(n):
            law[there] = matrix[place, number[there, here]] if (there, here) in number else 0.0
        nodes = then[(now == here) & (last == before)]
        if nodes.size:
            found.append(p_value(nodes, np.where(law < 1e-15, 0.0, law)))
    return min(1.0, len(found) * min(found))


@pytest.mark.quick("random-0.0-importance", "star-0.0-simple", "path of two-0.3-importance", "ring-0.3-matrix")
@pytest.mark.parametrize("design", designs_on(GRAPHS["ring"], 1))
@pytest.mark.parametrize("forget", [0.0, 0.3])
@pytest.mark.parametrize("graph", GRAPHS)
def test_turns_follow_the_exact_law(graph, forget, design):
    """A walk that is right fails with probability 1e-6."""
    kernel = kernel_of(graph, design, forget)
    assert turns_p_value(paths_of(kernel), kernel) > LEVEL


@pytest.mark.parametrize("planted", ["no memory", "forgets more", "never forgets", "accepts all"])
def test_a_mistake_in_a_turn_is_seen(planted):
    kernel = kernel_of("random", "tempered", 0.3)
    design = kernel_of("random", "tempered", {"forgets more": 0.5, "never forgets": 0.0}.get(planted, 0.3))
    if planted == "no memory":
        design = design.without_memory()
    if planted == "accepts all":  # T(k, j) = P_j / (1 − P_k), which does not keep the target
        rows = design.rows
        design.__dict__["rows"] = rows._replace(others=np.full_like(rows.others, 0.5))
    assert turns_p_value(paths_of(design), kernel) < LEVEL


def test_expected_messages_and_visits_of_walks_that_turn():
    problem = fw.objectives.LeastSquares.synthetic(12, dim=2, heavy=2, seed=1)
    kernel, options = kernel_of("random", "tempered", 0.0), {"steps": 60, "every": 20, "start": 3}
    data = fw.learn(problem, kernel, fw.SGD(1e-3), walks=4000, seed=2, **options).data
    curve = exact_curve(problem, kernel, fw.SGD(1e-3), **options)
    assert mean_p_value(data.messages.values[:, 1:], curve.messages.values[1:]) > LEVEL
    assert mean_p_value(data.visits.values, curve.visits.values) > LEVEL
    base = exact_curve(problem, kernel.without_memory(), fw.SGD(1e-3), **options)
    assert mean_p_value(data.visits.values, base.visits.values) < LEVEL


@pytest.mark.parametrize("design", [SimpleWalk(), Metropolis(power=1), FromMatrix(np.full((7, 7), 1 / 7))], ids=repr)
def test_the_times_to_reach_a_node_have_the_exact_mean(design):
    graph = fw.graphs.complete(7) if isinstance(design, FromMatrix) else GRAPHS["ring"]
    kernel = NonBacktracking(design).kernel(graph, np.linspace(1, 4, 7))
    path = fw.walk(kernel, steps=400, walks=4000, paths=4000, start=2, seed=3).data.path.values
    first = np.argmax(path == 5, axis=1).astype(float)
    assert (first > 0).all()
    assert mean_p_value(first[:, None], fw.analysis.hitting_times(kernel)[2, 5]) > LEVEL
