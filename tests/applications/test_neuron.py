"""apps.neuron: what the script writes, real runs on both MPIs, and a planted fault for each check."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import in_python, make_ready, run_one

from seatrial.applications.neuron import BENCHMARK as NEURON
from seatrial.applications.neuron import SCRIPT, read_run
from seatrial.environments.installed import NotInstalledError, find_interpreter
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.store.folder import ResultsFolder

SMALL = {"rings": "2", "cells": "8", "segments": "3", "time_ms": "40"}
RING = [[n % 8, 2.0 + 2.5 * n] for n in range(16)]
RESULT = {
    "version": "9.0.2",
    "ranks": 2,
    "threads": 1,
    "cells": 8,
    "rings": 1,
    "steps": 1600,
    "elapsed_s": 0.5,
    "spikes": RING,
    "spikes_differ": 0,
}


def checks(**changed: object) -> dict[str, float | None]:
    return dict(read_run(json.dumps({**RESULT, **changed}).encode()).checks)


def test_a_result_is_read() -> None:
    record = read_run(json.dumps(RESULT).encode())
    assert record.ended and record.samples[0].work == {"steps": 1600.0, "spikes": 16.0}
    assert checks() == {
        "ranks": 2,
        "threads": 1,
        "cells": 8,
        "in_order": 1,
        "hop_ms": 2.5,
        "hop_change_ms": 0,
        "spikes_missing": 0,
        "spikes_differ": 0,
    }
    assert not read_run(b"").ended


def test_what_is_wrong_with_the_spikes_is_seen() -> None:
    late = [*RING[:5], [5, 14.7], *RING[6:]]
    change = checks(spikes=late)["hop_change_ms"]
    assert change is not None and change > 0.1
    missing = checks(spikes=RING[:10])["spikes_missing"]
    assert missing is not None and missing > 3
    assert checks(spikes=[[0, 2.0], [2, 4.5], [1, 7.0]])["in_order"] == 0
    assert checks(spikes=[])["hop_ms"] is None
    assert "spikes_differ" not in checks(spikes_differ=None)  # of two ranks: nothing was compared
    assert "spikes_differ" not in checks(spikes_differ=None, ranks=1, threads=2)
    assert checks(spikes_differ=None, ranks=1)["spikes_differ"] == 0


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"cells": 0, "rings": 0}', b"\xff"])
def test_another_result_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_run(data)


def with_neuron() -> str:
    """An interpreter that has NEURON: the tests' own, or one on PATH."""
    for path in (sys.executable, None):
        try:
            return str(find_interpreter("neuron", "", path).path)
        except NotInstalledError:
            continue
    pytest.skip("no Python interpreter can import neuron: pip install neuron")


def measured(
    benchmark: Benchmark, machine: Machine, folder: Path, mpi: str | None = None, **settings: str
) -> RepeatRecord:
    results = ResultsFolder.create(folder)
    item = make_ready(benchmark, machine, results, None, mpi, **settings)
    return run_one(item, machine, results)


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(
    ("ranks", "threads", "mpi"), [("1", "1", None), ("1", "2", None), ("2", "1", "openmpi"), ("2", "1", "mpich")]
)
def test_it_measures(
    ranks: str, threads: str, mpi: str | None, live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    python = with_neuron()
    if mpi is not None:
        need(f"mpirun.{mpi}", f"apt install {mpi}-bin")
    if int(ranks) * int(threads) > len(live_machine.allowed_cpus):
        pytest.skip("needs 2 CPUs")
    split = {"ranks": ranks, "threads": threads}
    record = measured(NEURON, live_machine, tmp_path / "results", mpi, **in_python(python), **split, **SMALL)
    assert record.outcome.is_ok, record.outcome
    assert (record.checks["ranks"], record.checks["threads"]) == (int(ranks), int(threads))


@pytest.mark.real
@pytest.mark.parallel
def test_faults_are_found(live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    """Each in the script; those of the exchange between ranks only with two."""
    python = with_neuron()
    program = NEURON.program
    assert isinstance(program, External)
    faults = {
        "hop_ms: ": ("_DELAY_MS, _WEIGHT_US = 1.0, 0.01", "_DELAY_MS, _WEIGHT_US = 1.0, 0.0"),
        "hop_change_ms: ": ("    soma.L = soma.diam = 20.0\n", "    soma.L = soma.diam = 20.0 + 10 * (gid == 3)\n"),
        "in_order: ": ("(place - 1) % cells", "(place - 2) % cells"),
        "spikes_missing: ": ("    context.psolve(time_ms)\n", "    context.psolve(time_ms / 2)\n"),
        "cells: ": ('"cells": rings * cells', '"cells": rings * cells + rings'),
        "ranks: ": ('"ranks": ranks', '"ranks": ranks + 1'),
        "threads: ": ("context.nthread(threads)", "context.nthread(2 * threads)"),
    }
    for reason, (right, wrong) in faults.items():
        text = SCRIPT.read_text()
        assert right in text, "where is the fault to be planted now?"
        planted = tmp_path / f"{reason[:-2]}.py"
        planted.write_text(text.replace(right, wrong))

        def arguments(params: object, directory: Path, planted: Path = planted) -> list[str]:
            assert isinstance(program, External) and isinstance(params, dict)
            return [str(planted), *program.arguments(params, directory)[1:]]

        broken = replace(NEURON, program=replace(program, arguments=arguments))
        record = measured(broken, live_machine, tmp_path / reason[:-2], None, ranks="1", **in_python(python), **SMALL)
        assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_spikes_of_two_ranks_that_differ_are_found(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    python = with_neuron()
    need("mpirun.openmpi", "apt install openmpi-bin")
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs 2 CPUs")
    program = NEURON.program
    assert isinstance(program, External)
    planted = tmp_path / "ring.py"
    planted.write_text(
        SCRIPT.read_text().replace("= _DELAY_MS, _WEIGHT_US\n", "= _DELAY_MS + (ranks - 1), _WEIGHT_US\n")
    )
    assert planted.read_text() != SCRIPT.read_text()

    def arguments(params: object, directory: Path) -> list[str]:
        assert isinstance(params, dict)
        return [str(planted), *program.arguments(params, directory)[1:]]

    broken = replace(NEURON, program=replace(program, arguments=arguments))
    record = measured(broken, live_machine, tmp_path / "results", "openmpi", ranks="2", **in_python(python), **SMALL)
    assert record.outcome.reason.startswith("spikes_differ: "), record.outcome
