"""The devices of this machine, and the selection that a point requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.gpu import AUTO, Gpu, Gpus, NoGpuError, find_gpus
from seatrial.environments.loaded_libraries import Once
from seatrial.model.benchmark.parameter import Value, whole
from seatrial.model.results.record import content_key
from seatrial.plan.points import Point


class Devices:
    """The devices that programs find. All programs find the same; environment variables such as
    CUDA_VISIBLE_DEVICES change the list."""

    def __init__(self) -> None:
        self._found: Once[str, Gpus] = Once()

    def of(self, program: Path, variables: Mapping[str, str]) -> Gpus:
        """The devices that this program lists with these variables. Raises BuildError."""
        key = content_key({"variables": dict(variables)})
        return self._found.get(key, lambda: find_gpus(program, variables))


def with_devices(point: Point, gpus: Gpus) -> tuple[Point, list[Mapping[str, Any]]]:
    """The point with its backend and number of devices resolved and a CPU for each (ranks keep theirs), and the
    identities of the devices.

    Raises NoGpuError if they are not found.
    """
    params = point.parameters
    found = gpus.of(str(params["backend"]))
    first = whole(params["device"])
    count = len(found) - first if params["devices"] == AUTO else whole(params["devices"])
    if count < 1 or first + count > len(found):
        wanted = f"device {first}" if count <= 1 else f"devices {first} to {first + count - 1}"
        raise NoGpuError("device", f"{found[0].backend} has no {wanted}: {len(found)} found, numbered from 0")
    chosen = found[first : first + count]
    settled = point.benchmark.on_devices(params, bool(chosen[0].facts.get("cpu")))
    resolved: dict[str, Value] = {**settled, "backend": found[0].backend, "devices": count}
    identities = [device.identity for device in chosen]
    if point.benchmark.ranks == "mpi":  # the ranks have their own CPUs and share the devices
        return replace(point, parameters=resolved), identities
    if count > len(point.cpus):
        raise NoGpuError("cpus", f"{count} devices need one CPU each; this process may use {len(point.cpus)}")
    return replace(point, parameters=resolved, cpus=_near(chosen, point.cpus)), identities


def _near(devices: Sequence[Gpu], cpus: Sequence[int]) -> tuple[int, ...]:
    """A CPU for each device: a local one if available, else any other that is free."""
    found: dict[int, int] = {}
    for must_be_local in (True, False):
        for number, device in enumerate(devices):
            free = [cpu for cpu in cpus if cpu not in found.values()]
            near = [cpu for cpu in free if not must_be_local or cpu in device.local_cpus]
            if number not in found and near:
                found[number] = near[0]
    return tuple(found[number] for number in range(len(devices)))
