"""Declared programs at their limits: an output of 100 MB, and seatrial killed while one runs."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.benchmarks.declared_output import Outputs, read_checks, read_figures
from seatrial.interface.run import run
from seatrial.model.benchmark.declaration import Declaration, DeclaredCheck, DeclaredFigure, Pick
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

LINE = f"step 1234 energy -1.5e+03 {'x' * 9975}\n"
LINES = 10_000

DECLARED = """
benchmark:
  name: long
  question: How long?
  argv: [PYTHON, script.py, FOLDER]
  files: [script.py]
  figures: [{name: rate, unit: B/s, better: higher, pattern: '^rate: (\\S+)'}]
  checks: [{name: clean, must_not_match: ERROR}]
"""

PRINTS_MUCH = f"""
import sys
sys.stdout.writelines({LINE!r} for _ in range({LINES}))
print("rate: 7.5")
"""

HANGS_ONCE = """
import os, subprocess, sys, time
from collections.abc import Callable
from pathlib import Path
folder = Path(sys.argv[1])
print("rate: 7.5", flush=True)
if (folder / "once").exists() and not (folder / "pids").exists():
    child = subprocess.Popen(["sleep", "300"])
    (folder / "written").write_text(f"{os.getpid()} {child.pid}")
    (folder / "written").rename(folder / "pids")
    time.sleep(300)
(folder / "once").touch()
"""


def declared(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "script.py").write_text(script)
    text = DECLARED.replace("PYTHON", sys.executable).replace("FOLDER", str(folder))
    (folder / "long.yaml").write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))


def test_an_output_of_100_megabytes_takes_little_memory_beside_itself() -> None:
    data = LINE.encode() * LINES + b"rate: 7.5\n"
    figures = (DeclaredFigure("rate", "B/s", True, Pick(r"^rate: (\S+)")),)
    checks = (DeclaredCheck("clean", Pick("ERROR"), must_match=False),)
    declaration = Declaration("d", "q", ("a",), figures=figures, checks=checks)
    outputs = Outputs(lambda name: data)
    tracemalloc.start()
    try:
        (sample,) = read_figures(declaration, outputs)
        assert read_checks(declaration, outputs) == {"clean": 1.0}
        _, peak_B = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(data) >= 100e6 and sample.work["value"] == 7.5
    assert peak_B < 1e6


@pytest.mark.real
@pytest.mark.lab
def test_a_program_that_prints_100_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(tmp_path, monkeypatch, PRINTS_MUCH)
    (one,) = run("long.yaml", repeats=1).experiments
    assert one.outcome.is_ok and {figure.name: figure.median for figure in one.figures}["rate"] == 7.5
    kept = sum(path.stat().st_size for path in (tmp_path / "seatrial-results").rglob("*") if path.is_file())
    assert kept < 1e6  # the output itself is kept only with --keep or on failure


@pytest.mark.real
@pytest.mark.lab
def test_seatrial_killed_midway_leaves_nothing_running_and_the_folder_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(tmp_path, monkeypatch, HANGS_ONCE)
    with subprocess.Popen(
        [sys.executable, "-m", "seatrial", "run", "long.yaml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _wait(lambda: (tmp_path / "pids").exists())
        process.kill()
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    _wait(lambda: not any(map(_runs, pids)))
    (one,) = run("long.yaml", repeats=3).experiments
    assert one.outcome.is_ok
    contents = read_contents(ResultsFolder.existing(tmp_path / "seatrial-results"))
    (records,) = contents.records.values()
    assert len(records) == 3 and all(record.outcome.is_ok for record in records) and not contents.damaged
    assert not list((tmp_path / "seatrial-results").glob("artefacts/*/[0-9]*"))


def _wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: str) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
