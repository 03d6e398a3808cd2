"""memory.latency compared with lat_mem_rd (lmbench) and tinymembench: interleaved rounds, ratios at equal working sets.

Ours is a chase along one random ring, with base pages and with huge pages. What the others measure:

* `lat_mem_rd -t MiB 64` (lmbench 3): also a chase with a pointer in each line. Its ring visits a different page at each
  step, whereas ours is random over all lines. A TLB that covers some of the pages hits for none of its loads and
  some of ours (512 KiB on a Zen 5, whose first TLB has 96 entries: 5.6 against 4.0 ns with base pages). The levels
  are therefore compared where a TLB covers all of a set or almost nothing of it: with base pages up to 192 KiB (48
  entries) and from 64 MiB on, with huge pages from 16 MiB on. It gets huge pages from glibc (2.35 or later) through a
  variable; smaller sets do not fill any. It prints to stderr, in MiB and ns.
* `tinymembench`: random reads whose address depends on the value read, best of ten, with base and with huge pages if
  its version distinguishes them. It prints the time of a read beyond a first-level hit, so the latency of our smallest
  set is added. It draws its addresses with replacement, so a set of four times a cache hits in a quarter of its
  reads, whereas a ring almost never hits: far beyond the last cache its latency is lower than that of a ring.

    python bench/memory_latency.py [--lat-mem-rd PATH] [--tinymembench PATH] [--rounds 5]
                                   [-o docs/results/memory_latency.json]

lmbench is in Debian's non-free section; build tinymembench from source. A rival without a path is skipped, which is
printed. All run on the same CPU as ours (with taskset from util-linux). A round with lat_mem_rd takes half a minute.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, measure, provenance, ready, rival_provenance, write

from seatrial.analysis.roles import levels
from seatrial.engine.ready import Ready
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.results.record import readings

Curve = Mapping[int, float]
"""Working set in bytes -> load latency in seconds."""

OURS = "ours, base pages"
OURS_HUGE = "ours, huge pages"
LONGEST_S = 900.0
_MiB = 1 << 20
_LMBENCH_ROW = re.compile(r"^(\d+\.\d+) (\d+\.\d+)$", re.MULTILINE)
_TINY_ROW = re.compile(r"^ *(\d+) +: +(\d+\.\d) ns +/ ")
_BASE_PAGES_REACH_B = 192 << 10
_BEYOND_REACH_B = 64 * _MiB
_HUGE_PAGES_FROM_B = 16 * _MiB
_MAY_ROUND_B = 6
"""lat_mem_rd prints MiB with five decimals, a resolution of 10 B."""


def ours(item: Ready, machine: Machine) -> Curve:
    """The median at each working set, from one run."""
    found = readings(item.point.benchmark, machine, item.point.parameters, measure(item, machine).samples)
    return {int(reading.point["working_set_B"]): reading.value for reading in found}


def printed_by(command: Sequence[str], cpu: int, **variables: str) -> str:
    """Run a rival on one CPU; its stdout and stderr."""
    done = subprocess.run(
        ["taskset", "-c", str(cpu), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **variables},
        timeout=LONGEST_S,
    )
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stdout[-300:]}")
    return done.stdout


def read_lat_mem_rd(text: str, sizes: Iterable[int]) -> Curve:
    """Its curve at the given sizes, where it has them; it prints sizes rounded to 10 B."""
    rows = [(float(size) * _MiB, float(ns) * 1e-9) for size, ns in _LMBENCH_ROW.findall(text)]
    return {size: s for size in sizes for there, s in rows if abs(size - there) <= _MAY_ROUND_B and s > 0}


def read_tinymembench(text: str, first_level_s: float) -> dict[str, Curve]:
    """Its curves for single random reads, by page size; `first_level_s` is added to each value."""
    curves: dict[str, dict[int, float]] = {}
    pages: str | None = None
    for line in text.splitlines():
        if line.startswith("block size :"):
            pages = "huge pages" if "[MADV_HUGEPAGE]" in line else "base pages"
        elif pages is not None and (row := _TINY_ROW.match(line)):
            curves.setdefault(pages, {})[int(row[1])] = float(row[2]) * 1e-9 + first_level_s
    return {f"tinymembench, {pages}": curve for pages, curve in curves.items()}


def one_round(items: Mapping[str, Ready], machine: Machine, options: argparse.Namespace) -> dict[str, Curve]:
    """Run each program once."""
    cpu = next(iter(items.values())).point.cpus[0]
    curves: dict[str, Curve] = {name: ours(item, machine) for name, item in items.items()}
    if options.lat_mem_rd:
        largest = max(curves[OURS]) // _MiB
        # One repetition of 10 ms, because this script makes the rounds. Its correction for loop overhead is off;
        # the loop runs once per hundred loads.
        command = [str(options.lat_mem_rd), "-P", "1", "-W", "0", "-N", "1", "-t", str(largest), "64"]
        for pages, variables in (("base pages", {}), ("huge pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"})):
            text = printed_by(command, cpu, ENOUGH="10000", TIMING_O="0", LOOP_O="0", **variables)
            curves[f"lat_mem_rd, {pages}"] = read_lat_mem_rd(text, curves[OURS])
    if options.tinymembench:
        first_level_s = min(curves[OURS].values())
        curves |= read_tinymembench(printed_by([str(options.tinymembench)], cpu), first_level_s)
    for name, curve in curves.items():
        if not curve:
            raise SystemExit(f"cannot read the latencies that {name} printed")
    return curves


def over_rounds(rounds: Sequence[Mapping[str, Curve]], choose: Callable[[list[float]], float]) -> dict[str, Curve]:
    """One curve per program; `choose` selects the value at each size from the rounds."""
    return {
        name: {size: choose([curves[name][size] for curves in rounds]) for size in rounds[0][name]}
        for name in rounds[0]
    }


def compare(rounds: Sequence[Mapping[str, Curve]]) -> dict[str, dict[str, dict[int, float]]]:
    """Rival -> ours over theirs at each common set: ratio of the best rounds, median of the ratios within rounds."""
    best = over_rounds(rounds, min)
    compared: dict[str, dict[str, dict[int, float]]] = {}
    for name in best:
        if name in (OURS, OURS_HUGE):
            continue
        own = own_of(name)
        sizes = sorted(best[own].keys() & best[name].keys())
        compared[name] = {
            "best": {size: best[own][size] / best[name][size] for size in sizes},
            "median": {size: median(r[own][size] / r[name][size] for r in rounds) for size in sizes},
        }
    return compared


def own_of(name: str) -> str:
    """Which of our curves a rival is compared with."""
    return OURS_HUGE if name.endswith("huge pages") else OURS


def is_alike(name: str, size: int) -> bool:
    """Whether a rival measures the same quantity as ours at a working set."""
    if not name.startswith("lat_mem_rd"):
        return True
    if name.endswith("huge pages"):
        return size >= _HUGE_PAGES_FROM_B
    return size <= _BASE_PAGES_REACH_B or size >= _BEYOND_REACH_B


def level_sets(item: Ready, machine: Machine, curve: Curve) -> dict[str, int]:
    """Level of the memory hierarchy -> the working set that represents it."""
    figure = item.point.benchmark.figures[0]
    points = [
        FigureResult(figure.name, {"working_set_B": size}, "s", figure.better, figure.work, s, None, s, s, 1, None, ())
        for size, s in curve.items()
    ]
    return {level.name: level.working_set_B for level in levels(machine, points, item.point.cpus[0])}


def at_levels(item: Ready, machine: Machine, compared: Mapping[str, Any], best: Mapping[str, Curve]) -> dict[str, Any]:
    """Rival -> level -> both latencies and their ratios, at the working set that represents the level."""
    found: dict[str, Any] = {}
    for name, ratios in compared.items():
        mine, theirs = best[own_of(name)], best[name]
        alike = {size: mine[size] for size in ratios["best"] if is_alike(name, size)}
        found[name] = {
            level: {
                "working_set_B": size,
                "ours_s": mine[size],
                "theirs_s": theirs[size],
                "ratio_of_best": ratios["best"][size],
                "median_of_ratios": ratios["median"][size],
            }
            for level, size in level_sets(item, machine, alike).items()
        }
    return found


def show(held: Mapping[str, Any]) -> None:
    """Print a line for each rival and level."""
    for name, by_level in held.items():
        for level, entry in by_level.items():
            print(
                f"{level} ({entry['working_set_B'] >> 10} KiB): ours {entry['ours_s'] * 1e9:.2f} ns,"
                f" {name} {entry['theirs_s'] * 1e9:.2f} ns, ratio of the best {entry['ratio_of_best']:.3f},"
                f" median of ratios {entry['median_of_ratios']:.3f}"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lat-mem-rd", type=Path, help="path of lmbench's lat_mem_rd")
    parser.add_argument("--tinymembench", type=Path, help="path of tinymembench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    items = {
        OURS: ready(machine, "memory.latency", huge_pages="false"),
        OURS_HUGE: ready(machine, "memory.latency", huge_pages="true"),
    }
    programs = {"lat_mem_rd": options.lat_mem_rd, "tinymembench": options.tinymembench}
    for name, path in programs.items():
        if path is None:
            print(f"{name} skipped: no path given")

    rounds = [one_round(items, machine, options) for _ in range(options.rounds)]
    best, compared = over_rounds(rounds, min), compare(rounds)
    for name, item in items.items():
        ladder = level_sets(item, machine, best[name])
        rungs = (f"{level} ({size >> 10} KiB) {best[name][size] * 1e9:.2f} ns" for level, size in ladder.items())
        print(f"{name}: {'  '.join(rungs)}")
    held = at_levels(items[OURS], machine, compared, best)
    show(held)
    write(
        "memory_latency",
        {
            "provenance": provenance(machine, items[OURS]),
            "rivals": {name: rival_provenance(path) for name, path in programs.items() if path},
            "levels": held,
            "best_s": best,
            "ours_over_rival": compared,
            "rounds": rounds,
        },
        options.output,
    )


if __name__ == "__main__":
    main()
