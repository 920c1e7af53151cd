"""Compiled modules are made of sources: what they hold, when they change, and what they refuse."""

import math

import numpy as np
import pytest

import freewalk as fw
from freewalk.compiling import compile_functions, module_source
from freewalk.errors import FreewalkError

SCALE = 2.0
WIDE = np.float32(0.5)
ENDLESS = math.inf
COUNT = 3
TABLE = (1.0, 2.0)


def helper(x):
    return SCALE * x


def entry(x):
    """A docstring."""
    return helper(x) + COUNT  # and a comment


def commented(x):
    # Other words, the same code.
    return helper(x) + COUNT


def doubled(x):
    return helper(x) + 2 * COUNT


def bounded(x):
    return min(float(WIDE) * x, ENDLESS)


def uses_a_table(x):
    return TABLE[0] * x


def uses_a_module(x):
    return pytest.approx(x)


def replaced(x):
    return -x


def calls_itself(x):
    return x if x <= 0 else calls_itself(x - 1)


def source(**functions):
    return module_source(functions, next(iter(functions)), ())


def test_a_module_holds_helpers_and_constants():
    text = source(entry=entry)
    assert "SCALE = float('2.0')" in text
    assert "COUNT = 3" in text
    assert "def helper(x):" in text
    assert "docstring" not in text
    assert "comment" not in text


def test_comments_do_not_change_it_and_code_does():
    assert source(f=entry) == source(f=commented)
    assert source(f=entry) != source(f=doubled)


def test_constants_are_part_of_it(monkeypatch):
    before = source(f=entry)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert source(f=entry) != before


def test_helpers_can_be_replaced_in_the_module_of_the_entry():
    text = source(entry=entry, helper=replaced)
    assert "return -x" in text
    assert "SCALE" not in text


def test_numbers_of_every_kind_survive():
    compiled = compile_functions({"bounded": bounded}, "bounded")
    assert compiled(6.0) == 3.0
    text = source(bounded=bounded)
    assert "ENDLESS = float('inf')" in text
    assert "WIDE = np.float32(float('0.5'))" in text


def test_a_function_may_call_itself():
    assert source(calls_itself=calls_itself).count("def calls_itself") == 1


def test_a_closure_is_refused():
    outside = 1.0

    def inner(x):
        return x + outside

    with pytest.raises(FreewalkError, match=r"inner is a closure; compiled functions take all they need as arguments"):
        source(f=inner)


@pytest.mark.parametrize("thing", [math.exp, np.exp, "slope", SCALE], ids=repr)
def test_what_is_no_function_is_refused(thing):
    with pytest.raises(FreewalkError, match=r"f: got .*, expected a plain Python function"):
        source(f=thing)


def test_a_lambda_is_refused():
    with pytest.raises(FreewalkError, match=r"got a lambda, expected a function made with def"):
        source(f=lambda x: x)


def test_other_objects_are_refused():
    with pytest.raises(FreewalkError, match=r"uses_a_table: uses 'TABLE' = \(1.0, 2.0\), expected numbers, modules"):
        source(f=uses_a_table)


def test_other_modules_are_refused():
    """Their constants would be compiled in without being part of the text: the cache would not see them change."""
    with pytest.raises(FreewalkError, match=r"uses_a_module: uses the module 'pytest', expected math or numpy"):
        source(f=uses_a_module)


def test_a_function_without_a_file_is_refused():
    namespace = {}
    exec("def f(x):\n    return x\n", namespace)
    with pytest.raises(FreewalkError, match=r"f: its source cannot be read; define it in a file or a notebook"):
        source(f=namespace["f"])


def as_module(folder, name, text):
    import importlib.util

    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_helpers_of_one_name_are_refused(tmp_path):
    other = as_module(tmp_path, "other", "def helper(x):\n    return x\n\ndef g(x):\n    return helper(x)\n")
    with pytest.raises(FreewalkError, match=r"two different functions are called 'helper'; rename one"):
        source(f=entry, g=other.g)


def test_two_constants_of_one_name_are_refused(tmp_path):
    other = as_module(tmp_path, "other", "SCALE = 9.0\n\ndef g(x):\n    return SCALE * x\n")
    with pytest.raises(FreewalkError, match=r"g: its constant 'SCALE' has another value elsewhere; rename one"):
        source(f=entry, g=other.g)


def test_a_users_helper_does_not_become_the_engines(tmp_path):
    """A helper that happens to be called like a part of the engine must not silently be replaced by it."""
    text = """
import freewalk as fw

def update(error):
    return 0.5 * error

class Halved(fw.Predictor):
    curvature = 0.5

    @staticmethod
    def value(prediction, target):
        return 0.25 * (prediction - target) * (prediction - target)

    @staticmethod
    def slope(prediction, target):
        return update(prediction - target)

    def optimum(self):
        raise NotImplementedError
"""
    problem = as_module(tmp_path, "halved", text).Halved([[1.0], [2.0]], [1.0, 0.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    with pytest.raises(FreewalkError, match=r"two different functions are called 'update'; rename one"):
        fw.learn(problem, kernel, fw.SGD(step=0.1), steps=3)


def test_code_that_fails_in_one_thread_does_not_keep_the_others_waiting(monkeypatch):
    """Every task fails, and there are more tasks than threads."""
    from threading import Thread

    from freewalk.runtimes import CPU, Job, Phase

    def fail(*arguments):
        raise ZeroDivisionError("compiled code failed")

    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
    engine = CPU(threads=2).engine(Job(None, (Phase(None, kernel),), 0))
    monkeypatch.setattr(engine, "programs", {key: p._replace(walk=fail) for key, p in engine.programs.items()})
    monkeypatch.setattr(CPU, "engine", lambda self, job: engine)
    outcome = []

    def attempt():
        try:
            fw.walk(kernel, steps=3, walks=1000, runtime=CPU(threads=2))
        except ZeroDivisionError as error:
            outcome.append(str(error))

    thread = Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert outcome == ["compiled code failed"]
