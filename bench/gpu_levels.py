"""gpu.* on a real GPU compared with BabelStream, nvbandwidth, CUB and the device's peak: interleaved rounds.

The table below lists the goals. Rivals are built separately; one without a path is listed under `absent`, and its goal
is not evaluated. The figure of a round is the median of its samples; the best of the rounds is compared.

    python bench/gpu_levels.py [--babelstream FILE] [--nvbandwidth FILE] [--cub FILE] [--rounds 5] [--only copy ...]
                               [-o docs/results/gpu_levels.json]

* BabelStream: its CUDA program (`cuda-stream`), with arrays of 2^28 floats, like ours.
* nvbandwidth: the tests host_to_device_memcpy_ce and device_to_host_memcpy_ce on the first device, with copies of
  1 GiB from pinned memory.
* CUB: bench/cub_rates.cu, built with nvcc, with the same element counts as ours.

There are no recorded results yet: the script has not been run on a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, measure, provenance, ready, write

from seatrial.applications.babelstream import read as read_babelstream
from seatrial.applications.nvbandwidth import read_nvbandwidth
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings

_LONGEST_S = 600.0
_GiB = 1 << 30
_H200_COPY_BPS = 4.2e12


@dataclass(frozen=True, slots=True)
class Level:
    """One of our figures, what it is compared with, and the minimum ratio aimed for.

    `against`: "babelstream", "nvbandwidth" or "cub" with the name of the rival's figure, "limit" for the device's
    peak, or "rate" for a fixed number.
    """

    benchmark: str
    settings: Mapping[str, str]
    figure: str
    point: Mapping[str, object]
    against: str
    rival_figure: str
    goal: float


_LARGE = {"size": "large"}
_ONE = {"devices": "1", "largest_B": "1GiB"}
LEVELS = {
    "copy": Level("gpu.device-memory", _LARGE, "copy", {}, "rate", str(_H200_COPY_BPS), 1.0),
    "triad": Level("gpu.device-memory", _LARGE, "triad", {}, "babelstream", "triad", 0.97),
    "h2d": Level("gpu.transfer", _ONE, "h2d", {"size_B": _GiB}, "nvbandwidth", "host_to_device_memcpy_ce", 0.97),
    "d2h": Level("gpu.transfer", _ONE, "d2h", {"size_B": _GiB}, "nvbandwidth", "device_to_host_memcpy_ce", 0.97),
    "sort": Level("gpu.sort", {**_LARGE, "payload": "keys"}, "keys", {}, "cub", "sort_keys_per_s", 0.8),
    "scan": Level("gpu.scan", {**_LARGE, "precision": "fp32"}, "bandwidth", {}, "cub", "scan_fp32_Bps", 0.9),
    "nbody": Level("gpu.nbody", {"precision": "fp64", "mode": "S"}, "nbody", {}, "limit", "", 0.6),
    "gemm": Level(
        "gpu.gemm", {**_LARGE, "precision": "fp64", "library": "vendor"}, "gemm", {"transposed": 0}, "limit", "", 0.85
    ),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--babelstream", type=Path, help="BabelStream's program for CUDA")
    parser.add_argument("--nvbandwidth", type=Path)
    parser.add_argument("--cub", type=Path, help="bench/cub_rates.cu, built")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "opencl"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=list(LEVELS))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    programs = {"babelstream": options.babelstream, "nvbandwidth": options.nvbandwidth, "cub": options.cub}
    names = options.only or list(LEVELS)
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(options.rounds):
        result: dict[str, dict[str, float]] = {}
        for name in names if number % 2 == 0 else reversed(names):
            level = LEVELS[name]
            value, limit = of_ours(level, machine, options.backend)
            result[name] = {"ours": value}
            other = against(level, limit, programs.get(level.against))
            if other is not None:
                result[name]["other"] = other
            print(name, " ".join(f"{who} {rate:.4g}" for who, rate in result[name].items()), flush=True)
        rounds.append(result)
    write(
        "gpu_levels",
        {
            "provenance": provenance(machine, ready(machine, LEVELS[names[0]].benchmark, backend=options.backend)),
            "goals": {name: {"against": LEVELS[name].against, "at_least": LEVELS[name].goal} for name in names},
            "of_best": {name: ratio(name, rounds) for name in names},
            "absent": [name for name, path in programs.items() if path is None],
            "rounds": rounds,
        },
        options.output,
    )


def of_ours(level: Level, machine: Machine, backend: str) -> tuple[float, float | None]:
    """The median of the samples of one run, and its limit if known."""
    item = ready(machine, level.benchmark, backend=backend, **level.settings)
    record = measure(item, machine)
    found = [
        reading
        for reading in readings(item.point.benchmark, machine, item.point.parameters, record.samples)
        if reading.figure.name == level.figure and level.point.items() <= dict(reading.point).items()
    ]
    limit = found[0].limit
    return median(value for reading in found for value in reading.values), None if limit is None else limit.value


def against(level: Level, limit: float | None, program: Path | None) -> float | None:
    """The value to compare with; None if unknown."""
    if level.against == "limit":
        return limit
    if level.against == "rate":
        return float(level.rival_figure)
    return None if program is None else RIVALS[level.against](program, level.rival_figure)


def _output(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=_LONGEST_S).stdout


def of_babelstream(program: Path, figure: str) -> float:
    """The best rate of a BabelStream kernel."""
    (experiment,) = read_babelstream(_output(str(program), "--float", "-s", str(1 << 28))).experiments
    return max(s.work[next(iter(s.work))] / s.elapsed_s for s in experiment.samples if s.series == figure)


def of_nvbandwidth(program: Path, test: str) -> float:
    """The rate of the first device in an nvbandwidth test."""
    file = read_nvbandwidth(_output(str(program), "-t", test, "-b", "1024"))
    (experiment,) = (one for one in file.experiments if one.parameters["test"] == test)
    return max(s.work[next(iter(s.work))] / s.elapsed_s for s in experiment.samples if s.point["column"] == 0)


def of_cub(program: Path, figure: str) -> float:
    """A rate from bench/cub_rates.cu, for as many numbers and keys as fit in 1 GiB."""
    count = str(_GiB // 4)
    rates: dict[str, Any] = json.loads(_output(str(program), count, count))
    return float(rates[figure])


RIVALS: dict[str, Callable[[Path, str], float]] = {
    "babelstream": of_babelstream,
    "nvbandwidth": of_nvbandwidth,
    "cub": of_cub,
}


def ratio(name: str, rounds: list[dict[str, dict[str, float]]]) -> float | None:
    """Ours over the other, each the best of the rounds."""
    if not all("other" in one[name] for one in rounds):
        return None
    return max(one[name]["ours"] for one in rounds) / max(one[name]["other"] for one in rounds)


if __name__ == "__main__":
    main()
