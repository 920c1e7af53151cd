"""The samples of a minibatch."""

import numpy as np

from freewalk.runtimes.visit import draw_batch


def test_a_batch_has_distinct_samples_and_is_the_same_for_ever():
    chosen = np.empty(3, dtype=np.int64)
    draw_batch(np.uint64(1), np.uint64(0), np.uint64(5), 0, 4, chosen)
    assert chosen.tolist() == [1, 0, 3]
