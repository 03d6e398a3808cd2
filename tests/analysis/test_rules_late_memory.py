"""Memory that is present but that the kernel does not manage."""

from __future__ import annotations

import pytest

from seatrial.analysis.rules import findings
from seatrial.model.machine.fact import Fact, Facts, Finding, Severity
from seatrial.model.machine.machine import Machine

GIB = 1 << 30


def found(managed: float, online: float | None = None, modules: float | None = None, **more: str) -> dict[str, Finding]:
    totals = [Fact(managed, "/proc/meminfo (MemTotal)", unit="B")]
    totals += [Fact(online, "blocks", unit="B")] if online is not None else []
    totals += [Fact(modules, "dmidecode (sum of the modules)", unit="B")] if modules is not None else []
    facts = {"memory_total": tuple(totals)}
    facts |= {"memory_online": (Fact(online, "blocks", unit="B"),)} if online is not None else {}
    facts |= {name: (Fact(value, "x"),) for name, value in more.items()}
    several = findings(Machine("m", facts=Facts(facts)), ())
    return {f.rule: f for f in several if f.rule in ("memory-not-managed", "memory-sizes-disagree")}


@pytest.mark.parametrize("parameters", ["quiet", "quiet deferred_init=lazy psi=1"])
def test_memory_that_grows_is_explained_once(parameters: str) -> None:
    several = found(3 * GIB, 24 * GIB, kernel_parameters=parameters)
    assert set(several) == {"memory-not-managed"}
    finding = several["memory-not-managed"]
    assert finding.observation == "The kernel manages 3 GiB of 24 GiB of memory that is present."
    is_stated = "deferred" in parameters
    assert finding.severity is (Severity.INFO if is_stated else Severity.WARNING)
    assert ("`deferred_init=lazy`" in finding.diagnosis) is is_stated


def test_what_the_kernel_keeps_and_missing_modules_are_not_it() -> None:
    assert found(23.3 * GIB, 24 * GIB) == {}
    assert found(23.3 * GIB) == {}
    assert set(found(3 * GIB, 24 * GIB, 48 * GIB)) == {"memory-sizes-disagree"}
