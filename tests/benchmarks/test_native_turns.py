"""Programs that take turns: never two at work at the same time, no round lost, and no one left waiting for the dead."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.environments.build import NATIVE_HEADERS, build
from seatrial.environments.compiled import units_of
from seatrial.environments.compiler import first_compiler
from seatrial.errors import Exit
from seatrial.launch.local import Completed, LocalProgram, run, run_together
from seatrial.model.benchmark.program import parse_record
from seatrial.model.machine.machine import Machine

pytestmark = pytest.mark.real

# Prints when it worked (set-up, rounds, a verification), and what its last member had of CPU time while it waited.
SOURCE = r"""
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
#include <sys/time.h>
#include "arguments.hpp"
#include "clock.hpp"
#include "team.hpp"
#include "turns.hpp"

using namespace seatrial;

namespace {
std::vector<std::array<long long, 2>> worked;

long long now() { return Clock::now().time_since_epoch().count(); }

void rest(long ns) {
  timespec pause{0, ns};
  nanosleep(&pause, nullptr);
}

void work() {
  const auto begin = now();
  rest(3'000'000);
  worked.push_back({begin, now()});
}

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
}

int main(int argc, char** argv) try {
  Arguments arguments(argc, argv);
  const auto cpus = arguments.cpus("--cpus");
  const auto rounds = arguments.number("--rounds", 10, 0, 1000);
  const auto dies_after = arguments.number("--dies-after", -1, -1, 1000);
  itimerval alarm{};
  alarm.it_value.tv_usec = arguments.number("--dies-after-us", 0, 0, 999'999);
  Turns turns(arguments, cpus.size());
  arguments.finish();
  turns.await_first();
  setitimer(ITIMER_REAL, &alarm, nullptr);
  work();
  Team team(cpus);
  double waiting_cpu_s = 0;
  long long waiting_ns = 0;
  std::vector<long long> later(static_cast<std::size_t>(rounds)); // the last member's work lasts longer
  team.run([&](std::size_t member) {
    for (int done = 0; done <= rounds; ++done) {
      const auto cpu = cpu_s();
      const auto begin = now();
      turns.pass(team, member);
      if (member + 1 == cpus.size()) {
        waiting_cpu_s += cpu_s() - cpu;
        waiting_ns += now() - begin;
      }
      if (member == 0 && done < rounds)
        work();
      else if (member != 0 && done < rounds) {
        rest(5'000'000);
        later[static_cast<std::size_t>(done)] = now();
      }
      if (member == 0 && done == dies_after)
        std::abort();
    }
  });
  for (std::size_t round = 0; round < later.size(); ++round)
    worked[round + 1][1] = std::max(worked[round + 1][1], later[round]);
  work();
  for (const auto& [begin, end] : worked)
    std::printf("%lld %lld\n", begin, end);
  std::printf("%u %g %g\n", turns.taken().value_or(0), waiting_cpu_s, 1e-9 * static_cast<double>(waiting_ns));
} catch (const Failure& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return static_cast<int>(failure.status());
}
"""

Start = Callable[..., list[Completed]]


def compiled(folder: Path, *flags: str) -> Path:
    source, program = folder / "turns.cpp", folder / "turns"
    source.write_text(SOURCE)
    compiler = first_compiler()
    command = (*compiler.command, "-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", *flags)
    files = [str(unit.source) for unit in units_of(source, NATIVE_HEADERS)]
    built = subprocess.run((*command, "-I", str(NATIVE_HEADERS), *files, "-o", str(program)), stderr=subprocess.PIPE)
    if built.returncode != 0 and flags:
        pytest.skip(f"{compiler.name} cannot build with {flags[0]}")
    assert built.returncode == 0, built.stderr.decode()
    return program


@pytest.fixture(scope="module")
def turns_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("turns"))


@pytest.fixture
def program_that_sees_races(tmp_path: Path) -> Path:
    return compiled(tmp_path, "-fsanitize=thread")


def start(program: Path, folder: Path, *partners: Mapping[str, int], cpus: str) -> list[Completed]:
    folders = [folder / str(number) for number in range(len(partners))]
    for own in folders:
        own.mkdir()
    return run_together(
        [
            LocalProgram(
                [str(program), "--cpus", cpus, *(str(part) for item in given.items() for part in item)], {}, own
            )
            for given, own in zip(partners, folders, strict=True)
        ],
        60.0,
    )


def worked(folder: Path, number: int) -> list[tuple[int, int]]:
    """When a partner worked, from its output; its last line is of something else."""
    lines = (folder / str(number) / "stdout").read_text().splitlines()[:-1]
    return [(int(begin), int(end)) for begin, end in (line.split() for line in lines)]


def assert_one_at_a_time(*partners: list[tuple[int, int]]) -> None:
    together = sorted(interval for intervals in partners for interval in intervals)
    for (_, end), (begin, _) in pairwise(together):
        assert end <= begin, "two worked at the same time"


def some_cpus(machine: Machine, count: int) -> str:
    if len(machine.allowed_cpus) < count:
        pytest.skip(f"needs {count} CPUs")
    return ",".join(map(str, machine.allowed_cpus[:count]))


@pytest.mark.quiet
@pytest.mark.parametrize("partners", [2, 3])
@pytest.mark.parametrize("members", [1, 2])
def test_one_works_at_a_time_and_rounds_alternate(
    members: int, partners: int, turns_program: Path, live_machine: Machine, tmp_path: Path
) -> None:
    done = start(turns_program, tmp_path, *[{}] * partners, cpus=some_cpus(live_machine, members))
    assert [one.returncode for one in done] == [0] * partners, done
    all_worked = [worked(tmp_path, number) for number in range(partners)]
    assert [len(intervals) for intervals in all_worked] == [12] * partners
    assert_one_at_a_time(*all_worked)
    order = [number for _, number in sorted((i[0], k) for k, own in enumerate(all_worked) for i in own)]
    rounds = order[: 11 * partners]  # set-up and ten rounds; then one after the other ends
    assert rounds == list(range(partners)) * 11, "the leader first, then in turns"


@pytest.mark.quiet
def test_sleepers_leave_the_cpus_to_the_partner(turns_program: Path, live_machine: Machine, tmp_path: Path) -> None:
    done = start(turns_program, tmp_path, {}, {}, cpus=some_cpus(live_machine, 2))
    assert all(one.returncode == 0 for one in done)
    for number in (0, 1):
        taken, cpu_s, waited_s = map(float, (tmp_path / str(number) / "stdout").read_text().splitlines()[-1].split())
        assert taken >= 10 and cpu_s < waited_s / 2, "it spun on a CPU that is the partner's"


@pytest.mark.parallel
def test_the_threads_of_a_program_meet_without_a_race(
    program_that_sees_races: Path, live_machine: Machine, tmp_path: Path
) -> None:
    done = start(program_that_sees_races, tmp_path, {}, {}, cpus=some_cpus(live_machine, 2))
    assert [one.returncode for one in done] == [0, 0], done


@pytest.mark.quiet
@pytest.mark.parametrize("partners", [2, 3])
@pytest.mark.parametrize("dying", [0, 1])
@pytest.mark.parametrize("how", [{"--dies-after": 0}, {"--dies-after": 4}])
def test_nobody_waits_for_one_that_died_in_its_turn(
    how: dict[str, int], dying: int, partners: int, turns_program: Path, live_machine: Machine, tmp_path: Path
) -> None:
    given = [how if number == dying else {} for number in range(partners)]
    done = start(turns_program, tmp_path, *given, cpus=some_cpus(live_machine, 1))
    assert [one.returncode == 0 for one in done] == [number != dying for number in range(partners)]
    alive = [worked(tmp_path, number) for number in range(partners) if number != dying]
    assert all(len(intervals) == 12 for intervals in alive)
    assert_one_at_a_time(*alive)


@pytest.mark.quiet
@pytest.mark.parametrize("after_us", [1, 7_000, 11_000, 16_500, 22_000])
def test_one_of_two_that_is_killed_at_any_moment_does_not_hold_the_other_up(
    after_us: int, turns_program: Path, live_machine: Machine, tmp_path: Path
) -> None:
    done = start(turns_program, tmp_path, {"--dies-after-us": after_us}, {}, cpus=some_cpus(live_machine, 1))
    assert done[0].died_of == "was killed by SIGALRM" and done[1].returncode == 0
    assert len(worked(tmp_path, 1)) == 12
    assert_one_at_a_time(worked(tmp_path, 1))


@pytest.mark.quiet
def test_rounds_may_be_of_any_number(turns_program: Path, live_machine: Machine, tmp_path: Path) -> None:
    numbers = (0, 7, 3)
    given = [{"--rounds": number} for number in numbers]
    done = start(turns_program, tmp_path, *given, cpus=some_cpus(live_machine, 1))
    assert all(one.returncode == 0 for one in done)
    all_worked = [worked(tmp_path, k) for k in range(len(numbers))]
    assert [len(intervals) - 2 for intervals in all_worked] == list(numbers)
    assert_one_at_a_time(*all_worked)


@pytest.mark.quiet
def test_a_program_that_nobody_waits_for_takes_no_turns(
    turns_program: Path, live_machine: Machine, tmp_path: Path
) -> None:
    (done,) = start(turns_program, tmp_path, {}, cpus=some_cpus(live_machine, 1))
    assert done.returncode == 0 and (tmp_path / "0" / "stdout").read_text().splitlines()[-1].startswith("0 ")
    (tmp_path / "wrong").mkdir()
    for turns in ("5", "5-6,6-7", "a-b"):
        wrong = run([str(turns_program), "--cpus", "0", "--turns", turns], {}, tmp_path / "wrong", 60.0)
        assert wrong.returncode == Exit.USAGE and "--turns" in wrong.evidence


@pytest.mark.quiet
@pytest.mark.parametrize("kernel", ["all", "copy", "triad"])
@pytest.mark.parametrize("nontemporal", [0, 1])
def test_stream_is_exact_between_turns(kernel: str, nontemporal: int, live_machine: Machine, tmp_path: Path) -> None:
    from seatrial.environments.chosen import native_environment

    program = build(native_environment(live_machine), STREAM.program.source)
    folders = [tmp_path / name for name in ("a", "b")]
    programs = []
    for folder in folders:
        folder.mkdir()
        own = ["--kernel", kernel, "--nontemporal", str(nontemporal), "--array-bytes", str(1 << 20), "--slice", "0.05"]
        cpus = some_cpus(live_machine, min(2, len(live_machine.allowed_cpus)))
        command = [str(program.path), "--record", str(folder), "--cpus", cpus, *own]
        programs.append(LocalProgram(command, os.environ, folder))
    assert [done.returncode for done in run_together(programs, 60.0)] == [0, 0]
    for folder in folders:
        record = parse_record((folder / "rank-000000.jsonl").read_bytes())
        assert record.ended and int(record.notes["turns"]) > 3
        assert {name: value for name, value in record.checks.items() if name.endswith("mismatches")} == dict.fromkeys(
            [f"{name}_mismatches" for name in ("copy", "scale", "add", "triad")], 0.0
        )
        assert len(record.samples) >= 4 and {s.series for s in record.samples} >= {
            "triad" if kernel == "all" else kernel
        }
