"""cpu.linebounce compared with c2clat and core-to-core-latency: interleaved rounds, ratios pair by pair.

All figures are one-way trips (half a round):

* `cpu.linebounce`: two cores alternate on a word in one line. Each reads the line that the other wrote and writes it:
  per trip, one line moves and one copy is invalidated. Median over samples of a millisecond, each over 32 lines.
* `c2clat`: one flag per direction, in two lines. Each trip writes its own line, which invalidates the other's copy, and
  reads the other's: the same two messages. Best of 1000 samples of 100 rounds on one pair of lines, whole nanoseconds.
* `core-to-core-latency --csv`: first compare-and-swap by both on one line, which fetches it for writing at once, then
  flags in two lines as in c2clat. The mean of each pair; one matrix per method (older versions print only the first).
* our second method, written independently: one flag in one line that both write (the messages of linebounce in minimal
  code), flags in two lines as in c2clat, and compare-and-swap on one line, each over a page of lines and with samples
  of a millisecond, as in linebounce.

linebounce is therefore compared with one flag in one line. Two lines cost more, because one exchange of each must end
before the next trip can begin; compare-and-swap costs less, because the line is fetched for writing at once. Both are
also printed. The choice of the line in a page alone makes a difference of up to a factor of two
(docs/add-a-benchmark.md). A rival's figure is therefore the median of its rounds: each is a process with other lines.

    python bench/cpu_linebounce.py [--c2clat PATH] [--core-to-core-latency PATH] [--rounds 10]
                                   [-o docs/results/cpu_linebounce.json]

A rival without a path is skipped, which is printed.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from common import live_machine, measure, output_of, provenance, ready, rival_provenance, write

from seatrial.engine.ready import Ready
from seatrial.environments.build import NATIVE_HEADERS
from seatrial.environments.compiled import units_of
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings

Pair = tuple[int, int]
Times = Mapping[Pair, float]
"""(lesser CPU, greater CPU) -> one-way trip in seconds."""

OURS = "cpu.linebounce"
SECOND_TURNS = "own second method, one flag in one line"
SECOND_FLAGS = "own second method, flags in two lines"
SECOND_SWAP = "own second method, compare-and-swap"

SECOND_METHOD = r"""
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "affinity.hpp"
#include "barrier.hpp"
#include "clock.hpp"
#include "pages.hpp"

using namespace seatrial;

struct alignas(128) Flag {
  std::atomic<unsigned> word{0};
};

struct Place {
  Flag ping, pong;
};

constexpr unsigned places = 16; // two lines each: 32 lines, a page

void flags(Place& place, bool first, unsigned rounds) {
  for (unsigned n = 1; n <= rounds; ++n) {
    auto& own = first ? place.ping.word : place.pong.word;
    auto& others = first ? place.pong.word : place.ping.word;
    if (first)
      own.store(n, std::memory_order_release);
    while (others.load(std::memory_order_acquire) != n) {
    }
    if (!first)
      own.store(n, std::memory_order_release);
  }
}

// A minimal ping-pong: one word that both write; the same messages as cpu.linebounce, in independent code.
void turns(Place& place, bool first, unsigned rounds) {
  auto& word = place.ping.word;
  for (unsigned n = 0; n < rounds; ++n) {
    if (first)
      word.store(1, std::memory_order_release);
    while (word.load(std::memory_order_acquire) != (first ? 0 : 1)) {
    }
    if (!first)
      word.store(0, std::memory_order_release);
  }
}

void swap_words(Place& place, bool first, unsigned rounds) {
  const unsigned mine = first ? 0 : 1;
  for (unsigned n = 0; n < rounds; ++n)
    for (unsigned expected = mine;
         !place.ping.word.compare_exchange_strong(expected, 1 - mine, std::memory_order_acq_rel);)
      expected = mine;
}

// One sample of `rounds` rounds at each place: the time of a one-way trip.
template <class Method>
double trip_s(Method method, std::byte* page, int cpu_a, int cpu_b, unsigned rounds) {
  Place* all = nullptr;
  SpinBarrier start(2);
  Interval time;
  const auto body = [&](int cpu, bool first) {
    bind_to(cpu);
    if (first)
      all = new (page) Place[places];
    start.wait();
    if (first)
      time.start = Clock::now();
    for (unsigned i = 0; i < places; ++i)
      method(all[i], first, rounds);
    if (first)
      time.end = Clock::now();
  };
  std::thread other(body, cpu_b, false);
  body(cpu_a, true);
  other.join();
  return time.elapsed_s() / (2.0 * places * rounds);
}

template <class Method>
double median_s(Method method, int cpu_a, int cpu_b) {
  const Pages pages(base_page(), false);
  trip_s(method, pages.data(), cpu_a, cpu_b, 32);
  const double trial = trip_s(method, pages.data(), cpu_a, cpu_b, 32);
  const auto rounds = static_cast<unsigned>(1e-3 / (2.0 * places * trial)) + 1;
  std::vector<double> samples;
  for (int i = 0; i < 51; ++i)
    samples.push_back(trip_s(method, pages.data(), cpu_a, cpu_b, rounds));
  std::ranges::nth_element(samples, samples.begin() + 25);
  return samples[25];
}

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const int a = std::atoi(argv[i]);
    const int b = std::atoi(argv[i + 1]);
    std::printf("%d %d %.4g %.4g %.4g\n", a, b, median_s(turns, a, b), median_s(flags, a, b),
                median_s(swap_words, a, b));
  }
}
"""


def ours(item: Ready, machine: Machine) -> Times:
    """The median of each pair, from one run."""
    found = readings(item.point.benchmark, machine, item.point.parameters, measure(item, machine).samples)
    times: dict[Pair, float] = {}
    for reading in found:
        a, b = int(reading.point["cpu_a"]), int(reading.point["cpu_b"])
        times[min(a, b), max(a, b)] = reading.value
    return times


def build_second_method(item: Ready, folder: Path) -> Path:
    """Build our second method with the command that built the benchmark."""
    source, program = folder / "second.cpp", folder / "second"
    source.write_text(SECOND_METHOD, encoding="utf-8")
    own, *parts = units_of(source, NATIVE_HEADERS)
    words = [word for word in item.program.built.command[:-1] if word != "-c"]
    subprocess.run([*words, *(str(unit.source) for unit in (own, *parts)), "-o", str(program)], check=True)
    return program


def second_method(program: Path, pairs: Sequence[Pair]) -> dict[str, Times]:
    """Its times for these pairs, by method."""
    text = output_of([str(program), *(str(cpu) for pair in pairs for cpu in pair)])
    rows = [line.split() for line in text.splitlines()]
    return {
        name: {(int(row[0]), int(row[1])): float(row[column]) for row in rows}
        for name, column in ((SECOND_TURNS, 2), (SECOND_FLAGS, 3), (SECOND_SWAP, 4))
    }


def read_c2clat(text: str) -> Times:
    """c2clat's matrix in whole nanoseconds: a header of CPU numbers, then one row per CPU."""
    head, *rows = (line.split() for line in text.splitlines() if line.strip())
    if not head or head[0] != "CPU" or any(len(row) != len(head) for row in rows):
        raise SystemExit("cannot read the matrix that c2clat printed")
    cpus = [int(word) for word in head[1:]]
    return {
        (int(row[0]), cpu): float(ns) * 1e-9
        for row in rows
        for cpu, ns in zip(cpus, row[1:], strict=True)
        if int(row[0]) < cpu
    }


def read_core_to_core_latency(text: str, cpus: Sequence[int]) -> list[Times]:
    """Its matrices in nanoseconds, one per method: the lower half is filled, rows and columns are in CPU order."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    n = len(cpus)
    if not rows or len(rows) % n or any(len(row) != n for row in rows):
        raise SystemExit("cannot read the matrices that core-to-core-latency printed (is --csv supported?)")
    return [
        {(cpus[column], cpus[row]): float(block[row][column]) * 1e-9 for row in range(n) for column in range(row)}
        for block in (rows[begin : begin + n] for begin in range(0, len(rows), n))
    ]


def one_round(item: Ready, machine: Machine, second: Path, options: argparse.Namespace) -> dict[str, Times]:
    """Run each program once."""
    times: dict[str, Times] = {OURS: ours(item, machine)}
    times |= second_method(second, list(times[OURS]))
    if options.c2clat:
        times["c2clat"] = read_c2clat(output_of([str(options.c2clat)]))
    if options.core_to_core_latency:
        text = output_of([str(options.core_to_core_latency), "--csv"])
        names = ("core-to-core-latency, compare-and-swap", "core-to-core-latency, flags in two lines")
        times |= dict(zip(names, read_core_to_core_latency(text, machine.allowed_cpus), strict=False))
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--c2clat", type=Path, help="path of c2clat")
    parser.add_argument("--core-to-core-latency", type=Path, help="path of core-to-core-latency")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    item = ready(machine, "cpu.linebounce", threads="all", pairs="auto")
    programs = {"c2clat": options.c2clat, "core-to-core-latency": options.core_to_core_latency}
    for name, path in programs.items():
        if path is None:
            print(f"{name} skipped: no path given")
    with tempfile.TemporaryDirectory() as folder:
        second = build_second_method(item, Path(folder))
        rounds = [one_round(item, machine, second, options) for _ in range(options.rounds)]

    pairs = list(rounds[0][OURS])
    medians = {
        name: {pair: median(times[name][pair] for times in rounds) for pair in pairs if pair in rounds[0][name]}
        for name in rounds[0]
    }
    paired = {
        name: median(times[OURS][pair] / times[name][pair] for times in rounds for pair in medians[name])
        for name in medians
        if name != OURS and medians[name]
    }
    for name, times in medians.items():
        trips = "  ".join(f"{a}-{b} {s * 1e9:.1f} ns" for (a, b), s in list(times.items())[:8])
        print(f"{name}: {trips}" + (f"; ours / it {paired[name]:.3f}" if name in paired else ""))
    write(
        "cpu_linebounce",
        {
            "provenance": provenance(machine, item),
            "rivals": {name: rival_provenance(path) for name, path in programs.items() if path},
            "median_s": {name: _spelled(times) for name, times in medians.items()},
            "median_of_ratios_ours_over": paired,
            "rounds": [{name: _spelled(times) for name, times in entry.items()} for entry in rounds],
        },
        options.output,
    )


def _spelled(times: Times) -> dict[str, float]:
    return {f"{a}-{b}": seconds for (a, b), seconds in times.items()}


if __name__ == "__main__":
    main()
