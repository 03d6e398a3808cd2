"""What seatrial's training script costs beside a plain training loop: the same network, batch, threads and steps, in
alternation, in random order.

python bench/training_pytorch.py --python PYTHON_WITH_TORCH [--rival SCRIPT] [--rounds N] [-o FILE]

The plain loop is bench/training_plain.py, or a SCRIPT with the same options and output. What the script adds to a step
is measured in one process (bench/training_steps.py).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, cast

from common import live_machine, machine_provenance, output_of, write

from seatrial.benchmarks.training import framework
from seatrial.benchmarks.training.pytorch import BENCHMARK
from seatrial.model.benchmark.benchmark import External

_PLAIN = Path(__file__).with_name("training_plain.py")
_STEPS = Path(__file__).with_name("training_steps.py")
_WARMUP = 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rival", type=Path, default=_PLAIN)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    given = {"batch": options.batch, "threads": 1, "steps": options.steps, "checkpoint": False}
    params = BENCHMARK.prepare(machine, BENCHMARK.point(given))
    cpus = BENCHMARK.placement(machine, params)
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    variables.pop("PYTHONPATH", None)
    rates: dict[str, list[float]] = {"seatrial": [], "plain loop": []}

    program = cast(External, BENCHMARK.program)

    def ours(folder: Path) -> float:
        (folder / framework.SETTINGS).write_bytes(program.inputs(params)[framework.SETTINGS])
        words = [options.python, *program.arguments(params, folder), ",".join(map(str, cpus))]
        subprocess.run(words, cwd=folder, env=variables, check=True, capture_output=True)
        record = framework.read_run((folder / framework.OUTPUT).read_bytes())
        return next(one.work["items"] / one.elapsed_s for one in record.samples if one.series == framework.BLOCK)

    def plain(folder: Path) -> float:
        bound = ["taskset", "-c", ",".join(map(str, cpus)), options.python, str(options.rival)]
        asked = ["--batch", options.batch, "--threads", 1, "--warmup", _WARMUP, "--steps", options.steps]
        words = [*bound, *map(str, asked)]
        said = subprocess.run(words, cwd=folder, env=variables, check=True, capture_output=True, text=True).stdout
        return float(re.search(r"images/s: (\S+)", said)[1])  # type: ignore[index]

    for number in range(options.rounds):
        for who, once in random.sample([("seatrial", ours), ("plain loop", plain)], 2):
            with tempfile.TemporaryDirectory() as where:
                rates[who].append(once(Path(where)))
        ratio = rates["seatrial"][-1] / rates["plain loop"][-1]
        print(f"round {number}: {ratio:.4f} x the plain loop", flush=True)
    version = output_of([options.python, "-c", "import torch; print(torch.__version__)"]).strip()
    ratios = [a / b for a, b in zip(rates["seatrial"], rates["plain loop"], strict=True)]
    with tempfile.TemporaryDirectory() as where:
        file = Path(where) / framework.SETTINGS
        file.write_bytes(program.inputs(params)[framework.SETTINGS])
        bound = ["taskset", "-c", str(cpus[0]), options.python, str(_STEPS), str(framework.SCRIPTS), str(file)]
        steps = json.loads(subprocess.run(bound, env=variables, check=True, capture_output=True, text=True).stdout)
    pairs = [a / b for a, b in zip(steps["seatrial"], steps["plain loop"], strict=True)]
    summary: dict[str, Any] = {
        "provenance": machine_provenance(machine),
        "torch": version,
        "parameters": dict(params),
        "rounds": options.rounds,
        "images_per_s": {who: {"best": max(all_), "median": median(all_), "all": all_} for who, all_ in rates.items()},
        "ratio_of_best": max(rates["seatrial"]) / max(rates["plain loop"]),
        "median_ratio": median(ratios),
        "ratios": ratios,
        "step_ratio_of_best": min(steps["seatrial"]) / min(steps["plain loop"]),
        "step_median_ratio": median(pairs),
        "step_s": steps,
    }
    ratio_names = ("ratio_of_best", "median_ratio", "step_ratio_of_best", "step_median_ratio")
    print(json.dumps({name: summary[name] for name in ratio_names}))
    write("training_pytorch", summary, options.output)


if __name__ == "__main__":
    main()
