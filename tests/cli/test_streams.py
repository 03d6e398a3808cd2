"""Standard streams that are closed, full, or a pipe without a reader, with every command."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from applications.result_texts import stream
from usual import usually

pytestmark = pytest.mark.real

HWLOC = Path(__file__).parents[1] / "data" / "machine" / "hwloc-v2.xml"
STUDY = "study: small\nquestion: Which?\nbenchmarks: {cpu.peak: {cores: one}}\n"
COMMANDS = {
    "--help": 0,
    "compare results others": 0,
    "discover --from hwloc-xml=machine.xml --format json": 0,
    "import stream=stream.txt": 0,
    "list --references": 0,
    "plan study.yaml": 0,
    "profile --tables nowhere": 2,
    "report results -o page.html": 0,
    "run nonsense": 2,
}
"""Command -> its exit status with streams that work."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("streams")
    for name, text in (("stream.txt", stream()), ("study.yaml", STUDY), ("machine.xml", HWLOC.read_text())):
        (made / name).write_text(text)
    (made / "other.txt").write_text(stream(rates_MBps=(30000.0, 31000.0, 32000.0, 33000.0)))
    for file, results in (("stream.txt", "results"), ("other.txt", "others")):
        assert answer(made, f"import stream={file} --results {results}", "").returncode == 0
    return made


def answer(folder: Path, command: str, redirections: str) -> subprocess.CompletedProcess[str]:
    line = f"set -o pipefail; {shlex.quote(sys.executable)} -m seatrial {command} {redirections}"
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def in_turns(*redirections: Any) -> Any:
    """Each command with one of them in turn: how it ends is decided in one place (cli/process.py)."""
    cases = usually(
        ((command, one) for command in sorted(COMMANDS) for one in redirections),
        lambda case: sorted(COMMANDS).index(case[0]) % len(redirections) == redirections.index(case[1]),
    )
    return pytest.mark.parametrize(("command", "redirection"), cases)


@in_turns((">&-", "Bad file descriptor"), (">/dev/full", "No space left"))
def test_output_that_cannot_be_written_is_one_error(command: str, redirection: tuple[str, str], folder: Path) -> None:
    status = COMMANDS[command]
    words, why = redirection
    done = answer(folder, command, words)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    if status == 0:
        assert done.returncode == 3 and done.stderr.count("cannot be written") == 1 and why in done.stderr
    else:
        assert done.returncode == status and "cannot be written" not in done.stderr


@in_turns("| true", "2>/dev/full", "<&- 2>&- >&-")
def test_a_reader_that_stops_and_missing_streams_keep_the_exit_status(
    command: str, redirection: str, folder: Path
) -> None:
    status = COMMANDS[command]
    done = answer(folder, command, redirection)
    if redirection == "| true":
        assert done.returncode == status and "Traceback" not in done.stderr and "Error" not in done.stderr
    else:
        assert done.returncode == (status if redirection == "2>/dev/full" else status or 3) and done.stderr == ""
