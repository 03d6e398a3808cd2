"""CPU -> its platform as memory population rules know it: microarchitecture and memory channels of a socket.

Family and model decide where they are known (`microarchitecture_table`); else the model name, which firmware and people
always give. A processor that neither knows has no channels: None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seatrial.model.machine import Device


@dataclass(frozen=True, slots=True)
class Platform:
    """`name` is the microarchitecture; `channels` of a socket, None where no document settles them."""

    name: str | None
    channels: int | None
    source: str = ""
    confirmed: bool = True


_SCALABLE = r"Xeon(?:\(R\))? (?:Platinum|Gold|Silver|Bronze) "
_BY_NUMBER = "Intel processor numbers for data centres: the second digit is the generation"
_ARK = "Intel ARK, Max # of Memory Channels; unconfirmed"
_AMD_NUMBER = "AMD EPYC processor numbers: the first digit is the series, the last the generation"

_BY_NAME: tuple[tuple[str, str | None, int, str, bool], ...] = (
    (_SCALABLE + r"[3-8]1\d\d", "Skylake-SP", 6, _BY_NUMBER, True),
    (_SCALABLE + r"[3-8]2\d\d", "Cascade Lake", 6, _BY_NUMBER, True),
    (_SCALABLE + r"[5-8]3\d\dHL?\b", "Cooper Lake", 6, _BY_NUMBER, True),
    (_SCALABLE + r"[4-8]3\d\d", "Ice Lake-SP", 8, _BY_NUMBER, True),
    (_SCALABLE + r"[3-8]4\d\d", "Sapphire Rapids", 8, _BY_NUMBER, True),
    (_SCALABLE + r"[3-8]5\d\d", "Emerald Rapids", 8, _BY_NUMBER, True),
    (r"Xeon(?:\(R\))? 6[57]\d\dP", "Granite Rapids", 8, "Lenovo Press LP2272: eight channels of Intel Xeon 6", True),
    (r"Xeon(?:\(R\))? 67\d\dE", "Sierra Forest", 8, "Lenovo Press LP2272: eight channels of Intel Xeon 6", True),
    (
        r"Xeon(?:\(R\))? CPU E5-[124]6\d\d v4",
        "Broadwell-EP",
        4,
        "Dell PowerEdge R730xd Owner's Manual: 4 channels",
        True,
    ),
    (r"Xeon(?:\(R\))? CPU E5-[124]6\d\d v3", "Haswell-EP", 4, "Dell PowerEdge R730xd Owner's Manual: 4 channels", True),
    (r"Xeon(?:\(R\))? CPU E5-[124]6\d\d(?: v2| 0|L| @|\Z)", None, 4, _ARK, False),
    (r"Xeon(?:\(R\))? (?:CPU )?E3-1\d\d\d|Xeon(?:\(R\))? E-2\d\d\d|Xeon(?:\(R\))? E-24\d\d", None, 2, _ARK, False),
    (r"Core\(TM\) i[3579]-(?![3-7][89]\d\d\b)\d{4,5}(?!X)[A-Z]{0,3}\b", None, 2, _ARK, False),
    (r"Core\(TM\) Ultra [3579]\b", None, 2, _ARK, False),
    (r"EPYC 7(?:[0-9][0-9]|[A-Z][0-9]|[0-9][A-Z])1\b", "Zen", 8, _AMD_NUMBER, True),
    (r"EPYC 7(?:[0-9][0-9]|[A-Z][0-9]|[0-9][A-Z])2\b|EPYC 7H12", "Zen 2", 8, _AMD_NUMBER, True),
    (r"EPYC 7(?:[0-9][0-9]|[A-Z][0-9]|[0-9][A-Z])3X?\b", "Zen 3", 8, _AMD_NUMBER, True),
    (r"EPYC 9[0-9A-Z]{2}4", "Zen 4", 12, _AMD_NUMBER, True),
    (r"EPYC 9[0-9A-Z]{2}5", "Zen 5", 12, _AMD_NUMBER, True),
    (r"EPYC 8[0-9A-Z]{2}4", "Zen 4c", 6, "Lenovo pubs, SE455 V3 (EPYC 8004): six slots, one in each channel", True),
    (r"EPYC 4[0-9A-Z]{2}[45]", None, 2, "AMD EPYC 4004 and 4005 data sheets: 2 channels; unconfirmed", False),
    (r"Threadripper PRO \d{4}WX", None, 8, "AMD Ryzen Threadripper PRO data sheets: 8 channels; unconfirmed", False),
    (r"Ryzen [3579] (?:PRO )?\d{4}", None, 2, "AMD Ryzen data sheets: 2 channels; unconfirmed", False),
    (
        r"Ampere\(R\) Altra\(R\)|Ampere Altra",
        "Neoverse N1",
        8,
        "Ampere Altra product brief: 8 channels; unconfirmed",
        False,
    ),
)


def platform_of(package: Device) -> Platform:
    """The platform of a package: by the asserted facts of its family and model, else by its model name."""
    facts = package.facts
    name, channels = facts.text("microarchitecture"), facts.integer("memory_channels")
    if channels is not None:
        fact, confirmed = facts.best("memory_channels"), facts.best("memory_channels_confirmed")
        source = fact.source if fact is not None else ""
        return Platform(name, channels, source, confirmed is None or confirmed.value is True)
    model_name = (facts.text("model_name") or "")[:200]
    for pattern, microarchitecture, count, source, is_confirmed in _BY_NAME:
        if re.search(pattern, model_name, re.IGNORECASE | re.ASCII):
            return Platform(name or microarchitecture, count, source, is_confirmed)
    return Platform(name, None)
