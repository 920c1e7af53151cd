"""What every test run needs to know: whether what needs PyTorch is tested."""

import os
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
WITHOUT = os.environ.get("FREEWALK_TEST_TORCH") == "0"
TORCH = not WITHOUT and find_spec("torch") is not None
_NEEDING = [
    "tests/torch",
    "src/freewalk/torch",
    *(f"src/freewalk/runtimes/torch_{name}.py" for name in ("learner", "visits")),
]
collect_ignore = [] if TORCH else _NEEDING


def pytest_report_header() -> str:
    """Say what is left out."""
    why = "FREEWALK_TEST_TORCH=0" if WITHOUT else "it is not installed"
    return "PyTorch: tested" if TORCH else f"PyTorch: tests/torch and all that needs it is left out ({why})"
