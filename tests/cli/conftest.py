"""The place where commands are given."""

from pathlib import Path

import pytest

from freewalk.cli import terminal


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of one's own; a file of tests puts its specs there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terminal, "INTERVAL", 1e6)  # no lines about progress, however slow this machine is
    return tmp_path
