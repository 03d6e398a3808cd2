"""The matrix of path classes between GPUs and adapters, with the CPUs and NUMA node of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.spelling import count, cpu_list, few_names
from seatrial.report.blocks import Cell, Cells, Column, Table, headings
from seatrial.report.intervals import COUNTED, DIRECT, FAR, MEANINGS, NEAR, UNKNOWN, path_cells

_MOST = 48
"""With more devices the matrix is too large to read."""


_ABOUT = (Column("CPUs"), Column("NUMA", numeric=True))
_CROWD, _LARGE_CROWD = 10, 20
"""Above this number of devices headings are rotated; above the second, print is smaller."""


Classes = Mapping[tuple[str, str], tuple[str, str]]
"""What `path_cells` returns."""


class PathMatrix(Frozen):
    """The table, the meaning of its classes, and a sentence on peer access."""

    table: Table
    legend: Sequence[tuple[Cell, str]]
    peer_access: str

    @property
    def kind(self) -> str:
        """Classes of the style sheet: with many devices print is smaller."""
        return "matrix crowd" if len(self.table.rows) > _LARGE_CROWD else "matrix"


def matrix(machine: Machine) -> PathMatrix | str | None:
    """The matrix; a sentence instead if it would be too large; None with fewer than two devices."""
    names = _ends(machine)
    if len(names) < 2:
        return None
    if len(names) > _MOST:
        pairs = count(len(machine.paths), "pair")
        return f"{len(names)} GPUs and adapters: `seatrial discover --format json` lists the classes of their {pairs}."
    classes = path_cells(names, machine.paths)
    return PathMatrix(_table(machine, names, classes), _legend(classes, names), _peer_access(machine))


def _ends(machine: Machine) -> list[str]:
    """The devices with a path of known class: GPUs, then the others, each in the machine's order."""
    ends = dict.fromkeys(end for path in machine.paths if path.path_class for end in (path.a, path.b))
    known = [device for device in machine.devices if device.id in ends]
    known.sort(key=lambda device: device.kind is not DeviceKind.GPU)
    return [*(device.id for device in known), *(end for end in ends if machine.device(end) is None)]


def _tone(kind: str) -> str:
    if kind == "X":
        return "self"
    if kind == UNKNOWN:
        return "path-unknown"
    if kind in DIRECT:
        return "path-direct"
    return "path-near" if kind in NEAR else "path-far" if kind in FAR else "path-host"


def _table(machine: Machine, names: Sequence[str], classes: Classes) -> Table:
    about = {name: _about(machine, name) for name in names}
    # Columns without any value are left out.
    filled = [column for column in range(len(_ABOUT)) if any(about[name][column] for name in names)]
    upright = [Column(name, is_upright=len(names) > _CROWD) for name in names]
    columns = headings("Device", *upright, *(_ABOUT[column] for column in filled))
    rows: list[Cells] = []
    for name in names:
        device = machine.device(name)
        aliases = f" ({', '.join(device.aliases)})" if device is not None and device.aliases else ""
        pairs = [classes.get((name, other), (UNKNOWN, UNKNOWN)) for other in names]
        cells = [Cell(text, tone=_tone(kind)) for text, kind in pairs]
        details = [Cell(about[name][column] or UNKNOWN, tone="detail") for column in filled]
        rows.append([name + aliases, *cells, *details])
    return Table.of("Paths between GPUs and adapters", columns, rows)


def _about(machine: Machine, name: str) -> tuple[str, str]:
    """(CPUs, NUMA node) next to a device, empty if unknown."""
    device = machine.device(name)
    entry = next((entry for entry in machine.affinity if entry.device == name), None)
    node = device.numa if device is not None and device.numa is not None else entry.numa if entry else None
    cpus = cpu_list(sorted(entry.cpus)) if entry is not None and entry.cpus else ""
    return cpus, "" if node is None else str(node)


def _legend(classes: Classes, names: Sequence[str]) -> list[tuple[Cell, str]]:
    """The classes in the matrix, from near to far."""
    used = {kind for _, kind in classes.values()} - {"X"}
    if any((a, b) not in classes for a in names for b in names):
        used.add(UNKNOWN)
    known = [kind for kind in MEANINGS if kind in used]
    return [
        (Cell(kind + ("#" if kind in COUNTED else ""), tone=_tone(kind)), MEANINGS.get(kind, ""))
        for kind in (*known, *sorted(used - set(known)))
    ]


def _peer_access(machine: Machine) -> str:
    """Whether GPUs can access each other's memory according to the driver, and which pairs cannot."""
    known = [entry for entry in machine.p2p if entry.read is not None or entry.write is not None]
    if not known:
        return ""
    refused = [entry for entry in known if entry.read not in ("OK", None) or entry.write not in ("OK", None)]
    if not refused:
        return f"Peer access between GPUs: OK for all {count(len(known), 'pair')} that the driver reports."
    named = few_names([f"{e.a} and {e.b} (read {e.read or UNKNOWN}, write {e.write or UNKNOWN})" for e in refused], 4)
    return f"Peer access between GPUs is not OK for {len(refused)} of {count(len(known), 'pair')}: {named}."
