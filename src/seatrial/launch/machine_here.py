"""The machine of this process, with the nodes that ranks can be started on."""

from __future__ import annotations

import logging
import os

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.launch.allocation import Allocated, allocated, named_hosts
from seatrial.launch.node_facts import like_nodes
from seatrial.machine.live import discover_live
from seatrial.model.host_list import fold_hosts
from seatrial.model.machine import Machine
from seatrial.plan.site_in_force import place_in_force

_log = logging.getLogger(__name__)


def machine_here() -> Machine:
    """The machine of this process. Inside an allocation, and on a partition with `hosts`, it has the nodes that are
    like it: one that does not answer or is unlike is left out, with a warning.

    Raises UsageError if this process is on none of the nodes."""
    machine = discover_live()
    found = allocated(os.environ) or _hosts_of_site()
    if found is None:
        return machine
    if found.this is None:
        first = found.nodes[0]
        start = f"srun --nodes=1 --ntasks=1 --overlap --nodelist={first}" if found.starter == "srun" else f"ssh {first}"
        raise UsageError(
            f"this process runs on {machine.name}, which is no node of {found.source} ({fold_hosts(found.nodes)})",
            f"run seatrial on its first node: {start} seatrial ...",
        )
    allocation = like_nodes(found, machine, os.environ)
    for one in allocation.left_out:
        _log.warning("%s is left out: %s", one.name, one.why)
    return replace(machine, allocation=allocation if len(found.nodes) > 1 else None)


def _hosts_of_site() -> Allocated | None:
    place = place_in_force()
    if place is None or place.system.batch is not None or not place.partition.hosts:
        return None
    source = f"partition {place.system.name}:{place.partition.name}"
    return named_hosts(place.partition.hosts, source)
