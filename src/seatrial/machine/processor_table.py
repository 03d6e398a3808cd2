"""The table of processors, a row for each generation: facts that a CPU does not report, from documents, with sources.

A value that the documents do not settle is None or missing, never guessed. A value that was not checked in the document
is marked "unconfirmed". Patterns are searched, ignoring case, in the model name without "(R)", "(TM)" and "CPU" ("Intel
Xeon Gold 6142 @ 2.60GHz"); the first match counts. Sources of the columns:

* generation by family and model: Linux, arch/x86/kernel/cpu/amd.c (X86_FEATURE_ZEN1 .. 5) and asm/intel-family.h;
* FMA pipes and latency: LLVM's scheduling models (llvm/lib/Target/X86), which cite the vendors' guides and
  llvm-exegesis measurements; Arm's Software Optimization Guides, "ASIMD FP multiply accumulate";
* memory channels per socket: Linux EDAC drivers (amd64_edac.c `max_mcs`; i10nm_base.c and skx_base.c,
  controllers x channels);
* one or two AVX-512 FMA units (Skylake, Cascade Lake): the Intel ARK list in github.com/jeffhammond/vpu-count;
* highest memory speed by model number: "Memory Types" of Intel ARK and "System Memory Specification" of AMD's product
  pages, as listed in July 2023 (github.com/felixsteinke/cpu-spec-dataset) and 2024 (github.com/toUpperCase78/
  intel-processors); of two values the higher, with one module per channel.
"""

from __future__ import annotations

from collections.abc import Collection

from seatrial.model.frozen import Frozen


class Cpuid(Frozen):
    """Family and models of an x86 CPU; `steppings` is None for all."""

    vendor: str
    family: int
    models: Collection[int]
    steppings: Collection[int] | None = None


class MainId(Frozen):
    """Implementer and part of an Arm CPU's Main ID Register."""

    implementer: int
    part: int


class Vector(Frozen):
    """The FMA hardware of a core: pipes, bits per pipe, cycles from an FMA to a dependent one; None is unknown."""

    pipes: int | None
    bits: int | None
    latency_cycles: int | None
    source: str


class Channels(Frozen):
    """Memory channels per socket."""

    count: int
    source: str


class Interleaving(Frozen):
    """Which populations of a socket with this number of channels interleave as one set.

    `balanced` and `near` are numbers of modules per socket, `subsets` the numbers of channels, fewer than all, that
    still form one set; `loss` is the published loss of other populations.
    """

    channels: int
    balanced: tuple[int, ...]
    near: tuple[int, ...]
    subsets: frozenset[int]
    source: str
    loss: str = ""


class PackageMemory(Frozen):
    """Memory in the processor package, in addition to the modules, of models whose name matches `model`."""

    model: str
    memory: str
    source: str


class Processor(Frozen):
    """One generation. `name` is its microarchitecture, None if a row covers several.

    It is identified by `ids`, or by `models`, a pattern of the model name, which every source has. `vectors`,
    `channels` and `memory_MTps` (the highest speed that the memory controllers support) depend on the model name.
    """

    name: str | None
    ids: tuple[Cpuid | MainId, ...] = ()
    ids_source: str = ""
    models: str | None = None
    vectors: tuple[tuple[str, Vector], ...] = ()
    channels: tuple[tuple[str, Channels], ...] = ()
    memory_MTps: tuple[tuple[str, float], ...] = ()
    interleaving: Interleaving | None = None
    package_memory: PackageMemory | None = None


_ANY = r""
_LINUX_AMD = "family and model: Linux arch/x86/kernel/cpu/amd.c"
_LINUX_INTEL = "family and model: Linux arch/x86/include/asm/intel-family.h"
_LINUX_ARM = "implementer and part: Linux arch/arm64/include/asm/cputype.h"
_SCALABLE = r"Xeon (?:Platinum|Gold|Silver|Bronze) "


def _intel(*models: int, steppings: Collection[int] | None = None) -> tuple[Cpuid, ...]:
    return (Cpuid("GenuineIntel", 6, models, steppings),)


def _amd(family: int, *models: range) -> tuple[Cpuid, ...]:
    return tuple(Cpuid("AuthenticAMD", family, some) for some in models)


_SKX_LATENCY = "latency 4: LLVM X86SchedSkylakeServer.td, WriteFMAZ"
_SKX_TWO = Vector(2, 512, 4, f"two AVX-512 FMA units: github.com/jeffhammond/vpu-count after Intel ARK; {_SKX_LATENCY}")
_SKX_ONE = Vector(1, 512, 4, f"one AVX-512 FMA unit: github.com/jeffhammond/vpu-count after Intel ARK; {_SKX_LATENCY}")
_SKX_UNSURE = Vector(None, None, 4, f"one or two AVX-512 FMA units: not settled for this model; {_SKX_LATENCY}")
_SKYLAKE_VECTORS = (
    (r"Xeon (Platinum 8[12]|Gold 6[12]|Gold 5[12]22|Platinum 92\d\d)", _SKX_TWO),
    (r"Xeon W-[23][12]\d\d|Core i[79]-(78[02]0|79[024680]0|109[0248]0)X", _SKX_TWO),
    (r"Xeon (Gold 51(15|18|19|20)|Gold 52(15|17|18|20)|Silver 4[12]|Bronze 3[12])", _SKX_ONE),
    (_ANY, _SKX_UNSURE),
)
_SPR_VECTOR = Vector(
    pipes=2,
    bits=512,
    latency_cycles=4,
    source="Intel Optimization Reference Manual 248966, Golden Cove server: 512-bit FMA on ports 0 and 5, unconfirmed; "
    "latency 4: LLVM X86SchedSapphireRapids.td",
)
_BROADWELL_VECTOR = Vector(2, 256, 5, "LLVM X86SchedBroadwell.td: as Haswell; unconfirmed")
_HASWELL_VECTOR = Vector(2, 256, 5, "LLVM X86SchedHaswell.td: WriteFMAY on ports 0 and 1, latency 5")
_ZEN4_VECTOR = Vector(
    pipes=2,
    bits=256,
    latency_cycles=4,
    source="LLVM X86ScheduleZnver4.td after AMD Software Optimization Guide 57647: WriteFMAY on FP0 and FP1, "
    "latency 4; WriteFMAZ takes a 256-bit pipe for two cycles",
)
_ZEN5_VECTOR = Vector(
    pipes=2,
    bits=512,
    latency_cycles=4,
    source="numberworld.org, Zen 5 AVX-512 teardown (2024): two 512-bit FMA pipes; on family 26 model 2 latency x "
    "pipes was measured as 8.0, at 256 as at 512 bits; guide: AMD 58455",
)
_SOG = "Software Optimization Guide, ASIMD FP multiply accumulate: latency 4"

# The Platinum 9200 has two dies with 6 channels each.
_SKX_CHANNELS = ((_SCALABLE + r"(?!92)", Channels(6, "Linux drivers/edac/skx_base.c: 2 controllers x 3 channels")),)
_I10NM = Channels(8, "Linux drivers/edac/i10nm_base.c: 4 controllers x 2 channels")
_E5_CHANNELS = (
    (r"Xeon E5-[124]6\d\d", Channels(4, "Dell PowerEdge R730xd Owner's Manual: 4 channels to each processor")),
)
_XEON_6 = Channels(8, "Lenovo Press LP2272: eight channels of 6500P and 6700P")
_AMD64_EDAC = "Linux drivers/edac/amd64_edac.c, max_mcs"
_TURIN = Channels(12, f"{_AMD64_EDAC} = 12 (F1Ah models 00h-1Fh)")
_ARK = "Intel ARK, Max # of Memory Channels; unconfirmed"

DELL_XEON = "Dell, Balanced Memory with 2nd Generation Intel Xeon Scalable Processors (2019)"
_LOSS_UP_TO_A_THIRD = f"up to 33 % of the bandwidth is lost ({DELL_XEON})"
_SIX_CHANNELS = Interleaving(
    6, (6, 12), (), frozenset(),
    "Lenovo Press LP1089, Balanced Memory Configurations with 2nd Gen Intel Xeon Scalable Processors",
    f"measured: 35 to 65 % lost (Lenovo Press, 1st generation Xeon Scalable); {_LOSS_UP_TO_A_THIRD}",
)  # fmt: skip
_ICE_LAKE = Interleaving(
    8, (8, 16), (4,), frozenset({4}),
    "Lenovo Press LP1517, Balanced Memory Configurations for 2-Socket Servers with 3rd-Gen Intel Xeon Scalable",
)  # fmt: skip
_4TH_AND_5TH_GEN = Interleaving(
    8, (8, 16), (4,), frozenset({4}),
    "Lenovo Press, Balanced Memory Configurations for 2-Socket Servers with 4th and 5th Gen Intel Xeon Scalable",
)  # fmt: skip
_XEON_6_SETS = Interleaving(
    8, (8, 16), (4,), frozenset({4}),
    "Lenovo Press LP2272, Balanced Memory Configurations for 2-Socket Servers with Intel Xeon 6",
)  # fmt: skip
_ROME = Interleaving(
    8, (8, 16), (4, 12), frozenset({4}),
    "Dell, Balanced Memory with 2nd Generation AMD EPYC Processors for PowerEdge Servers; Lenovo Press LP1268",
)  # fmt: skip
_MILAN = Interleaving(
    8, (8, 16), (4, 6, 12), frozenset({4, 6}),
    "Lenovo Press LP1268, Balanced Memory Configurations with 2nd Gen and 3rd Gen AMD EPYC Processors",
)  # fmt: skip
_TWELVE_CHANNELS = Interleaving(
    12, (12, 24), (6, 8, 10), frozenset({6, 8, 10}),  # 2 and 4 interleave too, but most channels are empty
    "Lenovo Press LP2283, Balanced Memory Configurations with 5th Generation AMD EPYC Processors, and its 4th "
    "generation paper; AMD 4th Gen EPYC Processor Architecture: channels interleave by 2, 4, 6, 8, 10 or 12",
)  # fmt: skip

_EPYC_7 = r"EPYC 7(?:[0-9][0-9]|[A-Z][0-9]|[0-9][A-Z])"  # and the number of the generation

PROCESSORS: tuple[Processor, ...] = (
    Processor(
        "Skylake-SP", _intel(0x55, steppings=range(5)), _LINUX_INTEL,  # steppings: Intel 338848, 338854
        models=_SCALABLE + r"[3-8]1\d\d", vectors=_SKYLAKE_VECTORS, channels=_SKX_CHANNELS, interleaving=_SIX_CHANNELS,
        memory_MTps=(
            (r"Gold 5122|Xeon D-21[78]7NT", 2666), (r"Gold 51|Silver 41|Xeon D-21[28]3IT", 2400),
            (r"Bronze 31|Xeon D-21", 2133), (r"Xeon", 2666),
        ),
    ),
    Processor(
        "Cascade Lake", _intel(0x55, steppings=range(5, 8)), _LINUX_INTEL, models=_SCALABLE + r"[3-8]2\d\d",
        vectors=_SKYLAKE_VECTORS, channels=_SKX_CHANNELS, interleaving=_SIX_CHANNELS,
        memory_MTps=(
            (r"Gold 5222", 2933), (r"Gold 52|Xeon W-(2223|322[35])", 2666), (r"Silver 42|Gold 62[26]2V", 2400),
            (r"Bronze 32", 2133), (r"Xeon", 2933),
        ),
    ),
    Processor(
        "Cooper Lake", _intel(0x55, steppings=range(8, 16)), _LINUX_INTEL, models=_SCALABLE + r"[5-8]3\d\dHL?\b",
        vectors=((_ANY, _SKX_UNSURE),), channels=_SKX_CHANNELS, interleaving=_SIX_CHANNELS,
        memory_MTps=((r"Gold 53", 2666), (r"Gold 63|Platinum 8356H", 2933), (r"Xeon", 3200)),
    ),
    Processor(
        "Ice Lake-SP", _intel(0x6A), _LINUX_INTEL, models=_SCALABLE + r"[4-8]3\d\d",
        vectors=((_ANY, Vector(
            2, 512, 4,
            "Intel Optimization Reference Manual 248966, Ice Lake server: FMA on ports 0 and 5; unconfirmed")),),
        channels=((r"Xeon (Platinum|Gold|Silver)", _I10NM),), interleaving=_ICE_LAKE,
        memory_MTps=(
            (r"Silver 43|Gold (5318N|6330N|6338N)", 2666), (r"Gold (53|6330)|Platinum (8351N|8352V)", 2933),
            (r"Xeon", 3200),
        ),
    ),
    Processor(
        "Sapphire Rapids", _intel(0x8F), _LINUX_INTEL, models=_SCALABLE + r"[3-8]4\d\d|Xeon Max\b",
        vectors=((_ANY, _SPR_VECTOR),),
        channels=((r"Xeon (Platinum|Gold|Silver|Bronze|Max)", _I10NM),), interleaving=_4TH_AND_5TH_GEN,
        memory_MTps=(
            (r"Silver 44|Bronze 34|Gold (54[23]3N|[56]403N)", 4000),
            (r"Gold (54|64(21|28|23|33|43)N|6430)|Silver 45|Bronze 35|w3-24", 4400), (r"Xeon", 4800),
        ),
        package_memory=PackageMemory(
            r"Xeon Max\b", "HBM2e", "Intel Xeon CPU Max Series product brief: 64 GB HBM2e; unconfirmed"
        ),
    ),
    Processor(
        "Emerald Rapids", _intel(0xCF), _LINUX_INTEL, models=_SCALABLE + r"[3-8]5\d\d",
        vectors=((_ANY, _SPR_VECTOR),),
        channels=((r"Xeon (Platinum|Gold|Silver|Bronze|Max)", _I10NM),), interleaving=_4TH_AND_5TH_GEN,
        memory_MTps=(
            (r"Silver 45|Bronze 35", 4400), (r"Gold (55|653[04]\b)|Platinum (8571N|8581V|8592V)", 4800),
            (r"Gold 65|Platinum (8558|8562Y)", 5200), (r"Xeon", 5600),
        ),
    ),
    # Speed with MRDIMMs: ServeTheHome, Xeon 6900P launch (2024): 8800; Supermicro X14 SuperBlade, 6700 and 6500: 8000.
    Processor(
        "Granite Rapids", _intel(0xAD), _LINUX_INTEL, models=r"Xeon 6[579]\d\dP",
        vectors=((_ANY, Vector(
            2, 512, None, "Intel Optimization Reference Manual 248966, Redwood Cove: as Golden Cove; unconfirmed")),),
        channels=(
            (r"Xeon 69\d\d", Channels(12, "Intel Xeon 6900P product brief: 12 channels; unconfirmed")),
            (r"Xeon 6[57]\d\d", _XEON_6),
        ),
        interleaving=_XEON_6_SETS,
        memory_MTps=((r"Xeon 69\d\dP", 8800), (r"Xeon 6[57]\d\dP", 8000)),
    ),
    # Speed: heise, Xeon 6700E (June 2024): at most DDR5-6400.
    Processor(
        "Sierra Forest", models=r"Xeon 67\d\dE", interleaving=_XEON_6_SETS,
        channels=((r"Xeon 67\d\dE", Channels(8, "Lenovo Press LP2272: eight channels of Intel Xeon 6")),),
        memory_MTps=((r"Xeon 67\d\dE", 6400),),
    ),
    Processor("Broadwell", _intel(0x3D, 0x47, 0x56), _LINUX_INTEL, vectors=((_ANY, _BROADWELL_VECTOR),)),
    Processor(
        "Broadwell-EP", _intel(0x4F), _LINUX_INTEL, models=r"Xeon E5-[124]6\d\d[A-Z]? v4",
        vectors=((_ANY, _BROADWELL_VECTOR),), channels=_E5_CHANNELS,
        memory_MTps=(
            (r"E5-260[389]|Xeon E7", 1866), (r"E5-26(18L|20|23|28L|30|40)", 2133), (r"Xeon", 2400),
        ),
    ),
    Processor("Haswell", _intel(0x3C, 0x45, 0x46), _LINUX_INTEL, vectors=((_ANY, _HASWELL_VECTOR),)),
    Processor(
        "Haswell-EP", _intel(0x3F), _LINUX_INTEL, models=r"Xeon E5-[124]6\d\d[A-Z]? v3",
        vectors=((_ANY, _HASWELL_VECTOR),), channels=_E5_CHANNELS,
        memory_MTps=(
            (r"E5-260[39]", 1600), (r"E5-26(08L|18L|20|23|28L|30|40)|Xeon E7", 1866), (r"Xeon", 2133),
        ),
    ),
    Processor(None, models=r"Xeon E5-[124]6\d\d(?: v2| 0|L| @|\Z)", channels=((_ANY, Channels(4, _ARK)),)),
    Processor(None, models=r"Xeon E3-1\d\d\d|Xeon E-2\d\d\d", channels=((_ANY, Channels(2, _ARK)),)),
    Processor(
        None, models=r"Core (i[3579]-(?![3-7][89]\d\d\b)\d{4,5}(?!X)[A-Z]{0,3}|Ultra [3579])\b",
        channels=((_ANY, Channels(2, _ARK)),),
    ),
    Processor(
        None, models=r"Xeon Phi 72\d\d",
        package_memory=PackageMemory(_ANY, "MCDRAM", "Intel Xeon Phi x200 product brief: 16 GB MCDRAM; unconfirmed"),
    ),
    Processor(
        "Zen", _amd(0x17, range(0x00, 0x30), range(0x50, 0x60)), _LINUX_AMD, models=_EPYC_7 + r"1P?\b",
        vectors=((_ANY, Vector(
            2, 128, 5,
            "AMD Software Optimization Guide 55723: two 128-bit FMA pipes, latency 5; unconfirmed")),),
        channels=((_EPYC_7 + r"1", Channels(8, f"{_AMD64_EDAC} = 2 in each of the package's 4 dies")),),
        memory_MTps=((r"EPYC 7251", 2400), (_EPYC_7 + r"1", 2666)),
    ),
    Processor(
        "Zen 2",
        _amd(0x17, range(0x30, 0x50), range(0x60, 0x80), range(0x90, 0x92), range(0xA0, 0xB0)), _LINUX_AMD,
        models=_EPYC_7 + r"2P?\b",
        vectors=((_ANY, Vector(2, 256, 5, "LLVM X86ScheduleZnver2.td: WriteFMAY on FPU0 and FPU1, latency 5")),),
        channels=((r"EPYC", Channels(8, f"{_AMD64_EDAC} = 8 (F17h_M30h)")),),
        memory_MTps=((r"EPYC", 3200),), interleaving=_ROME,
    ),
    Processor(
        "Zen 3", _amd(0x19, range(0x00, 0x10), range(0x20, 0x60)), _LINUX_AMD, models=_EPYC_7 + r"3[PX]?\b",
        vectors=((_ANY, Vector(2, 256, 4, "LLVM X86ScheduleZnver3.td: WriteFMAY on two FMUL pipes, latency 4")),),
        channels=((r"EPYC", Channels(8, f"{_AMD64_EDAC} = 8 (F19h)")),),
        memory_MTps=((r"EPYC", 3200),), interleaving=_MILAN,
    ),
    # The EPYC 4004 and 4005 are desktop processors.
    Processor(
        "Zen 4", _amd(0x19, range(0x10, 0x20), range(0x60, 0xA0)), _LINUX_AMD, models=r"EPYC 9[0-9A-Z]{2}4",
        vectors=((_ANY, _ZEN4_VECTOR),), channels=((r"EPYC(?! 4)", Channels(12, f"{_AMD64_EDAC} = 12 (F19h_M10h)")),),
        memory_MTps=((r"EPYC(?! 4)", 4800),), interleaving=_TWELVE_CHANNELS,
    ),
    # Speed of the EPYC 8004: Next INpact, EPYC 8004 launch (September 2023): six channels of DDR5 up to 4800.
    Processor(
        "Zen 4c", _amd(0x19, range(0xA0, 0xB0)), _LINUX_AMD, models=r"EPYC 8[0-9A-Z]{2}4",
        vectors=((_ANY, _ZEN4_VECTOR),),
        channels=(
            (r"EPYC 9", Channels(12, f"{_AMD64_EDAC} = 12 (F19h_MA0h)")),
            (r"EPYC 8[0-9A-Z]{2}4",
             Channels(6, "Lenovo pubs, SE455 V3 (EPYC 8004): six slots, one in each of its channels")),
        ),
        memory_MTps=((r"EPYC [89]", 4800),), interleaving=_TWELVE_CHANNELS,
    ),
    # Speed of the EPYC 9005: TechSpot, EPYC 9005 launch (October 2024): 12 channels of DDR5-6400.
    Processor(
        "Zen 5", _amd(0x1A, range(0x00, 0x10), range(0x40, 0x50)), _LINUX_AMD, models=r"EPYC 9[0-9A-Z]{2}5",
        vectors=((_ANY, _ZEN5_VECTOR),), channels=((r"EPYC(?! [48])", _TURIN),),
        memory_MTps=((r"EPYC(?! [48])", 6400),), interleaving=_TWELVE_CHANNELS,
    ),
    Processor(
        "Zen 5c", _amd(0x1A, range(0x10, 0x20)), _LINUX_AMD,
        vectors=((_ANY, _ZEN5_VECTOR),), channels=((r"EPYC(?! [48])", _TURIN),),
        memory_MTps=((r"EPYC(?! [48])", 6400),), interleaving=_TWELVE_CHANNELS,
    ),
    Processor(
        "Zen 5", _amd(0x1A, range(0x20, 0x30)), _LINUX_AMD,
        vectors=((_ANY, Vector(
            2, 256, 4, "numberworld.org, Zen 5 AVX-512 teardown (2024): Strix Point has the 256-bit data path"
        )),),
    ),
    Processor(
        "Zen 5", _amd(0x1A, range(0x60, 0x80)), _LINUX_AMD,
        vectors=((_ANY, Vector(None, None, 4, "256-bit or 512-bit data path: unconfirmed for this Zen 5 part")),),
    ),
    Processor(
        None, models=r"EPYC 4[0-9A-Z]{2}[45]",
        channels=((_ANY, Channels(2, "AMD EPYC 4004 and 4005 data sheets: 2 channels; unconfirmed")),),
    ),
    Processor(
        None, models=r"Threadripper PRO \d{4}WX",
        channels=((_ANY, Channels(8, "AMD Ryzen Threadripper PRO data sheets: 8 channels; unconfirmed")),),
    ),
    Processor(
        None, models=r"Ryzen [3579] (?:PRO )?\d{4}",
        channels=((_ANY, Channels(2, "AMD Ryzen data sheets: 2 channels; unconfirmed")),),
    ),
    Processor(
        "Neoverse N1", (MainId(0x41, 0xD0C),), _LINUX_ARM,  # Graviton 2
        models=r"Ampere Altra", vectors=((_ANY, Vector(2, 128, 4, f"Arm Neoverse N1 {_SOG}, pipes V0 and V1")),),
        channels=((r"Altra", Channels(8, "Ampere Altra product brief: 8 channels; unconfirmed")),),
    ),
    Processor(
        "Neoverse V1", (MainId(0x41, 0xD40),), _LINUX_ARM,  # Graviton 3
        vectors=((_ANY, Vector(4, 128, 4, f"Arm Neoverse V1 {_SOG}, 4 per cycle; SVE joins pipes to 256 bits")),),
    ),
    Processor(
        "Neoverse N2", (MainId(0x41, 0xD49),), _LINUX_ARM,
        vectors=((_ANY, Vector(2, 128, 4, f"Arm Neoverse N2 {_SOG}, 2 per cycle")),),
    ),
    Processor(
        "Neoverse V2", (MainId(0x41, 0xD4F),), _LINUX_ARM,  # Graviton 4, Grace
        vectors=((_ANY, Vector(4, 128, 4, f"Arm Neoverse V2 {_SOG}, 4 per cycle")),),
    ),
    Processor(
        "A64FX", (MainId(0x46, 0x001),), _LINUX_ARM,
        vectors=((_ANY, Vector(
            2, 512, 9, "Fujitsu A64FX Microarchitecture Manual: FLA and FLB, latency 9; unconfirmed")),),
    ),
)  # fmt: skip
