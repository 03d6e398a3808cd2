"""Data sets on storage: each format as it was written, made once, refused if damaged; and trainings that read them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from benchmarks.training.runs import Run, interpreter, run_all
from engine.harness import in_python, keep_point, prepare_point, run_one

from seatrial.benchmarks.training import framework
from seatrial.benchmarks.training.data_sets import FORMATS
from seatrial.benchmarks.training.input import BENCHMARK as INPUT
from seatrial.benchmarks.training.pytorch import BENCHMARK
from seatrial.engine.ready import Ready
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

SHORT = {"steps": 3, "warmup": 6, "batch": 16, "threads": 1, "checkpoint": False}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    script = Path(__file__).with_name("data_set_cases.py")
    words = [interpreter("lmdb"), str(script), str(framework.SCRIPTS), str(tmp_path_factory.mktemp("sets"))]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", FORMATS)
def test_every_image_is_read_as_it_was_written_and_a_set_is_used_again(kind: str, cases: Mapping[str, Any]) -> None:
    assert cases[kind]["same"] and cases[kind]["again"]
    warm, cold = cases[kind]["shares"]
    assert warm in (1.0, None) and (cold is None or 0.0 <= cold <= 1.0)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_damaged_set_is_refused_with_one_error_that_says_what_to_do(kind: str, cases: Mapping[str, Any]) -> None:
    for case, seen in (("cut", "bytes instead of"), ("missing", "is missing"), ("changed", "")):
        said = cases[kind][case]
        assert said.startswith("Damaged: the data set ") and seen in said and "remove this folder" in said, (case, said)


def test_a_set_is_written_by_one_process_and_half_of_one_is_never_used(cases: Mapping[str, Any]) -> None:
    assert cases["once"] == {"statuses": [0, 0, 0], "writers": 1}


@pytest.mark.parametrize("name", ["random", "sequential"])
def test_no_image_is_in_two_streams_of_an_epoch(name: str, cases: Mapping[str, Any]) -> None:
    streams = cases[name]
    served = [number for stream in streams for number in stream]
    assert [len(stream) for stream in streams] == [23] * 4 and len(set(served)) == 92
    follows = sum(b == a + 1 for stream in streams for a, b in pairwise(stream))
    assert (follows > 70) == (name == "sequential")


def test_the_crc_is_that_of_castagnoli(cases: Mapping[str, Any]) -> None:
    assert cases["crc"] == 0xE3069283


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("space", "set `images` to fewer, or `folder` to another one"),
        ("absent", "No such file or directory; set `folder` to another one"),
        ("memory", "cannot be read cold: set `folder` to one on a disk, or cache=warm"),
        ("lmdb absent", "-m pip install lmdb"),
    ],
)
def test_what_cannot_be_made_says_what_to_do(case: str, said: str, cases: Mapping[str, Any]) -> None:
    assert cases[case].startswith("Unusable: ") and said in cases[case]


READ = {**SHORT, "data": "files", "images": 224}
ALONE = {**READ, "workers": 0}
DELAY_S = 0.01
RUNS = {
    "files": Run({**READ, "cache": "cold", "decode_threads": 2}),
    "lmdb": Run({**READ, "data": "lmdb"}),
    "resident": Run(SHORT),
    "slow": Run(
        ALONE,
        {
            "torch_input.py": (
                "epoch, number = which\n",
                f"epoch, number = which; __import__('time').sleep({DELAY_S})\n",
            )
        },
    ),
    "same images": Run(ALONE, {"torch_input.py": ("in stream[start : start + batch]", "in [stream[start]] * batch")}),
    "same data": Run(
        {**ALONE, "processes": 2},
        {"torch_input.py": ("self._process.number * readers : (self._process.number + 1) * readers", "0:readers")},
    ),
    "cached": Run({**ALONE, "cache": "cold"}, {"harness/page_cache.py": ("os.posix_fadvise(", "max(")}),
    "no Pillow": Run(READ, {"harness/data_set.py": ("__import__(module)", "__import__('absent_' + module)")}),
}


IN_ORDER = {
    "webdataset": Run({**READ, "data": "webdataset", "prefetch": 1}),
    "tfrecord": Run({**READ, "data": "tfrecord", "workers": 1, "worker_cpus": "own"}),
}


@pytest.mark.exhaustive
def test_trainings_read_formats_that_are_read_in_order(live_machine: Machine, tmp_path: Path) -> None:
    for one in IN_ORDER.values():
        one.given = {**one.given, "folder": str(tmp_path)}
        one.changed = {"task_steps": 8}
    done = dict(
        zip(IN_ORDER, run_all(BENCHMARK, list(IN_ORDER.values()), live_machine, "torch", tmp_path), strict=True)
    )
    for name, one in done.items():
        assert one.record.ended and one.record.checks["repeated_items"] == 0
        assert one.record.notes["data"]["format"] == name


def test_trainings_read_files_and_planted_faults_are_found(live_machine: Machine, tmp_path: Path) -> None:
    interpreter("lmdb")  # skips where there is none
    folder = tmp_path / "sets"
    folder.mkdir()
    for name, one in RUNS.items():
        one.given = {**one.given, **({} if name == "resident" else {"folder": str(folder)})}
        one.changed = {} if name == "lmdb" else {"task_steps": 8}
    done = dict(zip(RUNS, run_all(BENCHMARK, list(RUNS.values()), live_machine, "torch", tmp_path), strict=True))
    assert done["lmdb"].outcome is None, done["lmdb"].outcome
    for name in ("files", "lmdb"):
        assert done[name].record.ended and done[name].record.checks["repeated_items"] == 0
        known = done[name].record.notes["data"]
        assert known["format"] == name and known["where"] != "unknown" and known["images"] == 224
    for name in ("same images", "same data"):
        outcome = done[name].outcome
        assert outcome is not None and outcome.check == "repeated_items", (name, outcome)
    if done["cached"].record.notes["data"]["in_memory"] != "unknown":
        assert done["cached"].outcome is not None and done["cached"].outcome.check == "cached_data"
    declined = done["no Pillow"].record.declined
    assert declined is not None and "pillow" in declined.reason and "-m pip install pillow" in declined.reason
    resident, slow = done["resident"], done["slow"]
    waited_s = next(sample.work["wait_s"] for sample in slow.record.samples if sample.series == framework.BLOCK)
    assert waited_s >= SHORT["steps"] * SHORT["batch"] * DELAY_S, "each image of the measured steps is waited for"
    assert slow.figures()["data_wait"] > resident.figures()["data_wait"]
    assert slow.figures()["input_pipeline"] >= SHORT["batch"] * DELAY_S, "what each image of a batch slept is in it"
    for name in ("files", "lmdb"):  # by workers, while the network computes
        figures = done[name].figures()
        assert figures["input_pipeline"] > 0 < figures["input_cpu"] and figures["busy"] == 1 - figures["data_wait"]
    assert not {"input_pipeline", "busy"} & resident.figures().keys()


def test_the_pipeline_is_measured_by_itself(live_machine: Machine, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    for kind in FORMATS:
        chosen = {"model": "cifar10-quick", "images": 64, "passes": 1, "data": kind, "folder": str(tmp_path)}
        ready = prepare_point(INPUT, live_machine, {**chosen, **in_python(interpreter("lmdb"))})
        assert isinstance(ready, Ready), ready.outcome
        keep_point(ready, live_machine, folder)
        record = run_one(ready, live_machine, folder)
        assert record.outcome.is_ok, record.outcome
        assert {sample.series for sample in record.samples} == {"pipeline", "read", "decode"}
        assert record.seen["notes"]["data"]["format"] == kind


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"data": "files", "model": "gpt-small"}, "gpt-small has no images"),
        ({"data": "lmdb", "images": 10}, "each worker needs a batch"),
        ({"data": "files", "images": 1000, "cache": "cold"}, "each is read cold only once"),
        ({"data": "files", "workers": 4096, "worker_cpus": "own"}, "leaves no CPU"),
    ],
)
def test_what_does_not_fit_is_skipped(given: dict[str, object], reason: str, live_machine: Machine) -> None:
    with pytest.raises(Skip, match=reason):
        BENCHMARK.prepare(live_machine, BENCHMARK.point(given))


def test_made_up_data_have_no_loader(live_machine: Machine) -> None:
    plain, other = (
        BENCHMARK.prepare(live_machine, BENCHMARK.point(given)) for given in ({}, {"workers": 7, "cache": "cold"})
    )
    assert plain == other
