"""Runtimes tried with a root of one static program, and one that fails with words of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from seatrial.places.containers import trial as container_trials
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import PROGRAM, STATUS, write_root
from seatrial.places.containers.trial import tried


@pytest.mark.real
def test_the_static_program(tmp_path: Path) -> None:
    assert write_root(tmp_path)
    assert subprocess.run([str(tmp_path) + PROGRAM], check=False).returncode == STATUS


@pytest.mark.real
@pytest.mark.parametrize("name", ["charliecloud", "bubblewrap", "podman", "nspawn"])
def test_runtimes_that_start_here(name: str, tmp_path: Path) -> None:
    runtime = RUNTIMES[name]
    if runtime.path() is None:
        pytest.skip(f"needs {runtime.package}")
    if name == "nspawn" and os.geteuid() != 0:
        pytest.skip("needs root")
    found = tried(runtime, tmp_path)
    assert (found.state, found.need) == ("ready", "")


def test_a_runtime_that_fails_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "ch-run"
    tool.write_text(f"#!/bin/sh\necho x >> {tmp_path}/tries\necho 'clone: Operation not permitted' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    first = container_trials._trial(RUNTIMES["charliecloud"])
    assert first.state == "fails" and "Operation not permitted; have user namespaces enabled" in first.need
    assert container_trials._trial(RUNTIMES["charliecloud"]) == first
    assert (tmp_path / "tries").read_text() == "x\n"
    shutil.copy2(tool, tool.with_name("new"))
    tool.with_name("new").replace(tool)  # another file: another version
    container_trials._trial(RUNTIMES["charliecloud"])
    assert (tmp_path / "tries").read_text() == "x\nx\n"


def test_a_runtime_that_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert [trial.state for trial in container_trials.container_trials()] == ["absent"] * len(RUNTIMES)
