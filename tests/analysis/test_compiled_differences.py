"""How measured programs were compiled, as a difference of two sides."""

from __future__ import annotations

from typing import Any

import pytest
from analysis.test_differences import SEEN, side

from seatrial.analysis.fairness.differences import differences

O0 = "-mtune=generic -march=x86-64 -O0"
O3 = "-mtune=generic -march=x86-64 -O3"


def entry(identity: str, flags: Any = None, compiler: Any = "GNU C17 12.2.0") -> dict[str, Any]:
    found = {"path": "/w/app", "id": identity * 40, "compiler": compiler, "flags": flags}
    return {name: value for name, value in found.items() if value is not None}


def listed(first: dict[str, Any], second: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    """Difference -> both values, of sides with these programs."""
    sides = [side(seen={**SEEN, "notes": {**SEEN["notes"], "programs": programs}}) for programs in (first, second)]
    return {d.what: (d.baseline, d.candidate) for d in differences(*sides, None) if d.what.startswith("program app")
            or d.what.startswith("program a ")}  # fmt: skip


def test_flags_take_the_place_of_the_hash():
    assert listed({"app": entry("a", O0)}, {"app": entry("b", O3)}) == {"program app built with": ("-O0", "-O3")}
    assert listed({"app": entry("a", O3)}, {"app": entry("b", f"{O3} -ffast-math")}) == {
        "program app built with": ("without these", "-ffast-math")
    }


def test_a_program_built_again_with_the_same_flags_differs_by_its_hash_only():
    assert list(listed({"app": entry("a", O3)}, {"app": entry("b", O3)})) == ["program app"]
    assert listed({"app": entry("a", O3)}, {"app": entry("a", O3)}) == {}


def test_another_compiler_is_named():
    found = listed({"app": entry("a", O3)}, {"app": entry("b", O3, "GNU C17 13.1.0")})
    assert found == {"program app compiled by": ("GNU C17 12.2.0", "GNU C17 13.1.0")}


def test_what_one_side_does_not_state_is_no_difference():
    assert list(listed({"app": entry("a", O3)}, {"app": entry("b", None, "GCC: (Debian) 12.2.0")})) == ["program app"]


def test_two_builds_of_two_names_are_compared():
    found = listed({"a": entry("a", O0)}, {"app": entry("b", O3)})
    assert found["program a / app built with"] == ("-O0", "-O3")


@pytest.mark.parametrize("hostile", [5, ["-O3"], {"a": None}, "", "-O3 " * 5000])
def test_hostile_records_do_no_harm(hostile: Any):
    listed({"app": entry("a", hostile)}, {"app": entry("b", O3)})
    listed({"app": entry("a", O3, hostile)}, {"app": entry("b", O3)})
