"""Rules: pure functions from a machine and its figures to findings. `findings` applies all of them.

To add one, write a function `(Case) -> Iterable[Finding]` with `@rule(...)` in the file of its subject. A rule reports
nothing if a fact is missing: an unknown setting is not a wrong one. A problem that repeats (on eight GPUs) is one
finding with eight devices.

Severity:

* error: a part of the machine is not in use, or a figure is missing or cannot be true. Nothing should be published
  before it is explained: an experiment without a valid result, a memory module that the kernel does not see, a GPU
  without the direct links of its peers, a link measured above its capability.
* warning: it costs performance or hides hardware errors, and can be fixed or planned around.
* note (`info`): affects how to read figures or place ranks, and is normal on many machines (SMT, a link that may only
  be idle, GPUs on two sockets, a virtual machine).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from seatrial.analysis.device_copies import with_link_rates
from seatrial.analysis.rules.finding import NO_CPU_RULE, Case, Rule, Seen, gathered, registered
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@cache
def rules() -> tuple[Rule, ...]:
    """The rules of all files of this package, in the order of their subjects."""
    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        importlib.import_module(module.name)
    return tuple(rule for of_subject in registered.values() for rule in of_subject)


def findings(
    machine: Machine,
    results: Sequence[ExperimentResult],
    seen: Seen | None = None,
    environments: Mapping[str, Mapping[str, Any]] = {},
) -> tuple[Finding, ...]:
    """All findings: missing CPUs first, because they explain others; then sorted by loss (largest first, unknown last),
    then by severity, then in the order of `rules`.

    `seen` is what probes recorded during each repeat (see `Trial.seen`): evidence, and which GPU a figure belongs to.
    In `Case.machine`, links have the rates that copies reached over them.
    """
    seen = seen or {}
    case = Case(with_link_rates(machine, results, seen), tuple(results), seen, gathered(seen), environments)
    found = [finding for rule in rules() for finding in rule(case)]
    return tuple(sorted(_without_estimates(found), key=_place))


def _place(finding: Finding) -> tuple[bool, float, int]:
    return finding.rule != NO_CPU_RULE, -(finding.loss or 0.0), _RANK[finding.severity]


def _without_estimates(found: Sequence[Finding]) -> list[Finding]:
    """Without the estimated loss of GPUs that share an uplink if another finding has measured it."""
    measured = {device for finding in found if finding.rule == "copies-share-uplink" for device in finding.devices}
    return [f for f in found if f.rule != "gpus-share-uplink" or not set(f.devices) <= measured]
