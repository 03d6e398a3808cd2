"""Output on terminals of any width: nothing is lost, no line is longer than the terminal, colours change nothing."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st
from report.terminals import COLOURED, terminal
from rich.console import Console

from seatrial.report.text.terminal import PLAIN
from seatrial.report.text.terminal_colours import TerminalStyle

ANSI = re.compile(r"\x1b\[[0-9;]*m")
CELLS = st.text("ab1µ↓ .-", max_size=40)
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=12), min_size=1, max_size=6)
VERDICTS = [
    ["figure", "baseline", "candidate", "ratio", "95 % simultaneous", "verdict"],
    ["copy · size 64 KiB, threads 96 ↓", "1.310 µs", "360.0 ns", "0.275", "[0.26, 0.29]", "faster"],
]


def ink(text: str) -> str:
    """What is not space, in order of characters."""
    return "".join(sorted(ANSI.sub("", text).replace("─", "").replace(" ", "").replace("\n", "")))


@given(ROWS, st.integers(20, 130), st.booleans())
def test_no_table_loses_a_character(rows: list[list[str]], width: int, has_head: bool) -> None:
    shown = terminal(width).table(rows, has_head=has_head)
    assert ink(shown) == ink("".join(map("".join, rows)))


def test_a_table_that_fits_is_the_same_as_in_a_pipe() -> None:
    assert ANSI.sub("", COLOURED.table(VERDICTS)) == PLAIN.table(VERDICTS)
    with_head = ANSI.sub("", COLOURED.table(VERDICTS, has_head=True)).splitlines()
    assert with_head[0] == PLAIN.table(VERDICTS).splitlines()[0] and set(with_head[1].split()[0]) == {"─"}


def test_a_narrow_terminal_folds_the_long_columns_and_keeps_numbers_whole() -> None:
    lines = ANSI.sub("", terminal(70).table(VERDICTS, has_head=True)).splitlines()
    assert max(map(len, lines)) <= 70
    assert any("1.310 µs  360.0 ns   0.275" in line and "faster" in line for line in lines)


def test_painted_cells_are_aligned() -> None:
    rows = [["faster", "x"], ["ok", "y"]]
    painted = [[COLOURED.paint(word, "direct"), other] for word, other in rows]
    assert "\x1b[32mfaster\x1b[0m" in COLOURED.table(painted)
    assert ANSI.sub("", COLOURED.table(painted)) == PLAIN.table(rows)


def test_prose_is_as_wide_as_the_terminal_but_never_wider_than_in_a_pipe() -> None:
    assert [terminal(width).width for width in (10, 80, 118, 300)] == [40, 80, 118, 118]
    assert max(map(len, terminal(60).wrapped("word " * 50, "  means: "))) <= 60


def test_no_color_and_dumb_terminals_are_respected() -> None:
    def painted(**environment: str) -> str:
        console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm-256color", **environment})
        return TerminalStyle(console).paint("word", "warning")

    assert painted() == "\x1b[33mword\x1b[0m"
    assert painted(NO_COLOR="1") == painted(TERM="dumb") == "word"
