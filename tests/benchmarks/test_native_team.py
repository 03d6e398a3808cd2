"""The team of threads: who works, who sleeps, and what happens to an exception, watched by ThreadSanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.environments.build import NATIVE_HEADERS
from seatrial.environments.compiled import units_of
from seatrial.environments.compiler import first_compiler
from seatrial.model.machine.machine import Machine

pytestmark = pytest.mark.real

# More members than CPUs, which the programs' arguments refuse: nobody spins here.
SOURCE = r"""
#include <array>
#include <cstdio>
#include <stdexcept>
#include "team.hpp"

int main(int, char** argv) {
  const int cpu = std::atoi(argv[1]);
  const std::array cpus{cpu, cpu, cpu, cpu};
  std::array<long, 4> jobs{};
  seatrial::Team team(cpus);
  const auto count = [&](std::size_t member) { ++jobs[member]; };
  const std::array<std::size_t, 2> without_caller{2, 3}, with_caller{0, 2};
  for (int i = 0; i < 500; ++i) {
    team.run_on(without_caller, count);
    team.run_on(with_caller, count);
  }
  team.run(count);
  bool caught = false;
  try {
    team.run_on(without_caller, [](std::size_t member) {
      if (member == 3)
        throw std::runtime_error("planted");
    });
  } catch (const std::runtime_error&) {
    caught = true;
  }
  team.run(count); // still of use
  std::printf("%ld %ld %ld %ld %d\n", jobs[0], jobs[1], jobs[2], jobs[3], caught);
}
"""


@pytest.mark.parametrize("sanitizer", [(), ("-fsanitize=thread",)], ids=["plain", "thread sanitizer"])
def test_only_the_members_that_are_named_work(
    sanitizer: tuple[str, ...], live_machine: Machine, tmp_path: Path
) -> None:
    source, program = tmp_path / "team.cpp", tmp_path / "team"
    source.write_text("#include <cstdlib>\n" + SOURCE)
    compiler = first_compiler()
    command = (*compiler.command, "-std=c++20", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitizer)
    files = [str(unit.source) for unit in units_of(source, NATIVE_HEADERS)]
    built = subprocess.run((*command, "-I", str(NATIVE_HEADERS), *files, "-o", str(program)), stderr=subprocess.PIPE)
    if built.returncode != 0 and sanitizer:
        pytest.skip(f"{compiler.name} cannot build with {sanitizer[0]}")
    assert built.returncode == 0, built.stderr.decode()
    done = subprocess.run([str(program), str(live_machine.allowed_cpus[0])], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["502", "2", "1002", "502", "1"]
