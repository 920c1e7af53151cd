"""Calls that once ended in an error of Python, NumPy or numba, or not at all: the error is ours and says what to do."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freewalk as fw
from freewalk.analysis.diagnosis.findings import Diagnosis
from freewalk.specs import load
from freewalk.storage.files import replacing
from freewalk.storage.locks import claim

GRAPH = fw.graphs.ring(6)
KERNEL = fw.designs.SimpleWalk().kernel(GRAPH)


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return fw.diagnose(GRAPH, np.arange(1.0, 7.0), budget=1.0)


def test_initial_models_whose_rows_differ_in_length() -> None:
    problem = fw.objectives.LeastSquares.synthetic(6, 2, seed=1)
    for tokens in (1, 2):
        with pytest.raises(fw.FreewalkError, match=r"learn: initial cannot be read .* \(its rows differ in length\)"):
            fw.learn(problem, KERNEL, fw.SGD(1e-3), steps=1, tokens=tokens, initial=[[1], [2, 3], []])


@pytest.mark.parametrize("partitioner", [fw.data.Quantity, fw.data.Dirichlet])
def test_a_number_of_any_precision_is_a_number(partitioner: Any) -> None:
    labels = [0, 1] * 50
    long, usual = (partitioner(kind("0.5")).partition(labels, n=5, seed=1).nodes for kind in (np.longdouble, float))
    assert (long == usual).all()


def test_half_a_pair_is_no_path() -> None:
    with pytest.raises(fw.FreewalkError, match=r"load: path = '\\ud800', expected the path of a file"):
        load("\ud800")


def test_a_limit_beyond_all_steps_that_settle() -> None:
    problem, other = (fw.objectives.LeastSquares.synthetic(6, 2, heavy=1, samples=count, seed=1) for count in (1, 2))
    kernel = fw.designs.Metropolis(power=1).kernel(GRAPH, other.smoothness)
    with pytest.raises(fw.FreewalkError, match=r"did not converge: .* near the stability limit, or beyond"):
        fw.analysis.matched_steps(problem, kernel, KERNEL, limit=2.0**63)


def named(one: float) -> float:
    """A function of the user's."""
    return one


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fw.walk(KERNEL, steps=1, runtime=np.ones(6)), r"run: runtime = an array of .*, expected 'cpu', "),
        (lambda: fw.SGD(0.1, average=np.ones(2)), r'SGD: average = .*, expected True, False or "half"'),
        (lambda: fw.runtimes.Reference([[1], [2, 3]]), r"Reference: departures cannot .*; give \(walk, step, node\)"),
        (lambda: fw.runtimes.Reference(5), r"Reference: departures = 5, expected a list; give \(walk, step, node\)"),
        (lambda: fw.baselines.Method("a", fw.designs.Stay(), fw.SGD(0.1), np.eye(2)), r"Method: tokens = an array"),
        (lambda: fw.designs.FromMatrix(np.eye(6), biased=property()), r"FromMatrix: biased = .*, expected True or"),
    ],
)
def test_arrays_where_there_should_be_none(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(fw.FreewalkError, match=words):
        call()


def test_a_flag_of_numpy_is_a_flag() -> None:
    assert fw.baselines.multi_walk_sgd(0.1, tokens=2, meet=np.True_).label == "2 walks, meeting"
    assert fw.runtimes.Reference(np.array([[0, 1, 4]])) == fw.runtimes.Reference(((0, 1, 4),))


@pytest.mark.parametrize("width", [float("nan"), float("inf"), -1, 5, "80", 10**9])
def test_a_diagnosis_in_lines_of_no_width(diagnosis: Diagnosis, width: Any) -> None:
    with pytest.raises(fw.FreewalkError, match=r"text: width = .*, expected a whole number from 20 to 1000"):
        diagnosis.text(width)


@pytest.mark.parametrize("label", ["x", None, ["MH uniform"], np.ones(2)])
def test_a_design_that_was_not_diagnosed(diagnosis: Diagnosis, label: Any) -> None:
    with pytest.raises(fw.FreewalkError, match=r"times_uniform: label = .*, expected 'MH uniform', "):
        diagnosis.times_uniform(label)


@pytest.mark.parametrize("call", ["fw.walk(kernel, steps=5)", "fw.graphs.barabasi_albert(50, 2, seed=1)"])
def test_without_the_compiler_the_message_says_so(call: str) -> None:
    program = f"import freewalk as fw; kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(6)); {call}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:  # a generator of graphs may have nothing to compile
        assert "NUMBA_DISABLE_JIT is set in the environment, expected a compiler; unset it" in done.stderr
    else:
        assert "walk" not in call


@pytest.mark.parametrize("large", [{"features": 1e39}, {"targets": -1e100}])
def test_samples_that_do_not_fit_into_single_precision(large: dict[str, float]) -> None:
    given = {"features": np.ones((6, 2)), "targets": np.ones(6)} | {
        name: np.full((6, 2) if name == "features" else 6, value) for name, value in large.items()
    }
    with pytest.raises(fw.FreewalkError, match=r"LeastSquares: its samples do not fit into float32: .*; scale them"):
        fw.learn(fw.objectives.LeastSquares(**given), KERNEL, fw.SGD(1e-3), steps=1, precision="float32", runtime="cpu")


@pytest.mark.parametrize(
    "call",
    [
        lambda path: fw.graphs.read(path),
        lambda path: fw.load(path),
        lambda path: fw.objectives.read(path),
        lambda path: load(path),
        lambda path: GRAPH.save(path),
        lambda path: fw.learn(
            fw.objectives.LeastSquares(np.eye(6), np.ones(6)), KERNEL, fw.SGD(1.0), steps=1, checkpoint=path
        ),
    ],
)
def test_a_long_path_is_not_shown_whole(call: Callable[[str], Any]) -> None:
    for path in ("x" * 100_000, "x/" * 50_000):
        with pytest.raises(fw.FreewalkError, match="expected the path of a file") as caught:
            call(path)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [named, [named], {"a": named}, named.__repr__, print, lambda: None])
def test_functions_are_shown_by_name(value: Any) -> None:
    with pytest.raises(fw.FreewalkError, match=r"kernel = ") as caught:
        fw.walk(value, steps=1)
    assert "0x" not in str(caught.value)
    assert value is not named or "<function named>" in str(caught.value)


@pytest.mark.parametrize("before", [True, False])
def test_a_previous_file_is_kept_where_there_was_one(tmp_path: Path, before: bool) -> None:
    if before:
        (tmp_path / "file").write_text("before")
    with pytest.raises(fw.FreewalkError) as caught, replacing(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    assert ("the previous file is kept" in str(caught.value)) == before
    assert (tmp_path / "file").exists() == before


@pytest.mark.parametrize(("begun", "words"), [(True, "finished results are kept"), (False, "choose another folder")])
def test_finished_results_are_kept_where_there_may_be_some(tmp_path: Path, begun: bool, words: str) -> None:
    (tmp_path / "run" / "lock").mkdir(parents=True) if begun else (tmp_path / "run").write_text("a file")
    with pytest.raises(fw.FreewalkError, match=rf"run/lock: cannot be written \(.*\); {words}$"):
        claim(tmp_path / "run" / "lock")
