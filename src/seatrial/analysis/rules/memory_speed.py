"""The rule about the speed of memory modules: below their rating, and below what the processor supports."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.memory_slots import odd_slots
from seatrial.analysis.rules.words import listed
from seatrial.machine.processors import highest_memory_MTps
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.spelling import show_transfers

_AS_FAST = 0.99


def modules_below_rating(case: Case) -> Iterator[Finding]:
    """Fires if modules run below their rated speed and below the highest speed of the processor.

    Only a note with two modules on each channel, or if the processor's highest speed is unknown: it may be the limit.
    """
    machine = case.machine
    highest = _highest_MTps(machine)
    slow = [entry for entry in _slow_modules(machine) if highest is None or entry[1] < _AS_FAST * highest]
    odd = {one.device for one in odd_slots(machine) if one.property == "configured speed"}
    if not slow or is_virtual(machine) or all(name in odd for name, _, _ in slow):  # reported with its slot
        return
    _, configured, rated = min(slow, key=lambda entry: entry[1] / entry[2])
    allowed = rated if highest is None else min(rated, highest)
    is_normal = _has_two_on_each_channel(machine)
    is_loss = highest is not None and not is_normal
    supports = f"; the processor supports up to {show_transfers(allowed)}" if allowed < rated else ""
    yield Finding(
        rule="memory-below-rating",
        severity=Severity.WARNING if is_loss else Severity.INFO,
        devices=tuple(dict.fromkeys(name for name, _, _ in slow if machine.device(name) is not None)),
        observation=f"Memory runs at {show_transfers(configured)} but is rated for {show_transfers(rated)}{supports}.",
        diagnosis=_means(machine, is_normal, highest is None),
        remedy="Check the speed that the vendor lists for "
        + ("two modules per channel" if is_normal else "this processor and number of modules per channel")
        + "; if it is higher, raise the memory speed in the firmware, and read it again with "
        "`sudo dmidecode -t memory`",
        evidence=listed(f"{name}: configured {show_transfers(c)}, rated {show_transfers(r)}" for name, c, r in slow),
        loss=1 - configured / allowed if is_loss else None,
    )


def _means(machine: Machine, is_normal: bool, is_processor_unknown: bool) -> str:
    if is_normal:
        return (
            "Each channel has two modules, and most platforms then lower the memory speed: normal if the vendor lists "
            "this speed for two modules per channel."
        )
    if is_processor_unknown:
        return (
            "The highest memory speed of the processor is unknown: this may be it, and then nothing is wrong. Other "
            "possible causes: a firmware setting, or two modules on a channel."
        )
    alone = [s for s in machine.memory.sockets if s.dimms]
    is_one_each = bool(alone) and all(s.populated_channels == s.dimms for s in alone)
    return (
        "The modules and the processor support more. Possible causes: a firmware setting (such as a power saving mode)"
        + ("." if is_one_each else ", or two modules on a channel (most platforms then lower the speed).")
        + " Bandwidth is lower by the same share."
    )


def _has_two_on_each_channel(machine: Machine) -> bool:
    full = [s for s in machine.memory.sockets if s.dimms]
    return bool(full) and all(s.populated_channels and s.dimms >= 2 * s.populated_channels for s in full)


def _highest_MTps(machine: Machine) -> float | None:
    """The highest memory speed that the processors support: by their models, or because other modules of this machine
    run at it. None if it is unknown."""
    speeds = [highest_memory_MTps(package) for package in machine.of_kind(DeviceKind.PACKAGE)]
    known = [speed for speed in speeds if speed is not None]
    if known and len(known) == len(speeds):
        return max(known)
    running = {configured for _, configured, _ in _speeds(machine) if configured}
    return max(running) if len(running) > 1 else None


def _slow_modules(machine: Machine) -> Iterator[tuple[str, float, float]]:
    """(module or socket, configured, rated in MT/s) of those below their rating."""
    for name, configured, rated in _speeds(machine):
        if configured and rated and configured < _AS_FAST * rated:
            yield name, configured, rated


def _speeds(machine: Machine) -> list[tuple[str, float | None, float | None]]:
    """(name, configured, rated in MT/s) of the sockets if all their speeds are known, else of the modules."""
    speeds = [(f"socket {n}", s.configured_MTps, s.rated_MTps) for n, s in enumerate(machine.memory.sockets) if s.dimms]
    if speeds and all(configured is not None and rated is not None for _, configured, rated in speeds):
        return speeds
    return [
        (device.id, device.facts.number("configured_MTps"), device.facts.number("rated_MTps"))
        for device in machine.memory_modules()
    ]
