"""cpu.peak compared with cores x measured clock x flop per cycle: interleaved rounds over precision and cores.

python bench/cpu_peak.py [--rounds 10] [-o docs/results/cpu_peak.json]
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from common import live_machine, measure, provenance, ready, write

from seatrial.model.results.record import readings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    items = {
        f"{precision} {cores}": ready(machine, "cpu.peak", precision=precision, cores=cores)
        for precision, cores in product(("fp64", "fp32"), ("one", "all"))
    }
    rounds: list[dict[str, dict[str, float | None]]] = []
    for _ in range(options.rounds):
        result: dict[str, dict[str, float | None]] = {}
        for name, item in items.items():
            samples = measure(item, machine).samples
            (reading,) = readings(item.point.benchmark, machine, item.point.parameters, samples)
            limit = reading.limit.value if reading.limit else None
            result[name] = {
                "flops": reading.value,
                "limit": limit,
                "fraction": reading.value / limit if limit else None,
            }
        rounds.append(result)
        print("  ".join(f"{name}: {entry['fraction']:.4f}" for name, entry in result.items() if entry["fraction"]))

    fractions = {name: [r[name]["fraction"] for r in rounds if r[name]["fraction"] is not None] for name in items}
    write(
        "cpu_peak",
        {
            "provenance": provenance(machine, items["fp64 all"]),
            "fraction_best": {name: max(values, default=None) for name, values in fractions.items()},
            "fraction_worst": {name: min(values, default=None) for name, values in fractions.items()},
            "rounds": rounds,
        },
        options.output,
    )


if __name__ == "__main__":
    main()
