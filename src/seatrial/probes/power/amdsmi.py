"""GPUs of AMD, through AMD SMI's Python package where it is installed, or in ROCm's folder: power, and energy since the
driver was loaded. Without it, hwmon has the power that the driver amdgpu shows.

AMD SMI Python API, amdsmi_get_power_info and amdsmi_get_energy_count: which of the current and the average power a GPU
reports depends on its generation. The counter steps by `counter_resolution` in microjoules; one that goes backwards was
seen (ROCm/amdsmi #38, #115). A GPU that is split into partitions has one power.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.source import Reading, Sensor, number, timed

_GAUGES = ("current_socket_power", "average_socket_power", "socket_power")
_COUNTERS = ("energy_accumulator", "power")
"""Names of the same value in its versions."""
_MOST_W = 1e4
"""More is how a version shows that there is no value: all bits set."""
_MICRO = 1e-6


def sensors() -> list[Sensor]:
    """A gauge and a counter of each GPU; nothing without driver or package."""
    try:
        smi = _package()
        smi.amdsmi_init()
        handles = list(smi.amdsmi_get_processor_handles())
    except Exception:  # its own exceptions, no library, a library without a symbol
        return []
    found: dict[str, list[Sensor]] = {}
    for index, handle in enumerate(handles):
        address = ""
        with suppress(smi.AmdSmiException):
            address = str(smi.amdsmi_get_gpu_device_bdf(handle)).lower()
        device = address.rpartition(".")[0] or str(index)
        if device not in found:  # the others are its partitions
            found[device] = _of_gpu(smi, len(found), handle, address)
    return [sensor for of_gpu in found.values() for sensor in of_gpu]


def _package() -> Any:
    """The package. It prints to stdout if it does not find its library."""
    in_rocm = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "share" / "amd_smi"
    with redirect_stdout(io.StringIO()):
        try:
            return importlib.import_module("amdsmi")
        except ModuleNotFoundError:
            sys.path.append(str(in_rocm))
            try:
                return importlib.import_module("amdsmi")
            finally:
                sys.path.remove(str(in_rocm))


def _of_gpu(smi: Any, index: int, handle: Any, address: str) -> list[Sensor]:
    gauge = Sensor(
        f"amdsmi:gpu{index}/power",
        Scope.DEVICE,
        SourceKind.GAUGE,
        f"GPU {index} ({address})" if address else f"GPU {index}",
        partial(_read, smi, smi.amdsmi_get_power_info, handle, _watts),
        Supply.DC,
        quantum=1.0,
        whole=f"GPU {address}" if address else "",
    )
    return [
        gauge,
        replace(
            gauge,
            name=f"amdsmi:gpu{index}/energy",
            kind=SourceKind.COUNTER,
            read=partial(_read, smi, smi.amdsmi_get_energy_count, handle, _joules),
            quantum=16 * _MICRO,
        ),
    ]


def _read(smi: Any, ask: Any, handle: Any, value: Any) -> Reading:
    try:
        with timed() as request:
            answer = ask(handle)
    except smi.AmdSmiException as error:
        return request.reading(fault=f"the driver reports: {error}".replace("\n", " ")[:200])
    found = value(answer)
    return request.reading(**found) if found else request.reading(fault="reports no value")


def _watts(answer: dict[str, Any]) -> dict[str, float]:
    values = [found for key in _GAUGES if (found := number(answer.get(key))) is not None and 0 < found < _MOST_W]
    return {"watts": values[0]} if values else {}


def _joules(answer: dict[str, Any]) -> dict[str, float]:
    counted = next((found for key in _COUNTERS if (found := number(answer.get(key))) is not None), None)
    resolution = number(answer.get("counter_resolution"))
    return {"joules": counted * resolution * _MICRO} if counted and resolution else {}
