"""Registers, spills, local memory and code size of every kernel, compiled with NVRTC for each GPU generation.

This needs neither a GPU nor a driver. Inspect a kernel that spills, or that uses more registers than in the last
recorded result, before measuring it.

    python bench/gpu_kernels.py --nvrtc FILE [--capability 90 ...] [-o docs/results/gpu_kernels.json]

FILE is libnvrtc.so from the CUDA toolkit or the Python package nvidia-cuda-nvrtc-cu12 (the last to support sm_60).
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from common import live_machine, today, write

from seatrial.benchmarks import registry
from seatrial.environments.build import build
from seatrial.environments.chosen import native_environment
from seatrial.model.benchmark.benchmark import Native

_CAPABILITIES = (60, 70, 80, 90, 100)


def main() -> None:
    """Compile and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvrtc", type=Path, required=True, help="NVIDIA's runtime compiler, libnvrtc.so")
    parser.add_argument("--capability", type=int, action="append", help="such as 90 for sm_90 (default: all)")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    environment = native_environment(live_machine())
    compiler = options.nvrtc.resolve(strict=True)
    kernels: list[dict[str, Any]] = []
    versions: set[int] = set()
    for name, benchmark in registry().items():
        if not isinstance(benchmark.program, Native) or not benchmark.program.source.with_suffix(".cl").exists():
            continue
        program = build(environment, benchmark.program.source).path
        for capability in options.capability or _CAPABILITIES:
            for source in compiled(program, capability, compiler):
                versions.add(source["nvrtc"])
                kernels += [
                    {"benchmark": name, "capability": capability, "defines": source["defines"], **kernel}
                    for kernel in source["kernels"]
                ]
        print(name, flush=True)
    write(
        "gpu_kernels",
        {
            "provenance": {"date": today(), "nvrtc": sorted(versions)},
            "spilling": [kernel for kernel in kernels if kernel["spill_bytes"]],
            "kernels": kernels,
        },
        options.output,
    )


def compiled(program: Path, capability: int, compiler: Path) -> list[dict[str, Any]]:
    """Compiler statistics of a program's kernels, one entry per source."""
    done = subprocess.run([str(program), "--compile", str(capability), str(compiler)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{program.name} --compile {capability}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
