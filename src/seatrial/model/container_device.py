"""Devices that a container gets: those of a vendor with its driver's libraries, or by their CDI name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen

NVIDIA, ROCM = "nvidia", "rocm"
ACCEPTED_DEVICE = (
    f"{NVIDIA}, {ROCM}, or a CDI name such as nvidia.com/gpu=all (Container Device Interface: vendor/class=device)"
)
_CDI = re.compile(
    r"(?P<vendor>[A-Za-z0-9][A-Za-z0-9.-]{0,126})/[A-Za-z0-9][A-Za-z0-9_-]{0,62}=[A-Za-z0-9][A-Za-z0-9_.:-]{0,126}"
)
"""Vendor, class and device (Container Device Interface specification, "CDI JSON Specification"), without what could
end the option that they stand in."""
_OF_VENDOR = {"nvidia.com": NVIDIA, "amd.com": ROCM}


class Device(Frozen):
    """`is_cdi`: named as the Container Device Interface does; else `name` is `nvidia` or `rocm`."""

    name: str
    is_cdi: bool

    @property
    def kind(self) -> str | None:
        """`nvidia` or `rocm`; None for others."""
        return self.name if not self.is_cdi else _OF_VENDOR.get(self.name.partition("/")[0])


def devices_of(names: Iterable[str]) -> tuple[Device, ...]:
    """The devices of these names. Raises UsageError for what is neither."""
    return tuple(map(_device, dict.fromkeys(names)))


def _device(name: str) -> Device:
    if name in (NVIDIA, ROCM):
        return Device(name, is_cdi=False)
    if not _CDI.fullmatch(name):
        raise UsageError(f"{name[:200]!r} is not a device", f"it takes {ACCEPTED_DEVICE}")
    return Device(name, is_cdi=True)
