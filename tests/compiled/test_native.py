"""What takes the place of the plain functions of `runtimes/step/` computes the same."""

import re
import tempfile

import numpy as np
import pytest

import freewalk as fw
from freewalk import rng
from freewalk.compiled import native
from freewalk.compiled.compiler import compile_functions, module_source
from freewalk.errors import FreewalkError
from freewalk.runtimes.cpu.runtime import learning_code
from freewalk.runtimes.cuda import kernels
from freewalk.runtimes.step import inputs, update
from freewalk.runtimes.step.moves_and_messages import choose


def apply_all(features, models, out):
    """Predictions, single features and choices; an entry for the compiler."""
    for row in range(out.shape[0]):
        out[row, 0] = predict(features, row, models, row, features.shape[1])
        out[row, 1] = read(features, row, features.shape[1] - 1)
        out[row, 2] = choose(out[row, 0] > 0.0, out[row, 0], out[row, 1])


predict, read = update.predict, update.read
NATIVE = {"apply_all": apply_all, "predict": native.predict, "read": native.read, "choose": native.choose}


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_intrinsics_agree_with_the_functions_they_stand_for(precision):
    """For every number of coordinates up to 70: whole vectors, halves of them and what is left."""
    generator, exact = np.random.default_rng(1), precision == "float64"
    compiled = compile_functions(NATIVE, "apply_all")
    for dim in range(1, 71):
        features, models = (generator.standard_normal((3, dim)).astype(precision) for _ in range(2))
        plain, fast = np.empty((3, 3), dtype=precision), np.empty((3, 3), dtype=precision)
        apply_all(features, models, plain)
        compiled(features, models, fast)
        np.testing.assert_allclose(fast, plain, rtol=1e-12 if exact else 1e-4, atol=1e-12 if exact else 1e-5)
        assert np.array_equal(fast[:, 1], features[:, -1])


def test_a_prediction_is_the_sum_of_its_vectors_in_a_fixed_order():
    """Of 7 numbers: a vector of four folded to two, plus a half, folded, plus the one that is left."""
    values = np.array([[1e16, 1.0, -1e16, 1.0, 3.0, 5.0, 7.0]])
    out = np.empty((1, 3))
    compile_functions(NATIVE, "apply_all")(values, np.ones((1, 7)), out)
    a, b, c, d, e, f, g = values[0]
    assert out[0, 0] == (((a + c) + e) + ((b + d) + f)) + g


def test_rows_that_do_not_lie_one_behind_the_other_are_refused():
    compiled = compile_functions(NATIVE, "apply_all")
    with pytest.raises(Exception, match="expected contiguous rows"):
        compiled(np.asfortranarray(np.ones((3, 4))), np.ones((3, 4)), np.empty((3, 3)))


def test_learning_is_compiled_to_vector_instructions(tmp_path, monkeypatch):
    """Four doubles in one instruction, where the processor has them: else a walk is several times slower."""
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path))  # code from a cache cannot be looked at
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where caches are looked for as well
    graph = fw.graphs.ring(7)
    # Nor can code that this process has read from a cache before: no other test has so many coordinates.
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=12, seed=1)
    kernel = fw.designs.Metropolis(power=1).kernel(graph, problem.smoothness)
    learn = learning_code(problem, fw.SGD(step=0.01))
    fw.learn(problem, kernel, fw.SGD(step=0.01), steps=2)
    (assembly,) = learn.inspect_asm().values()
    # Only updates subtract; the sums of `predict` are vectors by themselves.
    wide = {"ymm": r"vsubpd\s.*%[yz]mm", "xmm": r"v?subpd\s.*%xmm"}
    if not re.search("%[xy]mm", assembly):
        pytest.skip("not a processor with these registers")
    kind = "ymm" if "%ymm" in assembly else "xmm"
    assert len(re.findall(wide[kind], assembly)) >= 2


def test_words_by_halves_are_the_words():
    generator = np.random.default_rng(2)
    for _ in range(200):
        key = [generator.integers(0, 2**bits, dtype=np.uint64) for bits in (63, 1, 32, 50, 20)]
        assert kernels.words_by_halves(*key) == rng.word_pair(*key)


def nested(numbers, dim):
    """Loops to be written out, one in the other."""
    total = 0
    for i in range(dim):
        for j in range(dim):
            total += numbers[i] * numbers[j]
    for i in range(numbers.size):
        total += i
    return total


def test_loops_are_written_out():
    text = module_source({"nested": nested}, "nested", (), unroll={"dim": 2})
    assert "range(dim)" not in text
    assert "numbers[0] * numbers[1]" in text
    assert "range(numbers.size)" in text
    compiled = compile_functions({"nested": nested}, "nested", unroll={"dim": 2})
    assert compiled(np.array([3, 4]), 2) == nested(np.array([3, 4]), 2) == 50


def own_slope(prediction, target):
    """A user's, whose `dim` is not the engine's."""
    dim = 3
    for _ in range(dim):
        prediction = 0.5 * prediction
    return prediction - target


def test_loops_of_a_user_are_left_as_they_are():
    functions = {"learn_from_one": update.learn_from_one, "slope": own_slope}
    text = module_source(functions, "learn_from_one", (), unroll={"dim": 2})
    assert text.count("range(dim)") == 1
    assert "models[walk, 1]" in text


def test_a_number_takes_the_place_of_a_global():
    assert "SIZE = 5" in module_source({"sized": sized, "SIZE": 5}, "sized", ())


SIZE = 3


def sized(x):
    return x + SIZE


def test_what_is_unused_is_still_looked_at():
    with pytest.raises(FreewalkError, match="expected a function made with def"):
        module_source({"sized": sized, "slope": "text"}, "sized", ())


def test_a_quadratic_loss_is_its_expansion():
    """With ridge, with several samples per node, far from the optimum and at it: the loss of the objective."""
    graph = fw.graphs.ring(6)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, samples=3, ridge=0.2, noise=0.5, seed=3)
    kernel = fw.designs.SimpleWalk().kernel(graph)
    for initial in (problem.optimum(), np.zeros(3), np.full(3, 1e6)):
        data = fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=1, initial=initial).data
        assert float(data.loss[0, 0]) == pytest.approx(problem.loss(initial), rel=1e-12)
        assert float(data.mse[0, 0]) == pytest.approx(problem.mse(initial), rel=1e-12)


def test_arrays_begin_where_a_line_of_the_cache_does():
    for array in (np.arange(12.0).reshape(3, 4)[1:], np.asfortranarray(np.ones((5, 3))), np.zeros((0, 4))):
        copy = inputs.aligned(array)
        assert copy.flags.c_contiguous
        assert copy.ctypes.data % 64 == 0 or not copy.size
        assert np.array_equal(copy, array)
