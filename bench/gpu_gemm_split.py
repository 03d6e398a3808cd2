"""gpu.gemm-split with one core of the CPU and a device on another: what both reach together, and how they are shared.

The goals: at least 0.9 x the sum of what the parts reach alone, measured after each product of the same run, and shares
of the product within 10 % of what these rates give. PoCL gets one thread (POCL_MAX_PTHREAD_COUNT=1), so that its device
and the CPU's thread have a core each. The best round counts; of a round, the median over its products.

    python bench/gpu_gemm_split.py [--n 4096] [--rounds 5] [-o docs/results/gpu_gemm_split.json]
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

_GOALS = {"of_sum_alone": 0.9, "share_off_by_at_most": 0.1}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", default="4096", help="order of the matrices")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    os.environ.update(POCL_DEVICES="pthread", POCL_MAX_PTHREAD_COUNT="1")

    machine = live_machine()
    item = ready(machine, "gpu.gemm-split", backend="opencl", n=options.n, devices="1", cpu_threads="1")
    rounds = []
    for _ in range(options.rounds):
        rounds.append(of_round(item, machine))
        print({name: round(value, 4) for name, value in rounds[-1].items()}, flush=True)
    write(
        "gpu_gemm_split",
        {
            "provenance": {**provenance(machine, item), "parameters": dict(item.point.parameters)},
            "goals": _GOALS,
            "best": max(rounds, key=lambda one: one["of_sum_alone"]),
            "rounds": rounds,
        },
        options.output,
    )


def of_round(item: Ready, machine: Machine) -> dict[str, Any]:
    """Rates in flop/s; `share_off_by`: the CPU's share of the products over that by the rates alone, minus 1."""
    samples = measure(item, machine).samples
    series: dict[str, list[Any]] = {}
    for sample in samples:
        series.setdefault(sample.series, []).append(sample)

    def rate(name: str) -> float:
        return median(one.work["flops"] / one.elapsed_s for one in series[name])

    cpu, device = rate("cpu_alone"), rate("device_alone")
    ratios = [one.work["flops"] / one.elapsed_s / one.extra["alone_flops"] for one in series["product"]]
    share = median(one.extra["cpu_share"] for one in series["product"])
    return {
        "together": rate("product"),
        "cpu_alone": cpu,
        "device_alone": device,
        "of_sum_alone": median(ratios),
        "cpu_share": share,
        "share_off_by": share / (cpu / (cpu + device)) - 1,
        "balance": median(one.extra["balance"] for one in series["product"]),
    }


if __name__ == "__main__":
    main()
