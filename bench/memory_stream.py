"""memory.stream compared with STREAM, BabelStream and likwid-bench: interleaved rounds, best of rounds.

Each takes about 20 samples of triad per round, likwid-bench one of a second. The ratios of the best are printed, and
the medians of the ratios within each round, which are less sensitive to machine drift.

    python bench/memory_stream.py [--stream PATH] [--babelstream PATH] [--likwid-bench PATH] [--rounds 20]
                                  [-o docs/results/memory_stream.json]

Build the rivals with the compiler, flags and array size that this script prints for ours, and with -fopenmp;
-frecord-gcc-switches lets the script report their flags. A rival without a path is skipped, which is printed.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from statistics import median

from common import live_machine, measure, output_of, provenance, ready, rival_provenance, write

from seatrial.engine.ready import Ready
from seatrial.model.machine.machine import Machine

SLICE_S = 1.0
"""Enough for about 20 rounds of four kernels at 30 to 50 GB/s, the number that the rivals are set to run."""


def ours(item: Ready, machine: Machine) -> float:
    """The best triad of one run, in B/s, as STREAM reports it."""
    samples = [sample for sample in measure(item, machine, SLICE_S).samples if sample.series == "triad"]
    return max(sample.work["bytes"] / sample.elapsed_s for sample in samples)


def stream(program: Path, threads: int) -> float:
    """STREAM's "Best Rate" of triad, in B/s."""
    text = output_of([str(program)], OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true")
    match = re.search(r"^Triad:\s+([\d.]+)", text, re.MULTILINE)
    if match is None or "Solution Validates" not in text:
        raise SystemExit(f"{program} did not print a valid STREAM result")
    return float(match[1]) * 1e6


def babelstream(program: Path, threads: int, elements: int) -> float:
    """BabelStream's best triad, in B/s."""
    arguments = [str(program), "--arraysize", str(elements), "--numtimes", "20"]
    text = output_of(arguments, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true")
    match = re.search(r"^Triad\s+([\d.]+)", text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"{program} did not print a BabelStream result")
    return float(match[1]) * 1e6


def likwid_bench(program: Path, kernel: str, threads: int, elements: int) -> float:
    """likwid-bench's rate of its STREAM triad, in B/s: one figure over a second."""
    text = output_of([str(program), "-t", kernel, "-s", "1", "-w", f"N:{3 * 8 * elements // 1000}kB:{threads}"])
    match = re.search(r"^MByte/s:\s+([\d.]+)", text, re.MULTILINE)
    if match is None or float(match[1]) == 0:
        raise SystemExit(f"{program} -t {kernel} printed no rate")
    return float(match[1]) * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", type=Path, help="path of STREAM")
    parser.add_argument("--babelstream", type=Path, help="path of BabelStream (OpenMP)")
    parser.add_argument("--likwid-bench", type=Path, help="path of likwid-bench")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    plain = ready(machine, "memory.stream", nontemporal="false")
    nontemporal = ready(machine, "memory.stream", nontemporal="true")
    threads = len(plain.point.cpus)
    elements = int(plain.point.parameters["array_B"]) // 8
    print(f"arrays of {elements} elements, {threads} threads; ours: {' '.join(plain.program.built.command)}")

    wide = "avx512" if "avx512f" in plain.program.built.hello.isa else "avx"

    rounds: list[dict[str, float]] = []
    for _ in range(options.rounds):
        result = {"plain": ours(plain, machine)}
        if options.stream:
            result["STREAM"] = stream(options.stream, threads)
        result["nontemporal"] = ours(nontemporal, machine)
        if options.babelstream:
            result["BabelStream"] = babelstream(options.babelstream, threads, elements)
        if options.likwid_bench:
            likwid = options.likwid_bench
            result["likwid-bench"] = likwid_bench(likwid, f"stream_{wide}_fma", threads, elements)
            result["likwid-bench non-temporal"] = likwid_bench(likwid, f"stream_mem_{wide}", threads, elements)
        rounds.append(result)
        print("  ".join(f"{name} {rate / 1e9:.2f} GB/s" for name, rate in result.items()))

    best = {name: max(result[name] for result in rounds) for name in rounds[0]}
    programs = {"STREAM": options.stream, "BabelStream": options.babelstream, "likwid-bench": options.likwid_bench}
    rivals = [name for name, path in programs.items() if path]
    for name, path in programs.items():
        if path is None:
            print(f"{name} skipped: no path given")
    ratios, paired = {}, {}
    if rivals:
        ratios["plain / better rival"] = best["plain"] / max(best[name] for name in rivals)
        paired = {f"plain / {name}": median(result["plain"] / result[name] for result in rounds) for name in rivals}
    if "STREAM" in best:
        ratios["non-temporal / STREAM"] = best["nontemporal"] / best["STREAM"]
        paired["non-temporal / STREAM"] = median(result["nontemporal"] / result["STREAM"] for result in rounds)
    if options.likwid_bench:
        theirs = "likwid-bench non-temporal"
        ratios[f"non-temporal / {theirs}"] = best["nontemporal"] / best[theirs]
        paired[f"non-temporal / {theirs}"] = median(result["nontemporal"] / result[theirs] for result in rounds)
    write(
        "memory_stream",
        {
            "provenance": provenance(machine, plain),
            "rivals": {name: rival_provenance(path) for name, path in programs.items() if path},
            "triad_best_Bps": best,
            "ratios": ratios,
            "median_of_ratios_within_rounds": paired,
            "rounds": rounds,
        },
        options.output,
    )


if __name__ == "__main__":
    main()
