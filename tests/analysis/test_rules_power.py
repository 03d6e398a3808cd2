"""Experiments for the rules about power: name of a finding -> a case that has it, and some that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from analysis.test_rules_expectation import made, result
from msgspec.structs import replace

from seatrial.analysis.rules import rules
from seatrial.analysis.rules.finding import Case, gathered
from seatrial.model.benchmark.benchmark import Better
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


def case(*energies: dict[str, Any], out: Sequence[Mapping[str, Any]] = (), **curves: list[list[float]]) -> Case:
    measured = result(made(1.0, None))
    phase = {"of": "sampling", "start_s": 0.0, "end_s": 10.0}
    power = {"phase": phase, "energies": list(energies), "curves": curves, "parts_out": list(out)}
    return Case(Machine("m"), (measured,), {(measured.id, repeat): {"power": power} for repeat in range(6)})


def averaged(window_s: float) -> list[list[float]]:
    """A load of 400 W from 0 to 10 s, idle 100 W."""
    return [
        [0.1 * k, 100.0 + 300.0 * max(0.0, min(0.1 * k, 10.0) - max(0.1 * k - window_s, 0.0)) / window_s]
        for k in range(-50, 150)
    ]


def flat(*watts: float) -> list[list[float]]:
    """These in turns, for a fifth of the phase each."""
    return [[0.1 * k, watts[min(k // 20, len(watts) - 1)] if k >= 0 else 100.0] for k in range(-20, 120)]


def gauge(source: str, *, window_s: float | None = None, limit: float | None = None) -> dict[str, Any]:
    return {**sensor(source, Scope.NODE, 300.0, limit=limit), "kind": "gauge", "window_s": window_s}


FAN = {"kind": "fan", "name": "Fan 3", "why": "state Disabled, reads 0", "source": "/redfish/v1/x", "node": ""}


def line(start_W: float, end_W: float) -> list[list[float]]:
    return [[0.1 * k, start_W + (end_W - start_W) * k / 100] for k in range(-20, 120)]


def two_governors(slow: tuple[float, float], fast: tuple[float, float], **more: Any) -> Case:
    """The governors powersave and performance, with these medians of a time and its energy."""
    results, environments = [], {}
    for governor, (time_s, energy_J) in (("powersave", slow), ("performance", fast)):
        figures = (
            made(time_s, None, name="wall", better=Better.LOWER),
            made(energy_J, None, name="wall_energy", better=Better.LOWER, point={"scope": "node"}),
        )
        one = result(*figures, benchmark="command", argv=("./app",))
        experiment = replace(one.experiment, environment=governor)
        results.append(replace(one, id=governor, experiment=experiment))
        environments[governor] = {"name": governor, "machine_settings": {"governor": governor}, "mpi": None}
    environments["performance"] |= more
    return Case(Machine("m"), tuple(results), environments=environments)


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
    "power-capped": (
        case(gauge("bmc", limit=400.0), bmc=flat(300.0, 399.0, 399.0, 300.0, 300.0)),
        [
            case(gauge("bmc", limit=400.0), bmc=flat(300.0, 399.0, 420.0, 300.0, 300.0)),
            case(gauge("bmc", limit=500.0), bmc=flat(300.0, 399.0, 399.0, 300.0, 300.0)),
            case(gauge("bmc"), bmc=flat(300.0, 399.0, 399.0, 300.0, 300.0)),
        ],
    ),
    "power-averaged": (
        case(gauge("bmc"), bmc=averaged(3.0)),
        [
            case(gauge("bmc", window_s=3.0), bmc=averaged(3.0)),  # it is in the error
            case(gauge("bmc"), bmc=averaged(0.1)),
            case(gauge("bmc"), bmc=line(100.0, 400.0)),
        ],
    ),
    "power-part-out": (case(gauge("bmc"), out=[FAN]), [case(gauge("bmc"))]),
    "setting-costs-more-than-it-saves": (
        two_governors((12.0, 5000.0), (10.0, 4500.0)),
        [
            two_governors((12.0, 4000.0), (10.0, 4500.0)),  # slower, for less energy
            two_governors((10.02, 5000.0), (10.0, 4500.0)),  # whether it is slower is not known
            two_governors((12.0, 4510.0), (10.0, 4500.0)),
            two_governors((12.0, 5000.0), (10.0, 4500.0), mpi="another"),
        ],
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


def test_a_setting_that_costs_more_is_named_with_both_intervals() -> None:
    (found,) = (one for rule in rules() for one in rule(two_governors((12.0, 5000.0), (10.0, 4500.0))))
    assert "with governor powersave, a result takes 20 % longer than with performance" in found.observation
    assert "11 % more energy" in found.observation
    assert "wall: " in found.evidence and "wall_energy (node): " in found.evidence


def test_the_window_of_an_average_is_named() -> None:
    (found,) = (one for rule in rules() for one in rule(case(gauge("bmc"), bmc=averaged(3.0))))
    assert "ramps of 3.00 s" in found.observation and "30.0 s or longer" in found.remedy


class _Untouched(dict[tuple[str, int], dict[str, Any]]):
    def items(self) -> Any:
        pytest.fail("records are looked at")


def test_records_without_power_are_looked_at_once() -> None:
    """Each of the rules made all records of a folder again to find that none has power."""
    measured = result(made(1.0, None))
    untouched = Case(Machine("m"), (measured,), _Untouched(), gathered=gathered({}))
    assert [found for rule in rules() if rule.__module__.endswith(".power") for found in rule(untouched)] == []
    with_power = case(sensor("bmc", NODE, 400.0))
    assert gathered(with_power.seen).powered == {with_power.results[0].id}
