"""apps.ior and apps.mdtest: real runs, where they are installed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from engine.harness import run_one
from one_point import keep_point, prepare_point

from seatrial.benchmarks import benchmark_named
from seatrial.engine.ready import Ready, Refused
from seatrial.errors import NoCompilerError, UsageError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.store.folder import ResultsFolder

SMALL = {
    "apps.ior": {"block_B": "4MiB", "transfer_B": "1MiB", "segments": "2"},
    "apps.mdtest": {"files": "20", "file_B": "4096B"},
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("layout", ["shared", "per-process"])
def test_a_real_run(
    name: str, layout: str, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need(name.removeprefix("apps."), "build https://github.com/hpc/ior: no package has it")
    benchmark, folder = benchmark_named(name), tmp_path / "measured"
    folder.mkdir()
    ranks = str(min(2, len(live_machine.allowed_cpus)))
    settings = {**SMALL[name], "layout": layout, "folder": str(folder), "ranks": ranks}
    results = ResultsFolder.create(tmp_path / "results")
    ready = prepare_point(name, live_machine, settings, NoCompilerError("none"))
    assert isinstance(ready, Ready), ready
    keep_point(ready, live_machine, results)
    record = run_one(ready, live_machine, results)
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name for r in readings(benchmark, live_machine, ready.point.parameters, record.samples)}
    assert {"write", "read"} <= found or {"file_create", "file_stat", "file_read", "file_remove"} <= found
    assert not list(folder.iterdir()), "files are left on the file system that was measured"


@pytest.mark.parametrize("name", SMALL)
def test_the_command_names_a_new_file_of_each_repeat(name: str, tmp_path: Path, live_machine: Machine) -> None:
    program = benchmark_named(name).program
    point = benchmark_named(name).point({"ranks": 1, "nodes": 1, "folder": str(tmp_path)})
    commands = [" ".join(program.arguments(point, tmp_path / "a" / repeat)) for repeat in ("0000", "0001")]  # type: ignore[attr-defined]
    assert commands[0] != commands[1]
    assert all(re.search(rf"-[od] {tmp_path}/seatrial-\S+$", command) for command in commands)


def test_a_folder_that_is_none_and_blocks_that_do_not_fit(live_machine: Machine) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        prepare_point("apps.ior", live_machine, {"folder": "/none", "ranks": "1"}, NoCompilerError("none"))
    refused = prepare_point(
        "apps.ior", live_machine, {"block_B": "3MiB", "transfer_B": "2MiB", "ranks": "1"}, NoCompilerError("none")
    )
    assert isinstance(refused, Refused) and "not a multiple of the transfer" in refused.outcome.reason
