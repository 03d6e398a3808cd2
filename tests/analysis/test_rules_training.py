"""Experiments for the rules about training: name of a finding -> a case that has it, and some that do not."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.test_rules_expectation import made, result

from seatrial.analysis.rules import rules
from seatrial.analysis.rules.finding import Case
from seatrial.model.machine.machine import Machine


def case(
    *own_s: Sequence[float | None],
    prints: Sequence[str] = ("a",) * 6,
    hosts: Sequence[str] = ("n1", "n2"),
    key: str = "own_step_s",
) -> Case:
    """Six repeats of two processes each, with the times of their own steps (one for all repeats, or each)."""
    measured = result(made(1.0, None))
    times = own_s * 6 if len(own_s) == 1 else own_s
    seen = {
        (measured.id, repeat): {
            "host": hosts[repeat % 2],
            "notes": {
                "fingerprint": prints[repeat],
                "processes": [
                    {"host": host, **({} if own is None else {key: own})}
                    for host, own in zip(hosts, times[repeat], strict=True)
                ],
            },
        }
        for repeat in range(6)
    }
    return Case(Machine("m"), (measured,), seen)


CASES = {
    "process-is-late": (
        case([0.03, 0.13]),
        [case([0.03, 0.031]), case([None, None]), case([0.03, 0.13], *[[0.03, 0.03]] * 5), case(*[[1, 2], [2, 1]] * 3)],
    ),
    "input-pipeline-is-late": (
        case([0.1, 0.12], key="input_batch_s"),
        [
            case([0.1, 0.105], key="input_batch_s"),
            case([0.1, 0.12], [0.12, 0.1], *[[0.1, 0.1]] * 4, key="input_batch_s"),
        ],
    ),
    "fingerprints-differ": (case([1, 1], prints="abaaaa"), [case([1, 1])]),
}


def test_a_process_that_is_late_is_named_with_its_node() -> None:
    (found,) = (one for rule in rules() for one in rule(CASES["process-is-late"][0]))
    assert "process 1 on n2 takes 130 ms" in found.observation and "the others take 30.0 ms" in found.observation


def test_workers_that_need_a_fifth_longer_are_named_with_their_node() -> None:
    (found,) = (one for rule in rules() for one in rule(CASES["input-pipeline-is-late"][0]))
    assert "workers of process 1 on n2 take 120 ms for a batch" in found.observation


def test_a_node_that_computes_other_bits_is_named() -> None:
    (found,) = (one for rule in rules() for one in rule(case([1, 1], prints="ababab")))
    assert "in 3 of 6 repeats, on n2" in found.observation and "only seen on the named hosts" in found.diagnosis
