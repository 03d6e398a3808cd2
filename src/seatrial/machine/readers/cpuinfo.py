"""/proc/cpuinfo -> one record per CPU, for x86, Arm, POWER and similar architectures.

Each architecture writes its own keys: Linux, arch/x86/kernel/cpu/proc.c and arch/arm64/kernel/cpuinfo.c.
"""

from __future__ import annotations

from collections.abc import Collection

from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen

_VECTOR_ISA = (
    *("sse2", "sse4_2", "avx", "f16c", "fma", "fma4", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"),
    *("avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "sme", "bf16", "i8mm", "altivec", "vsx"),
)
"""Features that affect the width and rate of arithmetic, in display order."""

_ARM_IMPLEMENTERS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA",
    0x51: "Qualcomm", 0x61: "Apple", 0x6D: "Microsoft", 0xC0: "Ampere",
}  # fmt: skip
"""Main ID Register, implementer codes as util-linux 2.40 (sys-utils/lscpu-arm.c) lists them."""


class CpuRecord(Frozen):
    """One CPU as the kernel reports it. None is unknown; `implementer` and `part` are for Arm."""

    number: int
    vendor: str | None = None
    model_name: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    microcode: str | None = None
    implementer: int | None = None
    part: int | None = None
    flags: frozenset[str] = frozenset()
    clock_Hz: float | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether the CPU reports a hypervisor (CPUID.1:ECX[31]; x86 only)."""
        return "hypervisor" in self.flags


def vector_isa(flags: Collection[str]) -> str:
    """The vector features of a CPU, separated by spaces; the complete list of flags would fill a screen."""
    return " ".join(feature for feature in _VECTOR_ISA if feature in flags)


def read_cpuinfo(text: str) -> tuple[CpuRecord, ...]:
    """The CPUs in order. Raises ParseError for a line without a colon, an invalid number, or a file without CPUs."""
    blocks: list[dict[str, str]] = []
    common: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise ParseError("cpuinfo", number, line, "a line without a colon")
        key, value = key.strip(), value.strip()
        # Old Arm kernels write "Processor : ARMv7 ..." once at the top; a CPU begins with "processor : <number>".
        if key == "processor":
            if not (value.isascii() and value.isdecimal() and len(value) <= 6):
                raise ParseError("cpuinfo", number, line, "a CPU without a number")
            blocks.append({})
        (blocks[-1] if blocks else common)[key] = value
    if not blocks:
        raise ParseError("cpuinfo", 1 if text else None, text[:80], "no CPUs")
    return tuple(_record(common | block) for block in blocks)


def _record(block: dict[str, str]) -> CpuRecord:
    implementer = _integer(block.get("CPU implementer"))
    vendor = block.get("vendor_id")
    if vendor is None and implementer is not None:
        vendor = _ARM_IMPLEMENTERS.get(implementer, f"0x{implementer:02x}")
    return CpuRecord(
        number=int(block["processor"]),
        vendor=vendor or None,
        model_name=block.get("model name") or block.get("cpu") or None,
        family=_integer(block.get("cpu family")),
        model=_integer(block.get("model")),
        stepping=_integer(block.get("stepping")),
        microcode=block.get("microcode") or None,
        implementer=implementer,
        part=_integer(block.get("CPU part")),
        flags=frozenset((block.get("flags") or block.get("Features") or "").split()),
        clock_Hz=_megahertz(block.get("cpu MHz") or block.get("clock")),
    )


def _integer(text: str | None) -> int | None:
    """A number; None for "unknown" (old steppings) and any other text."""
    if not text or len(text) > 20:
        return None
    try:
        return int(text, 0)
    except ValueError:
        return None


def _megahertz(text: str | None) -> float | None:
    try:
        value = float((text or "").removesuffix("MHz"))
    except ValueError:
        return None
    return value * 1e6 if 0 < value < 1e6 else None
