"""The devices of a machine as drivers report them: a measuring program lists them, since it loads the drivers anyway.

`lacking_gpu` checks without a program whether there is any driver.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from seatrial.environments.asking import ask
from seatrial.errors import BuildError, ParseError
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import pci_address

AUTO = "auto"
HOW_TO_GET_ONE = (
    "install the driver of the GPU, or PoCL, which runs OpenCL on any CPU (Debian: pocl-opencl-icd ocl-icd-libopencl1)"
)
_ASKING_LIMIT_S = 60.0
_VENDORS = Path("/etc/OpenCL/vendors")
_PCI_DEVICES = Path("/sys/bus/pci/devices")


class NoGpuError(BuildError):
    """There is no such device: `need` is one word for what is missing (driver, device, ...)."""

    def __init__(self, need: str, why: str) -> None:
        super().__init__(why)
        self.need = need


class Gpu(Frozen):
    """One device of one backend; `facts` is everything that its driver reports (native/device/facts.hpp)."""

    backend: str
    index: int
    name: str
    driver: str
    facts: Mapping[str, Any]
    local_cpus: frozenset[int] = frozenset()
    """Its local CPUs by sysfs; empty if unknown."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The device's part of an experiment's identity."""
        return {"backend": self.backend, "index": self.index, "name": self.name, "driver": self.driver}


class Gpus(Frozen):
    """The devices that a program found, and why a backend has none (backend -> (need, why))."""

    devices: tuple[Gpu, ...]
    absent: Mapping[str, tuple[str, str]]

    def of(self, backend: str) -> tuple[Gpu, ...]:
        """The devices of a backend; for `auto`, those of the first backend that has any, CUDA before OpenCL.

        Raises NoGpuError if there is none.
        """
        wanted = ("cuda", "opencl") if backend == AUTO else (backend,)
        for name in wanted:
            if found := tuple(device for device in self.devices if device.backend == name):
                return found
        reasons = [self.absent[name] for name in wanted if name in self.absent]
        need = reasons[-1][0] if reasons else "device"
        why = "; ".join(f"{name}: {self.absent[name][1]}" for name in wanted if name in self.absent)
        raise NoGpuError(need, why or f"no {backend} device found; {HOW_TO_GET_ONE}")


def find_gpus(program: Path, variables: Mapping[str, str]) -> Gpus:
    """The devices that a measuring program finds. Raises BuildError if it fails."""
    answer = ask([str(program), "--list"], environment=variables, limit_s=_ASKING_LIMIT_S)
    try:
        document = json.loads(answer.stdout)
        return Gpus(
            tuple(
                Gpu(each["backend"], int(each["index"]), each["name"], each["driver"], each, local_cpus(each["pci"]))
                for each in document["devices"]
            ),
            {each["backend"]: (each["need"], each["why"]) for each in document["absent"]},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{program} did not list the devices of this machine: {error!r}") from error


def local_cpus(address: str, folder: Path = _PCI_DEVICES) -> frozenset[int]:
    """The CPUs local to the device at a PCI address (Linux, Documentation/ABI/testing/sysfs-bus-pci:
    local_cpulist); empty if unknown."""
    known = pci_address(address)
    if known is None:
        return frozenset()
    try:
        return frozenset(read_cpu_list((folder / known / "local_cpulist").read_text("ascii")))
    except (OSError, ValueError, ParseError):
        return frozenset()


def lacking_gpu() -> str | None:
    """Why no device can be measured here, judged by files alone; None if there is a driver."""
    with suppress(OSError):
        if any(_VENDORS.glob("*.icd")):
            return None
    return None if Path("/dev/nvidiactl").exists() else f"no GPU driver and no PoCL found; {HOW_TO_GET_ONE}"
