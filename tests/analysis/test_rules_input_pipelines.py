"""Which part limits a training, by what was measured of each."""

from __future__ import annotations

import pytest
from analysis.test_rules_expectation import made, result

from seatrial.analysis.rules import findings
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import show_percent


def pipeline(rate: float, decoding: float = 0.8, **parameters) -> ExperimentResult:
    given = {"model": "resnet50", "data": "files", "cache": "warm", "workers": 4, "needed": 0, **parameters}
    figures = made(rate, None, name="rate"), made(decoding, None, name="decoding")
    return result(*figures, benchmark="training.input", **given)


def training(rate: float, **parameters) -> ExperimentResult:
    given = {"model": "resnet50", "data": "device", "device": "cuda", "nodes": 1, **parameters}
    return result(made(rate, None, name="rate"), benchmark="training.pytorch", **given)


def waiting(share: float, **parameters) -> ExperimentResult:
    given = {"model": "resnet50", "data": "files", "workers": 2, "nodes": 1, **parameters}
    return result(made(share, None, name="data_wait"), benchmark="training.pytorch", **given)


CASES = {
    "steps-wait-for-data": ([waiting(0.35)], [[waiting(0.09)], [waiting(0.1)]]),
    "input-pipeline-limits": (
        [pipeline(410), training(1050)],
        [
            [pipeline(410)],
            [pipeline(410), training(1050, model="inception-v3")],
            [pipeline(410), training(1050, data="host")],
            [pipeline(410), training(420)],
            [pipeline(410, workers=1), pipeline(1200), training(1050)],
            [pipeline(410), training(1600, nodes=4)],
        ],
    ),
    "network-limits": ([pipeline(2000), training(1050)], [[pipeline(2000)], [pipeline(1060), training(1050)]]),
}


def only(*results: ExperimentResult):
    return next(found for found in findings(Machine("m"), results) if found.rule in CASES)


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([pipeline(410), training(1050)], "with 4 workers delivers 410 images/s, resnet50 takes 1,050 images/s"),
        ([pipeline(410, needed=900)], "900 images/s are needed: the pipeline limits"),
        ([pipeline(60, needed=900), training(70)], "900 images/s are needed"),
        ([pipeline(410), training(8400, nodes=4)], "takes 2,100 images/s on each node"),
    ],
)
def test_the_part_that_limits_is_named_with_both_rates(results: list[ExperimentResult], said: str) -> None:
    assert said in only(*results).observation


def test_what_takes_its_time_decides_what_to_do() -> None:
    decodes, reads = (only(pipeline(410, share), training(1050)) for share in (0.8, 0.2))
    assert f"Decoding takes {show_percent(0.8)}" in decodes.diagnosis and "more workers" in decodes.remedy
    assert "folder" in reads.remedy
    assert decodes.loss == pytest.approx(1 - 410 / 1050)


def test_a_training_that_read_the_data_is_evidence() -> None:
    assert "data=files: 400 images/s" in only(pipeline(410), training(1050), training(400, data="files")).evidence


def test_a_loader_that_is_slower_is_named_by_what_steps_wait() -> None:
    """A loader that a fifth of a batch's time slows down from just fast enough: steps wait for it."""
    assert not [found for found in findings(Machine("m"), [waiting(0.02)]) if found.rule in CASES]
    found = only(waiting(0.02, seed=1), waiting(1 - 1 / 1.2))
    assert f"waits for data for {show_percent(1 - 1 / 1.2)}" in found.observation and "seed=0" not in found.observation
    assert "(files with 2 workers)" in found.observation and found.loss == pytest.approx(1 / 6)


def test_a_network_on_the_same_cpus_leaves_less() -> None:
    assert "same CPUs" in only(pipeline(410), training(1050, device="cpu")).diagnosis
    assert "same CPUs" not in only(pipeline(410), training(1050)).diagnosis
