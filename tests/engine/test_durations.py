"""What a machine took before: learned, bounded, and never trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.engine import durations
from seatrial.engine.durations import BUILD_S, START_S, Durations, learn
from seatrial.plan.points import Point, plan_points

(POINT,) = plan_points(["memory.gups"], {}, made_up_machine())


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path))
    return tmp_path / "durations" / "m.json"


def other(point: Point = POINT) -> Point:
    """The same benchmark with a parameter that nobody measured."""
    return replace(point, parameters={**point.parameters, "label": "x"})


def test_an_unknown_machine_takes_what_is_declared() -> None:
    found = Durations.of("m")
    assert found.repeat_s(POINT) == POINT.estimate_s
    assert (found.build_s("gups"), found.start_s) == (BUILD_S, START_S)


def test_what_was_measured_is_the_next_estimate_also_of_other_parameters() -> None:
    assert POINT.estimate_s is not None
    learn("m", [(POINT, 3.0 * POINT.estimate_s)], {"gups": 5.0}, 2.5)
    found = Durations.of("m")
    assert found.repeat_s(POINT) == found.repeat_s(other()) == pytest.approx(3.0 * POINT.estimate_s)
    assert (found.build_s("gups"), found.build_s("another"), found.start_s) == (5.0, 5.0, 2.5)
    assert Durations.of("another machine").repeat_s(POINT) == POINT.estimate_s
    learn("m", [(POINT, POINT.estimate_s)])
    assert Durations.of("m").repeat_s(POINT) == POINT.estimate_s and Durations.of("m").build_s("gups") == 5.0


ENTRY = {"benchmark": "memory.gups", "repeat_s": 1.0, "declared_s": 1.0, "at_s": 1.0}
HOSTILE = {
    "no JSON": b"{",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "another version": json.dumps({"v": 2, "repeats": {}, "builds": {}, "start_s": None}).encode(),
    "negative": json.dumps(
        {"v": 1, "repeats": {"k": {**ENTRY, "repeat_s": -1.0}}, "builds": {}, "start_s": 1.0}
    ).encode(),
    "text": json.dumps(
        {"v": 1, "repeats": {}, "builds": {"gups": {"build_s": "1", "at_s": 1.0}}, "start_s": 1.0}
    ).encode(),
    "infinite": b'{"v": 1, "repeats": {}, "builds": {}, "start_s": 1e999}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_understood_is_ignored_and_replaced(file: Path, name: str) -> None:
    file.parent.mkdir()
    file.write_bytes(HOSTILE[name])
    found = Durations.of("m")
    assert (found.repeat_s(POINT), found.build_s("gups"), found.start_s) == (POINT.estimate_s, BUILD_S, START_S)
    learn("m", start_s=4.0)
    assert Durations.of("m").start_s == 4.0


def test_a_start_beside_other_work_does_not_count_in_full() -> None:
    for start_s, kept in ((4.0, 4.0), (40.0, 5.0), (3.0, 3.0)):
        learn("m", start_s=start_s)
        assert Durations.of("m").start_s == kept


def test_a_file_that_others_can_write_is_ignored(file: Path) -> None:
    learn("m", start_s=4.0)
    file.chmod(0o666)
    assert Durations.of("m").start_s == START_S


def test_the_file_is_bounded_and_may_be_impossible_to_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "_MOST", 3)
    for number in range(5):
        learn("m", builds={f"p{number}": 1.0})
    assert set(json.loads(file.read_text())["builds"]) == {"p2", "p3", "p4"}
    monkeypatch.setenv("SEATRIAL_CACHE", "/proc/nowhere")
    learn("m", start_s=1.0)
