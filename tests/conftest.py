"""What tests of several folders share."""

import pytest

from freewalk.run import loop


@pytest.fixture(params=["cpu", "reference"])
def runtime(request: pytest.FixtureRequest) -> str:
    """The compiled runtime, and the one that defines what is right."""
    return request.param


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run is interrupted soon after the step that is meant, however fast or busy the machine is."""
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 16)
