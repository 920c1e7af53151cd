"""Drawn data do what their options say.

Statistics are compared in standard errors. At five of them a sound generator fails with probability 6e-7 a
comparison (the seeds are fixed: it would fail always or never). The sizes are such that the mistakes named in
the tests are off by more than ten.
"""

import math

import numpy as np
import pytest

from freewalk.errors import FreewalkError, ProblemError
from freewalk.objectives import LeastSquares, Logistic
from freewalk.objectives.synthetic import truth

KINDS = [LeastSquares, Logistic]


def own_optimum(problem, node):
    rows = slice(*problem.offsets[node : node + 2])
    return np.linalg.lstsq(problem.features[rows], problem.targets[rows], rcond=None)[0]


def variance_error(values, variance):
    """How many standard errors the mean square of normal values is off."""
    return abs(np.mean(values**2) / variance - 1) / math.sqrt(2 / values.size)


def test_variances():
    problem = LeastSquares.synthetic(400, 10, heavy=200, light_variance=2.0, heavy_variance=50.0, samples=5, seed=1)
    light, heavy = problem.features[1000:], problem.features[:1000]
    assert variance_error(light, 2.0) < 5
    assert variance_error(heavy, 50.0) < 5
    assert variance_error(light, 2.0**2) > 10  # a standard deviation taken for a variance
    assert variance_error(heavy, 50.0**2) > 10
    correlation = np.corrcoef(light.T) - np.eye(10)
    assert np.abs(correlation).max() < 5.5 / math.sqrt(1000)  # of 45 correlations: 2e-6
    assert abs(light.mean()) < 5 * math.sqrt(2 / light.size)


def test_heavy_count_is_adjacent_from_node_zero():
    assert LeastSquares.synthetic(20, 2, heavy=3).heavy == (0, 1, 2)
    assert Logistic.synthetic(20, 2, heavy=np.int64(20)).heavy == tuple(range(20))
    assert LeastSquares.synthetic(20, 2).heavy == ()


def test_heavy_nodes_by_name():
    problem = LeastSquares.synthetic(20, 50, heavy=(17, 4), seed=1)
    assert problem.heavy == (4, 17)
    assert set(np.argsort(problem.smoothness)[-2:]) == {4, 17}
    assert LeastSquares.synthetic(20, 2, heavy=range(3, 5)).heavy == (3, 4)


def test_heavy_nodes_at_random():
    drawn = [LeastSquares.synthetic(10, 1, heavy=3, adjacent=False, seed=seed).heavy for seed in range(1000)]
    assert {len(set(nodes)) for nodes in drawn} == {3}
    counts = np.bincount(np.concatenate(drawn), minlength=10)
    assert np.abs(counts - 300).max() < 5.5 * math.sqrt(1000 * 0.3 * 0.7)  # of ten: 4e-7
    for seed in range(20):
        more = LeastSquares.synthetic(10, 1, heavy=4, adjacent=False, seed=seed)
        assert set(drawn[seed]) < set(more.heavy)


def test_heavy_nodes_by_probability():
    drawn = [len(LeastSquares.synthetic(1000, 1, heavy_probability=0.002, seed=seed).heavy) for seed in range(1000)]
    none = 0.998**1000  # 13.5 %
    assert abs(np.mean(drawn) - 2) < 5 * math.sqrt(2 / 1000)
    assert abs(drawn.count(0) - 1000 * none) < 5 * math.sqrt(1000 * none * (1 - none))
    assert LeastSquares.synthetic(9, 1, heavy_probability=1.0).heavy == tuple(range(9))
    assert LeastSquares.synthetic(9, 1, heavy_probability=0.0).heavy == ()


@pytest.mark.parametrize("kind", KINDS)
def test_constant_feature(kind):
    problem = kind.synthetic(20, 3, heavy=2, constant=True, samples=2, seed=1)
    without = kind.synthetic(20, 3, heavy=2, samples=2, seed=1)
    assert (problem.features[:, 0] == 1).all()
    assert np.array_equal(problem.features[:, 1:], without.features[:, 1:])


@pytest.mark.parametrize("distance", [0.0, 0.22, 1.0, 9.0])
def test_distance_of_the_truth_and_noiseless_optimum(distance):
    problem = LeastSquares.synthetic(30, 4, noise=0.0, distance=distance, seed=6)
    model = truth(4, distance, 6)
    assert model @ model == pytest.approx(distance, rel=1e-14)
    assert np.allclose(problem.optimum(), model, rtol=1e-12, atol=1e-14)
    assert problem.mse(model) < 1e-28


def test_directions_of_the_truth_are_uniform():
    models = np.array([truth(3, seed=seed) for seed in range(2000)])
    assert np.abs(models.mean(axis=0)).max() < 5 * math.sqrt(1 / 3 / 2000)
    # Each squared entry has mean 1/3 and variance 4/45.
    assert np.abs((models**2).mean(axis=0) - 1 / 3).max() < 5 * math.sqrt(4 / 45 / 2000)


def test_noise_is_a_standard_deviation():
    problem = LeastSquares.synthetic(5000, 3, noise=0.3, heavy=2500, seed=1)
    residuals = problem.targets - problem.features @ truth(3, 1.0, 1)
    assert variance_error(residuals, 0.3**2) < 5
    assert variance_error(residuals, 0.3) > 10  # a variance taken for a standard deviation
    assert variance_error(residuals[:2500], 0.3**2) < 5  # heavy nodes have no more of it


def test_shift_of_heavy_nodes_is_one_displacement():
    problem = LeastSquares.synthetic(12, 3, heavy=4, noise=0.0, shift=0.5, samples=5, seed=1)
    moved = np.array([own_optimum(problem, node) - truth(3, 1.0, 1) for node in range(12)])
    assert np.allclose(np.linalg.norm(moved[:4], axis=1), 0.5, rtol=1e-10)
    assert np.allclose(moved[:4], moved[0], atol=1e-10)
    assert np.allclose(moved[4:], 0, atol=1e-10)
    assert np.linalg.norm(problem.optimum() - truth(3, 1.0, 1)) > 0.25  # it does not average out


def test_shift_of_all_nodes_is_a_displacement_each():
    problem = LeastSquares.synthetic(300, 3, noise=0.0, shift=0.5, shifted="all", samples=5, seed=1)
    moved = np.array([own_optimum(problem, node) - truth(3, 1.0, 1) for node in range(300)])
    assert np.allclose(np.linalg.norm(moved, axis=1), 0.5, rtol=1e-9)
    assert np.abs(moved.mean(axis=0)).max() < 5 * 0.5 * math.sqrt(1 / 3 / 300)
    assert len(np.unique(moved.round(6), axis=0)) == 300


def test_shift_moves_the_labels_of_heavy_nodes():
    plain, shifted = (Logistic.synthetic(2000, 3, heavy=1000, shift=shift, seed=1) for shift in (0.0, 5.0))
    changed = plain.targets != shifted.targets
    assert changed[:1000].mean() > 0.2
    assert not changed[1000:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_samples(kind):
    counts = [3, 1, 2, 5]
    problem = kind.synthetic(4, 2, samples=counts)
    assert [problem.samples(node) for node in range(4)] == counts
    assert kind.synthetic(4, 2, samples=3).offsets.tolist() == [0, 3, 6, 9, 12]
    assert kind.synthetic(4, 2, ridge=0.7).ridge == 0.7


def test_labels_follow_the_logistic_law():
    problem = Logistic.synthetic(20_000, 3, distance=4.0, seed=1)
    scores = problem.features @ truth(3, 4.0, 1)
    chance = 1 / (1 + np.exp(-scores))

    def off(probability, direction):
        """Standard errors by which Σ direction · (y − p) is off."""
        spread = np.sqrt(np.sum(direction**2 * chance * (1 - chance)))
        return abs(np.sum(direction * (problem.targets - probability))) / spread

    assert off(chance, np.ones(20_000)) < 5
    assert off(chance, scores) < 5
    assert off((scores > 0).astype(float), scores) > 10  # labels drawn without chance
    assert off(1 / (1 + np.exp(-2 * scores)), scores) > 10  # a factor 2 in the score
    assert np.linalg.norm(problem.optimum() - truth(3, 4.0, 1)) < 0.2


def test_label_noise_flips():
    clean, noisy, turned = (Logistic.synthetic(5000, 3, noise=noise, seed=1) for noise in (0.0, 0.2, 1.0))
    flipped = clean.targets != noisy.targets
    assert abs(flipped.mean() - 0.2) < 5 * math.sqrt(0.2 * 0.8 / 5000)
    assert np.array_equal(turned.targets, 1 - clean.targets)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_data(kind):
    first, second, other = (kind.synthetic(30, 3, heavy=2, samples=2, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.features, second.features)
    assert np.array_equal(first.targets, second.targets)
    assert not np.array_equal(first.features, other.features)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [{"noise": 0.5}, {"distance": 4.0}, {"shift": 1.0}, {"shift": 1.0, "shifted": "all"}, {"ridge": 1.0}],
    ids=str,
)
def test_changing_one_thing_keeps_the_features(kind, change):
    plain = kind.synthetic(300, 3, heavy=2, seed=1)
    changed = kind.synthetic(300, 3, heavy=2, seed=1, **change)
    assert np.array_equal(plain.features, changed.features)
    assert np.array_equal(plain.targets, changed.targets) == ("ridge" in change)


def test_changing_the_heavy_nodes_scales_their_features_only():
    plain, heavy = LeastSquares.synthetic(9, 3, seed=1), LeastSquares.synthetic(9, 3, heavy=2, seed=1)
    assert np.allclose(heavy.features[:2], 10 * plain.features[:2])
    assert np.array_equal(heavy.features[2:], plain.features[2:])
    assert np.array_equal(heavy.targets[2:], plain.targets[2:])


def test_both_losses_draw_the_same_features():
    first, second = (kind.synthetic(9, 3, heavy=2, seed=1) for kind in KINDS)
    assert np.array_equal(first.features, second.features)


def test_draws_are_pinned():
    problem = LeastSquares.synthetic(3, 2, heavy=1, seed=7)
    assert np.allclose(problem.targets, [-5.435791134495711, 1.8201554552946384, -0.2975870152483744], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, r"synthetic: n = 0, expected a whole number >= 1"),
        ({"n": 2.5}, r"synthetic: n = 2.5, expected a whole number"),
        ({"n": True}, r"synthetic: n = True, expected a whole number >= 1"),
        ({"dim": 0}, "dim = 0, expected a whole number >= 1"),
        ({"heavy": 6}, "heavy = 6, expected a whole number from 0 to 5"),
        ({"heavy": -1}, "heavy = -1, expected a whole number from 0 to 5"),
        ({"heavy": "two"}, "heavy = 'two', expected a whole number"),
        ({"heavy": [0, 5]}, "heavy holds 5, expected whole numbers from 0 to 4"),
        ({"heavy_probability": 1.5}, "heavy_probability = 1.5, expected a probability from 0 to 1"),
        ({"heavy_probability": -0.5}, "heavy_probability = -0.5, expected a probability from 0 to 1"),
        ({"heavy_probability": math.nan}, "heavy_probability = nan, expected a probability from 0 to 1"),
        ({"heavy": 1, "heavy_probability": 0.5}, "got heavy and heavy_probability, expected only one"),
        ({"light_variance": -1.0}, "light_variance = -1.0, expected a finite number >= 0"),
        ({"heavy_variance": math.inf}, "heavy_variance = inf, expected a finite number >= 0"),
        ({"noise": -0.1}, "synthetic: noise = -0.1, expected a"),
        ({"distance": -1}, "synthetic: distance = -1, expected a finite number >= 0"),
        ({"shift": -1, "heavy": 1}, "shift = -1, expected a finite number >= 0"),
        (
            {"shift": 0.5},
            "shift = 0.5 would move the optimum of heavy nodes, but there are none; pass heavy=",
        ),
        ({"shifted": "heavvy"}, "shifted = 'heavvy', expected 'heavy' or 'all'; did you mean 'heavy'"),
        ({"shifted": "ALL"}, "did you mean 'all'"),
        ({"shifted": "some"}, "shifted = 'some', expected 'heavy' or 'all'$"),
        ({"samples": 0}, "samples = 0, expected a whole number >= 1"),
        ({"samples": 1.5}, "samples = 1.5, expected a whole number"),
        ({"samples": [1, 2]}, "samples has shape .2,., expected .5,.; give one number, or one for each of 5 nodes"),
        ({"samples": [1, 2, 0, 1, 1]}, r"samples holds 0, expected whole numbers >= 1"),
        ({"samples": [1.0] * 5}, "samples is an array of float64, expected whole numbers"),
        ({"ridge": -1}, "ridge = -1, expected a finite number >= 0"),
    ],
)
def test_options_outside_their_range(kind, options, message):
    with pytest.raises(ProblemError, match=rf"{kind.__name__}.*{message}"):
        kind.synthetic(**{"n": 5, "dim": 2, **options})


def test_label_noise_is_a_probability():
    with pytest.raises(ProblemError, match=r"noise = 1\.5, expected a probability from 0 to 1"):
        Logistic.synthetic(5, 2, noise=1.5)


def test_bad_seed():
    with pytest.raises(FreewalkError, match="synthetic: seed = -1, expected a whole number"):
        LeastSquares.synthetic(5, 2, seed=-1)


def test_shift_without_a_heavy_node_by_chance_is_no_error():
    assert LeastSquares.synthetic(5, 2, heavy_probability=0.0, shift=1.0).heavy == ()


@pytest.mark.parametrize(("dim", "distance"), [(0, 1.0), (2, -1.0)])
def test_truth_checks_its_arguments(dim, distance):
    with pytest.raises(ProblemError, match="truth: "):
        truth(dim, distance)
