"""Records that our own programs wrote elsewhere: the parameters must be those that they were made with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from made_up import made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.engine.importing import Given, ImportedRepeat, ResultFile, read_repeats
from seatrial.environments.asking import lacking_gpu
from seatrial.environments.build import build
from seatrial.environments.chosen import native_environment
from seatrial.errors import ParseError, UsageError
from seatrial.model.machine.machine import Machine
from seatrial.plan.points import plan_points

HELLO = {"ev": "hello", "v": 1, "program": "reduction", "build": "", "host": "gpu-node", "cpus": [[0]]}
MODE_S = ["--backend", "cuda", "--devices", "0", "--precision", "fp32", "--count", "268435456", "--together", "0"]
DEVICE = {"backend": "cuda", "index": 0, "name": "H200"}
SAMPLE = {"ev": "sample", "series": "sum", "i": 0, "elapsed_s": 1e-3, "work": {"bytes": 4e9}}
CHECK = {"ev": "check", "name": "error", "value": 1e-9}
END = {"ev": "end"}


def note(key: str, value: Any) -> dict[str, Any]:
    return {"ev": "note", "key": key, "value": value}


WHOLE = [HELLO, note("arguments", MODE_S), note("devices", [DEVICE]), SAMPLE, CHECK, END]


def imported(events: list[dict[str, Any]], **settings: str) -> ImportedRepeat:
    data = "".join(json.dumps(event) + "\n" for event in events).encode()
    (repeat,) = read_repeats([ResultFile("records", "rank-000000.jsonl", data)], Given(settings=settings))
    return repeat


def test_a_record_is_a_repeat_of_its_benchmark() -> None:
    repeat = imported(WHOLE)
    assert repeat.outcome.is_ok, repeat.outcome
    assert repeat.experiment.benchmark == "gpu.reduction" and repeat.machine.name == "gpu-node"
    told = {"backend": "cuda", "device": 0, "devices": 1, "size": "large", "mode": "S", "precision": "fp32"}
    assert told.items() <= dict(repeat.experiment.parameters).items()


def test_other_parameters_than_it_was_made_with_are_refused() -> None:
    with pytest.raises(UsageError, match=r"made with --count 268435456, but these parameters of .* give 262144"):
        imported(WHOLE, size="1")
    smallest = [*MODE_S[:7], "262144", *MODE_S[8:]]
    events = [HELLO, note("arguments", smallest), *WHOLE[2:]]
    assert imported(events, size="1").experiment.parameters["size"] == "1"
    with pytest.raises(UsageError, match="--set key=value"):
        imported(events)


@pytest.mark.parametrize("check", [[], [{**CHECK, "value": 1e-3}], [{**CHECK, "value": None}]])
def test_a_check_that_failed_or_was_not_made_publishes_nothing(check: list[dict[str, Any]]) -> None:
    repeat = imported([*WHOLE[:4], *check, END])
    assert repeat.outcome.state.value == "invalid" and repeat.outcome.reason.startswith("error: ")


def test_what_a_program_of_ours_left_out_is_judged_as_where_the_lab_runs_it() -> None:
    machine = made_up_machine(cores=2, l3_bytes=1 << 20)
    (point,) = plan_points(["memory.stream"], {}, machine)
    params, checks = point.parameters, point.benchmark.checks
    started = note("arguments", list(point.benchmark.program.arguments(params)))
    reported = [{**CHECK, "name": check.name, "value": check.bound(machine, params)[0]} for check in checks]

    def reason(work: dict[str, float]) -> str:
        triad = {**SAMPLE, "series": "triad", "work": work, "pages_looked_at": 100, "pages_astray": 0}
        events = [{**HELLO, "program": "stream"}, started, triad, *reported, END]
        data = "".join(json.dumps(event) + "\n" for event in events).encode()
        (repeat,) = read_repeats([ResultFile("records", "rank-000000.jsonl", data)], Given(machine=machine))
        return repeat.outcome.reason

    assert reason({}) == "counted_bytes: cannot be computed: values missing from the samples (KeyError('bytes'))"
    assert reason({"bytes": 3.0 * float(params["array_B"])}) == "samples: none for add, copy, scale"


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (WHOLE[:-1], "the program died"),
        (WHOLE[1:], "the first event is not hello"),
        ([HELLO, {"ev": "skip", "reason": "no device", "need": "device"}], "measured nothing: no device"),
        ([{**HELLO, "program": "rm"}, *WHOLE[1:]], "by the program 'rm', which no benchmark uses"),
        ([HELLO, *WHOLE[2:]], "does not contain the program's arguments"),
    ],
)
def test_what_is_no_whole_record_is_refused(events: list[dict[str, Any]], why: str) -> None:
    with pytest.raises((ParseError, UsageError), match=why):
        imported(events)


@pytest.mark.real
def test_a_program_that_ran_alone(live_machine: Machine, tmp_path: Path) -> None:
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    program = build(native_environment(live_machine), benchmark_named("gpu.reduction").program.source).path
    started = ["--precision", "fp64", "--count", str((1 << 20) // 8)]
    cpu = str(live_machine.allowed_cpus[0])
    subprocess.run([program, "--record", tmp_path, "--cpus", cpu, *started], check=True, env=dict(os.environ))
    data = (tmp_path / "rank-000000.jsonl").read_bytes()
    given = Given(settings={"size": "1", "precision": "fp64"})
    (repeat,) = read_repeats([ResultFile("records", "rank-000000.jsonl", data)], given)
    assert repeat.outcome.is_ok, repeat.outcome
    assert repeat.experiment.parameters["backend"] == "opencl"
