"""What a machine is inside of: hypervisors and containers, each with the evidence for it."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class Sign(Frozen):
    """A hypervisor or container runtime (`kind`: "kvm", "docker"), and what shows it."""

    kind: str
    evidence: str


class Platform(Frozen):
    """All layers around the machine, the outermost first; empty if there are none or none is known."""

    virtualization: tuple[Sign, ...] = ()
    container: tuple[Sign, ...] = ()
