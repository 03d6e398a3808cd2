"""The table of processors, by what CPUs say of themselves."""

from __future__ import annotations

import pytest

from seatrial.machine.processor_table import Cpuid, processors
from seatrial.machine.processors import highest_memory_MTps, platform_of, with_asserted_facts
from seatrial.machine.survey import FactBook
from seatrial.model.machine.fact import FactKind
from seatrial.model.machine.machine import Device, DeviceKind

AVX512 = "sse2 avx fma avx2 avx512f"
AVX2 = "sse2 avx fma avx2"


def _package(**told: str | int | None) -> Device:
    book = FactBook()
    for name, value in told.items():
        book.say(name, value, "test")
    return with_asserted_facts(Device("package-0", DeviceKind.PACKAGE, "x", facts=book.facts()))


@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "name", "isa", "expected"),
    [
        ("AuthenticAMD", 26, 2, 1, "AMD EPYC", AVX512, ("Zen 5", 2, 512, 4, 12)),
        ("AuthenticAMD", 26, 0x11, 0, "AMD EPYC 9965 192-Core Processor", AVX512, ("Zen 5c", 2, 512, 4, 12)),
        ("AuthenticAMD", 26, 0x24, 0, "AMD Ryzen AI 9 HX 370", AVX512, ("Zen 5", 2, 256, 4, None)),
        ("AuthenticAMD", 26, 0x70, 0, "AMD Ryzen AI Max+ 395", AVX512, ("Zen 5", None, None, 4, None)),
        ("AuthenticAMD", 25, 0x11, 1, "AMD EPYC 9334 32-Core Processor", AVX512, ("Zen 4", 2, 256, 4, 12)),
        ("AuthenticAMD", 25, 0xA0, 2, "AMD EPYC 8534P 64-Core Processor", AVX512, ("Zen 4c", 2, 256, 4, 6)),
        ("AuthenticAMD", 25, 0x01, 1, "AMD EPYC 7763 64-Core Processor", AVX2, ("Zen 3", 2, 256, 4, 8)),
        ("AuthenticAMD", 23, 0x31, 0, "AMD EPYC 7742 64-Core Processor", AVX2, ("Zen 2", 2, 256, 5, 8)),
        ("AuthenticAMD", 23, 0x01, 2, "AMD EPYC 7601 32-Core Processor", AVX2, ("Zen", 2, 128, 5, 8)),
        ("AuthenticAMD", 23, 0x01, 2, "AMD EPYC 3251 8-Core Processor", AVX2, ("Zen", 2, 128, 5, None)),
        ("AuthenticAMD", 23, 0x31, 0, "AMD Ryzen Threadripper 3970X", AVX2, ("Zen 2", 2, 256, 5, None)),
        ("GenuineIntel", 6, 0x8F, 8, "Intel(R) Xeon(R) Platinum 8480+", AVX512, ("Sapphire Rapids", 2, 512, 4, 8)),
        ("GenuineIntel", 6, 0x8F, 8, "Intel(R) Xeon(R) w5-2455X", AVX512, ("Sapphire Rapids", 2, 512, 4, None)),
        (
            "GenuineIntel",
            6,
            0x55,
            7,
            "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz",
            AVX512,
            ("Cascade Lake", 2, 512, 4, 6),
        ),
        ("GenuineIntel", 6, 0x55, 4, "Intel(R) Xeon(R) Gold 5118 CPU", AVX512, ("Skylake-SP", 1, 512, 4, 6)),
        ("GenuineIntel", 6, 0x55, 7, "Intel(R) Xeon(R) Gold 5222 CPU", AVX512, ("Cascade Lake", 2, 512, 4, 6)),
        ("GenuineIntel", 6, 0x55, 7, "Intel(R) Xeon(R) Platinum 9242 CPU", AVX512, ("Cascade Lake", 2, 512, 4, None)),
        ("GenuineIntel", 6, 0x55, 4, "Intel Xeon Processor (Skylake)", AVX512, ("Skylake-SP", None, None, 4, None)),
        ("GenuineIntel", 6, 0x4F, 1, "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", AVX2, ("Broadwell-EP", 2, 256, 5, 4)),
        ("GenuineIntel", 6, 0xAD, 1, "Intel(R) Xeon(R) 6980P", AVX512, ("Granite Rapids", 2, 512, None, 12)),
        ("GenuineIntel", 6, 0xFE, 1, "Intel(R) Future", AVX512, (None, None, None, None, None)),
        ("GenuineIntel", 15, 4, 1, "Pentium 4", "sse2", (None, None, None, None, None)),
    ],
)
def test_x86(
    vendor: str, family: int, model: int, stepping: int, name: str, isa: str, expected: tuple[object, ...]
) -> None:
    facts = _package(vendor=vendor, family=family, model=model, stepping=stepping, model_name=name, isa=isa).facts
    found = (
        facts.text("microarchitecture"),
        *(facts.integer(n) for n in ("fma_pipes", "fma_vector_bits", "fma_latency_cycles", "memory_channels")),
    )
    assert found == expected


def test_a_masked_instruction_set_narrows_the_pipes() -> None:
    told: dict[str, str | int] = {"vendor": "AuthenticAMD", "family": 26, "model": 2, "model_name": "AMD EPYC"}
    masked = _package(**told, isa=AVX2).facts
    assert (masked.integer("fma_pipes"), masked.integer("fma_vector_bits")) == (2, 256)
    assert "fma_pipes" not in _package(**told, isa="sse2 avx").facts
    silver: dict[str, str | int] = {"vendor": "GenuineIntel", "family": 6, "model": 0x55, "stepping": 4}
    masked = _package(**silver, model_name="Intel(R) Xeon(R) Silver 4110", isa=AVX2).facts
    assert (masked.integer("fma_pipes"), masked.integer("fma_vector_bits")) == (2, 256)


@pytest.mark.parametrize(
    ("implementer", "part", "isa", "expected"),
    [
        (0x41, 0xD0C, "asimd", ("Neoverse N1", 2, 128)),
        (0x41, 0xD40, "asimd sve", ("Neoverse V1", 4, 128)),
        (0x46, 0x001, "asimd sve", ("A64FX", 2, 512)),
        (0x46, 0x001, "asimd", ("A64FX", 2, 128)),
        (0x41, 0xFFF, "asimd", (None, None, None)),
    ],
)
def test_arm(implementer: int, part: int, isa: str, expected: tuple[object, ...]) -> None:
    facts = _package(implementer=implementer, part=part, isa=isa).facts
    found = (facts.text("microarchitecture"), facts.integer("fma_pipes"), facts.integer("fma_vector_bits"))
    assert found == expected


def test_memory_in_the_package() -> None:
    told: dict[str, str | int] = {"vendor": "GenuineIntel", "family": 6, "model": 0x8F, "isa": AVX512}
    for name, memory in (
        ("Intel(R) Xeon(R) CPU Max 9480", "HBM2e"),
        ("Intel(R) Xeon(R) Max 9462", "HBM2e"),
        ("Intel(R) Xeon(R) Platinum 8480+", None),
    ):
        assert _package(**told, model_name=name).facts.text("package_memory") == memory
    phi = _package(vendor="GenuineIntel", family=6, model=0x57, model_name="Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz")
    assert phi.facts.text("package_memory") == "MCDRAM"
    assert "microarchitecture" not in phi.facts


def test_unchecked_values_are_marked_unconfirmed() -> None:
    sapphire = _package(vendor="GenuineIntel", family=6, model=0x8F, isa=AVX512).facts.best("fma_confirmed")
    zen = _package(vendor="AuthenticAMD", family=26, model=2, isa=AVX512).facts.best("fma_confirmed")
    assert sapphire is not None and sapphire.value is False
    assert zen is not None and zen.value is True


def test_every_asserted_fact_has_a_citation() -> None:
    for row in processors():
        sources = [known.source for _, known in (*row.vectors, *row.channels)]
        sources += [row.ids_source] if row.ids else []
        sources += [known.source for known in (row.interleaving, row.package_memory) if known is not None]
        assert all(len(source) > 20 for source in sources), row
    facts = _package(vendor="AuthenticAMD", family=26, model=2, isa=AVX512).facts
    asserted = [fact for statements in facts.values() for fact in statements if fact.kind is FactKind.ASSERTED]
    assert len(asserted) >= 4


def test_each_row_can_be_found_and_no_two_match_one_cpu() -> None:
    assert all(row.ids or row.models for row in processors())
    ids = [
        (of.vendor, of.family, model, stepping)
        for row in processors()
        for of in row.ids
        if isinstance(of, Cpuid)
        for model in of.models
        for stepping in (of.steppings or range(16))
    ]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("name", "microarchitecture", "channels", "memory_MTps"),
    [
        ("Intel(R) Xeon(R) Silver 4410Y", "Sapphire Rapids", 8, 4000),
        ("INTEL(R) XEON(R) GOLD 6430", "Sapphire Rapids", 8, 4400),
        ("Intel(R) Xeon(R) Gold 5416S", "Sapphire Rapids", 8, 4400),
        ("Intel(R) Xeon(R) Platinum 8480+", "Sapphire Rapids", 8, 4800),
        ("Intel(R) Xeon(R) Gold 6526Y", "Emerald Rapids", 8, 5200),
        ("Intel(R) Xeon(R) Platinum 8592+", "Emerald Rapids", 8, 5600),
        ("Intel(R) Xeon(R) 6980P", "Granite Rapids", 12, 8800),
        ("Intel(R) Xeon(R) 6787P", "Granite Rapids", 8, 8000),
        ("Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz", "Ice Lake-SP", 8, 2666),
        ("Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", "Ice Lake-SP", 8, 2933),
        ("Intel(R) Xeon(R) Gold 6330N CPU @ 2.20GHz", "Ice Lake-SP", 8, 2666),
        ("Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz", "Cascade Lake", 6, 2400),
        ("Intel(R) Xeon(R) Gold 5218 CPU @ 2.30GHz", "Cascade Lake", 6, 2666),
        ("Intel(R) Xeon(R) Gold 5222 CPU @ 3.80GHz", "Cascade Lake", 6, 2933),
        ("Intel(R) Xeon(R) Bronze 3106 CPU @ 1.70GHz", "Skylake-SP", 6, 2133),
        ("Intel(R) Xeon(R) CPU E5-2620 v4 @ 2.10GHz", "Broadwell-EP", 4, 2133),
        ("Intel(R) Xeon(R) CPU E5-2699 v3 @ 2.30GHz", "Haswell-EP", 4, 2133),
        ("AMD EPYC 7251 8-Core Processor", "Zen", 8, 2400),
        ("AMD EPYC 7443P 24-Core Processor", "Zen 3", 8, 3200),
        ("AMD EPYC 8534P 64-Core Processor", "Zen 4c", 6, 4800),
        ("AMD EPYC 9755 128-Core Processor", "Zen 5", 12, 6400),
        ("AMD EPYC 4564P 16-Core Processor", None, 2, None),
        ("Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz", None, 2, None),
        ("some CPU", None, None, None),
    ],
)
def test_memory_by_model_number(
    name: str, microarchitecture: str | None, channels: int | None, memory_MTps: float | None
) -> None:
    package = _package(model_name=name)
    platform = platform_of(package)
    assert (platform.name, platform.channels) == (microarchitecture, channels)
    assert highest_memory_MTps(package) == memory_MTps


@pytest.mark.parametrize(
    ("family", "model", "name", "channels", "memory_MTps"),
    [
        (25, 0xA0, "AMD EPYC 9754 128-Core Processor", 12, 4800),
        (26, 0x11, "AMD EPYC 9965 192-Core Processor", 12, 6400),
        (25, 0x61, "AMD EPYC 4564P 16-Core Processor", 2, None),
    ],
)
def test_memory_by_identification(family: int, model: int, name: str, channels: int, memory_MTps: float | None) -> None:
    package = _package(vendor="AuthenticAMD", family=family, model=model, model_name=name)
    assert (platform_of(package).channels, highest_memory_MTps(package)) == (channels, memory_MTps)
