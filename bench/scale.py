"""Time of large inputs: a plan of 2,000 experiments, a comparison of 1,000,000 samples, a screening of 10,000 nodes.

The records are synthetic, with noise from a seeded generator. The script times complete commands, including start-up.

python bench/scale.py [--rounds 3] [--share 0.1] [-o docs/results/scale.json]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from common import live_machine, provenance, ready, write

from seatrial.engine.trial import keep_machine
from seatrial.model.experiment import Experiment
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document, machine_identity
from seatrial.model.outcome import Outcome
from seatrial.model.record import RepeatRecord
from seatrial.model.sample import Sample
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter

EXPERIMENTS, SAMPLES, NODES = 2_000, 1_000_000, 10_000
REPEATS = 50


def main() -> None:
    """Generate the records, time the commands, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--share", type=float, default=1.0, help="fraction of the experiments, samples and nodes, for a quick run"
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    rng = random.Random(4)
    nodes = int(NODES * options.share)
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        study = folder / "study.yaml"
        study.write_text(json.dumps(large_study(int(EXPERIMENTS * options.share))), encoding="utf-8")
        for side, factor in (("a", 1.0), ("b", 1.03)):
            many_samples(folder / side, machine, factor, rng, int(SAMPLES * options.share))
        many_nodes(folder / "nodes", machine, rng, nodes)
        commands = {
            "plan": ["plan", str(study), "--format", "json"],
            "compare": ["compare", str(folder / "a"), str(folder / "b"), "--format", "json"],
            "report": ["report", str(folder / "a"), "-o", str(folder / "a.html")],
            "screen": ["compare", str(folder / "nodes"), "--along", "node", "--format", "json"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        answers: dict[str, str] = {}
        for _ in range(options.rounds):
            for name, command in commands.items():
                start = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-m", "seatrial", *command], capture_output=True, text=True, check=False
                )
                times[name].append(time.perf_counter() - start)
                if done.returncode != 0:
                    raise SystemExit(f"{name}: exit {done.returncode}\n{done.stderr[-2000:]}")
                answers[name] = done.stdout
        outliers = json.loads(answers["screen"])["outliers"]
        write(
            "scale",
            {
                "provenance": provenance(machine, ready(machine, "cpu.peak", cores="one")),
                "points": json.loads(answers["plan"])["count"],
                "samples": int(SAMPLES * options.share),
                "verdicts": sorted({c["verdict"] for c in json.loads(answers["compare"])["comparisons"]}),
                "nodes": nodes,
                "named": sorted({entry["what"] for entry in outliers}),
                "planted": node_name(nodes // 2),
                "best_s": {name: round(min(found), 2) for name, found in times.items()},
                "all_s": {name: [round(value, 2) for value in found] for name, found in times.items()},
            },
            options.output,
        )


def large_study(experiments: int) -> dict[str, object]:
    """A study with this many experiments."""
    return {
        "study": "large",
        "question": "How long does a plan of many experiments take?",
        "benchmarks": {"memory.stream": {"array_B": "1GiB"}},
        "axes": {
            "nontemporal": [False, True],
            "huge_pages": [False, True],
            "threads": [1, 2],
            "label": [f"run-{n}" for n in range(experiments // 8)],
        },
        "repeat": {"budget": "1h"},
    }


def many_samples(path: Path, machine: Machine, factor: float, rng: random.Random, samples: int) -> None:
    """Write half of all samples, in `REPEATS` repeats of one experiment."""
    folder = ResultsFolder.create(path)
    experiment = kept(folder, machine, "one")
    writer = RecordWriter(folder, machine.name)
    each = samples // 2 // REPEATS
    for repeat in range(REPEATS):
        run = rng.gauss(1.0, 0.01)
        made = tuple(
            Sample("fma", n, 1e-3 * factor * run * rng.gauss(1.0, 0.01), {"flops": 5e7}, extra=CHAINS)
            for n in range(each)
        )
        writer.append(record(experiment, repeat, made, machine.name))
    writer.close()


def many_nodes(path: Path, machine: Machine, rng: random.Random, nodes: int) -> None:
    """Write six repeats for each node; one node is 5 % slow."""
    folder = ResultsFolder.create(path)
    for n in range(nodes):
        name = node_name(n)
        experiment = kept(folder, replace(machine, name=name), "one", key=f"node{n:012d}")
        writer = RecordWriter(folder, name)
        level = rng.gauss(1.0, 0.01) * (1.05 if n == nodes // 2 else 1.0)
        for repeat in range(6):
            samples = tuple(
                Sample("fma", k, 1e-3 * level * rng.gauss(1.0, 0.003), {"flops": 5e7}, extra=CHAINS) for k in range(10)
            )
            writer.append(record(experiment, repeat, samples, name))
        writer.close()


CHAINS = {"chain_fmas": 1000, "chain_s": [[1e-6, 1e-6]], "add_ops": 1000, "add_s": [2.5e-7], "vector_bits": 512}


def kept(folder: ResultsFolder, machine: Machine, cores: str, key: str | None = None) -> Experiment:
    """An experiment of `cpu.peak` on this machine; writes its facts to the folder."""
    identity = key or machine_identity(machine)[:16]
    experiment = Experiment("cpu.peak", {"precision": "fp64", "cores": cores}, "env", "program", identity)
    if key is None:
        keep_machine(folder, machine, identity)
    else:
        folder.put("machines", key, {"identity": key, **machine_document(machine)})
    folder.put("environments", "env", {"name": "made up"})
    folder.put("experiments", experiment.id, experiment.document())
    return experiment


def record(experiment: Experiment, repeat: int, samples: tuple[Sample, ...], host: str) -> RepeatRecord:
    """A record of one repeat with outcome ok."""
    return RepeatRecord(
        experiment.id, repeat, repeat, 1.7e9 + repeat, 0.3, Outcome.ok(), samples, {}, {"host": host, "affinity": [[0]]}
    )


def node_name(n: int) -> str:
    """Such as n04321."""
    return f"n{n:05d}"


if __name__ == "__main__":
    main()
