"""Time and memory of large inputs.

A plan of 2,000 experiments, a comparison of 1,000,000 samples, a screening of 10,000 nodes; a comparison of 2 x 150,000
repeats, the page of 150,000, resuming 300,000 and starting to add to them; the page and a history of 5,000 experiments
of 60 repeats, and a comparison of two such folders; listing, exporting and querying 1,000,000 records by an index, and
making that index.

The records are synthetic, with noise from a seeded generator. The script times complete commands, including start-up.

python bench/scale.py [--rounds 3] [--share 0.1] [--only index,list_kept] [-o docs/results/scale.json]
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import live_machine, provenance, ready, write
from msgspec.structs import replace

from seatrial.engine.trial import keep_machine
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import Experiment, RepeatRecord, crc_tail
from seatrial.model.results.sample import Outcome, Sample
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

EXPERIMENTS, SAMPLES, NODES = 2_000, 1_000_000, 10_000
KEPT, OF_KEPT = 16_667, 60
SIDE, SWEPT, OF_SWEPT = 150_000, 5_000, 60
REPEATS = 50
STARTED = "resume_start"
"""The command that is timed until its first repeat starts."""
_DISTINCT = 500
_BEFORE_ID = b'{"v":1,"experiment":"'


def main() -> None:
    """Generate the records, time the commands, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--share", type=float, default=1.0, help="fraction of the experiments, samples and nodes, for a quick run"
    )
    parser.add_argument("--only", metavar="NAMES", help="names of commands, separated by commas (default: all)")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    share = options.share
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        os.environ["SEATRIAL_CACHE"] = str(folder / "cache")  # programs are built once, indexes are ours to remove
        commands = chosen(commands_in(folder), options.only)
        prepare(folder, {word for words in commands.values() for word in words}, machine, share)
        found: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                if name == "index":
                    forget_indexes()
                found[name].append(started(command) if name == STARTED else timed(command, folder / "answer"))
        answers = {name: runs[-1].answer for name, runs in found.items()}
        write(
            "scale",
            {
                "provenance": provenance(machine, ready(machine, "cpu.peak", cores="one")),
                **facts(answers, share),
                "best_s": {name: round(min(run.wall_s for run in runs), 2) for name, runs in found.items()},
                "all_s": {name: [round(run.wall_s, 2) for run in runs] for name, runs in found.items()},
                "most_MB": {name: round(max(run.most_bytes for run in runs) / 1e6) for name, runs in found.items()},
            },
            options.output,
        )


def chosen(commands: dict[str, list[str]], only: str | None) -> dict[str, list[str]]:
    """The commands of these names; all if none is given. Raises SystemExit for an unknown name."""
    names = list(commands) if only is None else only.split(",")
    unknown = [name for name in names if name not in commands]
    if unknown:
        raise SystemExit(f"--only: unknown {', '.join(unknown)}; known are {', '.join(commands)}")
    return {name: commands[name] for name in commands if name in names}


def facts(answers: dict[str, str], share: float) -> dict[str, object]:
    """What the commands worked on, and what they found."""
    nodes = int(NODES * share)
    found: dict[str, object] = {}
    if "index" in answers:
        found["records"] = int(KEPT * share) * OF_KEPT
    if "plan" in answers:
        found["points"] = json.loads(answers["plan"])["count"]
    if "compare" in answers:
        found["samples"] = int(SAMPLES * share)
        found["verdicts"] = sorted({c["verdict"] for c in json.loads(answers["compare"])["comparisons"]})
    if "screen" in answers:
        found["nodes"] = nodes
        found["named"] = sorted({entry["what"] for entry in json.loads(answers["screen"])["outliers"]})
        found["planted"] = node_name(nodes // 2)
    if "compare_repeats" in answers:
        found["repeats"] = int(SIDE * share)
    if "resume_repeats" in answers or STARTED in answers:
        found["resumed"] = int(2 * SIDE * share)
    if answers.keys() & {"report_experiments", "history_experiments", "compare_experiments"}:
        found["experiments"] = int(SWEPT * share)
    return found


def commands_in(folder: Path) -> dict[str, list[str]]:
    """Name -> words of each command, over what `prepare` writes."""

    def at(name: str) -> str:
        return str(folder / name)

    kept = at("kept")
    return {
        "index": ["query", kept, "SELECT count(*) FROM experiments"],
        "list_kept": ["results", "list", kept],
        "export_kept": ["export", kept, "-o", at("kept.csv")],
        "query_kept": ["query", kept, "SELECT benchmark, median(value) FROM repeats GROUP BY ALL"],
        "query_samples": ["query", kept, "SELECT series, avg(elapsed_s) FROM samples GROUP BY ALL"],
        "plan": ["plan", at("study.yaml"), "--format", "json"],
        "compare": ["compare", at("a"), at("b"), "--format", "json"],
        "report": ["report", at("a"), "-o", at("a.html")],
        "screen": ["compare", at("nodes"), "--along", "node", "--format", "json"],
        "compare_repeats": ["compare", at("many-a"), at("many-b"), "--format", "json"],
        "report_repeats": ["report", at("many-a"), "-o", at("many.html")],
        "resume_repeats": [*measured_into(folder / "resumed"), "--format", "json"],
        "report_experiments": ["report", at("swept"), "-o", at("swept.html")],
        "history_experiments": ["history", "fma", at("swept")],
        "compare_experiments": ["compare", at("swept"), at("swept-b"), "--format", "json"],
        STARTED: [*measured_into(folder / "resumed"), "--again"],
    }


def prepare(folder: Path, used: set[str], machine: Machine, share: float) -> None:
    """Write the study file and the results folders that are used."""
    rng = random.Random(4)
    real = folder / "real"

    def repeats(name: str, factors: list[float], n: int) -> None:
        many_repeats(folder / name, real, rng, factors, n)

    makers: dict[str, Callable[[], object]] = {
        "study.yaml": lambda: (folder / "study.yaml").write_text(json.dumps(large_study(int(EXPERIMENTS * share)))),
        "a": lambda: many_samples(folder / "a", machine, 1.0, rng, int(SAMPLES * share)),
        "b": lambda: many_samples(folder / "b", machine, 1.03, rng, int(SAMPLES * share)),
        "nodes": lambda: many_nodes(folder / "nodes", machine, rng, int(NODES * share)),
        "many-a": lambda: repeats("many-a", [1.0], int(SIDE * share)),
        "many-b": lambda: repeats("many-b", [1.03], int(SIDE * share)),
        "resumed": lambda: repeats("resumed", [1.0], int(2 * SIDE * share)),
        "swept": lambda: repeats("swept", [1.0] * int(SWEPT * share), OF_SWEPT),
        "swept-b": lambda: repeats("swept-b", [1.03] * int(SWEPT * share), OF_SWEPT),
        "kept": lambda: copied_experiments(folder / "kept", real, rng, int(KEPT * share)),
    }
    timed(measured_into(real), folder / "answer")
    for name, make in makers.items():
        if str(folder / name) in used:
            make()


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


def copied_experiments(path: Path, real: Path, rng: random.Random, experiments: int) -> None:
    """Write experiments of `OF_KEPT` repeats: the first ones as `many_repeats` does, which is slow, the others as
    copies of their lines under other ids."""
    many_repeats(path, real, rng, [1.0] * min(experiments, _DISTINCT), OF_KEPT)
    folder = ResultsFolder.existing(path)
    (name,) = folder.record_files()
    lines = (path / "records" / name).read_bytes().splitlines()
    (original,) = read_contents(ResultsFolder.existing(real)).experiments.values()
    ident, tail = len(original.id), len(crc_tail(b""))
    with (path / "records" / name).open("ab") as records:
        for number in range(_DISTINCT, experiments):
            own = replace(original, parameters={**original.parameters, "label": f"point-{number}"})
            folder.put("experiments", own.id, own.document())
            first = number % _DISTINCT * OF_KEPT
            for line in lines[first : first + OF_KEPT]:
                body = line[: len(_BEFORE_ID)] + own.id.encode() + line[len(_BEFORE_ID) + ident : -tail]
                records.write(body + crc_tail(body) + b"\n")


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
