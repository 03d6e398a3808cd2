"""The table of microarchitectures: what a CPU cannot be asked, from documents, each value with its source.

A value is None where the documents do not settle it. Sources were looked up when an entry was written; what was only
remembered says "unconfirmed". The columns rest on:

* generation by family and model: Linux, arch/x86/kernel/cpu/amd.c (X86_FEATURE_ZEN1 .. 5) and asm/intel-family.h;
* FMA pipes and latency: LLVM's scheduling models (llvm/lib/Target/X86), which cite the vendors' guides and
  llvm-exegesis measurements; Arm's Software Optimization Guides, "ASIMD FP multiply accumulate";
* memory channels of a socket: Linux EDAC drivers (amd64_edac.c `max_mcs`; i10nm_base.c and skx_base.c,
  controllers x channels);
* one or two AVX-512 FMA units (Skylake, Cascade Lake): the Intel ARK list in github.com/jeffhammond/vpu-count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Vector:
    """The FMA hardware of a core: pipes, bits per pipe, cycles from an FMA to a dependent one; None is not settled.

    `confirmed` is False where the source says of one of them that it was not looked up.
    """

    pipes: int | None
    bits: int | None
    latency_cycles: int | None
    source: str
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Channels:
    """Memory channels of a socket for CPUs whose model name matches `name` (a regular expression)."""

    name: str
    count: int
    source: str
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class PackageMemory:
    """Memory in the processor's package, beside the modules, of CPUs whose model name matches `name`."""

    name: str
    memory: str
    source: str


@dataclass(frozen=True, slots=True)
class Microarchitecture:
    """One entry: `name` as people say it; `vectors` and `channels` are tried in order by pattern of the model name."""

    name: str
    named_by: str
    vectors: tuple[tuple[str, Vector], ...]
    channels: tuple[Channels, ...] = ()


_BY_AMD = "family and model: Linux arch/x86/kernel/cpu/amd.c"
_BY_INTEL = "family and model: Linux arch/x86/include/asm/intel-family.h"
_BY_ARM = "implementer and part: Linux arch/arm64/include/asm/cputype.h"
_ANY = r""

_HASWELL = Vector(2, 256, 5, "LLVM X86SchedHaswell.td: WriteFMAY on ports 0 and 1, latency 5")
_BROADWELL = Vector(2, 256, 5, "LLVM X86SchedBroadwell.td: as Haswell; unconfirmed", False)
_ZEN1 = Vector(2, 128, 5, "AMD Software Optimization Guide 55723: two 128-bit FMA pipes, latency 5; unconfirmed", False)
_ZEN2 = Vector(2, 256, 5, "LLVM X86ScheduleZnver2.td: WriteFMAY on FPU0 and FPU1, latency 5")
_ZEN3 = Vector(2, 256, 4, "LLVM X86ScheduleZnver3.td: WriteFMAY on two FMUL pipes, latency 4")
_ZEN4 = Vector(
    pipes=2,
    bits=256,
    latency_cycles=4,
    source="LLVM X86ScheduleZnver4.td after AMD Software Optimization Guide 57647: WriteFMAY on FP0 and FP1, "
    "latency 4; WriteFMAZ takes a 256-bit pipe for two cycles",
)
_ZEN5 = Vector(
    pipes=2,
    bits=512,
    latency_cycles=4,
    source="numberworld.org, Zen 5 AVX-512 teardown (2024): two 512-bit FMA pipes; on family 26 model 2 latency x "
    "pipes was measured as 8.0, at 256 as at 512 bits; guide: AMD 58455",
)
_ZEN5_MOBILE = Vector(
    2, 256, 4, "numberworld.org, Zen 5 AVX-512 teardown (2024): Strix Point has the 256-bit data path"
)
_ZEN5_UNSURE = Vector(None, None, 4, "256-bit or 512-bit data path: unconfirmed for this Zen 5 part", False)

_SKX_LATENCY = "latency 4: LLVM X86SchedSkylakeServer.td, WriteFMAZ"
_SKX_TWO = Vector(2, 512, 4, f"two AVX-512 FMA units: github.com/jeffhammond/vpu-count after Intel ARK; {_SKX_LATENCY}")
_SKX_ONE = Vector(1, 512, 4, f"one AVX-512 FMA unit: github.com/jeffhammond/vpu-count after Intel ARK; {_SKX_LATENCY}")
_SKX_UNSURE = Vector(None, None, 4, f"one or two AVX-512 FMA units: not settled for this model; {_SKX_LATENCY}")
_ICX = Vector(
    2, 512, 4, "Intel Optimization Reference Manual 248966, Ice Lake server: FMA on ports 0 and 5; unconfirmed", False
)
_SPR = Vector(
    pipes=2,
    bits=512,
    latency_cycles=4,
    source="Intel Optimization Reference Manual 248966, Golden Cove server: 512-bit FMA on ports 0 and 5, unconfirmed; "
    "latency 4: LLVM X86SchedSapphireRapids.td",
    confirmed=False,
)
_GNR = Vector(
    2, 512, None, "Intel Optimization Reference Manual 248966, Redwood Cove: as Golden Cove; unconfirmed", False
)

_SKYLAKE_VECTORS = (
    (r"Xeon\(R\) (Platinum 8[12]|Gold 6[12]|Gold 5[12]22)", _SKX_TWO),
    (r"Xeon\(R\) Platinum 92\d\d", _SKX_TWO),
    (r"Xeon\(R\) W-[23][12]\d\d|Core\(TM\) i[79]-(78[02]0|79[024680]0|109[0248]0)X", _SKX_TWO),
    (r"Xeon\(R\) (Gold 51(15|18|19|20)|Gold 52(15|17|18|20)|Silver 4[12]|Bronze 3[12])", _SKX_ONE),
    (_ANY, _SKX_UNSURE),
)
_SCALABLE = r"Xeon\(R\) (Platinum|Gold|Silver|Bronze) (?!92)"  # Platinum 9200 has two dies with 6 channels each
_SKX_CHANNELS = (Channels(_SCALABLE, 6, "Linux drivers/edac/skx_base.c: 2 controllers x 3 channels"),)
SKYLAKE = Microarchitecture("Skylake-SP", _BY_INTEL, _SKYLAKE_VECTORS, _SKX_CHANNELS)
CASCADE_LAKE = replace(SKYLAKE, name="Cascade Lake")
COOPER_LAKE = Microarchitecture("Cooper Lake", _BY_INTEL, ((_ANY, _SKX_UNSURE),), _SKX_CHANNELS)


def _amd(name: str, vector: Vector, *channels: Channels) -> Microarchitecture:
    return Microarchitecture(name, _BY_AMD, ((_ANY, vector),), channels)


def _intel(name: str, vector: Vector, *channels: Channels) -> Microarchitecture:
    return Microarchitecture(name, _BY_INTEL, ((_ANY, vector),), channels)


def _arm(name: str, vector: Vector) -> Microarchitecture:
    return Microarchitecture(name, _BY_ARM, ((_ANY, vector),))


_AMD64_EDAC = "Linux drivers/edac/amd64_edac.c, max_mcs"
_NAPLES = Channels(r"EPYC 7\d\d1", 8, f"{_AMD64_EDAC} = 2 in each of the package's 4 dies")
_ROME = Channels(r"EPYC", 8, f"{_AMD64_EDAC} = 8 (F17h_M30h)")
_MILAN = Channels(r"EPYC", 8, f"{_AMD64_EDAC} = 8 (F19h)")
_GENOA = Channels(r"EPYC", 12, f"{_AMD64_EDAC} = 12 (F19h_M10h)")
_BERGAMO = Channels(r"EPYC 9", 12, f"{_AMD64_EDAC} = 12 (F19h_MA0h)")
_SIENA = Channels(r"EPYC 8\d\d4", 6, "Lenovo pubs, SE455 V3 (EPYC 8004): six slots, one in each of its channels")
_TURIN = Channels(r"EPYC(?! 8)", 12, f"{_AMD64_EDAC} = 12 (F1Ah models 00h-1Fh)")

AMD: tuple[tuple[int, range, Microarchitecture], ...] = (
    (0x17, range(0x00, 0x10), _amd("Zen", _ZEN1, _NAPLES)),
    (0x17, range(0x10, 0x30), _amd("Zen", _ZEN1)),
    (0x17, range(0x30, 0x40), _amd("Zen 2", _ZEN2, _ROME)),
    (0x17, range(0x40, 0x50), _amd("Zen 2", _ZEN2)),
    (0x17, range(0x50, 0x60), _amd("Zen", _ZEN1)),
    (0x17, range(0x60, 0x80), _amd("Zen 2", _ZEN2)),
    (0x17, range(0x90, 0x92), _amd("Zen 2", _ZEN2)),
    (0x17, range(0xA0, 0xB0), _amd("Zen 2", _ZEN2)),
    (0x19, range(0x00, 0x10), _amd("Zen 3", _ZEN3, _MILAN)),
    (0x19, range(0x10, 0x20), _amd("Zen 4", _ZEN4, _GENOA)),
    (0x19, range(0x20, 0x60), _amd("Zen 3", _ZEN3)),
    (0x19, range(0x60, 0xA0), _amd("Zen 4", _ZEN4)),
    (0x19, range(0xA0, 0xB0), _amd("Zen 4c", _ZEN4, _BERGAMO, _SIENA)),
    (0x1A, range(0x00, 0x10), _amd("Zen 5", _ZEN5, _TURIN)),
    (0x1A, range(0x10, 0x20), _amd("Zen 5c", _ZEN5, _TURIN)),
    (0x1A, range(0x20, 0x30), _amd("Zen 5", _ZEN5_MOBILE)),
    (0x1A, range(0x40, 0x50), _amd("Zen 5", _ZEN5)),
    (0x1A, range(0x60, 0x80), _amd("Zen 5", _ZEN5_UNSURE)),
)
"""(family, models, entry). Client parts have channels by board and product, so none is said of them."""

_I10NM = "Linux drivers/edac/i10nm_base.c: 4 controllers x 2 channels"
# (?i): firmware of these generations writes "INTEL(R) XEON(R) GOLD 6526Y", and SMBIOS passes that on.
_E5 = Channels(r"Xeon\(R\) CPU E5-[124]6\d\d", 4, "Dell PowerEdge R730xd Owner's Manual: 4 channels to each processor")
_ICX_CHANNELS = Channels(r"(?i)Xeon\(R\) (Platinum|Gold|Silver)", 8, _I10NM)
_SPR_CHANNELS = Channels(r"(?i)Xeon\(R\) (Platinum|Gold|Silver|Bronze|CPU Max|Max)", 8, _I10NM)
_GNR_12 = Channels(r"(?i)Xeon\(R\) 69\d\d", 12, "Intel Xeon 6900P product brief: 12 channels; unconfirmed", False)
_GNR_8 = Channels(r"(?i)Xeon\(R\) 6[57]\d\d", 8, "Lenovo Press LP2272: eight channels of 6500P and 6700P")

INTEL: dict[int, Microarchitecture] = {
    **dict.fromkeys((0x3C, 0x45, 0x46), _intel("Haswell", _HASWELL)),
    0x3F: _intel("Haswell-EP", _HASWELL, _E5),
    **dict.fromkeys((0x3D, 0x47, 0x56), _intel("Broadwell", _BROADWELL)),
    0x4F: _intel("Broadwell-EP", _BROADWELL, _E5),
    0x6A: _intel("Ice Lake-SP", _ICX, _ICX_CHANNELS),
    0x8F: _intel("Sapphire Rapids", _SPR, _SPR_CHANNELS),
    0xCF: _intel("Emerald Rapids", _SPR, _SPR_CHANNELS),
    0xAD: _intel("Granite Rapids", _GNR, _GNR_12, _GNR_8),
}
"""Model of family 6 -> entry. Model 0x55 is three by stepping and stands apart."""

PACKAGE_MEMORY = (
    PackageMemory(
        r"Xeon\(R\) (CPU )?Max\b", "HBM2e", "Intel Xeon CPU Max Series product brief: 64 GB HBM2e; unconfirmed"
    ),
    PackageMemory(
        r"Xeon Phi\(TM\) (CPU )?72\d\d", "MCDRAM", "Intel Xeon Phi x200 product brief: 16 GB MCDRAM; unconfirmed"
    ),
)
"""By model name alone: the model number is that of processors without it (Xeon Max is a Sapphire Rapids)."""

_SOG = "Software Optimization Guide, ASIMD FP multiply accumulate: latency 4"
ARM: dict[tuple[int, int], Microarchitecture] = {
    (0x41, 0xD0C): _arm("Neoverse N1", Vector(2, 128, 4, f"Arm Neoverse N1 {_SOG}, pipes V0 and V1")),
    (0x41, 0xD40): _arm(
        "Neoverse V1", Vector(4, 128, 4, f"Arm Neoverse V1 {_SOG}, 4 per cycle; SVE joins pipes to 256 bits")
    ),
    (0x41, 0xD49): _arm("Neoverse N2", Vector(2, 128, 4, f"Arm Neoverse N2 {_SOG}, 2 per cycle")),
    (0x41, 0xD4F): _arm("Neoverse V2", Vector(4, 128, 4, f"Arm Neoverse V2 {_SOG}, 4 per cycle")),
    (0x46, 0x001): _arm(
        "A64FX", Vector(2, 512, 9, "Fujitsu A64FX Microarchitecture Manual: FLA and FLB, latency 9; unconfirmed", False)
    ),
}
"""(implementer, part) of the Main ID Register -> entry. Grace is Neoverse V2; Graviton 2, 3 and 4 are N1, V1 and V2."""
