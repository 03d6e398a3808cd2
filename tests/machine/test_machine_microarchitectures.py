"""The table of microarchitectures, by what CPUs say of themselves."""

from __future__ import annotations

import pytest

from seatrial.machine.microarchitecture_table import AMD, ARM, INTEL
from seatrial.machine.microarchitectures import with_asserted_facts
from seatrial.machine.survey import FactBook
from seatrial.model.fact import FactKind
from seatrial.model.machine import Device, DeviceKind

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


def test_what_was_not_looked_up_says_so() -> None:
    entries = [entry for _, _, entry in AMD] + list(INTEL.values()) + list(ARM.values())
    for entry in entries:
        for told in (*(vector for _, vector in entry.vectors), *entry.channels):
            assert told.confirmed is ("unconfirmed" not in told.source), told.source
    sapphire = _package(vendor="GenuineIntel", family=6, model=0x8F, isa=AVX512).facts.best("fma_confirmed")
    zen = _package(vendor="AuthenticAMD", family=26, model=2, isa=AVX512).facts.best("fma_confirmed")
    assert sapphire is not None and sapphire.value is False
    assert zen is not None and zen.value is True


def test_every_asserted_fact_has_a_citation() -> None:
    entries = [entry for _, _, entry in AMD] + list(INTEL.values()) + list(ARM.values())
    for entry in entries:
        for _, vector in entry.vectors:
            assert len(vector.source) > 20
        assert all(len(channels.source) > 20 for channels in entry.channels)
    facts = _package(vendor="AuthenticAMD", family=26, model=2, isa=AVX512).facts
    asserted = [fact for statements in facts.values() for fact in statements if fact.kind is FactKind.ASSERTED]
    assert len(asserted) >= 4
