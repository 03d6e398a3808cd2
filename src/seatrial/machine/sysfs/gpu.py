"""GPU names from the drivers, without their tools: /proc/driver/nvidia and amdgpu's product name.

The UUID and serial number of the GPU are in the same places and are not read.
"""

from __future__ import annotations

import re

from seatrial.machine.files import FileTree
from seatrial.machine.survey import FactBook, NamedPart
from seatrial.model.machine import DeviceKind

_NVIDIA = "/proc/driver/nvidia/gpus"


def survey_gpu_drivers(files: FileTree) -> tuple[NamedPart, ...]:
    """One part per GPU that a driver names, attached to its PCI function."""
    parts: list[NamedPart] = []
    version = _nvidia_version(files)
    for address in files.names(_NVIDIA):
        text = files.text(f"{_NVIDIA}/{address}/information") or ""
        book = FactBook()
        for fact, key in (("model_name", "Model"), ("video_bios", "Video BIOS")):
            match = re.search(rf"^{key}:[ \t]*(.+?)[ \t]*$", text, re.MULTILINE)
            book.say(fact, match[1] if match else None, f"{_NVIDIA}/{address}/information")
        book.say("driver_version", version, "/proc/driver/nvidia/version")
        parts.append(NamedPart(DeviceKind.GPU, "", address.lower(), facts=book.facts()))
    for address in files.names("/sys/bus/pci/drivers/amdgpu"):
        name = f"/sys/bus/pci/devices/{address}/product_name"
        book = FactBook()
        book.say("model_name", files.word(name), name)
        memory = f"/sys/bus/pci/devices/{address}/mem_info_vram_total"
        book.say("memory_total", files.integer(memory) or None, memory, "B")
        if book.facts():
            parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts()))
    return tuple(parts)


def _nvidia_version(files: FileTree) -> str | None:
    match = re.search(r"Kernel Module.*?\s(\d{3}\.\d+(?:\.\d+)?)\s", files.text("/proc/driver/nvidia/version") or "")
    return match[1] if match else None
