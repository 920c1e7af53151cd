"""What a command shows while it works: nothing at first, nothing where nobody looks."""

import io
import re
import sys
import time

import pytest

from freewalk.cli import terminal


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


MEASURED = {"loss": 0.21345, "accuracy": 0.91}


def test_a_progress_bar_shows_what_was_measured_last(monkeypatch):
    def use():
        with terminal.progress_bar() as tell:
            tell("MHLJ", 100, 400, 1000, MEASURED)

    assert "loss 0.213, accuracy 0.91" in shown(monkeypatch, 0.0, use)


BARS = {
    "progress": (terminal.progress_bar, [("MHLJ [x]", 100, 400, 1000), ("MHLJ [x]", 160, 400, 1000)]),
    "measured": (terminal.progress_bar, [("MHLJ [x]", 100, 400, 9, MEASURED), ("MHLJ [x]", 172, 400, 9, MEASURED)]),
    "parts": (terminal.parts_bar, [("updates of MHLJ [x]", 3, 14)]),
    "status": (lambda quiet=False: terminal.status_line("reproducing", quiet), [("MHLJ [x]",)]),
}
LINES = {
    "progress": r"MHLJ \[x\]: 40 %, [\d.]+ [kMG] updates/s, about \d+ (s|min) left",
    "measured": r"MHLJ \[x\]: 43 %, loss 0.213, accuracy 0.91, [\d.]+ [kMG] updates/s, about \d+ (s|min) left",
    "parts": r"updates of MHLJ \[x\]: part 4 of 14",
    "status": r"reproducing MHLJ \[x\]",
}


@pytest.mark.parametrize("bar", BARS)
def test_a_log_gets_a_line_from_time_to_time(monkeypatch, bar):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(terminal, "INTERVAL", 0.02)
    show, calls = BARS[bar]
    with show() as tell:
        for call in calls:
            time.sleep(0.001)
            tell(*call)
        began = time.monotonic()
        while log.getvalue().count("\n") < 2 and time.monotonic() < began + 10:
            time.sleep(0.01)
    lines = log.getvalue().splitlines()
    assert len(lines) >= 2
    assert re.fullmatch(LINES[bar], lines[-1]), lines[-1]
    time.sleep(0.05)
    assert log.getvalue().splitlines() == lines  # it ends with the work


@pytest.mark.parametrize("bar", BARS)
def test_nothing_is_written_to_a_log_at_first_or_where_it_is_unwanted(monkeypatch, bar):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    show, calls = BARS[bar]
    with show() as tell:
        for call in calls:
            tell(*call)
    monkeypatch.setattr(sys, "stderr", Screen())
    with show(True) as tell:
        assert tell is None
    assert log.getvalue() == ""


def test_a_log_that_nobody_reads_any_more_stops_nothing(monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    monkeypatch.setattr(terminal, "INTERVAL", 0.001)
    with terminal.status_line("reproducing") as tell:
        tell("x")
        time.sleep(0.02)


def test_a_message_cannot_control_the_terminal(capsys):
    terminal.say("error: a\x1b[31mb\nc [bold]é[/bold]", "red")
    assert capsys.readouterr().err == "error: a\\x1b[31mb\\nc [bold]é[/bold]\n"


def test_rates_and_durations_are_short():
    assert [terminal._short(rate) for rate in (43_210_000, 512)] == ["43.2 M", "512"]
    assert [terminal._duration(seconds) for seconds in (31.2, 400, 9000)] == ["31 s", "7 min", "2.5 h"]
