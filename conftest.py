"""What every test run needs to know: whether what needs PyTorch is tested, which cases are quick, shared fixtures."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
WITHOUT = os.environ.get("FREEWALK_TEST_TORCH") == "0"
TORCH = not WITHOUT and find_spec("torch") is not None
_NEEDING = [
    "tests/torch",
    "src/freewalk/torch",
    *(f"src/freewalk/runtimes/torch/{name}.py" for name in ("learner", "visits")),
]
collect_ignore = [] if TORCH else _NEEDING
_UNKNOWN = pytest.StashKey[list[str]]()
# Shells let what they start in the background ignore Ctrl-C, and processes pass that on; tests send it and count on it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Say what is left out."""
    why = "FREEWALK_TEST_TORCH=0" if WITHOUT else "it is not installed"
    return "PyTorch: tested" if TORCH else f"PyTorch: tests/torch and all that needs it is left out ({why})"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as `long` all cases that a mark `quick` does not name."""
    named: dict[str, set[str]] = {}
    there: dict[str, set[str]] = defaultdict(set)
    for item in items:
        mark = item.get_closest_marker("quick")
        if mark is not None:
            test, _, case = item.nodeid.removesuffix("]").partition("[")
            named[test] = {name.encode("unicode_escape").decode("ascii") for name in mark.args}  # as pytest does
            there[test].add(case)
            if case not in named[test]:
                item.add_marker(pytest.mark.long)
    if any("::" in argument for argument in config.args):  # then not all cases may have been collected
        named = {}
    config.stash[_UNKNOWN] = [f"{test}[{name}]" for test, names in named.items() for name in names - there[test]]


@pytest.fixture
def unknown_cases(pytestconfig: pytest.Config) -> list[str]:
    """What marks `quick` name that is no case of their test, of all tests that were collected."""
    return pytestconfig.stash[_UNKNOWN]


@pytest.fixture(params=["cpu", "reference"])
def runtime(request: pytest.FixtureRequest) -> str:
    """The compiled runtime, and the one that defines what is right."""
    return str(request.param)


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run is interrupted soon after the step that is meant, however fast or busy the machine is."""
    monkeypatch.setattr("freewalk.run.loop._CHUNK_STEPS", 16)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of one's own, where commands are given; a file of tests puts its specs there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def handlers_are_restored() -> Iterator[None]:
    """What handles Ctrl-C and SIGTERM after a test is what did before it."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
