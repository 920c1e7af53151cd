"""No function answers for the walk without memory: each knows the last node, or refuses the memory by name."""

import sys
from pathlib import Path

import numpy as np
import pytest
from pairs import importance_of

import freewalk as fw
from freewalk.analysis import exact_curve, find_traps
from freewalk.designs import FromMatrix, HistoryDriven, Metropolis, NonBacktracking, SelfRepellent
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError, FreewalkError, KernelError
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase

sys.path.insert(0, str(Path(__file__).parents[1] / "robustness"))
import calls

RING = fw.graphs.ring(6)
BASE = Metropolis(power=1)
WITH_MEMORY = {
    "NonBacktracking": NonBacktracking(BASE),
    "SelfRepellent": SelfRepellent(BASE, alpha=2),
    "HistoryDriven": HistoryDriven(BASE, alpha=2),
}
#: What knows the last node; what these answer is tested in test_states.py and test_pair_curves.py, and of traps below.
KNOW_THE_LAST_NODE = {
    "Kernel.local",
    *("distance_to_target", "escape_time", "exact_curve", "excess_visits", "find_traps", "hitting_times"),
    *("matched_steps", "messages_per_visit", "mixing_time", "period", "race", "second_eigenvalue", "small_step_law"),
    *("sojourn_times", "spectral_gap", "stability_limit", "stationary", "steady_state"),
}
#: What runs a kernel, with its memory, or holds it, or does not depend on the memory: the table of its moves.
KNOW_EVERY_MEMORY = {"learn", "walk", "Phase", "Kernel.at", "Kernel.probabilities"}
REFUSED = r"^(\w+: .* remembers (LastNode|VisitCounts)\(.*\), expected no memory.*: simulate it|.* it has no matrix; )"
REFUSED += "|count visits at other nodes; no node can act"


@pytest.fixture(scope="module")
def surface(tmp_path_factory):
    """Every public function that takes a kernel, and every method of one, with arguments that work."""
    found = calls.surface(tmp_path_factory.mktemp("surface"))
    return {
        name: (function, good)
        for name, (function, good) in found.items()
        if name.startswith("Kernel.") or any(isinstance(value, Kernel) for value in good.values())
    }


@pytest.mark.parametrize("design", WITH_MEMORY)
def test_every_function_knows_a_memory_or_refuses_it_by_name(surface, design):
    kernel = WITH_MEMORY[design].kernel(RING, importance_of(RING, 1, 1))
    know = KNOW_EVERY_MEMORY | (KNOW_THE_LAST_NODE if design == "NonBacktracking" else set())
    assert know <= set(surface)
    for name, (function, good) in surface.items():
        call = getattr(kernel, function.__name__) if name.startswith("Kernel.") else function
        given = {key: kernel if isinstance(value, Kernel) else value for key, value in good.items()}
        if name in know:
            call(**given)
        else:
            with pytest.raises(FreewalkError, match=REFUSED):
                call(**given)
    with pytest.raises(KernelError, match=REFUSED):
        kernel.move_matrix(kernel.moves[0])


def test_a_refusal_says_who_got_what_and_what_to_do():
    kernel = WITH_MEMORY["SelfRepellent"].kernel(RING, np.ones(6), label="mine")
    words = r"^stationary: mine remembers VisitCounts\(alpha=2, .*\), expected no memory, or that of NonBacktracking: "
    with pytest.raises(AnalysisError, match=words + r"simulate it with .*, or take kernel.without_memory\(\)"):
        fw.analysis.stationary(kernel)
    with pytest.raises(AnalysisError, match=r"^kemeny_constant: .* remembers LastNode\(.*\), expected no memory: "):
        fw.analysis.kemeny_constant(WITH_MEMORY["NonBacktracking"].kernel(RING, np.ones(6)))


@pytest.mark.parametrize("design", ["SelfRepellent", "HistoryDriven"])
def test_a_memory_is_refused_in_any_phase_and_for_several_tokens(design):
    problem = fw.objectives.LeastSquares.synthetic(RING.n, dim=2, seed=1)
    kernel = WITH_MEMORY[design].kernel(RING, problem.smoothness)
    rule = fw.SGD(1e-3)
    phases = [Phase(until=2, kernel=kernel.without_memory(), rule=rule), Phase(until=None, kernel=kernel, rule=rule)]
    with pytest.raises(AnalysisError, match=REFUSED):
        exact_curve(problem, phases, steps=4)
    with pytest.raises(AnalysisError, match=REFUSED):
        fw.analysis.steady_state(problem, kernel, rule, tokens=3)


def test_a_diagnosis_names_what_it_leaves_out():
    problem = fw.objectives.LeastSquares.synthetic(20, dim=2, heavy=1, seed=1)
    designs = {"turning": WITH_MEMORY["NonBacktracking"], "repelled": WITH_MEMORY["SelfRepellent"]}
    found = fw.diagnose(fw.graphs.ring(20), problem, designs=designs)
    turning, repelled = (found.forecasts[label] for label in designs)
    assert np.isfinite([turning.excess, turning.race.updates, turning.messages_per_update]).all()
    assert turning.distance < 1e-15
    assert turning.excess < found.forecasts["MH importance"].excess
    assert repelled.race is None
    assert np.isnan([repelled.excess, repelled.distance, repelled.messages_per_update]).all()
    assert {what for what in found.left_out if "repelled" in what} == set(found.left_out)
    assert all("remembers VisitCounts" in why for why in found.left_out.values())


def test_traps_are_judged_with_the_memory():
    graph = fw.graphs.ring(100)
    kernel = NonBacktracking(BASE).kernel(graph, [100.0, 100.0] + 98 * [1.0])
    (trap,) = find_traps(kernel.without_memory())
    assert (trap.nodes, find_traps(kernel)) == ((0, 1), [])  # memory frees the walk
    graph, block = fw.graphs.grid(10, 10), [10 * row + column for row in range(3) for column in range(3)]
    kernel = NonBacktracking(BASE).kernel(graph, np.where(np.isin(np.arange(100), block), 100.0, 1.0))
    (trap, *_), (base, *_) = (find_traps(one, factor=1.5, least=1) for one in (kernel, kernel.without_memory()))
    assert trap.nodes == base.nodes == tuple(block)
    assert trap.excess == pytest.approx(fw.analysis.excess_visits(kernel, block), rel=1e-10)
    assert trap.excess < 0.6 * base.excess


def test_the_checks_before_a_run_take_the_moves_without_the_memory():
    # A walk that cannot reach all nodes, or misses its target, is found through its memory.
    lazy = 0.5 * np.eye(4) + np.kron(np.eye(2), [[0.25, 0.25], [0.25, 0.25]])
    graph, start = fw.graphs.path(4), np.zeros(1, dtype=np.int32)
    for design in (NonBacktracking, lambda design: SelfRepellent(design, alpha=1)):
        kernel = design(FromMatrix(lazy, target=np.ones(4))).kernel(graph)
        phase = Phase(until=None, kernel=kernel, rule=fw.rules.SAG(1e-3))
        arguments.targets((phase,))
        with pytest.raises(FreewalkError, match="never gets from node 0 to 2 of 4 nodes"):
            arguments.visits_everywhere((phase,), start)
