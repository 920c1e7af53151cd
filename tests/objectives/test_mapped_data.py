"""Samples that lie in a file: the same problem to the last bit, not copied, or an error that names the file."""

import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from freewalk import blocks, objectives
from freewalk.errors import ProblemError
from freewalk.objectives import LeastSquares, Logistic, Predictor, synthetic
from freewalk.storage.mapped import is_mapped

PROBLEMS = {
    "one sample each": LeastSquares.synthetic(300, 4, heavy=2, seed=1),
    "several, ridge": LeastSquares.synthetic(60, 3, samples=3, ridge=0.1, seed=2),
    "by sample": LeastSquares([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0], [0, 1, 1], weight_by="sample"),
    "relays and names": LeastSquares([[1.0], [2.0]], [1.0, 2.0], ["a", "c"], relays=["b"], graph=["a", "b", "c"]),
    "Logistic": Logistic.synthetic(200, 3, ridge=0.01, noise=0.1, seed=3),
}


@pytest.fixture(params=PROBLEMS.values(), ids=PROBLEMS)
def problem(request):
    return request.param


def assert_same(found: Predictor, problem: Predictor) -> None:
    model = np.linspace(-1.0, 1.0, problem.dim)
    assert repr(found) == repr(problem)
    assert type(found) is type(problem)
    assert found.node_names == problem.node_names
    for name in ("features", "targets", "offsets", "node_weights", "sample_weights", "smoothness"):
        np.testing.assert_array_equal(getattr(found, name), getattr(problem, name), err_msg=name)
    np.testing.assert_array_equal(found.optimum(), problem.optimum())
    np.testing.assert_array_equal(found.losses(model), problem.losses(model))
    np.testing.assert_array_equal(found.gradient(problem.n - 1, model), problem.gradient(problem.n - 1, model))
    assert dict(found.measure(model)) == dict(problem.measure(model))
    for one, two in zip(found.expansion(found.optimum()), problem.expansion(problem.optimum()), strict=True):
        np.testing.assert_array_equal(one, two)
    share, other = found.local(0), problem.local(0)
    np.testing.assert_array_equal(share.gradient(model), other.gradient(model))
    assert not is_mapped(share.objective.features)


@pytest.mark.parametrize("verify", [True, False])
def test_a_problem_comes_back_as_it_was(problem, verify, tmp_path):
    found = objectives.read(problem.save(tmp_path / "a.data"), verify=verify)
    assert found.is_mapped
    assert not problem.is_mapped
    assert_same(found, problem)
    assert_same(objectives.read(found.save(tmp_path / "b.data")), problem)


def test_a_problem_on_arrays_that_numpy_has_mapped(tmp_path):
    whole = PROBLEMS["one sample each"]
    np.save(tmp_path / "features.npy", whole.features)
    np.save(tmp_path / "targets.npy", whole.targets)
    features, targets = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("features", "targets"))
    found = LeastSquares(features, targets, heavy=whole.heavy)
    assert np.shares_memory(found.features, features)
    assert found.nodes is None
    assert_same(found, whole)
    assert_same(pickle.loads(pickle.dumps(found)), whole)


def test_the_importance_of_millions_of_nodes_is_for_those_who_ask(tmp_path, monkeypatch):
    found = objectives.read(PROBLEMS["one sample each"].save(tmp_path / "a.data"))
    assert found.known_smoothness is found.smoothness
    monkeypatch.setattr("freewalk.objectives.predictor.LARGE", 10)
    assert found.known_smoothness is None
    assert PROBLEMS["one sample each"].known_smoothness is not None


def test_other_types_and_orders_are_copied_as_ever(tmp_path):
    whole = PROBLEMS["one sample each"]
    np.save(tmp_path / "single.npy", whole.features.astype(np.float32))
    np.save(tmp_path / "columns.npy", np.asfortranarray(whole.features))
    for name in ("single", "columns"):
        features = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        found = LeastSquares(features, whole.targets)
        assert not found.is_mapped
        assert found.features.flags.c_contiguous
        np.testing.assert_array_equal(found.features, np.asarray(features, dtype=np.float64))


def test_another_process_maps_the_same_file(tmp_path):
    found = objectives.read(PROBLEMS["one sample each"].save(tmp_path / "a.data"))
    data = pickle.dumps(found)
    assert len(data) < 1000
    (tmp_path / "sent").write_bytes(data)
    program = "import pickle, sys; p = pickle.load(open(sys.argv[1], 'rb')); print(p.is_mapped, p.loss([1, 2, 3, 4]))"
    command = [sys.executable, "-c", program, str(tmp_path / "sent")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", repr(found.loss([1, 2, 3, 4]))]


def test_samples_in_a_file_are_sorted_by_node(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((3, 1)))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    with pytest.raises(ProblemError, match="are in a file and nodes are not in ascending order"):
        LeastSquares(rows, [1.0, 2.0, 3.0], [1, 0, 1])
    assert LeastSquares(rows, [1.0, 2.0, 3.0], [0, 1, 1]).samples(1) == 2


def test_a_number_that_is_not_finite_is_found_far_inside(tmp_path):
    rows = np.zeros((300_000, 4))
    rows[270_001, 2] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(ProblemError, match=r"features\[270001, 2\] = nan, expected a finite number"):
        LeastSquares(np.load(tmp_path / "rows.npy", mmap_mode="r"), np.zeros(300_000))


def test_the_same_data_are_drawn_to_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "BLOCK", 2**10)  # many parts
    counts = np.random.default_rng(0).integers(1, 5, 700)
    for options in (
        {"n": 1500, "dim": 3, "heavy": 2},
        {"n": 700, "dim": 5, "heavy_probability": 0.2, "samples": 3, "ridge": 0.1},
        {"n": 700, "dim": 33, "heavy": [3, 5], "shift": 0.5, "samples": counts, "constant": True},
        {"n": 900, "dim": 7, "shift": 0.5, "shifted": "all", "heavy": 3, "adjacent": False},
    ):
        drawn = LeastSquares.synthetic(**options, seed=4)
        found = LeastSquares.synthetic(**options, seed=4, path=tmp_path / "drawn.data")
        assert found.is_mapped
        assert_same(found, drawn)
        assert_same(objectives.read(tmp_path / "drawn.data"), drawn)


def test_what_cannot_be_drawn_leaves_no_file(tmp_path):
    with pytest.raises(ProblemError, match=r"expected at most 1e\+150"):
        LeastSquares.synthetic(10, 2, light_variance=1e308, distance=1e308, path=tmp_path / "drawn.data")
    assert not list(tmp_path.iterdir())


def test_a_changed_or_truncated_file_is_refused(tmp_path):
    file = PROBLEMS["one sample each"].save(tmp_path / "a.data")
    whole = file.read_bytes()
    for size in range(0, len(whole), 499):
        file.write_bytes(whole[:size])
        for verify in (True, False):
            with pytest.raises(ProblemError, match=r"truncated|begins with b''"):
                objectives.read(file, verify=verify)
    file.write_bytes(whole)
    offset = objectives.read(file).features.source.offset + 8
    file.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
    with pytest.raises(ProblemError, match="checksum of features differs"):
        objectives.read(file)
    with pytest.raises(ProblemError, match="cannot be read"):
        objectives.read(tmp_path / "none.data")


class Doubled(Predictor):
    curvature = 2.0

    @staticmethod
    def value(prediction, target):
        return (prediction - target) ** 2

    @staticmethod
    def slope(prediction, target):
        return 2.0 * (prediction - target)


def test_a_class_of_ones_own_is_passed_along(tmp_path):
    file = Doubled([[1.0], [2.0]], [1.0, 2.0]).save(tmp_path / "own.data")
    with pytest.raises(ProblemError, match=r"of your own class Doubled; pass it: read\(path, types=\[Doubled\]\)"):
        objectives.read(file)
    assert type(objectives.read(file, types=[Doubled])) is Doubled
    for wrong in (3, [int], [Doubled([[1.0]], [1.0])]):
        with pytest.raises(ProblemError, match="expected a list of subclasses"):
            objectives.read(file, types=wrong)


def test_sums_over_a_file_take_no_memory_by_sample(tmp_path):
    n = 400_000
    problem = LeastSquares.synthetic(n, 4, seed=1, path=tmp_path / "large.data")
    model = np.ones(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LARGE", 2**14)
        patch.setattr("freewalk.objectives.predictor.LARGE", 2**14)
        problem.loss(model)
        tracemalloc.start()
        problem.loss(model)
        problem.mse(model)
        problem.expansion(problem.optimum())
        objectives.read(tmp_path / "large.data")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 * n * 8  # the features alone have as much; blocks of the checks, a good part of it
