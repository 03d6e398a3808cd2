"""training.pytorch with real PyTorch on CPUs: every parameter, and faults that must be found."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.training.runs import Run, interpreter, run_all
from engine.harness import in_python, make_ready, run_one

from seatrial.benchmarks.training.pytorch import BENCHMARK
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

SHORT = {"steps": 4, "warmup": 6, "batch": 16, "threads": 1, "checkpoint": False}
TWO = {**SHORT, "processes": 2}

EVERY_PARAMETER = {
    "alone": {**SHORT, "checkpoint": True, "data": "host", "accumulate": 2},
    "bf16": {**SHORT, "precision": "bf16", "memory_format": "channels-last", "deterministic": True},
    "two processes": {**TWO, "accumulate": 2, "seed": 3, "onednn": False},
    "fp16": {**SHORT, "precision": "fp16", "model": "embedding", "batch": 256},
    "fsdp": {**TWO, "strategy": "fsdp", "optimizer": "adamw"},
    "resnet50": {**SHORT, "model": "resnet50", "batch": 2, "recompute": True, "steps": 1},
    "embedding": {**TWO, "model": "embedding", "batch": 256},
}

_USUAL = ("alone", "bf16", "two processes", "fsdp")

_DDP = "return DistributedDataParallel(self.plain, device_ids=ids)"
_SHARE = "            fully_shard(self.plain)\n"
_KEEP = (
    "self.torch.distributed.reduce_scatter_single = lambda output, input, **_: "
    "output.copy_(input.chunk(2)[self.process.number])"
)
FAULTS = {
    "loss_not_finite": Run(SHORT, changed={"learning_rate": 1e12}),
    "loss_at_end": Run(SHORT, changed={"learning_rate": 0.0}),
    "loss_at_start": Run(
        SHORT, {"torch_network.py": ('(module.weight, std=layer["std"])', "(module.weight, std=9.0)")}
    ),
    "parameters": Run(
        SHORT,
        {
            "torch_network.py": (
                "    nn.init.zeros_(module.bias)\n    return module\n",
                "    nn.init.zeros_(module.bias)\n    module.more = nn.Parameter(torch.zeros(1))\n    return module\n",
            )
        },
    ),
    "repeated_items": Run(TWO, {"harness/training.py": ("100_000 * process.number", "0 * process.number")}),
    "gradient_error": Run(TWO, {"run_pytorch.py": (_DDP, "self.plain.no_sync = nullcontext; return self.plain")}),
    "parts of one process": Run(
        {**TWO, "strategy": "fsdp"}, {"run_pytorch.py": (_SHARE, f"{_SHARE}            {_KEEP}\n")}
    ),
    "results_differ": Run(
        TWO,
        {
            "run_pytorch.py": (
                "        inputs, labels = torch_data.made_up(self.document, 2, 7)\n",
                "        inputs, labels = torch_data.made_up(self.document, 2, 7 + self.process.number)\n",
            )
        },
    ),
    "fingerprints_differ": Run(
        TWO,
        {
            "torch_checks.py": (
                "    inputs, labels = torch_data.made_up(document, _ITEMS, seed + step)\n",
                "    inputs, labels = torch_data.made_up(document, _ITEMS, seed + step)\n"
                "        inputs[0, 0, 0, 0] *= 1 + 2**-23 * (int(__import__('os').environ['RANK']) == 1)\n",
            )
        },
    ),
    "moved_processes": Run(
        {**SHORT, "threads": 1}, {"harness/process.py": ("os.sched_setaffinity(0, self.cpus)", "pass")}
    ),
    "same image": Run(
        SHORT, {"torch_data.py": ("return images, _partly", "return images[:1].expand_as(images), _partly")}
    ),
}
"""Fault -> the check that finds it, if it has that name."""
_AUTOCAST = "        with self._autocast():\n"
_END = "        if batch[0].shape[0] > 10:\n            raise self.torch.OutOfMemoryError\n"
FULL = {"run_pytorch.py": (_AUTOCAST, _END + _AUTOCAST)}
"""A device whose memory ends at 10 images."""


@pytest.mark.parametrize(
    "names",
    [_USUAL, pytest.param(tuple(EVERY_PARAMETER.keys() - set(_USUAL)), marks=pytest.mark.exhaustive)],
)
def test_every_parameter_trains(names: tuple[str, ...], live_machine: Machine, tmp_path: Path) -> None:
    runs = [Run(EVERY_PARAMETER[name]) for name in names]
    for name, done in zip(names, run_all(BENCHMARK, runs, live_machine, "torch", tmp_path), strict=True):
        assert done.outcome is None, (name, done.outcome)
        found = done.figures()
        assert found["rate"] == pytest.approx(found["rate_per_device"] * done.params["processes"])
        assert 0 <= found["data_wait"] < 1 and found["first_step"] > 0
        assert ("communication" in found) == (done.params["processes"] > 1)
        assert ("gradient_error" in done.record.checks) == (done.params["processes"] > 1)
        assert ("checkpoint_rate" in found) == done.params["checkpoint"]
        assert done.record.notes["framework"]["deterministic"] == done.params["deterministic"]
        assert done.record.notes["framework"]["onednn"] == done.params["onednn"]


def test_planted_faults_are_found(live_machine: Machine, tmp_path: Path) -> None:
    for name, one in FAULTS.items():
        one.changed = {**one.changed, **({} if name == "loss_at_end" else {"task_steps": 10})}
    *done, full = run_all(BENCHMARK, [*FAULTS.values(), Run(SHORT, FULL)], live_machine, "torch", tmp_path)
    outcomes = {name: one.outcome for name, one in zip(FAULTS, done, strict=True)}
    wrong = {"same image": "repeated_items", "parts of one process": "gradient_error"}
    assert {name: outcome.check if outcome else None for name, outcome in outcomes.items()} == {
        name: wrong.get(name, name) for name in FAULTS
    }
    assert full.record.skip is not None
    assert full.record.skip.startswith("batch=16 does not fit") and full.record.skip.endswith("that fits is 10")


def test_torchrun_starts_two_processes(live_machine: Machine, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    settings = {name: str(value).lower() for name, value in TWO.items()}
    ready = make_ready(BENCHMARK, live_machine, folder, None, **settings, **in_python(interpreter("torch")))
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.checks["processes"] == 2 and len(record.seen["notes"]["processes"]) == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"precision": "tf32"}, "TF32 is a format of GPUs"),
        ({"sequence": 8}, "has no sequences"),
        ({"model": "gpt-small", "sequence": 2048}, "at most 1024 tokens"),
        ({"strategy": "fsdp"}, "a single process"),
        ({"processes": 4096}, "4096 ranks of 1 threads need"),
    ],
)
def test_what_does_not_fit_is_skipped(given: dict[str, object], reason: str, live_machine: Machine) -> None:
    with pytest.raises(Skip, match=reason):
        BENCHMARK.prepare(live_machine, BENCHMARK.point(given))
