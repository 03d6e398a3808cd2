"""training.tensorflow with real TensorFlow on CPUs, where it is installed: a few steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.training.runs import Done, Run, run_all

from seatrial.benchmarks.training.tensorflow import BENCHMARK
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.machine.machine import Machine

pytestmark = [pytest.mark.real, pytest.mark.parallel]

SHORT = {"steps": 3, "warmup": 6, "batch": 16, "threads": 1, "checkpoint": False}
OTHER = {
    "data": "host",
    "accumulate": 2,
    "compiled": True,
    "onednn": False,
    "checkpoint": True,
    "optimizer": "momentum",
}
TWO = {**SHORT, "processes": 2}
RUNS = {
    "alone": SHORT,
    "other settings": {**SHORT, **OTHER},
    "two processes": {**TWO, "accumulate": 2, "optimizer": "adamw"},
}
_ITEMS = "            inputs, labels = self.made_up(self.document, _FINGERPRINT_ITEMS, 1 + number)\n"
_ONE_BIT = "            inputs[0, 0, 0, 0] *= 1 + 2**-23 * (self.process.number == 1)\n"
IN_TWO = Run(
    TWO,
    {
        "run_tensorflow.py": (_ITEMS, _ITEMS + _ONE_BIT),
        "tensorflow_processes.py": (
            "if strategy is None else",
            "if strategy is None or hasattr(function, '__self__') else",
        ),
    },
    changed={"task_steps": 10},
)
"""Each keeps its own gradients, and one computes something else in one bit."""
FAULTS = {
    "loss_at_end": Run(SHORT, changed={"learning_rate": 0.0}),
    "repeated_items": Run(SHORT, {"numpy_data.py": ("return images, ", "return images[:1].repeat(count, 0), ")}),
}


def test_it_trains_and_planted_faults_are_found(live_machine: Machine, tmp_path: Path) -> None:
    runs = [*map(Run, RUNS.values()), *FAULTS.values(), IN_TWO]
    *done, two = run_all(BENCHMARK, runs, live_machine, "tensorflow", tmp_path)
    for one in done[: len(RUNS)]:
        _trains(one)
    outcomes = [one.outcome.check if one.outcome else None for one in done[len(RUNS) :]]
    assert outcomes == list(FAULTS)
    assert two.record.checks["gradient_error"] > 0.1
    assert two.record.checks["results_differ"] == two.record.checks["fingerprints_differ"] == 1


@pytest.mark.exhaustive
def test_resnet50_trains(live_machine: Machine, tmp_path: Path) -> None:
    given = {**SHORT, "model": "resnet50", "batch": 2, "steps": 1}
    (done,) = run_all(BENCHMARK, [Run(given)], live_machine, "tensorflow", tmp_path)
    _trains(done)


def _trains(done: Done) -> None:
    assert done.outcome is None, (done.params, done.outcome)
    assert done.figures()["rate"] > 0
    seen = done.record.notes["framework"]
    assert all(seen[name] == done.params[name] for name in ("onednn", "threads", "interop_threads", "compiled"))


@pytest.mark.parametrize(("given", "reason"), [({"processes": 2, "compiled": True}, "XLA cannot compile")])
def test_what_does_not_fit_is_skipped(given: dict[str, object], reason: str, live_machine: Machine) -> None:
    with pytest.raises(Skip, match=reason):
        BENCHMARK.prepare(live_machine, BENCHMARK.point(given))
