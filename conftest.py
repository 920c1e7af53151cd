"""What every test run needs to know: whether what needs PyTorch is tested."""

import os
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
WITHOUT = os.environ.get("FREEWALK_TEST_TORCH") == "0"
TORCH = not WITHOUT and find_spec("torch") is not None
collect_ignore = [] if TORCH else ["tests/torch", "src/freewalk/torch", "src/freewalk/runtimes/torch.py"]


def pytest_report_header() -> str:
    """Say what is left out."""
    why = "FREEWALK_TEST_TORCH=0" if WITHOUT else "it is not installed"
    return "PyTorch: tested" if TORCH else f"PyTorch: tests/torch and all that needs it is left out ({why})"
