"""Experiments for the rules about power: name of a finding -> a case that has it, and some that do not."""

from __future__ import annotations

from typing import Any

import pytest
from analysis.test_rules_expectation import made, result

from seatrial.analysis.rules import rules
from seatrial.analysis.rules.finding import Case, gathered
from seatrial.model.json_object import plain
from seatrial.model.machine.machine import Machine
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.model.results.energy import MeasuredEnergy


def sensor(
    source: str, scope: Scope, watts: float, *, idle: float = 100.0, error: float = 1.0, limit: float | None = None
) -> dict[str, Any]:
    """What a sensor shows of a phase of 10 s."""
    one = MeasuredEnergy(
        source,
        scope,
        Supply.DC,
        energy=10 * watts,
        energy_error=10 * error,
        mean_power=watts,
        mean_power_error=error,
        peak_power=watts,
        peak_power_error=error,
        idle_before=idle,
        idle_after=idle,
        energy_over_idle=10 * (watts - idle),
        elapsed_s=10.0,
        values=100,
        refresh_s=0.1,
        window_s=None,
        accuracy=None,
        reason="",
        of=source,
        kind=SourceKind.COUNTER,
        limit=limit,
    )
    return plain(one)


def case(*energies: dict[str, Any], **curves: list[list[float]]) -> Case:
    measured = result(made(1.0, None))
    power = {"phase": {"of": "sampling", "start_s": 0.0, "end_s": 10.0}, "energies": list(energies), "curves": curves}
    return Case(Machine("m"), (measured,), {(measured.id, repeat): {"power": power} for repeat in range(6)})


def line(start_W: float, end_W: float) -> list[list[float]]:
    return [[0.1 * k, start_W + (end_W - start_W) * k / 100] for k in range(-20, 120)]


NODE, PACKAGE, DEVICE = Scope.NODE, Scope.PACKAGE, Scope.DEVICE
CASES = {
    "power-limit-reached": (
        case(sensor("rapl:package-0", PACKAGE, 199.0, limit=200.0)),
        [
            case(sensor("rapl:package-0", PACKAGE, 150.0, limit=200.0)),
            case(sensor("rapl:package-0", PACKAGE, 199.0)),
        ],
    ),
    "power-falls": (
        case(sensor("bmc", NODE, 400.0), bmc=line(420.0, 360.0)),
        [
            case(sensor("bmc", NODE, 400.0), bmc=line(400.0, 396.0)),
            case(sensor("bmc", NODE, 400.0), bmc=line(360.0, 420.0)),
            case(sensor("bmc", NODE, 400.0), bmc=[[1.0, 420.0], [9.0, 300.0]]),
        ],
    ),
    "power-uneven": (
        case(*(sensor(f"gpu{k}", DEVICE, 400.0 if k else 300.0) for k in range(4))),
        [
            case(*(sensor(f"gpu{k}", DEVICE, 400.0 if k else 380.0) for k in range(4))),
            case(*(sensor(f"gpu{k}", DEVICE, 400.0 if k else 101.0) for k in range(4))),  # it was not used
            case(*(sensor(f"gpu{k}", DEVICE, 400.0 if k else 300.0, error=60.0) for k in range(4))),
            case(sensor("gpu0", DEVICE, 300.0)),
        ],
    ),
    "power-idle-high": (
        case(sensor("bmc", NODE, 400.0, idle=300.0)),
        [case(sensor("bmc", NODE, 400.0, idle=150.0)), case(sensor("rapl", PACKAGE, 400.0, idle=300.0))],
    ),
    "power-sensors-contradict": (
        case(sensor("bmc", NODE, 400.0), sensor("p0", PACKAGE, 250.0), sensor("p1", PACKAGE, 250.0)),
        [
            case(sensor("bmc", NODE, 600.0), sensor("p0", PACKAGE, 250.0), sensor("p1", PACKAGE, 250.0)),
            case(sensor("bmc", NODE, 400.0, error=80.0), sensor("p0", PACKAGE, 250.0, error=30.0)),
            case(sensor("p0", PACKAGE, 250.0)),
        ],
    ),
}


class _Untouched(dict[tuple[str, int], dict[str, Any]]):
    def items(self) -> Any:
        pytest.fail("records are looked at")


def test_records_without_power_are_looked_at_once() -> None:
    """Each of the rules made all records of a folder again to find that none has power."""
    measured = result(made(1.0, None))
    untouched = Case(Machine("m"), (measured,), _Untouched(), powered=frozenset())
    assert [found for rule in rules() if rule.__module__.endswith(".power") for found in rule(untouched)] == []
    with_power = case(sensor("bmc", NODE, 400.0))
    assert gathered(with_power.seen) == ([], frozenset({with_power.results[0].id}))
