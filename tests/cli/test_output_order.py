"""stdout and stderr of one terminal or file: lines stay in their order and never run together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from seatrial.cli.process import take_streams
take_streams()
from seatrial.cli.output import message
for line in range(3):
    print("result", line, "x" * 9000)
    message(f"message {line}")
"""


def test_lines_of_both_streams_keep_their_order(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert [line[:9] for line in done.stdout.splitlines()] == [
        words for n in range(3) for words in (f"result {n} ", f"message {n}")
    ]


def test_help_is_grouped_and_fits_on_one_screen(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "-h"], cwd=tmp_path, capture_output=True, text=True, env={"COLUMNS": "80"}
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) <= 24 and max(map(len, lines)) <= 80
    assert not any(line.endswith("...") and "COMMAND" not in line for line in lines), done.stdout
    groups = [line.split()[0] for line in lines if line.startswith("  ") and line[2].isupper()]
    assert groups[:3] == ["Machine", "Measure", "Results"]
