"""Programs that have several faults, of which one is chosen when they start: one build serves a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import tampered_program

from seatrial.model.benchmark.benchmark import Benchmark

Edits = Mapping[str, tuple[str, str]]
"""File -> (text, replacement): both whole statements, or both expressions. A replacement may ask by itself, where
neither fits: PLANTED is true while this fault is chosen."""

CHOSEN = "SEATRIAL_TEST_FAULT"
HEADER = f"""#pragma once
#include <cstdlib>
inline const int chosen_fault = std::getenv("{CHOSEN}") != nullptr ? std::atoi(std::getenv("{CHOSEN}")) : 0;
"""
"""A number, since what compares it may stand in a loop that is measured."""


def with_fault(
    benchmark: Benchmark, fault: str, faults: Mapping[str, Edits], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Benchmark:
    """The benchmark with a program that has all these faults, of which this one is chosen from now on."""
    numbers = {name: number for number, name in enumerate(faults, 1)}
    alternatives: dict[tuple[str, str], dict[int, str]] = {}
    for name, edits in faults.items():
        for file, (text, replacement) in edits.items():
            alternatives.setdefault((file, text), {})[numbers[name]] = replacement
    edited: dict[str, list[tuple[str, str]]] = {}
    for (file, text), replacements in alternatives.items():
        edited.setdefault(file, []).append((text, _choice(text, replacements)))
    monkeypatch.setenv(CHOSEN, str(numbers[fault]))
    program = tampered_program(benchmark, folder, edited, {"planted_faults.hpp": HEADER}, monkeypatch)
    return replace(benchmark, program=program)


def faults_of(benchmark: Benchmark, table: Mapping[str, tuple[Benchmark, Edits]]) -> dict[str, Edits]:
    """Those of the table's faults that are planted in this program."""
    return {name: edits for name, (other, edits) in table.items() if other.program == benchmark.program}


def _choice(text: str, replacements: Mapping[int, str]) -> str:
    """What stands in the text's place."""
    made = text
    for number, replacement in replacements.items():
        chosen = f"(chosen_fault == {number})"
        if "PLANTED" in replacement:
            assert len(replacements) == 1, f"{text!r} has other faults as well"
            made = replacement.replace("PLANTED", chosen)
        elif text.endswith(";"):
            made = f"if {chosen} {{ {replacement} }} else {{ {made} }}"
        else:
            made = f"({chosen} ? ({replacement}) : ({made}))"
    return made
