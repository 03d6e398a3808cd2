"""Answers in a real terminal: its width and colours, and what turns them off."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

CODES = re.compile(r"\x1b\[[0-9;]*m")
STUDY = """\
study: stores
question: Do non-temporal stores pay on this machine, and if they do, from which size of the arrays on do they do so?
benchmarks:
  memory.stream: {threads: all}
axes:
  nontemporal: [false, true]
compare: nontemporal
"""


def in_terminal(folder: Path, columns: int, **variables: str) -> str:
    """What `seatrial plan` shows there."""
    (folder / "stores.yaml").write_text(STUDY)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    child = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "plan", "stores.yaml"],
        cwd=folder,
        stdout=theirs,
        env={**environment, "TERM": "xterm-256color", **variables},
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert child.wait() == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.real
@pytest.mark.parametrize("columns", [60, 100])
def test_text_is_as_wide_as_the_terminal_and_has_colours(tmp_path: Path, columns: int) -> None:
    shown = in_terminal(tmp_path, columns)
    assert "\x1b[1mstores\x1b[0m" in shown
    widest = max(map(len, CODES.sub("", shown).splitlines()))
    assert columns - 20 < widest <= columns


@pytest.mark.real
def test_no_color_disables_colours_and_a_dumb_terminal_all_codes(tmp_path: Path) -> None:
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", in_terminal(tmp_path, 80, NO_COLOR="1"))
    assert "\x1b" not in in_terminal(tmp_path, 80, TERM="dumb")
