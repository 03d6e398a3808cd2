"""From the devices that a point asks for to those that are here."""

from __future__ import annotations

import pytest
from made_up import made_up_machine

from seatrial.engine.kinds.native import with_devices
from seatrial.environments.asking import Gpu, Gpus
from seatrial.plan.points import plan_points


@pytest.mark.parametrize(
    ("benchmark", "parameter", "on_gpu", "on_processor"),
    [
        ("gpu.sort", "size", "large", "1"),
        ("gpu.nbody", "bodies", 131072, 8192),
        ("gpu.montecarlo", "paths", 262144, 16384),
    ],
)
def test_auto_sizes_fill_a_gpu_but_not_a_cpu_device(
    benchmark: str, parameter: str, on_gpu: object, on_processor: object
) -> None:
    (point,) = plan_points([benchmark], {}, made_up_machine(cores=2))
    assert point.parameters[parameter] == "auto"
    for is_processor, value in ((False, on_gpu), (True, on_processor)):
        gpus = Gpus((Gpu("opencl", 0, "a device", "1", {"cpu": is_processor}),), {})
        resolved, _ = with_devices(point, gpus)
        assert resolved.parameters[parameter] == value


def test_a_given_size_is_kept() -> None:
    (point,) = plan_points(["gpu.sort"], {"size": ["3"]}, made_up_machine(cores=2))
    resolved, _ = with_devices(point, Gpus((Gpu("opencl", 0, "a device", "1", {"cpu": True}),), {}))
    assert resolved.parameters["size"] == "3"
