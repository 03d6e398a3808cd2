"""Progress on stderr: a bar on a terminal that can redraw, lines elsewhere; what did not succeed is always shown."""

from __future__ import annotations

import io
import re

import pytest

from seatrial.cli.progress import TerminalProgress
from seatrial.engine.listener import Progress
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Outcome
from seatrial.plan.points import Point, plan_points

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Stream(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def point() -> Point:
    return plan_points(("cpu.linebounce",), {}, Machine("any"))[0]


def shown(monkeypatch: pytest.MonkeyPatch, point: Point, *, is_terminal: bool, term: str = "xterm-256color") -> str:
    stream = Stream(is_terminal)
    monkeypatch.setattr("sys.stderr", stream)
    for name, value in (("TERM", term), ("COLUMNS", "80"), ("LINES", "40")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    progress = TerminalProgress()
    progress.building(point)
    progress.repeat_starts(point, 0, Progress(experiments=4, open_experiments=3, remaining_s=240.0))
    progress.repeat_done(point, Outcome.skipped("one CPU only"))
    progress.repeat_starts(point, 1, Progress(experiments=4, open_experiments=2, remaining_s=60.0))
    progress.close()
    return stream.getvalue()


def test_a_terminal_has_a_bar_that_vanishes(monkeypatch: pytest.MonkeyPatch, point: Point) -> None:
    text = shown(monkeypatch, point, is_terminal=True)
    plain = CODES.sub("", text)
    assert "1/4 done" in plain and "2/4 done" in plain and "about 4 min left" in plain and "repeat 2" in plain
    assert "cpu.linebounce" in plain and ": skipped: one CPU only\n" in plain
    assert "…" not in plain and text.count("\x1b[?25l") == text.count("\x1b[?25h") == 2, "the cursor is back"


@pytest.mark.parametrize(("is_terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_output_without_a_terminal_has_lines_without_codes(
    monkeypatch: pytest.MonkeyPatch, point: Point, is_terminal: bool, term: str
) -> None:
    text = shown(monkeypatch, point, is_terminal=is_terminal, term=term)
    assert "\x1b" not in text and "\r" not in text
    assert text.splitlines()[0].startswith("building") and text.splitlines()[-1].endswith("skipped: one CPU only")


def test_quiet_and_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet, verbose, lines in ((False, False, 1), (True, False, 0), (False, True, 3)):
        progress = TerminalProgress(quiet=quiet, verbose=verbose)
        for _ in range(3):
            progress._now_and_then("repeat")
        assert len(capsys.readouterr().err.splitlines()) == lines
        progress._always("waiting")
        assert capsys.readouterr().err == "waiting\n"
