"""gpu.* compared with SHOC's OpenCL programs on the same device: interleaved rounds, best of rounds.

Both use the same device of the same platform, the same size and precision, and time kernels with the device's clock.
The figure of a round is the median of its samples or trials. The best of the rounds is compared, because other load on
a shared machine only slows programs down. The order of the two alternates from round to round. Both count the same
operations for their rates (8 flop per pair of atoms and 13 more within the cutoff, 11 per point of the stencil,
5 N log2 N per transform, 2 per non-zero, 2 N^3).

SHOC's Scan and Sort fail their own check on some devices, such as PoCL. The result contains their message, and whether
ours are correct there.

    python bench/shoc_rivals.py --shoc DIR [--size 1] [--rounds 5] [--only fft ...] [-o docs/results/shoc_rivals.json]

DIR is a folder that contains the OpenCL programs of a SHOC build. With PoCL, keep the machine otherwise idle.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, measure, provenance, ready, rival_provenance, write

from seatrial.applications.shoc import read_shoc
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings

_LONGEST_S = 600.0
_GOAL = 1.0
_PRECISIONS = {"fp32": 4, "fp64": 8}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of SHOC's programs. `tests`: its test in each precision, and our corresponding figure."""

    name: str
    program: str
    tests: Mapping[tuple[str, str], tuple[str, Mapping[str, object]]]
    """(precision, test) -> figure and sweep coordinates."""
    counts_order: bool = False
    """Whether SHOC takes the row length in KiB: then each precision needs its own run to get the same order."""


Tests = dict[tuple[str, str], tuple[str, dict[str, object]]]


def _both(figure: str, single: str, double: str, **point: object) -> Tests:
    return {("fp32", single): (figure, point), ("fp64", double): (figure, point)}


COMPARISONS = (
    Comparison("reduction", "Reduction", _both("bandwidth", "Reduction", "Reduction-DP")),
    Comparison("md", "MD", _both("rate", "MD-LJ", "MD-LJ-DP")),
    Comparison(
        "spmv",
        "Spmv",
        _both("rate", "CSR-Scalar-SP", "CSR-Scalar-DP", format="csr-scalar")
        | _both("rate", "CSR-Vector-SP", "CSR-Vector-DP", format="csr-vector"),
    ),
    Comparison(
        "fft",
        "FFT",
        _both("forward", "SP-FFT", "DP-FFT") | _both("inverse", "SP-FFT-INV", "DP-FFT-INV"),
    ),
    Comparison(
        "gemm",
        "GEMM",
        _both("gemm", "SGEMM-N", "DGEMM-N", transposed=0) | _both("gemm", "SGEMM-T", "DGEMM-T", transposed=1),
        counts_order=True,
    ),
    Comparison("stencil", "Stencil2D", _both("rate", "SP_Sten2D", "DP_Sten2D")),
)
_CHECKED = {"scan": "Scan", "sort": "Sort"}
_ORDERS = {"1": 256, "2": 1024, "3": 2048, "4": 4096}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shoc", type=Path, required=True, help="folder that contains SHOC's OpenCL programs")
    parser.add_argument("--size", default="1", choices=("1", "2", "3", "4"), help="SHOC's size class")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=5, help="trials per run of SHOC")
    parser.add_argument("--slice", type=float, default=2.0, help="sampling time per run of ours, in seconds")
    parser.add_argument("--only", action="append", choices=[one.name for one in COMPARISONS])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    comparisons = [one for one in COMPARISONS if not options.only or one.name in options.only]
    programs = {one.name: find(options.shoc, one.program) for one in comparisons}
    rounds: list[dict[str, dict[str, dict[str, float]]]] = []
    for number in range(options.rounds):
        result: dict[str, dict[str, dict[str, float]]] = {}
        for one in comparisons:
            for who in ("seatrial", "shoc") if number % 2 == 0 else ("shoc", "seatrial"):
                seen = (
                    of_ours(one, machine, options.size, options.slice)
                    if who == "seatrial"
                    else of_shoc(one, programs[one.name], options.size, options.passes)
                )
                for test, value in seen.items():
                    result.setdefault(one.name, {}).setdefault(test, {})[who] = value
            print(one.name, " ".join(_ratio_text(test, pair) for test, pair in result[one.name].items()), flush=True)
        rounds.append(result)
    first = ready(machine, f"gpu.{comparisons[0].name}", backend="opencl", size=options.size)
    write(
        "shoc_rivals",
        {
            "provenance": {**provenance(machine, first), "shoc": rival_provenance(next(iter(programs.values())))},
            "size": options.size,
            "goal": _GOAL,
            "of_best": dict(ratios(rounds)),
            "right": {name: right(options.shoc, name, machine, options.size) for name in _CHECKED},
            "rounds": rounds,
        },
        options.output,
    )


def _ratio_text(test: str, pair: Mapping[str, float]) -> str:
    return f"{test}: {pair['seatrial'] / pair['shoc']:.2f}"


def find(folder: Path, program: str) -> Path:
    """The path of one of SHOC's OpenCL programs."""
    found = [path for path in sorted(folder.rglob(program)) if path.is_file() and "mpi" not in path.parts]
    found = [path for path in found if "cuda" not in path.parts]
    if not found:
        raise SystemExit(f"SHOC's {program} not found below {folder}")
    return found[0].resolve()


def of_ours(one: Comparison, machine: Machine, size: str, slice_s: float) -> dict[str, float]:
    """The median of the samples of each test, from one run per precision."""
    seen: dict[str, float] = {}
    for precision in _PRECISIONS:
        item = ready(machine, f"gpu.{one.name}", backend="opencl", size=size, precision=precision)
        record = measure(item, machine, slice_s)
        for (of_precision, test), (figure, point) in one.tests.items():
            if of_precision != precision:
                continue
            values = [
                reading.value
                for reading in readings(item.point.benchmark, machine, item.point.parameters, record.samples)
                if reading.figure.name == figure and dict(reading.point) == dict(point)
            ]
            seen[test] = median(values)
    return seen


def of_shoc(one: Comparison, program: Path, size: str, passes: int) -> dict[str, float]:
    """The median of each test's trials."""
    seen: dict[str, float] = {}
    for precision, arguments in _arguments(one, size):
        output = _run([str(program), "-d", "0", "-n", str(passes), *arguments])
        try:
            (experiment,) = read_shoc(output).experiments
        except ParseError as error:
            raise SystemExit(f"{program}: {error}") from error
        for (of_precision, test), (figure, _point) in one.tests.items():
            if precision not in ("both", of_precision):
                continue
            counted = "bandwidth" if figure == "bandwidth" else "flops"
            seen[test] = median(
                next(iter(sample.work.values())) / sample.elapsed_s
                for sample in experiment.samples
                if sample.point["test"] == test and sample.series == counted
            )
    return seen


def _arguments(one: Comparison, size: str) -> list[tuple[str, list[str]]]:
    """For each run of its program: the precision to compare, and the arguments for the size."""
    if not one.counts_order:
        return [("both", ["-s", size])]
    return [(precision, ["--KiB", str(_ORDERS[size] * B // 1024)]) for precision, B in _PRECISIONS.items()]


def _run(command: Sequence[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, cwd=Path(command[0]).parent)
    return done.stdout


def ratios(rounds: Sequence[Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Iterator[tuple[str, float]]:
    """Ours over SHOC's, each the best of the rounds."""
    for name, tests in rounds[0].items():
        for test in tests:
            best = {who: max(one[name][test][who] for one in rounds) for who in ("seatrial", "shoc")}
            yield test, best["seatrial"] / best["shoc"]


def right(folder: Path, name: str, machine: Machine, size: str) -> dict[str, Any]:
    """Whether the results of a program are correct, by SHOC's own check and by ours."""
    output = _run([str(find(folder, _CHECKED[name])), "-d", "0", "-n", "1", "-s", size]).decode(errors="replace")
    messages = [line.strip() for line in output.splitlines() if line.startswith("Test ")]
    measure(ready(machine, f"gpu.{name}", backend="opencl", size=size), machine, 0.2)  # exits if the result is wrong
    return {"shoc": messages, "seatrial": "right"}


if __name__ == "__main__":
    main()
