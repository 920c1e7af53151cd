"""Weights from the token's own visits: the formula along the path, and the bias that it removes."""

import numpy as np
import pytest
from written_out import KERNEL, PROBLEM, RUNTIMES, compare

from freewalk.errors import FreewalkError
from freewalk.rules import VisitWeighted


@RUNTIMES
@pytest.mark.parametrize("prior", [0.0, 12.0, None], ids=repr)
def test_the_formula(runtime, prior):
    count = 80.0 if prior is None else prior

    def replay(path, x):
        visits, trail = np.zeros(8), [x]
        for node in path:
            visits[node] += 1
            weight = (visits.sum() + count) / (8 * (visits[node] + count * KERNEL.target[node]))
            x = x - 0.003 * weight * PROBLEM.gradient(node, x)
            trail.append(x)
        return trail, {"x": x}

    compare(VisitWeighted(step=0.003, prior=prior), runtime, replay)


def test_the_prior_is_ten_visits_a_node():
    assert VisitWeighted(step=0.1).fitted(PROBLEM, KERNEL) == VisitWeighted(step=0.1, prior=80.0)
    assert VisitWeighted(step=0.1, prior=3.0).fitted(PROBLEM, KERNEL).prior == 3.0


@pytest.mark.parametrize("prior", [-1.0, np.nan, np.inf, "some", True], ids=repr)
def test_priors_are_not_negative(prior):
    with pytest.raises(FreewalkError, match=r"VisitWeighted: prior = .*, expected a finite number >= 0"):
        VisitWeighted(step=0.1, prior=prior)
