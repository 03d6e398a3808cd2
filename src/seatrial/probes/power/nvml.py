"""GPUs of NVIDIA, through the driver's library (NVML): power, and energy since the driver was loaded.

NVML API Reference: nvmlDeviceGetPowerUsage is an average of one second from Ampere on, but for GA100, whose value is of
25 ms in every 100 (Yang, Adamek, Armour, "Part-time power measurements", SC24, arXiv 2312.02741); new values come
about every 100 ms. A GPU that is split into instances (MIG) has one power; an instance has none.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.source import Reading, Sensor, timed

_MILLI = 1e-3
_REFRESH_S = 0.1
_AVERAGE_S = 1.0
_GA100_SHARE = "samples a quarter of the time (A100)"
_AMPERE = (8, 0)


def sensors() -> list[Sensor]:
    """A gauge and a counter of each GPU; nothing without the driver."""
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    except Exception:  # NVMLError of any kind, a library that cannot be loaded, a symbol that is missing
        return []
    return [sensor for index, handle in enumerate(handles) for sensor in _of_gpu(nvml, index, handle)]


def _of_gpu(nvml: Any, index: int, handle: Any) -> list[Sensor]:
    capability, is_split, name = None, False, f"GPU {index}"
    with suppress(nvml.NVMLError):
        capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    with suppress(nvml.NVMLError):
        is_split = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    with suppress(nvml.NVMLError):
        found = nvml.nvmlDeviceGetName(handle)
        name = f"GPU {index} ({found.decode('utf-8', 'replace') if isinstance(found, bytes) else found})"
    limit_W = None
    with suppress(nvml.NVMLError):
        limit_W = nvml.nvmlDeviceGetEnforcedPowerLimit(handle) * _MILLI
    notes = [_GA100_SHARE] if capability == _AMPERE else []
    if is_split:
        notes.append("of the whole GPU: an instance (MIG) has no power")
    window_s = None if capability is None else 0.0 if capability <= _AMPERE else _AVERAGE_S
    gauge = Sensor(
        f"nvml:gpu{index}/power",
        Scope.DEVICE,
        SourceKind.GAUGE,
        name,
        partial(_read, nvml, handle, is_counter=False),
        Supply.DC,
        window_s=window_s,
        refresh_s=_REFRESH_S,
        quantum=_MILLI,
        note="; ".join(notes),
        limit_W=limit_W,
    )
    counter = replace(
        gauge,
        name=f"nvml:gpu{index}/energy",
        kind=SourceKind.COUNTER,
        read=partial(_read, nvml, handle, is_counter=True),
        window_s=None,
    )
    return [gauge, counter]


def _read(nvml: Any, handle: Any, *, is_counter: bool) -> Reading:
    ask = nvml.nvmlDeviceGetTotalEnergyConsumption if is_counter else nvml.nvmlDeviceGetPowerUsage
    try:
        with timed() as request:
            value = ask(handle)
    except nvml.NVMLError as error:
        return request.reading(fault=f"the driver reports: {error}")
    return request.reading(**{"joules" if is_counter else "watts": value * _MILLI})
