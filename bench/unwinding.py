"""The MPI profiler's call paths (`seatrial profile --paths`) compared with libgcc's `_Unwind_Backtrace`: time, and
whether both find the same return addresses.

The program `unwinding.c` holds both and reads the same frames with them; it is compiled with each compiler and level of
optimisation, with the flags that distributions use (no frame pointers). Times are medians over the rounds, of each run
the 10th percentile of its batches.

    python bench/unwinding.py [--rounds 5] [--batches 100] [--calls 200] [--paths 10000]
                               [-o docs/results/unwinding.json]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, output_of, provenance, ready, write

from seatrial.profiler.capture import run as library

_PROGRAM = Path(__file__).with_suffix(".c")
_NATIVE = Path(library.__file__).parents[1] / "native"
_LEVELS = ("-O0", "-O2", "-O3")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--paths", type=int, default=10_000)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    machine = live_machine()
    made = provenance(machine, ready(machine, "cpu.peak", cores="one"))
    arguments = [str(options.batches), str(options.calls), str(options.paths)]
    builds: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            f"{compiler} {level}": built(compiler, level, Path(folder))
            for compiler in ("gcc", "clang")
            if shutil.which(compiler)
            for level in _LEVELS
        }
        rounds = [
            {name: output_of([str(path), *arguments]) for name, path in programs.items()} for _ in range(options.rounds)
        ]
    for name in programs:
        builds[name] = summed([one[name] for one in rounds])
    write(
        "unwinding",
        {
            "provenance": made,
            "statistic": "10th percentile of the batches of a run; median over the rounds",
            "batches": options.batches,
            "calls": options.calls,
            "rounds": options.rounds,
            "builds": builds,
        },
        options.output,
    )


def built(compiler: str, level: str, folder: Path) -> Path:
    """The program, with the profiler's reader in it."""
    program = folder / f"unwinding-{compiler}{level}"
    sources = [str(_PROGRAM), *(str(_NATIVE / name) for name in ("unwind.c", "unwind_rule.c"))]
    flags = ["-std=c11", "-D_GNU_SOURCE", level, "-fomit-frame-pointer", f"-I{_NATIVE.parent}"]
    subprocess.run([compiler, *flags, *sources, "-o", str(program), "-ldl", "-pthread"], check=True)
    return program


def summed(outputs: list[str]) -> dict[str, Any]:
    """Nanoseconds by number of frames, and the random paths of all rounds."""
    times: dict[str, list[tuple[float, float]]] = {}
    for frames, ours, libgcc in re.findall(r"^depth (\d+) ([0-9.]+) ([0-9.]+)$", "\n".join(outputs), re.MULTILINE):
        times.setdefault(frames, []).append((float(ours), float(libgcc)))
    paths = [tuple(map(int, one)) for one in re.findall(r"^paths (\d+) (\d+) (\d+)$", "\n".join(outputs), re.MULTILINE)]
    return {
        "ns_by_frames": {
            frames: {"ours": median(ours for ours, _ in both), "libgcc": median(libgcc for _, libgcc in both)}
            for frames, both in times.items()
        },
        "paths": sum(count for count, _, _ in paths),
        "different": sum(different for _, different, _ in paths),
        "longest": max((longest for _, _, longest in paths), default=0),
    }


if __name__ == "__main__":
    main()
