"""Kernels that are another text with CUDA than with OpenCL, and so never run on PoCL: they run here, on the host.

That tells what they compute where nothing goes in lockstep, not what a GPU makes of them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.benchmarks import benchmark_named
from seatrial.environments.build import NATIVE_HEADERS
from seatrial.environments.chosen import native_environment
from seatrial.model.machine.machine import Machine

pytestmark = [pytest.mark.real, pytest.mark.portability]

HERE = Path(__file__).parent
KERNELS = benchmark_named("gpu.scan").program.source.parent
SCAN = {"SINGLE_PASS": "1", "GROUP": "512"}
SORT = {"ONESWEEP": "1", "GROUP": "512", "PER_ITEM": "16"}


def result(machine: Machine, folder: Path, program: str, defines: dict[str, str]) -> float:
    """What a program of kernels prints."""
    built = folder / program
    compiler = native_environment(machine).compiler
    options = ["-std=c++20", "-O1", "-w", "-pthread", f"-I{NATIVE_HEADERS}", f"-I{KERNELS}"]
    options += [f"-D{name}={value}" for name, value in defines.items()]
    subprocess.run([*compiler.command, *options, str(HERE / f"{program}.cpp"), "-o", str(built)], check=True)
    return float(subprocess.run([str(built)], check=True, capture_output=True, text=True, timeout=120).stdout)


@pytest.mark.parametrize(
    ("real", "per_item", "width", "most"), [("float", "16", "4", 1e-6), ("double", "8", "2", 1e-14)]
)
def test_a_scan_in_a_single_pass(
    real: str, per_item: str, width: str, most: float, live_machine: Machine, tmp_path: Path
) -> None:
    precision = {"REAL": real, "PER_ITEM": per_item, "WIDTH": width, "VECTOR": f"{real}{width}"}
    assert result(live_machine, tmp_path, "scan_tiles_on_host", {**SCAN, **precision}) < most


@pytest.mark.parametrize("pairs", ["0", "1"])
def test_onesweep(pairs: str, live_machine: Machine, tmp_path: Path) -> None:
    assert result(live_machine, tmp_path, "sort_tiles_on_host", {**SORT, "PAIRS": pairs}) == 0
