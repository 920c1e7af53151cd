"""What only the kernels of a graphics card do: warps that share a walk, shared memory, visits counted together.

Runs where there is a card (`make test-cuda`), and small in numba's simulator (`test_cuda_simulated.py`).
"""

import os

import numpy as np
import pytest
from catalogue import HeavyBall, Scaled

import freewalk as fw
from freewalk.objectives import LeastSquares, Logistic
from freewalk.runtimes import CUDA
from freewalk.runtimes.cuda import runtime as cuda

pytestmark = pytest.mark.skipif(
    os.environ.get("FREEWALK_TEST_RUNTIME") != "CUDA", reason="needs a graphics card, or numba's simulator of one"
)
GRAPH = fw.graphs.watts_strogatz(12, 4, 0.3, seed=1)
DESIGN = fw.designs.MHLJ(0.4, 0.5, 5)


def both(problem, rule, walks=3, steps=5, runtime="cuda", **options):
    """The same run on the card and by `reference`."""
    kernel = DESIGN.kernel(GRAPH, problem.smoothness)
    options = {"steps": steps, "walks": walks, "every": 3, "seed": 5, **options}
    return tuple(fw.learn(problem, kernel, rule, runtime=where, **options).data for where in (runtime, "reference"))


def assert_same(card, truth, relative=1e-9):
    for name, values in truth.variables.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(card[name].values, values.values, rtol=relative, atol=relative * 1e-3)
        else:
            assert np.array_equal(card[name].values, values.values), name


MEMORY = [
    fw.SGD(step=0.01, average="half"),
    fw.rules.Momentum(step=0.01, momentum=0.5),
    fw.rules.AdaGrad(step=0.05, keeper="node"),
    fw.rules.SAG(step=0.02),
    fw.rules.Walkman(),
    fw.rules.VisitWeighted(step=0.01, prior=3.0),
]


@pytest.mark.parametrize("runtime", [CUDA(), CUDA(walks_at_once=2)], ids=repr)
@pytest.mark.parametrize("rule", MEMORY, ids=repr)
def test_rules_with_memory(rule, runtime):
    """The walks go back and forth, so that they meet what they left at the nodes."""
    assert_same(*both(LeastSquares.synthetic(12, dim=3, seed=1), rule, steps=9, start=0, runtime=runtime))


@pytest.mark.parametrize("rule", [fw.SGD(step=0.01), HeavyBall(), Scaled(), *MEMORY[3:]], ids=repr)
def test_a_warp_shares_a_walk_whose_model_is_large(rule):
    """33 numbers of 8 bytes are more than a thread holds; what a rule makes of the 31 that do not exist is not seen."""
    assert_same(*both(LeastSquares.synthetic(12, dim=33, seed=1), rule, walks=2, steps=2, every=2))


def test_a_warp_that_stays_at_relays():
    """Nothing is summed over the warp there, and still nobody may write before all have read."""
    shared = LeastSquares.synthetic(4, dim=34, seed=2)
    problem = LeastSquares(shared.features[:3], shared.targets[:3], [0, 2, 3], relays=[1])
    kernel = fw.designs.Metropolis().kernel(fw.graphs.ring(4))
    options = {"steps": 6, "walks": 2, "every": 1, "seed": 5, "start": 1}
    runs = (fw.learn(problem, kernel, fw.SGD(step=0.003), runtime=where, **options) for where in ("cuda", "reference"))
    assert_same(*(run.data for run in runs))


def test_a_warp_shares_a_walk_with_several_samples():
    problem = Logistic.synthetic(12, dim=40, samples=2, ridge=0.1, seed=1)
    assert_same(*both(problem, fw.SGD(step=0.01), walks=1, steps=2, every=2))


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("shared", [0, 2**14])
def test_with_and_without_shared_memory(shared, precision, monkeypatch):
    monkeypatch.setattr(cuda.CUDAEngine, "_most_shared", lambda self: shared)
    card, truth = both(LeastSquares.synthetic(12, dim=4, seed=1), fw.SGD(step=0.01), precision=precision)
    assert_same(card, truth, 1e-9 if precision == "float64" else 1e-4)


@pytest.mark.parametrize("shared", [0, 2**14])
@pytest.mark.parametrize("runtime", [CUDA(), CUDA(walks_at_once=2)], ids=repr)
def test_visits_of_many_walks_are_counted_together(runtime, shared, monkeypatch):
    monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 1)
    monkeypatch.setattr(cuda.CUDAEngine, "_most_shared", lambda self: shared)
    card, truth = both(LeastSquares.synthetic(12, dim=2, seed=1), fw.SGD(step=0.01), runtime=runtime, paths=[2])
    assert truth.visits.dims == ("node",)
    assert_same(card, truth)
    assert int(card.visits.sum()) == 3 * 5


def test_walks_that_no_longer_fit_together_are_brought_back_first(monkeypatch):
    """Memory can become short while a run is under way."""
    found = cuda.CUDAEngine._ranges
    calls = []

    def shrinking(self, state, marks):
        calls.append(marks)
        return found(self, state, marks) if len(calls) < 3 else [(0, 2), (2, 3)]

    monkeypatch.setattr(cuda.CUDAEngine, "_ranges", shrinking)
    assert_same(*both(LeastSquares.synthetic(12, dim=3, seed=1), fw.SGD(step=0.01), steps=20))
    assert len(calls) > 3
