"""What a loss of one's own needs, and what it gets."""

import subprocess
import sys

import numpy as np
import pytest

from freewalk import objectives
from freewalk.objectives import Objective, Predictor


class Quartic(Objective):
    """f_v(x) = ¼ Σ (x − v)⁴ on models of bounded size."""

    n = 3
    dim = 2
    smoothness = np.full(3, 100.0)

    def loss(self, x):
        return float(np.mean([0.25 * np.sum((x - node) ** 4) for node in range(3)]))

    def gradient(self, node, x, sample=None):
        return (x - node) ** 3

    def optimum(self):
        return np.ones(2)


def test_own_loss_has_defaults():
    own = Quartic()
    assert own.samples(0) == 1
    assert own.heavy == ()
    assert np.allclose(sum(own.gradient(node, own.optimum()) for node in range(3)), 0)


@pytest.mark.parametrize("abstract", [Objective, Predictor])
def test_abstract_classes_cannot_be_made(abstract):
    with pytest.raises(TypeError, match="abstract"):
        abstract()


def test_all_lists_the_losses_only():
    listed = [getattr(objectives, name) for name in objectives.__all__]
    assert all(issubclass(one, Objective) and not one.__abstractmethods__ for one in listed)


def test_import_is_light():
    code = "import sys, freewalk.objectives; print({'scipy', 'numba'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
