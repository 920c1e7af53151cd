"""From plain functions to one compiled module: what is in its text, what is refused, and that it is never stale."""

import functools
import gc
import importlib.util
import inspect
import itertools
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.compiled import compiler
from freewalk.compiled.compiler import compile_functions, module_source
from freewalk.errors import FreewalkError

NUMBERS = itertools.count()


@pytest.fixture
def module(tmp_path):
    """Import text as a module of its own."""

    def load(text):
        name = f"compiling_example_{next(NUMBERS)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    return load


def source(function, **others):
    return module_source({"f": function, **others}, "f", ())


PLAIN = """
import math

SCALE = 2.0

def helper(x):
    return x * SCALE

def f(x, y):
    return math.sqrt(helper(x)) + y
"""


# What the text depends on.


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(x, y):", 'def f(x, y):\n    """Says what it does."""'),
        ("def f(x, y):", "def f(x, y):\n    # says why"),
        ("def f(x, y):", "def f(x: float, y: float) -> float:"),
        ("def f(x, y):", "UNUSED = 3\n\ndef unused(x):\n    return x\n\ndef f(x, y):"),
        ("return math.sqrt(helper(x)) + y", "return (math.sqrt( helper( x ) )\n            + y)"),
        ("x * SCALE", "x * SCALE  # twice"),
        ("SCALE = 2.0", "SCALE = 4.0 / 2.0"),
    ],
)
def test_the_text_does_not_change_with_what_is_not_code(module, old, new):
    assert source(module(PLAIN.replace(old, new)).f) == source(module(PLAIN).f)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("SCALE = 2.0", "SCALE = 2"),
        ("x * SCALE", "x + SCALE"),
        ("math.sqrt", "math.exp"),
        ("+ y", "- y"),
    ],
)
def test_the_text_changes_with_constants_helpers_and_code(module, old, new):
    assert source(module(PLAIN.replace(old, new)).f) != source(module(PLAIN).f)


def test_the_text_changes_with_the_module_behind_a_name(module):
    text = "import {} as m\ndef f(x):\n    return m.sqrt(x)\n"
    assert source(module(text.format("math")).f) != source(module(text.format("numpy")).f)


def test_a_function_takes_its_new_name_and_the_place_of_a_global(module):
    engine = module("def slope(x):\n    return 0.0\n\ndef f(x):\n    return slope(x) + 1.0\n")
    other = module("def mine(x):\n    return 10.0 * x\n")
    text = source(engine.f, slope=other.mine)
    assert "def slope(x):\n    return 10.0 * x" in text
    assert "return 0.0" not in text
    assert compile_functions({"f": engine.f, "slope": other.mine}, "f")(2.0) == 21.0


@pytest.mark.parametrize("value", ["np.uint64(2**64 - 1)", "np.float32(0.1)", "float('inf')", "1e-300", "True", "-7"])
def test_constants_keep_their_value_and_type(module, value):
    text = source(module(f"import numpy as np\nVALUE = {value}\ndef f():\n    return VALUE\n").f)
    expected = eval(value, {"np": np})
    line = next(line for line in text.splitlines() if line.startswith("VALUE = "))
    got = eval(line.removeprefix("VALUE = "), {"np": np})
    assert got == expected
    assert type(got) is type(expected)


def test_recursion_ends(module):
    text = source(module("def f(n):\n    return 1 if n == 0 else n * f(n - 1)\n").f)
    assert text.count("def f(") == 1


def make_closure(factor):
    def inner(x):
        return factor * x

    return inner


def test_numbers_of_a_closure_become_constants():
    assert compile_functions({"f": make_closure(3.0)}, "f")(2.0) == 6.0
    assert compile_functions({"f": make_closure(4.0)}, "f")(2.0) == 8.0


# What is refused.


def test_a_closure_over_anything_else_is_refused():
    with pytest.raises(FreewalkError, match=r"make_closure.<locals>.inner: uses 'factor' = \[3.0\], expected numbers"):
        source(make_closure([3.0]))


def test_defaults_of_arguments_are_refused(module):
    with pytest.raises(FreewalkError, match=r"f: has arguments with defaults; make them constants"):
        source(module("DELTA = 1.0\ndef f(x, delta=DELTA):\n    return x * delta\n").f)


@pytest.mark.parametrize("edit", ["def other(x):\n    return 0.0\n\n", "# a comment\n", "syntax error\n"])
def test_a_file_that_changed_since_it_was_imported_is_refused(module, edit):
    """Else whatever stands at the old line numbers would be compiled."""
    function, known = (module(f"def f(x):\n    return {factor} * x\n").f for factor in (2.0, 3.0))
    before = source(known)
    for file in (Path(f.__code__.co_filename) for f in (function, known)):
        file.write_text(edit + file.read_text())
    assert source(known) == before  # what was read in time is remembered
    with pytest.raises(FreewalkError, match=r"f: its file has changed since it was imported; reload it"):
        source(function)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x):\n    y = 1.0\n    return x + y\n", "def f(x, y):\n    y = 1.0\n    return x + y\n"),
        ("def f(x, y):\n    return x - y\n", "def f(x, /, y):\n    return x - y\n"),
        ("def f(x, y):\n    return x - y\n", "def f(x, *, y):\n    return x - y\n"),
        ("def f(x, y):\n    return y\n", "def f(x, *y):\n    return y\n"),
    ],
)
def test_an_edit_of_the_arguments_alone_is_noticed(module, before, after):
    function = module(before).f
    Path(function.__code__.co_filename).write_text(after)
    with pytest.raises(FreewalkError, match=r"f: its file has changed since it was imported; reload it"):
        source(function)


def twice(function):
    @functools.wraps(function)
    def wrapper(x):
        return 2.0 * function(x)

    return wrapper


def test_a_decorated_function_is_compiled_as_decorated():
    @twice
    def half(x):
        return x / 2.0

    assert half(3.0) == 3.0
    assert compile_functions({"half": half}, "half")(3.0) == 3.0


def test_an_intrinsic_of_the_users_is_refused(module):
    """What it writes is not part of the text: a stale cache."""
    text = """
from numba.extending import intrinsic

@intrinsic
def same(context, x):
    return x(x), lambda context, builder, signature, arguments: arguments[0]

def f(x):
    return same(x)
"""
    with pytest.raises(FreewalkError, match=r"same: got a numba intrinsic, expected a function made with def"):
        source(module(text).f)


@pytest.mark.parametrize(
    "text", ["f = lambda x: x", "f = dict(\n    f=lambda x: x,\n)['f']", "f = {\n  'f': lambda x: x,\n}['f']"]
)
def test_a_lambda_is_refused(module, text):
    with pytest.raises(FreewalkError, match=r"<lambda>: got a lambda, expected a function made with def"):
        source(module(text).f)


@pytest.mark.parametrize("function", [math.sqrt, np.sqrt, abs, print, "3", fw.SGD], ids=repr)
def test_what_is_not_a_plain_function_is_refused(function):
    with pytest.raises(FreewalkError, match=r"g: got .*, expected a function made with def \(no method, no builtin\)"):
        source(make_closure, g=function)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TABLE = [1, 2]\ndef f(x):\n    return TABLE[x]", r"f: uses 'TABLE' = \[1, 2\], expected numbers, modules"),
        ("NAME = 'a'\ndef f(x):\n    return NAME", r"f: uses 'NAME' = 'a', expected numbers, modules"),
        ("NONE = None\ndef f(x):\n    return NONE", r"f: uses 'NONE' = None, expected numbers, modules"),
        ("import os\ndef f(x):\n    return os.getpid()", r"f: uses the module 'os', expected math or numpy"),
        ("from math import sqrt\ndef f(x):\n    return sqrt(x)", r"f: uses 'sqrt' = <built-in function sqrt>"),
    ],
)
def test_a_global_that_cannot_be_compiled_is_named(module, text, message):
    with pytest.raises(FreewalkError, match=message):
        source(module(text).f)


def test_a_function_without_a_source_is_refused():
    scope = {"__name__": "prompt"}
    exec("def f(x):\n    return x", scope)
    with pytest.raises(FreewalkError, match=r"f: its source cannot be read; define it in a file or a notebook"):
        source(scope["f"])


def test_two_functions_of_one_name_are_refused(module):
    first = module("def helper(x):\n    return x\ndef f(x):\n    return helper(x) + g(x)\ndef g(x):\n    return x\n")
    second = module("def helper(x):\n    return 2 * x\ndef g(x):\n    return helper(x)\n")
    with pytest.raises(FreewalkError, match=r"compile: two different functions are called 'helper'; rename one"):
        source(first.f, g=second.g)


def test_two_constants_of_one_name_are_refused(module):
    first = module("SCALE = 1.0\ndef f(x):\n    return SCALE * g(x)\ndef g(x):\n    return x\n")
    second = module("SCALE = 2.0\ndef g(x):\n    return SCALE * x\n")
    with pytest.raises(FreewalkError, match=r"g: its constant 'SCALE' has another value elsewhere; rename one"):
        module_source({"f": first.f, "g": second.g}, "f", ())
    same = module("SCALE = 1.0\ndef g(x):\n    return SCALE * x\n")
    assert source(first.f, g=same.g).count("SCALE = ") == 1


@pytest.mark.parametrize("other", ["scale = 2.0", "import math as scale"])
def test_a_constant_and_a_function_of_one_name_are_refused(module, other):
    first = module("def scale(x):\n    return x\ndef f(x):\n    return scale(x) * g(x)\ndef g(x):\n    return x\n")
    second = module(f"{other}\ndef g(x):\n    return scale * x\n")
    with pytest.raises(FreewalkError, match=r"compile: 'scale' is a function here and .* elsewhere; rename one"):
        source(first.f, g=second.g)


def test_a_helper_of_the_users_is_never_replaced_silently(module):
    # The engine's `update` is the rule's; a helper of that name in an objective's slope is another thing.
    mine = module("def update(x):\n    return 2.0 * x\ndef slope(p, t):\n    return update(p - t)\n")

    class Own(fw.Predictor):
        curvature = 1.0
        slope = staticmethod(mine.slope)
        value = staticmethod(fw.objectives.LeastSquares.value)

        def optimum(self):
            raise NotImplementedError

    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    with pytest.raises(FreewalkError, match=r"two different functions are called 'update'; rename one"):
        fw.learn(Own([[1.0], [2.0]], [1.0, 1.0]), kernel, fw.SGD(0.1), steps=2)


# Never stale.


def test_editing_a_constant_or_a_helper_changes_the_result_at_once(module, tmp_path, monkeypatch):
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "cache"))
    results = []
    for text in (PLAIN, PLAIN.replace("2.0", "8.0"), PLAIN.replace("x * SCALE", "x / SCALE"), PLAIN):
        results.append(compile_functions({"f": module(text).f}, "f")(2.0, 1.0))
    assert results == [3.0, 5.0, 2.0, 3.0]
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".code"] * 3


def test_a_function_that_was_given_new_code_is_read_again(module):
    """As IPython's autoreload does with the functions of an edited file."""
    function = module("def f(x):\n    return 2.0 * x\n").f
    assert "2.0 * x" in source(function)
    function.__code__ = module("def f(x):\n    return 3.0 * x\n").f.__code__
    assert "3.0 * x" in source(function)


def test_the_text_is_never_read_from_a_file(module, tmp_path, monkeypatch):
    """Whatever lies in the folder under the names of Python's modules is not run."""
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "cache"))
    function = module("def f(x):\n    return 5.0 * x\n").f
    name = compile_functions({"f": function}, "f").py_func.__module__
    del sys.modules[name]
    (tmp_path / "cache" / f"{name}.py").write_text("raise AssertionError('planted')")
    monkeypatch.syspath_prepend(tmp_path / "cache")
    compiled = compile_functions({"f": function}, "f")
    assert compiled(2.0) == 10.0
    assert inspect.getsource(compiled.py_func).endswith("def f(x):\n    return 5.0 * x\n")  # for tracebacks


SQUARE = """
from freewalk import Predictor

class Own(Predictor):
    curvature = 1.0

    @staticmethod
    def value(prediction, target):
        return 0.5 * (prediction - target) * (prediction - target)

    @staticmethod
    def slope(prediction, target):
        return prediction - target

    def optimum(self):
        raise NotImplementedError
"""
FOURTH = SQUARE.replace(
    "return prediction - target", "return (prediction - target) * (prediction - target) * (prediction - target)"
).replace(
    "return 0.5 * (prediction - target) * (prediction - target)",
    "square = (prediction - target) * (prediction - target)\n        return 0.25 * square * square",
)


@pytest.mark.long
def test_editing_a_slope_changes_what_is_learned_at_once(module):
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    finals, losses = [], []
    for text in (SQUARE, FOURTH, SQUARE):
        problem = module(text).Own([[1.0], [1.0]], [4.0, 4.0])
        data = fw.learn(problem, kernel, fw.SGD(1 / 64), steps=1).data
        finals.append(float(data.final[0, 0]))
        losses.append(float(data.loss[0, 0]))
    assert finals == [4 / 64, 1.0, 4 / 64]
    assert losses == [8.0, 64.0, 8.0]


def test_several_threads_parse_at_once() -> None:
    """Without a lock Python 3.11 raises SystemError where a collection lets another thread in."""
    text = Path(compiler.__file__).read_text()

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            for _ in range(50):
                pass

    def parse() -> int:
        for _ in range(5):
            Garbage()
            compiler.parsed(text)
        return 1

    before, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(lambda _: parse(), range(12))) == 12
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*threshold)
