"""Whether MPI settings were in force, by the reports of the ranks' library, also with real libraries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine.harness import tampered
from made_up import made_up_machine

from seatrial.engine.judge import is_same, setting_not_in_force
from seatrial.engine.kinds.native import NativeProgram
from seatrial.engine.listener import Listener
from seatrial.engine.ready import Ready
from seatrial.engine.trial import TrialToRun
from seatrial.environments.build import Built
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark.program import Hello, ProgramRecord
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.plan.points import plan_points
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

MPI = "openmpi", "mpich"


def judged(family: str, variables: dict[str, str | None], **notes: Any) -> str | None:
    """Why a repeat with these variables and notes is invalid."""
    (point,) = plan_points(["mpi.latency"], {}, made_up_machine(cores=2))
    library = Mpi(family, MpiFamily(family), "4.1.4", Path("/lib/libmpi.so"), "", (), (), None)
    built = Built(Path(), "key", (), Hello("latency", "key", "n1"), 0.0, from_cache=True)
    experiment = Experiment("mpi.latency", point.parameters, "", "", "")
    program = NativeProgram(point.benchmark.program, built)
    ready = Ready(point, experiment, program, mpi=library, variables=tuple(variables.items()))
    outcome = setting_not_in_force(ready, ProgramRecord(notes=notes))
    assert outcome is None or outcome.check == "setting"
    return None if outcome is None else outcome.reason


def test_settings_in_force_are_valid() -> None:
    lines = ["btl=self,tcp", "coll_tuned_allreduce_algorithm=4 (ring)", "coll_tuned_use_dynamic_rules=1", "other=x"]
    wanted: dict[str, str | None] = {
        "OMPI_MCA_btl": "self,tcp",
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "4",
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "true",
        "OMPI_MCA_orte_tmpdir_base": "/tmp",  # of the launcher: no rank can tell
        "OMPI_MCA_pml": None,
        "UCX_TLS": "tcp",
    }
    assert judged("openmpi", wanted, control_variables=lines) is None
    assert judged("openmpi", {}) is None


def test_ignored_or_changed_settings_are_invalid() -> None:
    reason = judged("mpich", {"MPIR_CVAR_NOLOCALL": "1"}, control_variables=["MPIR_CVAR_NOLOCALL"])
    assert reason is not None and "MPICH 4.1.4 has no variable MPIR_CVAR_NOLOCALL" in reason
    reason = judged("openmpi", {"OMPI_MCA_btl": "self,tcp"}, control_variables=["btl=self,vader"])
    assert reason is not None and "btl is self,vader in the ranks instead of self,tcp" in reason
    reason = judged("mpich", {"MPIR_CVAR_NOLOCAL": "1"})
    assert reason is not None and "did not reach the ranks" in reason
    reason = judged(
        "mpich", {"MPIR_CVAR_NOLOCAL": "1"}, control_variables=["MPIR_CVAR_NOLOCAL=1"], ranks_with_other_settings=3
    )
    assert reason is not None and "3 ranks have other settings" in reason


def test_settings_of_another_library_are_not_checked() -> None:
    assert judged("mpich", {"OMPI_MCA_btl": "tcp"}) is None
    assert judged("intel", {"I_MPI_FABRICS": "shm"}) is None


@pytest.mark.parametrize(
    ("wanted", "held", "same"),
    [
        ("4", "4 (ring)", True),
        ("ring", "4 (ring)", True),
        ("chain", "4 (ring)", False),
        ("5", "4 (ring)", False),
        ("64k", "65536", True),
        ("1M", "1048576", True),
        ("64kB", "65537", False),
        ("0x10", "16", True),
        ("0.5", "0.500000", True),
        ("yes", "1", True),
        ("false", "1", False),
        ("recursive_doubling", "3", True),  # MPICH refuses words that it does not know when it starts
        ("percoll", "", False),
        ("self,tcp", "self,vader", False),
        ("anything", "?", True),
    ],
)
def test_what_is_the_same(wanted: str, held: str, same: bool) -> None:
    assert is_same(wanted, held) is same


def measured(
    name: str,
    value: str,
    library: str,
    machine: Machine,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    edits: Any = None,
) -> RepeatRecord:
    """The last repeat of a benchmark with a setting, from a source that may have been tampered with."""
    if library not in {found.name for found in find_mpis()}:
        pytest.skip(f"needs {library}")
    settings = {"size_B": ["8"], "environment.mpi": [library], name: [value]}
    benchmark = "mpi.allreduce" if name.endswith("algorithm") else "mpi.latency"
    (point,) = plan_points([benchmark], settings, machine)
    if edits is not None:
        changed = tampered(point.benchmark, folder, edits, monkeypatch)
        point = replace(point, benchmark=changed)
    results = ResultsFolder.create(folder / "results")
    (prepared,) = TrialToRun(machine, lambda: results, Listener()).run_points([point], budget_s=0.0).experiments
    return read_contents(results).records[prepared.experiment.id][-1]


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize("library", MPI)
def test_a_chosen_algorithm_is_in_force_and_reported(
    library: str, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = ("environment.collective_algorithm", "recursive-doubling")
    record = measured(*setting, library, live_machine, tmp_path, monkeypatch)
    assert record.outcome.is_ok, record.outcome
    assert any("allreduce_algorithm=3 (recursive_doubling)" in line.lower() or "ALLREDUCE_INTRA_ALGORITHM=" in line
               for line in record.seen["notes"]["control_variables"])  # fmt: skip


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize(
    ("library", "name"), [("openmpi", "OMPI_MCA_coll_tuned_bcast_algoritm"), ("mpich", "MPIR_CVAR_NOLOCALL")]
)
def test_a_misspelt_variable_is_invalid(
    library: str, name: str, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = measured(f"environment.{name}", "1", library, live_machine, tmp_path, monkeypatch)
    assert record.outcome.check == "setting" and name.removeprefix("OMPI_MCA_") in record.outcome.reason


@pytest.mark.real
@pytest.mark.lab
def test_a_library_with_another_value_is_detected(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = {"mpi/settings.cpp": ("room.data()));", "room.data())) + 'x';")}
    setting = ("environment.transport", "shm")
    record = measured(*setting, "openmpi", live_machine, tmp_path, monkeypatch, edits)
    assert record.outcome.check == "setting" and "instead of" in record.outcome.reason
