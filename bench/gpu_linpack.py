"""gpu.linpack on two devices compared with apps.hpl at the same order: interleaved rounds, best of rounds.

Both count the same operations. With PoCL the devices are the CPUs that HPL uses, one core each; what gpu.linpack loses
there is in its phases, which the record has. There is no goal on a CPU: the ratio is recorded.

    python bench/gpu_linpack.py [--n 4000] [--nb 128] [--rounds 3] [-o docs/results/gpu_linpack.json]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, measure, provenance, ready, write

from seatrial.engine.ready import Ready
from seatrial.model.machine.machine import Machine

_PHASES = ("panel", "broadcast", "swap", "update", "copies", "solve")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", default="4000", help="order of the matrix")
    parser.add_argument("--nb", default="128", help="block size of gpu.linpack")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backend", default="opencl", choices=("cuda", "opencl"))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    os.environ.update(POCL_DEVICES="pthread pthread", POCL_MAX_PTHREAD_COUNT="1")

    machine = live_machine()
    items = {
        "gpu.linpack": ready(
            machine, "gpu.linpack", backend=options.backend, n=options.n, nb=options.nb, devices="2", threads="2"
        ),
        "apps.hpl": ready(machine, "apps.hpl", n=options.n, nb="192", grid="1x2", ranks="2"),
    }
    rounds: list[dict[str, dict[str, Any]]] = []
    for number in range(options.rounds):
        order = list(items) if number % 2 == 0 else list(items)[::-1]
        found = {name: of_run(items[name], machine) for name in order}
        rounds.append({name: found[name] for name in items})
        print(*(f"{name}: {found[name]['flops'] / 1e9:.2f} GFLOP/s " for name in items), flush=True)
    best = {name: max((one[name] for one in rounds), key=lambda run: run["flops"]) for name in items}
    write(
        "gpu_linpack",
        {
            "provenance": {
                **provenance(machine, items["gpu.linpack"]),
                "parameters": {name: dict(item.point.parameters) for name, item in items.items()},
            },
            "linpack_over_hpl": best["gpu.linpack"]["flops"] / best["apps.hpl"]["flops"],
            "best": best,
            "rounds": rounds,
        },
        options.output,
    )


def of_run(item: Ready, machine: Machine) -> dict[str, Any]:
    """The rate of the best solution, and the shares of its phases, where it has some."""
    samples = [sample for sample in measure(item, machine).samples if "flops" in sample.work]
    best = min(samples, key=lambda sample: sample.elapsed_s / sample.work["flops"])
    phases = {
        name: median(float(one.extra[f"{name}_s"]) / one.elapsed_s for one in samples)
        for name in _PHASES
        if f"{name}_s" in best.extra
    }
    return {"flops": best.work["flops"] / best.elapsed_s, "phases": phases}


if __name__ == "__main__":
    main()
