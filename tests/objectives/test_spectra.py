"""The largest eigenvalues, against a loop over nodes."""

from itertools import pairwise

import numpy as np
import pytest

from freewalk.objectives.spectra import largest_eigenvalues


@pytest.mark.parametrize("block", [1, 40, 2**21])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_against_singular_values(dim, block):
    draws = np.random.default_rng(dim)
    counts = draws.integers(1, 9, size=60)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    features = draws.standard_normal((offsets[-1], dim))
    expected = [
        np.linalg.svd(features[begin:end], compute_uv=False)[0] ** 2 / (end - begin) for begin, end in pairwise(offsets)
    ]
    assert np.allclose(largest_eigenvalues(features, offsets, block), expected, rtol=1e-12)


def test_zero_features():
    assert largest_eigenvalues(np.zeros((3, 2)), np.array([0, 1, 3])).tolist() == [0, 0]
