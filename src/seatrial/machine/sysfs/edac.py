"""Memory modules from the EDAC drivers, which need no root (Linux, Documentation/ABI/testing/sysfs-devices-edac).

EDAC has the memory controller and channel of each module but no transfer rate.
"""

from __future__ import annotations

import re

from seatrial.machine.files import FileTree
from seatrial.machine.survey import FactBook, MemoryModule

_ROOT = "/sys/devices/system/edac/mc"
_SOCKET = re.compile(r"CPU_SrcID#(\d{1,3})_", re.ASCII)  # the label of the skx, i10nm and sb drivers
_CHANNEL = re.compile(r"channel (\d{1,3})\b", re.ASCII)


def survey_edac(files: FileTree, book: FactBook) -> tuple[MemoryModule, ...]:
    """The modules that EDAC lists. Adds `ecc_mode`, the mode of the controllers."""
    modules: list[MemoryModule] = []
    modes: set[str] = set()
    for controller in (name for name in files.names(_ROOT) if re.fullmatch(r"mc\d{1,4}", name)):
        # Some drivers list ranks (rank0, rank1, ...) instead of modules; these are skipped.
        for dimm in (name for name in files.names(f"{_ROOT}/{controller}") if re.fullmatch(r"dimm\d{1,4}", name)):
            folder = f"{_ROOT}/{controller}/{dimm}"
            size_mb = files.integer(f"{folder}/size")
            if not size_mb:
                continue
            label = files.word(f"{folder}/dimm_label") or dimm
            location = files.word(f"{folder}/dimm_location") or ""
            socket, channel = _SOCKET.search(label), _CHANNEL.search(location)
            modules.append(
                MemoryModule(
                    locator=label,
                    bank=f"{controller} {location}".strip(),
                    size_bytes=size_mb << 20,
                    memory_type=files.word(f"{folder}/dimm_mem_type"),
                    socket=int(socket[1]) if socket else None,
                    channel=f"{controller} channel {channel[1]}" if channel else None,
                    source=folder,
                )
            )
            mode = files.word(f"{folder}/dimm_edac_mode")
            if mode is not None:
                modes.add(mode)
    if modes:
        book.say("ecc_mode", ", ".join(sorted(modes)), f"{_ROOT}/mc*/dimm*/dimm_edac_mode")
    return tuple(modules)
