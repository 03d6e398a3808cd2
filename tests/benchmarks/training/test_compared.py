"""Trainings that are compared: a verdict on images/s, and every setting that differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from analysis.made_up_folders import noisy
from cli.in_process import seatrial_here
from made_up import made_up_machine

from seatrial.benchmarks.training.pytorch import BENCHMARK
from seatrial.model.machine.document import machine_document
from seatrial.model.results.record import Experiment, RepeatRecord, content_key
from seatrial.model.results.sample import Outcome, Sample
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

REPEATS, ITEMS = 20, 1600.0
OLD = {"version": "2.9.1", "tf32": False, "onednn": True, "deterministic": False, "threads": 1}
NEW = {"version": "2.13.0", "tf32": True, "onednn": False, "deterministic": True, "threads": 2}


def kept(path: Path, images_s: float, framework: dict[str, object], begun_s: float) -> str:
    """A folder of repeats with about this rate, in turn with those of the other side."""
    folder, machine = ResultsFolder.create(path), made_up_machine()
    folder.put("environments", "env", {"name": "none"})
    folder.put("machines", content_key({"host": "n1"}), {"identity": "machine-n1", **machine_document(machine)})
    given = {name: framework[name] for name in ("threads", "onednn", "deterministic")}
    params = BENCHMARK.prepare(machine, BENCHMARK.point({**given, "precision": "fp32"}))
    experiment = Experiment("training.pytorch", params, "env", "program", "machine-n1")
    folder.put("experiments", experiment.id, experiment.document())
    writer = RecordWriter(folder, "n1")
    own = {"loss": [images_s], "warmup": {"steps": int(images_s)}, "processes": [{"memory_B": images_s}]}
    for number, rate in enumerate(noisy(images_s, REPEATS, seed=int(images_s))):
        work = {"items": ITEMS, "per_device": ITEMS, "flop": ITEMS, "steps": 16.0, "wait_s": 0.0}
        sample = Sample("training", 0, ITEMS / rate, work, point={"counts": "images"})
        seen = {"host": "n1", "affinity": [[0]], "notes": {**own, "framework": {"name": "PyTorch", **framework}}}
        at_s = 1.7e9 + 20.0 * number + begun_s
        writer.append(RepeatRecord(experiment.id, number, number, at_s, 5.0, Outcome.ok(), (sample,), {}, seen))
    writer.close()
    return str(path)


@pytest.mark.parametrize(("images_s", "verdict"), [(1300.0, "faster"), (1003.0, "same"), (800.0, "slower")])
def test_a_verdict_on_the_rate_lists_the_settings_that_differ(images_s: float, verdict: str, tmp_path: Path) -> None:
    sides = kept(tmp_path / "old", 1000.0, OLD, 0.0), kept(tmp_path / "new", images_s, NEW, 10.0)
    document = json.loads(seatrial_here("compare", *sides, "--format", "json", cwd=tmp_path).stdout)
    (rate,) = [one for one in document["comparisons"] if one["figure"] == "rate"]
    assert rate["verdict"] == verdict and rate["ratio"] == pytest.approx(images_s / 1000, rel=0.01)
    listed = json.dumps(document["differences"])
    missing = [word for word in ("version", "tf32", "onednn", "deterministic", "threads") if word not in listed]
    assert not missing, (missing, document["differences"])
    results = [word for word in ("loss", "warmup", "memory_B") if word in listed]
    assert not results, "what trainings did is not a setting that differs"
