"""What `help()` shows of a signature can be read: types as they are written, not what they stand for."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import freewalk as fw
from freewalk import report
from freewalk import specs as experiment
from freewalk.analysis import theory

MODULES = (fw, fw.analysis, fw.data, fw.designs, fw.graphs, fw.objectives, fw.runtimes, fw.schedules)
MODULES = (*MODULES, experiment, report, theory)


def public() -> Iterator[tuple[str, Any]]:
    """Everything listed that can be called, and the public methods of classes."""
    for module in MODULES:
        for name in module.__all__:
            listed = getattr(module, name)
            if not callable(listed):
                continue
            yield f"{module.__name__}.{name}", listed
            for method in dir(listed) if isinstance(listed, type) else ():
                if not method.startswith("_") and callable(getattr(listed, method)):
                    yield f"{module.__name__}.{name}.{method}", getattr(listed, method)


def test_no_signature_shows_what_numpy_calls_its_types() -> None:
    checked = 0
    for name, thing in public():
        try:
            words = str(inspect.signature(thing))
        except ValueError:  # something built in
            continue
        checked += 1
        assert "numpy." not in words, f"{name}{words}"
        assert "_typing" not in words, f"{name}{words}"
    assert checked > 150


@pytest.mark.parametrize("thing", [fw.learn, fw.objectives.LeastSquares, fw.designs.Metropolis])
def test_help_names_arrays_as_they_are_written(thing: Any) -> None:
    words = str(inspect.signature(thing))
    assert "ArrayLike" in words or "NDArray" in words
    assert len(words) < 800
