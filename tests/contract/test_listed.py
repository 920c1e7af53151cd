"""Nothing listed goes untested: whatever an `__all__` names has an example in the catalogue."""

import pytest
from catalogue import (
    DESIGNS,
    EXCHANGES,
    GRAPHS,
    LISTED_PROBLEMS,
    LISTED_RULES,
    MEMORY_RULES,
    PARTITIONERS,
    PROBLEMS,
    RUNTIMES,
    designs_on,
)

from freewalk import designs, exchanges, objectives, rules, runtimes
from freewalk.data import partitioners


@pytest.mark.parametrize("name", designs.__all__)
def test_designs(name):
    assert name in {type(design).__name__ for design in designs_on(GRAPHS["ring"]).values()}


@pytest.mark.parametrize("name", objectives.__all__)
def test_objectives(name):
    assert name in {type(problem).__name__ for problem in map(PROBLEMS.get, LISTED_PROBLEMS)}


@pytest.mark.parametrize("name", rules.__all__)
def test_rules(name):
    assert name in {type(rule).__name__ for rule in (LISTED_RULES | MEMORY_RULES).values()}


@pytest.mark.parametrize("name", exchanges.__all__)
def test_exchanges(name):
    assert name in {type(exchange).__name__ for _, _, exchange in EXCHANGES.values()}


@pytest.mark.parametrize("name", partitioners.__all__)
def test_partitioners(name):
    assert name in {type(partitioner).__name__ for partitioner in PARTITIONERS.values()}


@pytest.mark.parametrize("name", runtimes.__all__)
def test_runtimes(name):
    assert any(type(runtime).__name__ == name for runtime in RUNTIMES.get(name, []))


@pytest.mark.parametrize("runtime", [example for examples in RUNTIMES.values() for example in examples], ids=repr)
def test_runtimes_have_a_name(runtime):
    name = type(runtime).__name__.lower()
    assert type(runtimes.runtime_named(name)) is type(runtime)
    assert runtimes.runtime_named(runtime) is runtime


def test_an_unknown_runtime_is_an_error():
    with pytest.raises(ValueError, match=r"runtime = 'gpu', expected .*cpu.*reference"):
        runtimes.runtime_named("gpu")


def test_examples_are_named_after_their_design():
    for name, design in designs_on(GRAPHS["random"]).items():
        assert name.startswith(type(design).__name__)
    assert list(designs_on(GRAPHS["random"])) == DESIGNS
