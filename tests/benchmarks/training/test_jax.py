"""training.jax with real JAX on CPUs: its parameters, and faults that must be found."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.training.runs import Done, Run, interpreter, run_all
from engine.harness import in_python, make_ready, run_one

from seatrial.benchmarks.training.jax import BENCHMARK
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

SHORT = {"steps": 3, "warmup": 6, "batch": 16, "threads": 1, "checkpoint": False}
OTHER = {"precision": "bf16", "data": "host", "accumulate": 2, "memory_format": "channels-first", "checkpoint": True}
LONGER = {
    "adamw": {**SHORT, "optimizer": "adamw", "deterministic": True},
    "recompute": {**SHORT, "model": "resnet50", "batch": 2, "recompute": True, "steps": 1},
    "tokens": {**SHORT, "model": "gpt-small", "batch": 1, "sequence": 32, "steps": 1},
    "branches": {**SHORT, "model": "inception-v3", "batch": 2, "steps": 1},
    "two processes": {**SHORT, "processes": 2, "accumulate": 2, "optimizer": "adamw"},
}
TWO = {**SHORT, "processes": 2}
_ITEMS = "            inputs, labels = self.made_up(self.document, _FINGERPRINT_ITEMS, 1 + number)\n"
_ONE_BIT = "            inputs[0, 0, 0, 0] *= 1 + 2**-23 * (self.process.number == 1)\n"
MISCOUNTED = {"run_jax.py": ("self.parameters = sum(", "self.parameters = 1 + sum(")}
IN_TWO = Run(
    TWO,
    {
        "jax_processes.py": ("return jax.lax.pmean(tree, _AXIS) if", "return tree if"),
        "run_jax.py": (_ITEMS, _ITEMS + _ONE_BIT),
    },
    changed={"task_steps": 10},
)
"""Each keeps its own gradients, and one computes something else in one bit."""
FAULTS = {
    "loss_at_start": Run(SHORT, {"numpy_network.py": ("np.float32(std) *", "np.float32(9) *")}),
    "parameters": Run(SHORT, MISCOUNTED),
    "repeated_items": Run(SHORT, {"numpy_data.py": ("return images, ", "return images[:1].repeat(count, 0), ")}),
}


def test_it_trains_in_the_same_way_again_and_planted_faults_are_found(live_machine: Machine, tmp_path: Path) -> None:
    for one in FAULTS.values():
        one.changed = {"task_steps": 10}
    runs = [Run(SHORT), Run({**SHORT, **OTHER}), IN_TWO, *FAULTS.values()]
    sound, other, two, *done = run_all(BENCHMARK, runs, live_machine, "jax", tmp_path)
    _trains(sound)
    _trains(other)
    found = dict(zip(FAULTS, done, strict=True))
    assert [one.outcome.check if one.outcome else None for one in done] == list(FAULTS)
    assert two.record.checks["gradient_error"] > 0.1
    assert two.record.checks["results_differ"] == two.record.checks["fingerprints_differ"] == 1
    again = found["parameters"].record.notes
    assert again["fingerprint"] == sound.record.notes["fingerprint"]
    assert again["loss"][:10] == sound.record.notes["loss"][:10]


def test_the_launcher_starts_two_processes(live_machine: Machine, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    settings = {name: str(value).lower() for name, value in TWO.items()}
    ready = make_ready(BENCHMARK, live_machine, folder, None, **settings, **in_python(interpreter("jax")))
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.checks["processes"] == 2 and len(record.seen["notes"]["processes"]) == 2
    assert record.checks["gradient_error"] < 1e-4
    assert any(sample.series == "exchange" for sample in record.samples)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LONGER)
def test_every_parameter_trains(name: str, live_machine: Machine, tmp_path: Path) -> None:
    (done,) = run_all(BENCHMARK, [Run(LONGER[name])], live_machine, "jax", tmp_path)
    _trains(done)


def _trains(done: Done) -> None:
    assert done.outcome is None, (done.params, done.outcome)
    found = done.figures()
    assert found["rate"] == pytest.approx(found["rate_per_device"] * done.params["processes"])
    assert found["first_step"] > 0 and ("communication" in found) == (done.params["processes"] > 1)
    assert ("checkpoint_rate" in found) == done.params["checkpoint"]
    assert done.record.notes["framework"]["threads"] == done.params["threads"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"model": "embedding"}, "dense gradients"),
        ({"precision": "tf32"}, "TF32 is a format of GPUs"),
    ],
)
def test_what_does_not_fit_is_skipped(given: dict[str, object], reason: str, live_machine: Machine) -> None:
    with pytest.raises(Skip, match=reason):
        BENCHMARK.prepare(live_machine, BENCHMARK.point(given))
