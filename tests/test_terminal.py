"""What a command shows while it works: nothing at first, nothing where nobody looks."""

import io
import sys
import time

import pytest

from freewalk import terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch, patience, use):
    """What a screen shows of a command with so much patience."""
    screen = Screen()
    with monkeypatch.context() as context:
        context.setenv("TERM", "xterm")
        context.setenv("COLUMNS", "100")
        context.setattr(sys, "stderr", screen)
        context.setattr(terminal, "PATIENCE", patience)
        use()
    return screen.getvalue()


@pytest.mark.parametrize(("patience", "appears"), [(60.0, False), (0.0, True)])
def test_a_progress_bar_appears_after_a_while(monkeypatch, patience, appears):
    def use():
        with terminal.progress_bar() as tell:
            assert tell is not None
            tell("MHLJ [x]", 100, 400, 1000)
            tell("MHLJ [x]", 200, 400, 1000)

    text = shown(monkeypatch, patience, use)
    assert [part in text for part in ("MHLJ [x]", "updates/s", "50%")] == [appears] * 3


@pytest.mark.parametrize(("patience", "appears"), [(60.0, False), (0.0, True)])
def test_a_status_line_names_what_is_under_way_after_a_while(monkeypatch, patience, appears):
    def use():
        with terminal.status_line("diagnosing") as tell:
            assert tell is not None
            tell("MHLJ [x]")
            time.sleep(0.4 if appears else 0.0)

    assert ("diagnosing MHLJ [x]" in shown(monkeypatch, patience, use)) == appears


@pytest.mark.parametrize(("patience", "appears"), [(60.0, False), (0.0, True)])
def test_a_bar_of_parts_names_what_is_next_after_a_while(monkeypatch, patience, appears):
    def use():
        with terminal.parts_bar() as tell:
            assert tell is not None
            tell("updates of MHLJ [x]", 3, 14)
            time.sleep(0.4 if appears else 0.0)

    text = shown(monkeypatch, patience, use)
    assert [part in text for part in ("updates of MHLJ [x]", "3/14")] == [appears] * 2


@pytest.mark.parametrize(
    "show", [terminal.progress_bar, terminal.parts_bar, lambda: terminal.status_line("reproducing")]
)
def test_nothing_is_shown_where_nobody_looks(monkeypatch, show):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with show() as tell:
        assert tell is None
