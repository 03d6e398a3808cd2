"""DGEMM and SGEMM compared with cpu.peak, and bound with unbound threads, in interleaved rounds of short runs.

A round runs each program once, in an order that rotates from round to round. The best of the rounds is compared,
because disturbances only make a run slower. The goals are a DGEMM of 0.85 x cpu.peak on all cores, and bound threads
that reach 0.95 x the rate of unbound ones.

python bench/cpu_gemm.py [--rounds 10] [--blas auto] [--n auto] [-o docs/results/cpu_gemm.json]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from common import live_machine, measure, provenance, ready, write

from seatrial.engine.ready import Ready
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, readings

_GOALS = {"gemm_over_peak": 0.85, "bound_over_unbound": 0.95}
_NOTED = ("blas_version", "blas_core", "binding_of_blas", "cpus_of_blas", "left_out", "huge_pages")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--blas", default="auto", help="the library: auto, a name from `seatrial list`, or a path")
    parser.add_argument("--n", default="auto", help="rows and columns of the matrices")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    items: dict[str, Ready] = {}
    for precision in ("fp64", "fp32"):
        items[f"{precision} peak"] = ready(machine, "cpu.peak", precision=precision, cores="all")
        for binding in ("bound", "none"):
            settings = {"precision": precision, "binding": binding, "blas": options.blas, "n": options.n}
            items[f"{precision} {binding}"] = ready(machine, "cpu.gemm", **settings)

    rounds: list[dict[str, dict[str, Any]]] = []
    noted: dict[str, dict[str, Any]] = {}
    names = list(items)
    for number in range(options.rounds):
        turned = names[number % len(names) :] + names[: number % len(names)]
        result: dict[str, dict[str, Any]] = {}
        for name in turned:
            record = measure(items[name], machine)
            result[name] = _read(items[name], machine, record)
            noted[name] = {key: record.seen["notes"][key] for key in _NOTED if key in record.seen["notes"]}
        rounds.append({name: result[name] for name in names})
        print("  ".join(f"{name}: {result[name]['flops'] / 1e9:.1f}" for name in names), "GFLOP/s")

    best = {name: max(r[name]["flops_best_sample"] for r in rounds) for name in names}
    median_best = {name: max(r[name]["flops"] for r in rounds) for name in names}
    write(
        "cpu_gemm",
        {
            "provenance": {
                **provenance(machine, items["fp64 bound"]),
                "parameters": dict(items["fp64 bound"].point.parameters),
                "blas": noted,
            },
            "goals": _GOALS,
            "of_best_repeats": _ratios(median_best),
            "of_best_samples": _ratios(best),
            "flops_of_best_repeats": median_best,
            "rounds": rounds,
        },
        options.output,
    )


def _read(item: Ready, machine: Machine, record: RepeatRecord) -> dict[str, Any]:
    (reading,) = readings(item.point.benchmark, machine, item.point.parameters, record.samples)
    limit = reading.limit.value if reading.limit else None
    return {
        "flops": reading.value,
        "flops_best_sample": reading.maximum,
        "limit": limit,
        "fraction": reading.value / limit if limit else None,
        "n_samples": reading.n_samples,
    }


def _ratios(rates: dict[str, float]) -> dict[str, dict[str, float]]:
    return {
        precision: {
            "gemm_over_peak": rates[f"{precision} bound"] / rates[f"{precision} peak"],
            "unbound_over_peak": rates[f"{precision} none"] / rates[f"{precision} peak"],
            "bound_over_unbound": rates[f"{precision} bound"] / rates[f"{precision} none"],
        }
        for precision in ("fp64", "fp32")
    }


if __name__ == "__main__":
    main()
