"""A results folder of a made-up node with eight GPUs behind two switches: records as the programs write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.made_up_nodes import GEN3_X16, cpu_tree, facts, switched

from seatrial.machine.assemble import machine_limits
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.record import Experiment, RepeatRecord, content_key
from seatrial.model.results.sample import Outcome, Sample
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

MiB = 1 << 20
REPEATS = 6


def node(gpus: int = 8) -> Machine:
    """GPUs of generation 3 behind two switches, each with one uplink as wide as a GPU's own link."""
    below = switched(gpus, GEN3_X16, switches=2)
    machine = replace(below, devices=(*cpu_tree(), *below.devices), facts=facts(architecture="x86_64"))
    return replace(machine, name="eight", limits=machine_limits(machine))


def addresses(machine: Machine) -> list[str]:
    """Of its GPUs, as CUDA writes them."""
    return [gpu.pci.upper() for gpu in machine.of_kind(DeviceKind.GPU) if gpu.pci]


def transfer_folder(
    path: Path, machine: Machine, alone: Callable[[int], float], at_once: Callable[[int], float]
) -> Path:
    """A folder with gpu.transfer of all GPUs: device number -> B/s alone, and while all copy."""
    count = len(addresses(machine))
    parameters = {
        "host": "pinned", "largest_B": "auto", "numa_node": "auto", "backend": "cuda", "device": 0, "devices": count,
        "optimised": True,
    }  # fmt: skip

    def samples(noise: float) -> Iterator[Sample]:
        for way in ("h2d", "d2h"):
            for number in range(count):
                yield _sample(machine, way, [number], alone(number) * noise)
                yield _sample(machine, f"{way}_together", [number], at_once(number) * noise)
            whole = sum(at_once(number) for number in range(count)) * noise
            yield _sample(machine, f"{way}_all", list(range(count)), whole)

    return _folder(path, machine, "gpu.transfer", parameters, samples)


def _sample(machine: Machine, series: str, numbers: list[int], rate: float) -> Sample:
    told = {"devices": len(numbers), "pci": [addresses(machine)[number] for number in numbers], "capability": 80}
    point: dict[str, Any] = {"size_B": 64 * MiB}
    if not series.endswith("_all"):
        point["device"] = numbers[0]
    return Sample(series, 0, 64 * MiB / rate, {"bytes": 64 * MiB}, point=point, extra={"device": told})


def _folder(
    path: Path,
    machine: Machine,
    benchmark: str,
    parameters: Mapping[str, Any],
    samples: Callable[[float], Iterator[Sample]],
) -> Path:
    folder = ResultsFolder.create(path)
    folder.put("environments", "env", {"name": "gcc 12 -O3", "flags": ["-O3"]})
    key = machine_identity(machine)
    folder.put("machines", content_key({"host": "eight"}), {"identity": key, **machine_document(machine)})
    experiment = Experiment(benchmark, parameters, "env", "program", key)
    folder.put("experiments", experiment.id, experiment.document())
    devices = [
        {"backend": "cuda", "index": number, "name": "GPU", "pci": address}
        for number, address in enumerate(addresses(machine))
    ]
    writer = RecordWriter(folder, "eight")
    for n in range(REPEATS):
        seen = {"host": "eight", "affinity": [[0]], "budget_s": 60.0, "notes": {"devices": devices}}
        made = tuple(samples(1 + 0.002 * n))
        checks = {"error": 0.0, "pages_elsewhere": 0.0}
        writer.append(RepeatRecord(experiment.id, n, n, 1.7e9 + n, 0.3, Outcome.ok(), made, checks, seen))
    writer.close()
    return path
