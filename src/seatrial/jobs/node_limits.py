"""The limits of this machine that hardware counters are compared with."""

from __future__ import annotations

import logging
from pathlib import Path

from seatrial.analysis.results import results_without_limits
from seatrial.analysis.roles import figures_with
from seatrial.errors import UsageError
from seatrial.model.role import Role
from seatrial.profiler.counters import NodeLimits
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)


def node_limits(results: Path) -> NodeLimits | None:
    """The highest memory bandwidth (triad) and floating-point rate among the results; None if there are none, or if
    they are of more than one machine."""
    try:
        contents = read_contents(ResultsFolder.existing(results))
    except UsageError as problem:
        _log.info("no limits of this machine: %s", problem)
        return None
    if len({experiment.machine for experiment in contents.experiments.values()}) != 1:
        return None
    measured = results_without_limits(contents)
    memory, flops = (
        max((figure.median for _, figure in figures_with(measured, role)), default=None)
        for role in (Role.MEMORY_BANDWIDTH, Role.FMA_RATE)
    )
    return None if memory is None and flops is None else NodeLimits(memory, flops)
