"""Data sets: what enters is checked, and what is split off is what it says."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freewalk import data
from freewalk.data import Dataset
from freewalk.errors import MissingExtra, ProblemError


def made(targets, classes=None):
    return Dataset(np.arange(2.0 * len(targets)).reshape(-1, 2), targets, classes=classes)


@given(st.lists(st.integers(0, 2), min_size=10, max_size=60), st.floats(0.15, 0.5), st.integers(0, 5))
def test_a_split_is_a_partition_stratified_by_class(labels, share, seed):
    whole = made(labels, ("a", "b", "c"))
    train, test = whole.split(share, seed)
    rows = np.concatenate([train.features, test.features])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, whole.features))
    assert len(test) == round(share * len(whole))
    sizes, tested, trained = (np.bincount(part.targets, minlength=3) for part in (whole, test, train))
    # A class that keeps its only sample leaves the others one more to give.
    assert (np.abs(tested - share * sizes) < 1 + (sizes <= 2).sum()).all()
    assert ((trained > 0) == (sizes > 0)).all()
    again = whole.split(share, seed)
    assert np.array_equal(again[1].features, test.features)


def test_seeds_split_differently_and_regression_splits_too():
    whole = made(np.linspace(0, 1, 50))
    parts = [whole.split(seed=seed)[1].targets for seed in (0, 1)]
    assert [len(part) for part in parts] == [10, 10]
    assert not np.array_equal(*parts)


def test_test_data_are_standardized_by_the_training_data():
    train, test = data.wine().split()
    scaled = train.standardized()
    assert np.abs(scaled.features.mean(axis=0)).max() < 1e-12
    assert np.allclose(scaled.features.std(axis=0), 1)
    expected = (test.features - train.features.mean(axis=0)) / train.features.std(axis=0)
    assert np.allclose(test.standardized(by=train).features, expected)


def test_a_constant_feature_is_shifted_only():
    constant = Dataset([[0.1, 1.0], [0.1, 2.0], [0.1, 6.0]], [1.0, 2.0, 3.0])
    found = constant.standardized(targets=True)
    assert np.abs(found.features[:, 0]).max() < 1e-15
    assert found.targets.std() == pytest.approx(1)


def test_arrays_are_copied_and_closed():
    rows = np.ones((3, 2))
    held = Dataset(rows, [1.0, 2.0, 3.0])
    rows[:] = 5
    assert held.features.max() == 1
    with pytest.raises(ValueError, match="read-only"):
        held.features[0] = 2


def test_pictures():
    assert data.digits().pictures.shape == (1797, 1, 8, 8)
    with pytest.raises(ProblemError, match="not pictures"):
        _ = data.wine().pictures


@pytest.mark.parametrize(
    ("name", "samples", "features", "classes"),
    [("digits", 1797, 64, 10), ("breast_cancer", 569, 30, 2), ("wine", 178, 13, 3), ("diabetes", 442, 10, None)],
)
def test_what_ships_says_what_it_is_and_whose(name, samples, features, classes):
    found = getattr(data, name)()
    assert (len(found), found.features.shape[1], found.name) == (samples, features, name)
    assert (None if found.classes is None else len(found.classes)) == classes
    assert "scikit-learn" in found.source
    assert found.licence
    if name == "digits":
        assert (found.features.min(), found.features.max()) == (0, 1)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r'pip install "\.\[data\]"'):
        data.digits()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dataset([1.0, 2.0], [1.0, 2.0]), r"features has shape \(2,\), expected one row per sample"),
        (
            lambda: made([0, 1, 2], ("a", "b")),
            "targets holds 2, expected whole numbers from 0 to 1; number the classes",
        ),
        (lambda: made([0.0, 1.0], ("a", "b")), "targets is an array of float64, expected whole numbers"),
        (lambda: made([0, 1], ("a", "a")), "expected different strings"),
        (lambda: Dataset(np.ones((2, 4)), [1, 2], shape=(1, 3)), "a shape that holds the 4 features"),
        (lambda: made([1.0, 2.0]).take([]), "indices is empty"),
        (lambda: made([1.0, 2.0]).take([2]), "indices holds 2, expected whole numbers from 0 to 1"),
        (lambda: made([1.0, 2.0]).take([True, False]), r"numpy\.flatnonzero"),
        (lambda: made([1.0, 2.0]).split(0.0), "is 0, expected from 1 to 1"),
        (lambda: made([0, 1], ("a", "b")).split(0.5), "to train on in every class"),
        (lambda: made([0, 1], ("a", "b")).standardized(targets=True), "targets are classes"),
        (lambda: made([0.0]).standardized(Dataset([[1.0]], [0.0])), r"shape \(1,\), expected \(2,\)"),
        (lambda: made([0.0, 1.0]).by_node(data.IID().partition([0, 1, 2], 2)), "of 3 samples, expected 2"),
        (lambda: made([0.0, 1.0]).by_node([0, 1]), r"partition = \[0, 1\], expected a Partition, such as Dirichlet"),
        (lambda: made([0.0, 1.0]).by_node(data.Partition([1, 1], 2, [0.0, 1.0])), "indices is empty"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ProblemError, match=message):
        make()
