"""Where the processes of a training run are."""

from __future__ import annotations

from made_up import made_up_machine
from msgspec.structs import replace

from seatrial.benchmarks.training.pytorch import BENCHMARK
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine


def with_gpus() -> Machine:
    """Two packages of 4 cores, GPUs near the second, the first, and the second again."""
    machine = made_up_machine(packages=2, cores=4)
    gpus = tuple(Device(f"GPU{number}", DeviceKind.GPU, "GPU") for number in range(3))
    near = {"GPU0": (4, 5, 6, 7), "GPU1": (0, 1, 2, 3), "GPU2": (4, 5, 6, 7)}
    affinity = tuple(Affinity(name, cpus, None) for name, cpus in near.items())
    return replace(machine, devices=(*machine.devices, *gpus), affinity=affinity, allowed_cpus=tuple(range(8)))


def placed(**given: object) -> tuple[int, ...]:
    machine = with_gpus()
    params = BENCHMARK.prepare(machine, BENCHMARK.point(given))
    return BENCHMARK.placement(machine, params)


def test_processes_have_cpus_near_their_devices() -> None:
    assert placed(device="cuda", processes=3, threads=2) == (4, 5, 0, 1, 6, 7)
    assert placed(device="cuda", processes=1, threads=6) == (4, 5, 6, 7, 0, 1)


def test_processes_without_devices_are_spread() -> None:
    assert placed(processes=2, threads=2) == (0, 1, 2, 3)
    assert placed(processes=2) == tuple(range(8))
