"""The step of the clock: found whatever it is, and samples that last long enough for it. A preloaded library rounds the
clock of real programs."""

from __future__ import annotations

import os
import statistics
import subprocess
from pathlib import Path

import pytest
from engine.harness import make_ready

from seatrial.benchmarks.cpu.linebounce import BENCHMARK as LINEBOUNCE
from seatrial.environments.build import NATIVE_HEADERS
from seatrial.environments.compiled import units_of
from seatrial.environments.compiler import first_compiler
from seatrial.model.benchmark.program import parse_record
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real

COARSE_CLOCK = r"""
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec* time) {
  const long status = syscall(SYS_clock_gettime, id, time);
  if (status == 0 && id == CLOCK_MONOTONIC) {
    const double step = atof(getenv("STEP_NS"));
    const long long now = time->tv_sec * 1000000000LL + time->tv_nsec;
    const long long shown = (long long)(floor(now / step) * step);
    time->tv_sec = shown / 1000000000LL;
    time->tv_nsec = shown % 1000000000LL;
  }
  return (int)status;
}
"""

SOURCE = r"""
#include <cstdio>
#include "clock.hpp"
#include "clock_step.hpp"
using namespace seatrial;

double spin(std::uint64_t n) {
  return timed([&] {
    for (std::uint64_t i = 0; i < n; ++i)
      asm volatile("" ::: "memory");
  }).elapsed_s();
}

int main() {
  const auto n = repetitions_lasting(1e-3, clock_step_s(), 10, spin);
  std::printf("%.9g %.9g\n", clock_step_s(), spin(n));
}
"""

INTERRUPTED = r"""
#include <cstdio>
#include "clock_step.hpp"

// Repeated work of 1 ns; the system interrupts the first trial that is long enough, for 5 ms.
int main() {
  bool interrupted = false;
  const auto run = [&](std::uint64_t n) {
    const double took_s = 1e-9 * static_cast<double>(n);
    if (interrupted || n < 640)
      return took_s;
    interrupted = true;
    return took_s + 5e-3;
  };
  std::printf("%llu\n", static_cast<unsigned long long>(seatrial::repetitions_lasting(1e-3, 1e-9, 10, run)));
}
"""


def compiled(source: Path, text: str, *flags: str) -> Path:
    source.write_text(text)
    program = source.with_suffix("")
    units = (
        [str(unit.source) for unit in units_of(source, NATIVE_HEADERS)] if source.suffix == ".cpp" else [str(source)]
    )
    compiler = first_compiler()
    language = ("-std=c++20",) if source.suffix == ".cpp" else ("-x", "c")
    command = (*compiler.command, *language, "-O2", "-Wall", "-Wextra", "-Werror", *flags, "-I", str(NATIVE_HEADERS))
    built = subprocess.run((*command, *units, "-o", str(program), "-lm"), stderr=subprocess.PIPE)
    assert built.returncode == 0, built.stderr.decode()
    return program


@pytest.fixture(scope="module")
def coarse_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("clock") / "clock.c", COARSE_CLOCK, "-shared", "-fPIC")


@pytest.fixture(scope="module")
def step_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("step") / "step.cpp", SOURCE, "-pthread")


@pytest.mark.parametrize("step_ns", [125.0 / 3.0, 1000.0, 30_517.578125, 1e6])
def test_the_step_is_found_and_work_lasts_1000_of_it(step_ns: float, step_program: Path, coarse_clock: Path) -> None:
    """ARM's 24 MHz counter, a microsecond, a 32768 Hz clock, a kernel tick."""
    with_step = {**os.environ, "LD_PRELOAD": str(coarse_clock), "STEP_NS": f"{step_ns!r}"}
    took = []
    for _ in range(3):  # the processor may be faster than when the program tried its number of repetitions
        shown = subprocess.run([str(step_program)], env=with_step, capture_output=True, check=True, timeout=60)
        step_s, took_s = map(float, shown.stdout.split())
        took.append(took_s / step_s)
    # A system call for each read may take several steps of the finest clock.
    multiple = step_s / (step_ns * 1e-9)
    assert abs(multiple - round(multiple)) < 0.05 and 1 <= round(multiple) <= (40 if step_ns < 1000 else 1)
    assert max(took) >= 500 and took_s >= 0.2e-3


def test_the_step_of_this_machines_clock(step_program: Path) -> None:
    shown = subprocess.run([str(step_program)], capture_output=True, check=True, timeout=60)
    step_s, took_s = map(float, shown.stdout.split())
    assert 1e-9 <= step_s <= 1e-5 and took_s >= 0.3e-3


def test_an_interruption_of_a_trial_does_not_shorten_the_work(tmp_path: Path) -> None:
    program = compiled(tmp_path / "interrupted.cpp", INTERRUPTED)
    assert int(subprocess.check_output([str(program)], timeout=60)) == pytest.approx(1_000_000, rel=0.01)


def test_a_program_on_a_coarse_clock_takes_longer_samples(
    live_machine: Machine, coarse_clock: Path, tmp_path: Path
) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("one CPU: needs two")
    with_step = {**os.environ, "LD_PRELOAD": str(coarse_clock), "STEP_NS": "20000"}
    program = make_ready(LINEBOUNCE, live_machine, ResultsFolder.create(tmp_path / "results")).program.path
    medians = []
    for attempt in range(3):  # another load may slow the lines down while the program chooses the number of trips
        folder = tmp_path / f"record-{attempt}"
        folder.mkdir()
        command = [str(program), "--record", str(folder), "--cpus", ",".join(map(str, cpus)), "--slice", "0.05"]
        subprocess.run(command, env=with_step, check=True, timeout=120)
        (file,) = folder.glob("*.jsonl")
        record = parse_record(file.read_bytes())
        assert record.hello is not None and record.hello.clock_step_s == pytest.approx(20e-6)
        medians.append(statistics.median(sample.elapsed_s for sample in record.samples))
    assert max(medians) >= 500 * 20e-6
