"""Bare against contained: equivalent within 2 % where nothing differs, and different where cross-memory attach is off.

python bench/container_equivalence.py [--scale 1] [--only NAME...] [-o docs/results/container_equivalence.json]

The image is made from this machine's own files, so the programs load the same libraries inside. Each case is a study
of one benchmark and one runtime along environment.container, measured by the command line in blocks of random order.
The last cases have an image whose configuration turns Open MPI's single copies off: messages of 4 MiB must be slower,
the cause be named, and messages of 8 B stay as they are. Cases that are in the output file as expected, or with the
same --scale, are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import live_machine, machine_provenance
from comparing import keep, recorded

import seatrial
from seatrial.places.containers.runtimes import RUNTIMES

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from places.host_root import make_host_root

MARGIN = "2%"
OFF = "\nbtl_vader_single_copy_mechanism = none\n"
PARAMETERS_FILE = "etc/openmpi/openmpi-mca-params.conf"


@dataclass(frozen=True)
class Case:
    """One study. `expected`: the verdict, None where the case is only told."""

    name: str
    runtime: str
    benchmark: str
    parameters: Mapping[str, Any]
    figure: str
    expected: str
    budget_s: int
    is_without_cma: bool = False


def cases() -> list[Case]:
    """Every benchmark in every runtime, then large and small messages without single copies."""
    same: list[Case] = []
    for runtime in ("charliecloud", "bubblewrap", "podman"):
        for benchmark, parameters, figure, budget_s in (
            ("cpu.peak", {"cores": "one", "precision": "fp64"}, "fma", 20),
            ("memory.stream", {"threads": 1, "kernel": "triad"}, "triad", 45),
            ("mpi.latency", {"size_B": 8}, "one_way", 40),
        ):
            same.append(Case(f"{runtime} {benchmark}", runtime, benchmark, parameters, figure, "equivalent", budget_s))
    off = "charliecloud"
    return [
        *same,
        Case(f"{off} cma off, 4 MiB", off, "mpi.latency", {"size_B": 4 << 20}, "one_way", "slower", 30, True),
        Case(f"{off} cma off, 4 MiB rate", off, "mpi.bandwidth", {"size_B": 4 << 20}, "bandwidth", "slower", 30, True),
        Case(f"{off} cma off, 8 B", off, "mpi.latency", {"size_B": 8}, "one_way", "equivalent", 40, True),
    ]


def measure(case: Case, image: Path, scale: float) -> dict[str, Any]:
    """One study in its own folder."""
    study = {
        "study": "bare-or-contained",
        "question": "What does the container cost?",
        "benchmarks": {case.benchmark: dict(case.parameters)},
        "axes": {
            "environment.container": ["none", str(image)],
            "environment.container_runtime": [case.runtime],
        },
        "compare": {
            "along": "environment.container",
            "baseline": "none",
            "equivalence": MARGIN,
            "figures": [case.figure],
        },
        "repeat": {"budget": f"{case.budget_s * scale:.0f}s"},
    }
    with tempfile.TemporaryDirectory() as where:
        file = Path(where) / "study.yaml"
        file.write_text(json.dumps(study), encoding="utf-8")
        load, start = os.getloadavg()[0], time.perf_counter()
        done = seatrial.run(file, results=None)
        elapsed_s = time.perf_counter() - start
    row: dict[str, Any] = {"case": case.name, "expected": case.expected, "load_before": round(load, 2)}
    row |= {"elapsed_s": round(elapsed_s, 1), "scale": scale}
    compared = [] if done.study is None else list(done.study.compared)
    found = [one for side in compared for one in side.comparisons]
    if len(found) != 1:
        reasons = [
            f"{one.outcome.state}: {one.outcome.reason} {one.outcome.evidence}".strip() for one in done.experiments
        ]
        return {**row, "verdict": "not compared", "why": reasons}
    (one,) = found
    contrast = compared[0].containers
    return {
        **row,
        "verdict": one.verdict.value,
        "met": one.verdict.value == case.expected,
        "ratio": round(one.ratio, 5),
        "ci90_family": one.ci90_family and [round(end, 5) for end in one.ci90_family],
        "ci95_family": one.ci95_family and [round(end, 5) for end in one.ci95_family],
        "blocks": one.design.blocks,
        "stopped": one.design.stopped.value,
        "baseline": one.baseline.median,
        "candidate": one.candidate.median,
        "unit": one.unit,
        "unintended": [difference.what for difference in compared[0].unintended],
        "causes": [] if contrast is None else [cost.cost.value for cost in contrast.costs],
    }


def without_cma(image: Path, copy: Path) -> None:
    """An image of the same files whose Open MPI copies large messages twice."""
    shutil.copytree(image, copy, symlinks=True, copy_function=os.link)
    settings = copy / PARAMETERS_FILE
    text = settings.read_text(encoding="utf-8")
    settings.unlink()  # it may be the host's own file
    settings.write_text(text + OFF, encoding="utf-8")


def main() -> None:
    """Measure the cases that are missing, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the budgets, which are 7 minutes in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases whose names contain one of these")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = recorded(options.output)
    known = {row["case"] for row in rows if row.get("met") or row["scale"] == options.scale}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as where:
        image, off = Path(where) / "image", Path(where) / "without_cma"
        make_host_root(image)
        Path(where).chmod(0o755)
        without_cma(image, off)
        for case in cases():
            if case.name in known or (options.only and not any(part in case.name for part in options.only)):
                continue
            if RUNTIMES[case.runtime].path() is None:
                print(f"{case.name}: skipped: {case.runtime} is not installed")
                continue
            row = measure(case, off if case.is_without_cma else image, options.scale)
            rows.append(row)
            keep(options.output, {**_provenance(), "trials": rows})
            print(
                f"{case.name}: {row['verdict']} (expected {case.expected}), ratio {row.get('ratio')} "
                f"{row.get('ci90_family')}, {row.get('blocks')} blocks, causes {row.get('causes')}, "
                f"{row['elapsed_s']} s, load {row['load_before']} {row.get('why', '')}",
                flush=True,
            )


def _provenance() -> dict[str, Any]:
    return {
        "benchmark": "container_equivalence",
        "machine": machine_provenance(live_machine()),
        "margin": MARGIN,
    }


if __name__ == "__main__":
    main()
