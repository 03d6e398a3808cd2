"""apps.impact: two ranks compared with two independent copies of it on the same two CPUs, and with its roofline.

A round runs, in an order that alternates, a program of two ranks and two programs of one rank at once, all on a beam of
as many elements. A rate is the median over the samples of a run; that of the copies is the sum of both. The best of the
rounds is compared, because disturbances only make a run slower. The goal is 0.95.

Each round also measures what the roofline takes: the triad of memory.stream on two threads with non-temporal stores,
and cpu.peak on one core and on all. The share is that of the results page: the median rate of two ranks over the lower
of both roofs. The goal is half.

python bench/impact.py [--rounds 5] [--elements 200000] [--precision fp64] [-o docs/results/impact.json]
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, provenance, ready, write
from one_point import measure_point

from seatrial.engine.ready import Ready
from seatrial.engine.repeat import command_of, variables_of
from seatrial.interface.results import results
from seatrial.model.benchmark.program import parse_record
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

_GOALS = {"ranks_over_copies": 0.95, "share_of_roofline": 0.5}
_RANKS = 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--elements", type=int, default=200_000)
    parser.add_argument("--precision", choices=("fp64", "fp32"), default="fp64")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    settings = {"elements": str(options.elements), "precision": options.precision}
    together = ready(machine, "apps.impact", ranks=str(_RANKS), **settings)
    alone = ready(machine, "apps.impact", ranks="1", **settings)
    copies = [replace(alone, point=replace(alone.point, cpus=(cpu,))) for cpu in together.point.cpus]
    of_the_roofs = [
        together,
        ready(machine, "memory.stream", nontemporal="true", threads=str(_RANKS)),
        *(ready(machine, "cpu.peak", precision=options.precision, cores=cores) for cores in ("one", "all")),
    ]
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as where:
        folder = ResultsFolder.create(Path(where) / "results")
        for number in range(options.rounds):
            programs = {"ranks": [together], "copies": copies}
            order = sorted(programs, reverse=number % 2 == 1)
            rounds.append({name: _rate_of_all(programs[name]) for name in order})
            print(*(f"{name}: {rate / 1e6:.1f} M elements/s " for name, rate in rounds[-1].items()), flush=True)
            for item in of_the_roofs:
                _measure(item, machine, folder)
        roofline = _roofline(folder)

    best = {name: max(one[name] for one in rounds) for name in ("ranks", "copies")}
    write(
        "impact",
        {
            "provenance": {**provenance(machine, together), "parameters": dict(together.point.parameters)},
            "goals": _GOALS,
            "best": best,
            "ranks_over_copies": best["ranks"] / best["copies"],
            "roofline": roofline,
            "rounds": rounds,
        },
        options.output,
    )


def _rate_of_all(items: Sequence[Ready]) -> float:
    """Element updates per second of programs that run at once: the sum of their medians."""
    with tempfile.TemporaryDirectory() as where:
        running: list[tuple[subprocess.Popen[bytes], Path]] = []
        for number, item in enumerate(items):
            folder = Path(where) / str(number)
            folder.mkdir()
            command, variables = command_of(item, folder), variables_of(item, folder)
            running.append((subprocess.Popen(command, env=variables, cwd=folder), folder))
        statuses = [process.wait() for process, _ in running]
        if any(statuses):
            raise SystemExit("apps.impact failed: its message is above")
        return sum(_rate(folder / "rank-000000.jsonl") for _, folder in running)


def _rate(record: Path) -> float:
    samples = [sample for sample in parse_record(record.read_bytes()).samples if sample.series == "steps"]
    return median(sample.work["updates"] / sample.elapsed_s for sample in samples)


def _measure(item: Ready, machine: Machine, folder: ResultsFolder) -> None:
    outcome = measure_point(item, machine, folder).outcome
    if not outcome.is_ok:
        raise SystemExit(f"{item.point.benchmark.name}: {outcome.state}: {outcome.reason}")


def _roofline(folder: ResultsFolder) -> dict[str, Any]:
    """The median rate of two ranks, its roof, and the share that it reaches of it."""
    (result,) = (one for one in results(folder.path).experiments if one.experiment.benchmark == "apps.impact")
    figure = next(one for one in result.figures if one.name == "element_updates")
    if figure.limit is None:
        raise SystemExit("there is no roof: memory.stream or cpu.peak did not measure the figure that apps.impact uses")
    return {
        "rate": figure.median,
        "roof": figure.limit.value,
        "derivation": figure.limit.derivation,
        "share": figure.fraction_of_limit,
    }


if __name__ == "__main__":
    main()
