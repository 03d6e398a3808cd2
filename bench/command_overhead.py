"""Overhead of the benchmark `command`, compared with a plain C loop and, if it is on PATH, with hyperfine.

The programs do nothing, or spin for 10 ms; they are static, to exclude the loader. Rounds are interleaved, in
random order.

python bench/command_overhead.py [--rounds N] [-o docs/results/command_overhead.json]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, measure, output_of, provenance, ready, write

PROGRAMS = {
    "empty": "int main(void) { return 0; }",
    "spin_10ms": """
#include <time.h>
int main(void) {
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1000000000LL + now.tv_nsec - start.tv_nsec < 10000000);
  return 0;
}""",
}
LOOP = """
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
extern char **environ;
int main(int argc, char **argv) {
  struct timespec start, end;
  pid_t child;
  int status;
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (argc < 2 || posix_spawn(&child, argv[1], 0, 0, argv + 1, environ) != 0) return 1;
  waitpid(child, &status, 0);
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.9f\\n", (end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec));
  return status != 0;
}"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    provenances: dict[str, Any] = {}
    times: dict[str, dict[str, list[float]]] = {}
    hyperfine = shutil.which("hyperfine")
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        loop = compiled(folder, "loop", LOOP)
        contestants: list[tuple[str, str, Callable[[], float]]] = []
        for name, source in PROGRAMS.items():
            program = str(compiled(folder, name, source, "-static"))
            item = ready(machine, "command", argv=(program,))
            provenances = provenance(machine, item)
            contestants.append((name, "seatrial", lambda item=item: measure(item, machine).samples[0].elapsed_s))
            contestants.append((name, "loop in C", lambda program=program: float(output_of([str(loop), program]))))
            if hyperfine:
                contestants.append(
                    (name, "hyperfine", lambda program=program: hyperfine_s(hyperfine, program, folder / "out"))
                )
        for _ in range(options.rounds):
            for name, who, once in random.sample(contestants, len(contestants)):
                times.setdefault(name, {}).setdefault(who, []).append(once())
    write(
        "command_overhead",
        {
            "provenance": provenances,
            "hyperfine": output_of([hyperfine, "--version"]).strip() if hyperfine else "not on PATH",
            "rounds": options.rounds,
            "seconds": {
                name: {who: {"min": min(all_s), "median": median(all_s), "all": all_s} for who, all_s in by_who.items()}
                for name, by_who in times.items()
            },
        },
        options.output,
    )


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    """Compile a C program."""
    (folder / f"{name}.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-O2", str(folder / f"{name}.c"), *options, "-o", str(folder / name)], check=True)
    return folder / name


def hyperfine_s(hyperfine: str, program: str, output: Path) -> float:
    """Wall time of one run by hyperfine, without a shell."""
    output_of([hyperfine, "-N", "--runs", "1", "--export-json", str(output), program])
    return float(json.loads(output.read_bytes())["results"][0]["times"][0])


if __name__ == "__main__":
    main()
