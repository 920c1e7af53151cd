"""The package as a whole: light to import, true about its names, documented, typed."""

import importlib
import importlib.metadata
import importlib.resources
import inspect
import re
import subprocess
import sys
from types import ModuleType

import pytest

import freewalk as fw

HEAVY = ("numba", "scipy", "xarray", "networkx", "matplotlib", "pydantic", "typer", "rich", "sklearn", "topohub")
FAMILIES = ("designs", "graphs", "objectives", "runtimes", "schedules", "rules", "data")


def in_a_fresh_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, freewalk; print(sorted(name for name in sys.modules if '.' not in name))"
    loaded = eval(in_a_fresh_process(code))
    assert "numpy" in loaded
    assert not set(HEAVY) & set(loaded)


def test_making_a_kernel_needs_no_compiler_and_no_records():
    code = """
import sys
import freewalk as fw

graph = fw.graphs.ring(5)
problem = fw.objectives.LeastSquares.synthetic(5, 2)
fw.designs.MHLJ(0.1, 0.5, 3).kernel(graph, problem.smoothness)
fw.SGD(0.1)
print(sorted(sys.modules.keys() & {"numba", "xarray", "networkx", "matplotlib", "pydantic", "typer", "rich"}))
"""
    assert in_a_fresh_process(code) == "[]"


def modules():
    return [("freewalk", fw), *((name, importlib.import_module(f"freewalk.{name}")) for name in FAMILIES)]


@pytest.mark.parametrize(("name", "module"), modules(), ids=["freewalk", *FAMILIES])
def test_all_is_true(name, module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert [item for item in module.__all__ if not hasattr(module, item)] == []


def test_nothing_public_is_left_out_of_all():
    public = {
        name for name, value in vars(fw).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - set(fw.__all__) == set()


def test_a_star_import_brings_the_names_of_all():
    assert in_a_fresh_process("from freewalk import *; print(learn.__name__, designs.MHLJ.__name__)") == "learn MHLJ"


def public_things():
    for family, module in modules():
        for name in module.__all__:
            if not name.startswith("__"):
                yield f"{family}.{name}", getattr(module, name)


@pytest.mark.parametrize(("name", "thing"), list(public_things()), ids=[name for name, _ in public_things()])
def test_every_public_name_has_a_docstring(name, thing):
    assert inspect.getdoc(thing), name
    if isinstance(thing, type):
        assert thing.__doc__, f"{name} only inherits its docstring"
        # A dataclass without a docstring is given its signature.
        assert not thing.__doc__.startswith(f"{thing.__name__}("), name
        for member, value in vars(thing).items():
            if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


def test_the_version_is_that_of_the_distribution():
    assert re.fullmatch(r"\d+\.\d+\.\d+([abc]|rc|\.dev)?\d*", fw.__version__)
    assert importlib.metadata.version("freewalk") == fw.__version__


def test_the_package_says_that_it_is_typed():
    assert (importlib.resources.files("freewalk") / "py.typed").is_file()
