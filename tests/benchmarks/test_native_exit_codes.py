"""The exit statuses of the programs are written twice, for C++ and for Python: here they are one."""

from __future__ import annotations

import re

from seatrial.environments.build import NATIVE_HEADERS
from seatrial.errors import Exit

_ENUM = re.compile(r"enum class Exit : int \{(?P<body>.*?)\};", re.DOTALL)
_MEMBER = re.compile(r"^\s*(?P<name>\w+) = (?P<value>\d+),", re.MULTILINE)


def test_both_languages_mean_the_same() -> None:
    enum = _ENUM.search((NATIVE_HEADERS / "failure.hpp").read_text())
    assert enum is not None, "failure.hpp has no `enum class Exit : int {...};`: where is it now?"
    members = {member["name"].upper(): int(member["value"]) for member in _MEMBER.finditer(enum["body"])}
    assert members == {status.name: status.value for status in Exit}
