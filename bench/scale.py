"""Time and memory of large inputs.

A plan of 2,000 experiments, a comparison of 1,000,000 samples, a screening of 10,000 nodes; a comparison of 2 x 150,000
repeats, the page of 150,000, resuming 300,000 and starting to add to them; the page of 5,000 experiments of 60 repeats;
listing, exporting and querying 1,000,000 records by an index, and making that index.

The records are synthetic, with noise from a seeded generator. The script times complete commands, including start-up.

python bench/scale.py [--rounds 3] [--share 0.1] [-o docs/results/scale.json]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from common import live_machine, provenance, ready, write

from seatrial.engine.trial import keep_machine
from seatrial.model.experiment import Experiment
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document, machine_identity
from seatrial.model.outcome import Outcome
from seatrial.model.record import RepeatRecord
from seatrial.model.sample import Sample
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter

EXPERIMENTS, SAMPLES, NODES = 2_000, 1_000_000, 10_000
KEPT, OF_KEPT = 16_667, 60
SIDE, SWEPT, OF_SWEPT = 150_000, 5_000, 60
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
        os.environ["SEATRIAL_CACHE"] = str(folder / "cache")  # programs are built once, indexes are ours to remove
        commands = prepared(folder, machine, rng, options.share)
        found: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                if name == "index":
                    forget_indexes()
                found[name].append(timed(command, folder / "answer"))
            found.setdefault("resume_start", []).append(started([*measured_into(folder / "resumed"), "--again"]))
        answers = {name: runs[-1].answer for name, runs in found.items()}
        write(
            "scale",
            {
                "provenance": provenance(machine, ready(machine, "cpu.peak", cores="one")),
                "points": json.loads(answers["plan"])["count"],
                "samples": int(SAMPLES * options.share),
                "verdicts": sorted({c["verdict"] for c in json.loads(answers["compare"])["comparisons"]}),
                "nodes": nodes,
                "named": sorted({entry["what"] for entry in json.loads(answers["screen"])["outliers"]}),
                "planted": node_name(nodes // 2),
                "repeats": int(SIDE * options.share),
                "resumed": int(2 * SIDE * options.share),
                "experiments": int(SWEPT * options.share),
                "best_s": {name: round(min(run.wall_s for run in runs), 2) for name, runs in found.items()},
                "all_s": {name: [round(run.wall_s, 2) for run in runs] for name, runs in found.items()},
                "most_MB": {name: round(max(run.most_bytes for run in runs) / 1e6) for name, runs in found.items()},
            },
            options.output,
        )


def prepared(folder: Path, machine: Machine, rng: random.Random, share: float) -> dict[str, list[str]]:
    """Write the results folders; name -> words of the command."""
    study = folder / "study.yaml"
    study.write_text(json.dumps(large_study(int(EXPERIMENTS * share))), encoding="utf-8")
    for side, factor in (("a", 1.0), ("b", 1.03)):
        many_samples(folder / side, machine, factor, rng, int(SAMPLES * share))
    many_nodes(folder / "nodes", machine, rng, int(NODES * share))
    timed(measured_into(folder / "real"), folder / "answer")
    for side, factor in (("many-a", 1.0), ("many-b", 1.03)):
        many_repeats(folder / side, folder / "real", rng, [factor], int(SIDE * share))
    many_repeats(folder / "resumed", folder / "real", rng, [1.0], int(2 * SIDE * share))
    many_repeats(folder / "swept", folder / "real", rng, [1.0] * int(SWEPT * share), OF_SWEPT)
    many_repeats(folder / "kept", folder / "real", rng, [1.0] * int(KEPT * share), OF_KEPT)
    kept = str(folder / "kept")
    return {
        "index": ["query", kept, "SELECT count(*) FROM experiments"],
        "list_kept": ["results", "list", kept],
        "export_kept": ["export", kept, "-o", str(folder / "kept.csv")],
        "query_kept": ["query", kept, "SELECT benchmark, median(value) FROM repeats GROUP BY ALL"],
        "query_samples": ["query", kept, "SELECT series, avg(elapsed_s) FROM samples GROUP BY ALL"],
        "plan": ["plan", str(study), "--format", "json"],
        "compare": ["compare", str(folder / "a"), str(folder / "b"), "--format", "json"],
        "report": ["report", str(folder / "a"), "-o", str(folder / "a.html")],
        "screen": ["compare", str(folder / "nodes"), "--along", "node", "--format", "json"],
        "compare_repeats": ["compare", str(folder / "many-a"), str(folder / "many-b"), "--format", "json"],
        "report_repeats": ["report", str(folder / "many-a"), "-o", str(folder / "many.html")],
        "resume_repeats": [*measured_into(folder / "resumed"), "--format", "json"],
        "report_experiments": ["report", str(folder / "swept"), "-o", str(folder / "swept.html")],
    }


def forget_indexes() -> None:
    """Remove the indexes, so that the next command makes one."""
    for made in (Path(os.environ["SEATRIAL_CACHE"]) / "index").glob("*.duckdb"):
        made.unlink()


def measured_into(results: Path) -> list[str]:
    """The words of a run of one experiment."""
    words = ["run", "cpu.peak", "--set", "cores=one", "--set", "precision=fp64", "--budget", "2s"]
    return [*words, "--results", str(results)]


@dataclass(frozen=True)
class Run:
    """One run of a command: its time, its largest resident memory, and what it printed."""

    wall_s: float
    most_bytes: int
    answer: str


def timed(words: list[str], output: Path) -> Run:
    """Run a command of seatrial. Raises SystemExit if it fails."""
    with output.open("w+") as answer, output.with_suffix(".err").open("w+") as errors:
        start = time.perf_counter()
        program = subprocess.Popen([sys.executable, "-m", "seatrial", *words], stdout=answer, stderr=errors)
        _, status, usage = os.wait4(program.pid, 0)
        wall_s = time.perf_counter() - start
        program.returncode = os.waitstatus_to_exitcode(status)
        answer.seek(0)
        errors.seek(0)
        if program.returncode != 0:
            raise SystemExit(f"{words}: exit {program.returncode}\n{errors.read()[-2000:]}")
        return Run(wall_s, usage.ru_maxrss * 1024, answer.read())


def started(words: list[str]) -> Run:
    """Run a command of seatrial until it starts its first repeat, and interrupt it."""
    artefacts = Path(words[words.index("--results") + 1]) / "artefacts"
    left = set(artefacts.glob("*/[0-9]*"))
    start = time.perf_counter()
    program = subprocess.Popen(
        [sys.executable, "-m", "seatrial", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while set(artefacts.glob("*/[0-9]*")) <= left and program.poll() is None:
        time.sleep(0.005)
    wall_s = time.perf_counter() - start
    if program.poll() is not None:
        raise SystemExit(f"{words}: ended before its first repeat, with status {program.returncode}")
    program.send_signal(signal.SIGINT)
    _, _, usage = os.wait4(program.pid, 0)
    return Run(wall_s, usage.ru_maxrss * 1024, "")


def many_repeats(path: Path, real: Path, rng: random.Random, factors: list[float], repeats: int) -> None:
    """Write this many repeats for each factor on the times, each an experiment, as variations of a measured repeat."""
    contents = read_contents(ResultsFolder.existing(real))
    (experiment,) = contents.experiments.values()
    original = contents.records[experiment.id][0]
    folder = ResultsFolder.create(path)
    for key, document in contents.machines.items():
        folder.put("machines", key, document)
    for key, document in contents.environments.items():
        folder.put("environments", key, document)
    writer = RecordWriter(folder, "made-up")
    samples = tuple(original.samples)[:10]
    for number, factor in enumerate(factors):
        label = {} if len(factors) == 1 else {"label": f"point-{number}"}
        own = replace(experiment, parameters={**experiment.parameters, **label})
        folder.put("experiments", own.id, own.document())
        for repeat in range(repeats):
            level = factor * (1.0 + abs(rng.gauss(0.0, 0.005)))  # never faster than the machine
            varied = tuple(replace(one, elapsed_s=one.elapsed_s * level * rng.gauss(1.0, 0.002)) for one in samples)
            seen = {**original.seen, "block": f"made-up:{repeat}"}
            order = number * repeats + repeat
            writer.append(
                replace(
                    original,
                    experiment=own.id,
                    repeat=repeat,
                    order=order,
                    t0=original.t0 + order,
                    samples=varied,
                    seen=seen,
                )
            )
    writer.close()


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
