"""The place where commands are given."""

from pathlib import Path

import pytest

from freewalk.cli import terminal


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of one's own, where commands are given."""
    monkeypatch.setattr(terminal, "INTERVAL", 1e6)  # no lines about progress, however slow this machine is
    return here
