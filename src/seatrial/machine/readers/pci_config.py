"""The configuration space of a PCI function -> its kind of port, payload and request sizes, ordering, access control.

Format: PCI Express Base Specification 5.0, 7.5.1.1 (header), 7.5.3 (PCI Express capability), 7.6.3 (extended
capabilities), 7.7.8 (access control services); PCI Local Bus Specification 3.0, 6.7 (list of capabilities). Linux shows
users without privileges only the first 64 bytes, in which no capability is.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.frozen import Frozen

_HAS_CAPABILITIES = 0x10
_EXPRESS = 0x10
_ACS = 0x000D
_FIRST_EXTENDED = 0x100
_MOST_CAPABILITIES = 48  # 192 bytes hold no more; an endless list ends here
_MOST_EXTENDED = 480

_PORTS = {
    0: "Endpoint", 1: "Legacy Endpoint", 4: "Root Port", 5: "Upstream Port", 6: "Downstream Port",
    7: "PCI-Express to PCI/PCI-X Bridge", 8: "PCI/PCI-X to PCI-Express Bridge", 9: "Root Complex Integrated Endpoint",
    10: "Root Complex Event Collector",
}  # fmt: skip
"""Device/port type -> its name as lspci writes it."""

_ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
_SETTINGS = 0x70F0
"""The bits of Device Control with relaxed ordering, payload and read request. Virtual functions do not implement them:
they read as 0 (Single Root I/O Virtualization 1.1, Device Control). Of other endpoints, not all are 0 after a reset."""

_REDIRECTS = 1 << _ACS_BITS.index("ReqRedir")


class ExpressSettings(Frozen):
    """Sizes in bytes; None is unknown. `acs` is the control register as lspci writes it, `acs_redirects` whether
    requests between devices below the port go through the root complex."""

    port: str | None = None
    max_payload: int | None = None
    payload: int | None = None
    read_request: int | None = None
    relaxed_ordering: bool | None = None
    acs: str | None = None
    acs_redirects: bool | None = None


def read_pci_config(data: bytes) -> ExpressSettings:
    """The settings in a configuration space of up to 4096 bytes; nothing of what is cut off. Never fails."""
    if len(data) < 64 or data[:2] == b"\xff\xff" or not _word(data, 0x06) & _HAS_CAPABILITIES:
        return ExpressSettings()
    express = next((at for number, at in _capabilities(data) if number == _EXPRESS and at + 10 <= len(data)), None)
    if express is None:
        return ExpressSettings()
    can, control = _word(data, express + 4), _word(data, express + 8)
    acs_at = next((at for number, at in _extended(data) if number == _ACS and at + 8 <= len(data)), None)
    acs = None if acs_at is None else _word(data, acs_at + 6)
    port = _PORTS.get(_word(data, express + 2) >> 4 & 0xF)
    is_set = port is None or "Endpoint" not in port or bool(control & _SETTINGS)
    return ExpressSettings(
        port=port,
        max_payload=_size(can & 7),
        payload=_size(control >> 5 & 7) if is_set else None,
        read_request=_size(control >> 12 & 7) if is_set else None,
        relaxed_ordering=bool(control & 0x10) if is_set else None,
        acs=None
        if acs is None
        else " ".join(f"{n}{'+' if acs >> bit & 1 else '-'}" for bit, n in enumerate(_ACS_BITS)),
        acs_redirects=None if acs is None else bool(acs & _REDIRECTS),
    )


def _size(code: int) -> int | None:
    """128 B to 4096 B; codes 6 and 7 are reserved."""
    return 128 << code if code < 6 else None


def _capabilities(data: bytes) -> Iterator[tuple[int, int]]:
    """(number, offset) of each capability."""
    at = data[0x34] & 0xFC
    for _ in range(_MOST_CAPABILITIES):
        if at < 0x40 or at + 2 > min(len(data), 256) or data[at] == 0xFF:
            return
        yield data[at], at
        at = data[at + 1] & 0xFC


def _extended(data: bytes) -> Iterator[tuple[int, int]]:
    """(number, offset) of each extended capability."""
    at = _FIRST_EXTENDED
    for _ in range(_MOST_EXTENDED):
        if at < _FIRST_EXTENDED or at + 4 > len(data):
            return
        header = int.from_bytes(data[at : at + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return
        yield header & 0xFFFF, at
        at = header >> 20 & 0xFFC


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")
