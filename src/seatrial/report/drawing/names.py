"""Short names: of models, and of several devices at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST = 200
_NOISE = re.compile(
    r"\((?:R|TM|C|r|tm)\)|[®™]|\b(?:Corporation|Corp\.|Inc\.|Co\., Ltd|Technologies|CPU|Processor)(?=\s|,|$)"
)
_CLOCK = re.compile(r"@ ?[0-9.]{1,8} ?GHz")
_CORES = re.compile(r"\b[0-9]{1,4}-Core\b")
_BRACKET = re.compile(r"\[([^\[\]]{3,60})\]\s*$")
_VENDORS = ("NVIDIA ", "Tesla ", "AMD Instinct ", "Advanced Micro Devices, ", "Mellanox ", "Broadcom ")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})$")


def clean(text: str, longest: int = _LONGEST) -> str:
    """`text` on one line without unprintable characters, cut to a length that a box can show."""
    kept = "".join(character if character.isprintable() else " " for character in text[:longest])
    return " ".join(kept.split())


def model_name(name: str) -> str:
    """A product's name without trade marks, clock and vendor: "Xeon Platinum 8174" keeps "Intel", "A100-SXM4-80GB"."""
    text = clean(name)
    bracket = _BRACKET.search(text)
    if bracket is not None:
        text = bracket[1]
    text = _CORES.sub("", _CLOCK.sub("", _NOISE.sub("", text)))
    for vendor in _VENDORS:
        text = text.removeprefix(vendor)
    return " ".join(text.split()).strip(" ,") or clean(name)


def several(names: Sequence[str]) -> str:
    """As "a", "a, b", "eth0 to eth7" if they are consecutive, else "a, b and 5 more"."""
    spelled = [clean(name) for name in names]
    if len(spelled) <= 2:
        return ", ".join(spelled)
    return _run(spelled) or f"{spelled[0]}, {spelled[1]} and {len(spelled) - 2} more"


def runs(names: Sequence[str]) -> str:
    """All names in their order, consecutive ones as a run: "GPU0 to GPU6, GPU8"."""
    groups: list[list[str]] = []
    for name in map(clean, names):
        if groups and _run([groups[-1][-1], name]) is not None:
            groups[-1].append(name)
        else:
            groups.append([name])
    return ", ".join(f"{group[0]} to {group[-1]}" if len(group) > 2 else ", ".join(group) for group in groups)


def _run(names: Sequence[str]) -> str | None:
    matches = [_NUMBERED.match(name) for name in names]
    parts = [(match[1], int(match[2])) for match in matches if match is not None]
    if len(parts) != len(names) or len({stem for stem, _ in parts}) != 1:
        return None
    numbers = [number for _, number in parts]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return f"{names[0]} to {names[-1]}"
