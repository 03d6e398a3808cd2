"""All sensors of power and energy of this node, or of what was recorded of another: each source is a file beside this
one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.machine.files import FileTree
from seatrial.model.environment.site import PduAccess, PowerAccess, RedfishAccess
from seatrial.model.machine.power import PartOut, PowerSource, Scope, SourceKind
from seatrial.probes.power import amdsmi, hwmon, ipmi, nvml, pdu, pm_counters, rapl, redfish, redfish_kept, slurm
from seatrial.probes.power.credentials import password_of
from seatrial.probes.power.redfish_found import ROOT, Answers, Found
from seatrial.probes.power.redfish_parts import parts_in, parts_out
from seatrial.probes.power.redfish_service import Recorded, Service
from seatrial.probes.power.source import Reading, Sensor, states
from seatrial.stats.energy import refresh_interval

RECORDED = ("redfish", "sysfs")
"""What can be read from a folder."""
_LOCAL_PERIOD_S, _REMOTE_PERIOD_S = 0.02, 1.0
"""How often a sensor is read to see how often it changes: one in the node; a BMC, which others ask as well."""
_SAME_ANSWER_S = 0.5
"""Sensors that are in one object of a BMC share an answer for so long."""


@contextmanager
def live_sensors(access: PowerAccess) -> Iterator[list[Sensor]]:
    """The sensors that this node shows, and those of the BMC that the site file states, whose connection ends with the
    block. Raises UsageError for a password that cannot be read."""
    found = [*local_sensors(FileTree(Path("/"))), *nvml.sensors(), *amdsmi.sensors(), *slurm.sensors()]
    with ExitStack() as opened:
        yield [*found, *_of_access(access, opened, is_here=True)]


@contextmanager
def sensors_of_nodes(access: PowerAccess, others: Iterable[tuple[str, PowerAccess]]) -> Iterator[list[Sensor]]:
    """The same, and those of other nodes that can be asked over the network from here; their names begin with that of
    the node."""
    with live_sensors(access) as found, ExitStack() as opened:
        for node, own in others:
            if own != PowerAccess():
                found += [
                    replace(one, name=f"{node}:{one.name}", node=node, whole=f"{node} {one.whole}" if one.whole else "")
                    for one in _of_access(own, opened, is_here=False)
                ]
        yield found


def _of_access(access: PowerAccess, opened: ExitStack, *, is_here: bool) -> Iterator[Sensor]:
    """The sensors of a BMC or a power distribution unit; of this node also those of its BMC through the driver."""
    bmc, ask = access.ipmi, None
    if bmc is not None or is_here:
        ask = ipmi.asking(bmc, None if bmc is None else password_of(bmc))
    if ask is not None:
        opened.callback(ask.close)
        stated_s = None if bmc is None else bmc.refresh_s
        yield from (replace(one, is_remote=True, refresh_s=stated_s) for one in ipmi.sensors(ask))
    if access.redfish is not None:
        yield from _of_service(access.redfish, opened)
    if access.pdu is not None:
        yield from _of_service(access.pdu, opened)


def recorded_sensors(kind: str, folder: Path) -> list[Sensor]:
    """The sensors in a folder: a tree of Redfish objects, or one with `sys` (or what is in /sys). Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder", f"--from {kind}=DIR takes the folder that holds the tree")
    if kind == "redfish":
        recorded = Recorded(folder)
        if recorded.get(ROOT) is None:
            todo = "give the folder that has redfish/v1/index.json"
            raise UsageError(f"{folder}: no Redfish tree found", todo)
        return redfish.sensors(recorded.get)
    tree = FileTree(folder) if (folder / "sys").is_dir() else _SysTree(folder)
    if not tree.names("/sys"):
        raise UsageError(f"{folder}: no sysfs tree found", "give the folder that has sys, or a copy of /sys")
    return local_sensors(tree)


def read_all(sensors: Sequence[Sensor]) -> list[PowerSource]:
    """What each sensor reads once."""
    return states(sensors, [sensor.read() for sensor in sensors])


def watched(sensors: Sequence[Sensor], for_s: float) -> list[PowerSource]:
    """The same, after it was read for some time, in seconds: with how often each one changes, and without those that
    never do what a sensor of their kind must."""
    return states(*_looked_at(sensors, for_s))


def usable_sensors(sensors: Sequence[Sensor], for_s: float) -> list[Sensor]:
    """Those that can be used now, of the node first, with how often they change as far as that shows in this time."""
    found, latest = _looked_at(sensors, for_s)
    usable = [one for one, state in zip(found, states(found, latest), strict=True) if state.usable]
    return sorted(usable, key=lambda sensor: sensor.scope is not Scope.NODE)


def _looked_at(sensors: Sequence[Sensor], for_s: float) -> tuple[list[Sensor], list[Reading]]:
    """The sensors with how often they change, and what each one read last."""
    readings: list[list[Reading]] = [[sensor.read()] for sensor in sensors]
    periods = [
        max(_REMOTE_PERIOD_S, sensor.refresh_s or 0.0) if sensor.is_remote else _LOCAL_PERIOD_S for sensor in sensors
    ]
    due = [start + period for start, period in zip([time.monotonic()] * len(sensors), periods, strict=True)]
    end_s = time.monotonic() + for_s
    while sensors and min(due) < end_s:
        position = due.index(min(due))
        time.sleep(max(0.0, due[position] - time.monotonic()))
        if not readings[position][-1].fault:
            readings[position].append(sensors[position].read())
        due[position] = time.monotonic() + periods[position]
    found = [_with_refresh(sensor, seen) for sensor, seen in zip(sensors, readings, strict=True)]
    return found, [seen[-1] for seen in readings]


def _with_refresh(sensor: Sensor, seen: Sequence[Reading]) -> Sensor:
    values = [one.joules if sensor.kind is SourceKind.COUNTER else one.watts for one in seen]
    known = [(one.at_s, value) for one, value in zip(seen, values, strict=True) if value is not None]
    if sensor.refresh_s is not None or not known:
        return sensor
    return replace(sensor, refresh_s=refresh_interval(*zip(*known, strict=True)))


def local_sensors(tree: FileTree) -> list[Sensor]:
    """Those that Linux shows."""
    return [*pm_counters.sensors(tree), *rapl.sensors(tree), *hwmon.sensors(tree)]


def _of_service(stated: RedfishAccess, opened: ExitStack) -> list[Sensor]:
    try:
        service = Service(stated, password_of(stated))
        opened.callback(service.close)
        answers = Answers(service.get, service.now, _SAME_ANSWER_S, is_remote=True)
        found = _found_in(stated, service, answers)
    except OSError as error:
        fault = Reading(time.monotonic(), fault=f"no answer from {stated.url}: {error}")
        name = "pdu" if isinstance(stated, PduAccess) else "redfish"
        return [Sensor(name, Scope.NODE, SourceKind.GAUGE, "the node", lambda: fault)]
    opened.callback(lambda: redfish_kept.forget(stated) if answers.is_gone else None)
    if isinstance(stated, PduAccess):
        return pdu.sensors(stated, found, answers)
    found = [_of_our_node(one, stated.chassis, found) for one in found]
    return [answers.sensor(replace(one, refresh_s=one.refresh_s or stated.refresh_s)) for one in found]


def _found_in(stated: RedfishAccess, service: Service, answers: Answers) -> Sequence[Found]:
    """The sensors of a service: those that were found earlier, if they are still there. Raises OSError."""
    root = service.get(ROOT)
    kept = redfish_kept.load(stated, root)
    if kept is not None:
        for one in kept.sensors:
            if one.scope is Scope.NODE and one.spot.uri:
                answers.sensor(one).read()
        if not answers.is_gone:
            return kept.sensors
    answers.is_gone = False
    known = redfish.found_in(service.get)
    redfish_kept.keep(stated, root, known, () if isinstance(stated, PduAccess) else parts_in(service.get))
    return known


def parts_out_here(access: PowerAccess, others: Iterable[tuple[str, PowerAccess]] = ()) -> list[PartOut]:
    """Fans and power supplies that are out, and redundancy that is lost, by the BMC of this node and of others. A BMC
    that does not answer shows none."""
    found = []
    for node, own in (("", access), *others):
        if own.redfish is not None:
            with suppress(OSError), closing(Service(own.redfish, password_of(own.redfish))) as service:
                kept = redfish_kept.load(own.redfish, service.get(ROOT))
                found += parts_out(service.get, parts_in(service.get) if kept is None else kept.parts, node)
    return found


def recorded_parts_out(kind: str, folder: Path) -> list[PartOut]:
    """The same of a recorded tree of a BMC; another one has none."""
    get = Recorded(folder).get
    return parts_out(get, parts_in(get)) if kind == "redfish" else []


def _of_our_node(sensor: Found, chassis: str | None, found: Sequence[Found]) -> Found:
    """Of several nodes in one enclosure, the one that the site file names is this node."""
    if sensor.scope is not Scope.NODE or not sensor.chassis or sensor.unusable or sensor.chassis == chassis:
        return sensor
    if chassis is not None:
        return replace(sensor, unusable=f"is not of the chassis {chassis}, which the site file names")
    nodes = {one.chassis for one in found if one.scope is Scope.NODE and one.chassis and not one.unusable}
    if len(nodes) == 1:
        return sensor
    why = f"is of one of {len(nodes)} nodes ({', '.join(sorted(nodes)[:4])}): which one is ours is not known; "
    return replace(sensor, unusable=f"{why}state `chassis:` in the site file")


class _SysTree(FileTree):
    """A copy of what is in /sys."""

    def where(self, path: str) -> Path:
        """As `FileTree`."""
        return super().where(path.removeprefix("/sys"))

    def names(self, path: str) -> tuple[str, ...]:
        """As `FileTree`."""
        return super().names(path.removeprefix("/sys") or "/")
