"""The CPUs of a machine, also of one with hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from made_up import facts, made_up_machine

from seatrial.model.machine.limit import FmaUnit
from seatrial.model.machine.machine import Device, DeviceKind, Machine


class _Counted(tuple[Device, ...]):
    """Devices that count how often they are iterated over."""

    walks = 0

    def __iter__(self) -> Iterator[Device]:
        type(self).walks += 1
        return super().__iter__()


def test_a_large_machine_is_indexed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Counted, "walks", 0)
    small = made_up_machine(packages=2, cores=192, threads=2)
    machine = replace(small, devices=_Counted(small.devices))
    assert len(machine.pus) == 768 and machine.device("none") is None
    indexed = _Counted.walks
    for cpu in list(range(768)) + list(range(232)):
        package = machine.package_of(cpu)
        assert package is not None
        assert package.id == f"package-{cpu % 384 // 192}"
        assert machine.fma_unit(cpu) is not None
        assert machine.device(f"pu-{cpu}") is machine.pus[cpu]
    assert machine.last_level_cache_bytes(range(768)) == 2 * 32 << 20
    assert len(machine.cpus_one_per_core) == 384
    assert _Counted.walks == indexed <= 2


def test_a_changed_machine_is_indexed_again() -> None:
    machine = made_up_machine(cores=2)
    grown = replace(machine, devices=made_up_machine(packages=2, cores=2).devices)
    assert (len(machine.pus), len(grown.pus)) == (2, 4)
    assert machine == made_up_machine(cores=2)
    assert "_by_id" not in repr(machine)


def test_missing_devices() -> None:
    machine = made_up_machine(cores=2)
    assert machine.package_of(99) is None
    assert machine.fma_unit(99) is None
    assert machine.device("gpu-0") is None
    assert machine.last_level_cache_bytes([0, 99]) is None


def test_a_cycle_of_parents_ends() -> None:
    ring = (Device("a", DeviceKind.CORE, "a", "b"), Device("b", DeviceKind.CORE, "b", "a"))
    pu = Device("pu-0", DeviceKind.PU, "pu", "a", facts=facts(os_index=0))
    machine = Machine("ring", (*ring, pu))
    assert [device.id for device in machine.ancestors(pu)] == ["a", "b"]
    assert machine.package_of(0) is None


def test_the_fma_unit_of_the_core_precedes_that_of_the_package() -> None:
    machine = made_up_machine(cores=2)
    little = facts(fma_pipes=1, fma_vector_bits=128, fma_latency_cycles=5, fma_confirmed=False)
    devices = tuple(replace(d, facts=little) if d.id == "core-1" else d for d in machine.devices)
    machine = replace(machine, devices=devices)
    assert machine.fma_unit(0) == FmaUnit(2, 256, 4, "made up", confirmed=True)
    assert machine.fma_unit(1) == FmaUnit(1, 128, 5, "made up", confirmed=False)


@pytest.mark.parametrize("missing", ["fma_pipes", "fma_vector_bits"])
def test_no_unit_without_pipes_and_width(missing: str) -> None:
    machine = made_up_machine(cores=1, **{missing: 0})
    assert machine.fma_unit(0) is None
