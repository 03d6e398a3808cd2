"""`--quiet` and `--verbose`: what each command leaves out and adds; JSON and exit status stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from analysis.test_index import put
from cli.in_process import seatrial_here
from cli.test_compare import made
from cli.test_export import HEAD, say
from cli.test_keep_results import months

COMMANDS = ("discover", "check", "list", "compare", "report", "export", "query", "history")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a figure over months, in `r`."""
    path = tmp_path_factory.mktemp("kept")
    months(path / "r", slow_from=15)
    return path


def lines(path: Path, *words: str) -> list[str]:
    return say(path, *words).splitlines()


def test_every_such_command_has_both_and_refuses_them_together(tmp_path: Path) -> None:
    needed = {"compare": ("a", "b"), "query": ("a", "SELECT 1"), "history": ("triad",), "run": (), "build": ()}
    for command in (*COMMANDS, "run", "build"):
        done = seatrial_here(command, *needed.get(command, ()), "-q", "-v", cwd=tmp_path)
        assert done.returncode == 2 and "--quiet and --verbose were both given" in done.stderr, command


def test_list(tmp_path: Path) -> None:
    names = lines(tmp_path, "list", "-q")
    known = json.loads(say(tmp_path, "list", "--format", "json"))["benchmarks"]
    assert names == [one["name"] for one in known if one["state"] == "ready"] and "command" in names
    assert lines(tmp_path, "list", "io", "-q") == [name for name in names if name.startswith("io.")]
    full = say(tmp_path, "list", "-v")
    assert "checks (no figure is published if one fails)" in full and "compilers: " in full


def test_discover_and_check(tmp_path: Path) -> None:
    usual, brief, full = (say(tmp_path, "discover", *more) for more in ((), ("-q",), ("-v",)))
    assert len(brief.splitlines()) <= 4 and usual.startswith(brief)
    lasting = {line for line in usual.splitlines() if "available now" not in line}
    assert lasting <= set(full.splitlines())
    assert "Facts of " in full and "Facts of " not in usual
    words = lines(tmp_path, "check", "-q")
    assert all(line.startswith(("error ", "warning ")) for line in words[1:])
    assert "with --verbose" not in say(tmp_path, "check", "-v")


def test_results(kept: Path) -> None:
    made(kept / "a"), made(kept / "b", 0.9, seed=2)
    brief = lines(kept, "compare", "a", "b", "-q")
    assert brief[0].startswith("answer: ") and lines(kept, "compare", "a", "b")[: len(brief)] == brief
    assert say(kept, "report", "r", "-q") == "" and (kept / "r" / "report.html").is_file()
    changes = lines(kept, "history", "triad", "r", "-q")
    assert changes and all("sureness" in line for line in changes)
    assert sum(line.startswith("  20") for line in lines(kept, "history", "triad", "r", "-v")) == 24
    assert say(kept, "query", "r", "SELECT 7 AS n", "-q", "--format", "csv") == "7\n"
    assert say(kept, "query", "r", "SELECT 7 AS n", "-q") == "7\n"


def test_details_go_to_stderr_and_warnings_can_be_hidden(tmp_path: Path) -> None:
    folder = put(tmp_path / "r", 7)
    done = seatrial_here("export", "r", "-v", cwd=tmp_path)
    assert done.stdout.startswith(HEAD) and "exported: 1 experiment (1 ok), " in done.stderr
    assert "1 row of 1 column" in seatrial_here("query", "r", "SELECT 1", "-v", cwd=tmp_path).stderr
    assert "the page shows 1 machine, 1 experiment, " in seatrial_here("report", "r", "-v", cwd=tmp_path).stderr
    record = next((folder.path / "records").iterdir())
    record.write_bytes(record.read_bytes().replace(b'"order":1', b'"order":8', 1))
    assert "ignored: " in seatrial_here("export", "r", cwd=tmp_path).stderr
    assert seatrial_here("export", "r", "-q", cwd=tmp_path).stderr == ""
