"""From the devices that a point asks for to those that are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seatrial.environments.gpu import AUTO, Gpus, NoGpuError
from seatrial.model.parameter import Value, whole
from seatrial.plan.points import Point


def with_devices(point: Point, gpus: Gpus) -> tuple[Point, list[Mapping[str, Any]]]:
    """The point with its backend and number of devices resolved, a CPU for each, and what identifies the devices.

    Raises NoGpuError where they are not here.
    """
    params = point.parameters
    found = gpus.of(str(params["backend"]))
    first = whole(params["device"])
    count = len(found) - first if params["devices"] == AUTO else whole(params["devices"])
    if count < 1 or first + count > len(found):
        wanted = f"device {first}" if count <= 1 else f"devices {first} to {first + count - 1}"
        raise NoGpuError("device", f"{wanted} of {found[0].backend}: {len(found)} found, counted from 0")
    chosen = found[first : first + count]
    resolved: dict[str, Value] = {**params, "backend": found[0].backend, "devices": count}
    if count > len(point.cpus):
        raise NoGpuError("cpus", f"{count} devices want a CPU each; this process may use {len(point.cpus)}")
    return replace(point, parameters=resolved, cpus=point.cpus[:count]), [device.identity for device in chosen]
