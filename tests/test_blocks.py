"""Large arrays: cut into blocks, kept without a copy, stored as one number, counted without touching zeros."""

import numpy as np

from freewalk.blocks import add_counts, ascends, blocks, constant, is_fixed, read_only


def test_blocks_cover_all_rows():
    assert list(blocks(1_500_000)) == [slice(0, 1048576), slice(1048576, 1_500_000)]
    assert list(blocks(3, width=10, numbers=20)) == [slice(0, 2), slice(2, 3)]


def test_only_what_cannot_change_is_fixed():
    assert is_fixed(constant(1.0, 3), np.float64)
    assert is_fixed(read_only(np.arange(3.0)), np.float64)
    assert not is_fixed(np.arange(3.0), np.float64)
    assert not is_fixed(read_only(np.arange(3.0)), np.float32)


def test_a_constant_repeats_one_number():
    assert constant(0.5, 3).tolist() == [0.5, 0.5, 0.5]
    assert constant(0.5, 3).strides == (0,)


def test_numbers_that_ascend():
    assert ascends(np.array([1, 1, 3]))
    assert not ascends(np.array([1, 3, 2]))


def test_counts_are_added():
    total = np.zeros(3, dtype=np.int64)
    add_counts(total, np.array([0, 2, 0]))
    assert total.tolist() == [0, 2, 0]
