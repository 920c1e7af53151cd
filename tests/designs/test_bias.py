"""A target that a walk does not sample makes wrong weights: whoever gives one is told how far off it is."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import freewalk as fw
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import FreewalkWarning, TargetWarning

RING = fw.graphs.ring(6)
PROBLEM = fw.objectives.LeastSquares.synthetic(6, dim=2, heavy=1, seed=1)
SIMPLE = RING.adjacency().toarray() / 2
LAZY = 0.5 * np.eye(6) + 0.5 * SIMPLE


def learned(kernel, rule=None):
    return fw.learn(PROBLEM, kernel, rule or fw.SGD(step=1e-3), steps=2, runtime="reference")


def test_a_wrong_target_warns_with_its_distance():
    kernel = FromMatrix(LAZY, target=[6, 1, 1, 1, 1, 1]).kernel(RING)
    away = abs(np.array([6, 1, 1, 1, 1, 1]) / 11 - 1 / 6).sum() / 2
    with pytest.warns(TargetWarning, match=rf"FromMatrix.* {away:.2g} away in total variation") as caught:
        learned(kernel)
    assert issubclass(TargetWarning, FreewalkWarning)
    assert caught[0].filename == __file__  # it points at the user's line


def test_so_does_a_table_made_by_hand():
    kernel = fw.Kernel(RING, [fw.Move(1.0)], [2, 1, 1, 1, 1, 1], "mine")
    with pytest.warns(TargetWarning, match=r"mine: its target is not its stationary distribution"):
        learned(kernel)


def test_long_jumps_are_not_looked_into():
    """The powers of their matrices would take minutes, and gigabytes."""
    learned(fw.Kernel(RING, [fw.Move(0.5), fw.Move(0.5, hops=10_000)], [2, 1, 1, 1, 1, 1]))


@dataclass(frozen=True)
class Own(fw.Design):
    strength: float

    def moves(self, graph, importance):
        return [fw.Move(1.0)]

    def target(self, graph, importance):
        return graph.degrees + self.strength * np.arange(graph.n)


def test_so_does_a_design_of_ones_own_that_is_wrong():
    learned(Own(0.0).kernel(RING))
    with pytest.warns(TargetWarning, match=r"Own\(strength=1.0\)"):
        learned(Own(1.0).kernel(RING))


def test_a_declared_bias_is_silent():
    class Known(Own):
        biased = True

    learned(Known(1.0).kernel(RING))
    learned(FromMatrix(LAZY, target=[6, 1, 1, 1, 1, 1], biased=True).kernel(RING))
    learned(fw.Kernel(RING, [fw.Move(1.0)], [2, 1, 1, 1, 1, 1], "mine", biased=True))


def test_without_weights_a_target_does_not_matter():
    learned(FromMatrix(LAZY, target=[6, 1, 1, 1, 1, 1]).kernel(RING), fw.SGD(step=1e-3, weighted=False))


@pytest.mark.parametrize(
    ("design", "biased"),
    [
        (SimpleWalk(), False),
        (Metropolis(power=1), False),
        (Metropolis(target=[1, 2, 3, 4, 5, 6]), False),
        (MHLJ(0.1, 0.5, 3), True),
        (MHLJ(0.0, 0.5, 3), False),
        (MHLJ(0.1, 0.5, 3, corrected=True), False),
        (ClosedFormMHLJ(0.1, 0.5, 3), True),
        (Centralized(power=1), False),
        (FromMatrix(LAZY), False),
        (FromMatrix(LAZY, target=np.ones(6)), None),
        (Decaying(MHLJ(0.1, 0.5, 3), fw.schedules.Inverse(1.0, 10)), True),
    ],
    ids=repr,
)
def test_what_designs_declare_and_their_kernels_know(design, biased):
    kernel = design.kernel(RING, PROBLEM.smoothness)
    assert design.biased is biased
    assert kernel.biased is biased
    off = np.abs(kernel.target @ kernel.matrix() - kernel.target).sum() > 1e-9
    assert off == bool(biased)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned(kernel)


def test_what_has_no_stationary_distribution_or_is_large_is_not_computed():
    learned(FromMatrix(np.eye(6), target=np.ones(6)).kernel(RING))
    large = fw.graphs.ring(1500)
    problem = fw.objectives.LeastSquares.synthetic(1500, dim=1, seed=1)
    kernel = fw.Kernel(large, [fw.Move(1.0)], np.arange(1, 1501), "large")
    fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=1, runtime="reference")
