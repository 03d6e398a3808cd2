"""This very machine: whatever it is, its two accounts of itself have one shape."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from published_schemas import check

from seatrial.machine import live
from seatrial.machine.assemble import assemble
from seatrial.machine.live import discover_live
from seatrial.model.machine.document import machine_document, machine_from_document
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import DeviceKind, Machine

CPU_SIDE = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU)


def _has_lstopo() -> bool:
    return shutil.which("lstopo") is not None or shutil.which("lstopo-no-graphics") is not None


def test_it_has_cpus_memory_and_a_kernel(live_machine: Machine) -> None:
    assert live_machine.allowed_cpus
    assert set(live_machine.allowed_cpus) <= set(live_machine.pus)
    assert live_machine.facts.number("memory_total")
    for name in ("kernel", "privileges", "page_size", "smt_active"):
        assert live_machine.facts.best(name) is not None
    assert all(live_machine.package_of(cpu) is not None for cpu in live_machine.allowed_cpus)


def test_its_document_is_valid_and_goes_there_and_back(live_machine: Machine) -> None:
    document = json.loads(json.dumps(machine_document(live_machine), allow_nan=False))
    check(document, "machine-1")
    assert machine_from_document(document) == live_machine


def test_two_discoveries_are_one_machine(live_machine: Machine) -> None:
    assert machine_identity(discover_live()) == machine_identity(live_machine)


def test_hwloc_and_sysfs_give_one_shape() -> None:
    if not _has_lstopo():
        pytest.skip("needs lstopo (apt install hwloc-nox)")
    alone = discover_live(use_hwloc=False)
    joined = discover_live()
    assert machine_identity(alone) == machine_identity(joined)
    hwloc = assemble([live._survey_hwloc()])
    for kinds in (CPU_SIDE, (DeviceKind.BRIDGE, DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK)):
        ours = [(d.id, d.parent, d.numa) for d in alone.devices if d.kind in kinds]
        theirs = [(d.id, d.parent, d.numa) for d in hwloc.devices if d.kind in kinds]
        both = [(d.id, d.parent, d.numa) for d in joined.devices if d.kind in kinds]
        assert theirs == ours == both


def test_caches_agree_where_both_tell_them() -> None:
    if not _has_lstopo():
        pytest.skip("needs lstopo (apt install hwloc-nox)")
    named = {disagreement.name for disagreement in discover_live().disagreements()}
    assert not {name for name in named if name.startswith(("l1", "l2", "l3", "pu", "core"))}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "exit status 3"),
        ("echo '<topology/>'", "without objects"),
        ("kill -9 $$", "exit status -9"),
        ("sleep 60", "no output within"),
    ],
)
def test_a_broken_lstopo_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    program = tmp_path / "lstopo"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("seatrial.machine.live.on_path", lambda name: str(program) if name == "lstopo" else None)
    monkeypatch.setattr(live, "LSTOPO_TIMEOUT_S", 0.3)
    machine = discover_live()
    assert [sentence for sentence in machine.unread if sentence.startswith("hwloc:") and said in sentence]
    assert machine.of_kind(DeviceKind.CORE)


def test_the_environment_cannot_put_another_machine_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HWLOC_XMLFILE", "/nowhere.xml")
    monkeypatch.setenv("DISPLAY", ":99")
    kept = live._hwloc_environment({"HWLOC_XMLFILE": "x", "DISPLAY": ":0", "PATH": "/bin"})
    assert kept == {"PATH": "/bin", "LC_ALL": "C"}
