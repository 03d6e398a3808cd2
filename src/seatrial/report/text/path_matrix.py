"""The distances between GPUs and adapters, as the matrix known from `nvidia-smi topo -m`.

The classes and their meaning are those of its legend; XGMI is AMD's term, `?` marks an unknown class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.machine.machine import Affinity, DeviceKind, Machine
from seatrial.model.spelling import count, cpu_list
from seatrial.report.blocks import Tone
from seatrial.report.intervals import DIRECT, MEANINGS, NEAR, UNKNOWN, path_cells
from seatrial.report.text.terminal import PLAIN, Style, clean, cut

MOST = 48
"""With more devices, a matrix is not readable."""

_LONGEST_CPUS = 24
_LONGEST_NAME = 20
_GAP = "  "

Cell = tuple[str, str]
"""(text, class)."""


def matrix_text(machine: Machine, style: Style = PLAIN) -> str:
    """The matrix with a row for each GPU and adapter, its CPUs and NUMA node, and a legend of the classes that occur.

    Empty if no class is known; without a trailing newline; no line is wider than the style's `width` unless a single
    name is. A matrix that is too wide continues below, with the row labels repeated.
    """
    if not any(path.path_class for path in machine.paths):
        return ""
    names = _ends(machine)
    if len(names) > MOST:
        pairs = len(machine.paths)
        return f"{len(names)} GPUs and adapters: `--format json` has the classes of their {count(pairs, 'pair')}"
    cells = path_cells(names, machine.paths)
    blocks = _blocks(names, cells, {entry.device: entry for entry in machine.affinity}, style)
    return "\n".join([*blocks, "", *_legend(machine, names, cells, style)])


def _ends(machine: Machine) -> list[str]:
    """The devices that have a path, in the machine's order; those that it does not list come last."""
    ends = dict.fromkeys(end for path in machine.paths for end in (path.a, path.b))
    known = [device.id for device in machine.devices if device.id in ends]
    return list(dict.fromkeys((*known, *ends)))


def _blocks(
    names: Sequence[str], cells: Mapping[tuple[str, str], Cell], affinity: Mapping[str, Affinity], style: Style
) -> list[str]:
    """The lines of the matrix, in as many blocks as its width needs."""
    labels = {name: _name(name) for name in names}
    lead = max(len(label) for label in labels.values())
    about = _about(names, affinity)
    tail = [max(len(row[column]) for row in about.values()) for column in range(len(about[""]))]
    widths = {
        name: max(len(labels[name]), *(len(cells.get((row, name), (UNKNOWN,))[0]) for row in names)) for name in names
    }
    lines: list[str] = []
    for columns in _chunks(names, widths, style.width - 2 - lead - sum(tail) - len(tail) * len(_GAP)):
        if lines:
            lines.append("")
        head = [labels[name].ljust(widths[name]) for name in columns]
        headings = [text.ljust(width) for text, width in zip(about[""], tail, strict=True)]
        lines.append("  " + style.paint(_GAP.join([" " * lead, *head, *headings]).rstrip(), "heading"))
        for row in names:
            shown = [_coloured(cells.get((row, name), (UNKNOWN, UNKNOWN)), widths[name], style) for name in columns]
            ends = [text.ljust(width) for text, width in zip(about[row], tail, strict=True)]
            label = style.paint(labels[row], "heading") + " " * (lead - len(labels[row]))
            lines.append("  " + _GAP.join([label, *shown, *ends]).rstrip())
    return lines


def _chunks(names: Sequence[str], widths: Mapping[str, int], available: int) -> list[list[str]]:
    """The columns in groups that fit into the width."""
    chunks: list[list[str]] = []
    left = 0
    for name in names:
        need = widths[name] + len(_GAP)
        if not chunks or need > left:
            chunks.append([])
            left = available
        chunks[-1].append(name)
        left -= need
    return chunks


def _about(names: Sequence[str], affinity: Mapping[str, Affinity]) -> dict[str, list[str]]:
    """Device -> its CPUs and its NUMA node; "" holds the headings. Empty columns are left out."""
    known = {name: affinity.get(name) for name in names}
    cpus = {name: "" if entry is None or not entry.cpus else cpu_list(entry.cpus) for name, entry in known.items()}
    numa = {
        name: "" if one is None else cpu_list((one.numa,) if one.numa is not None else one.numa_nodes or ())
        for name, one in known.items()
    }
    filled = [(head, of) for head, of in (("CPUs", cpus), ("NUMA", numa)) if any(of.values())]
    rows = {name: [cut(of[name] or UNKNOWN, _LONGEST_CPUS) for _, of in filled] for name in names}
    return {"": [head for head, _ in filled], **rows}


def _legend(
    machine: Machine, names: Sequence[str], cells: Mapping[tuple[str, str], Cell], style: Style
) -> list[str]:  # fmt: skip
    used = {kind for _, kind in cells.values()}
    if any((a, b) not in cells for a in names for b in names):
        used.add(UNKNOWN)
    meanings = {kind: ("NV#" if kind == "NV" else kind, meaning) for kind, meaning in MEANINGS.items() if kind in used}
    if "XGMI" in used:
        is_counted = any(path.path_class == "XGMI" and path.links for path in machine.paths)
        meanings["XGMI"] = ("XGMI#", MEANINGS["XGMI"]) if is_counted else ("XGMI", "XGMI links (Infinity Fabric)")
    lines = [f"  {_paint(name.ljust(5), kind, style)} {text}" for kind, (name, text) in meanings.items()]
    others = [
        f"{_name(device.id)} is {', '.join(clean(alias) for alias in device.aliases)}"
        for device in machine.of_kind(DeviceKind.NIC)
        if device.aliases and device.id in names
    ]
    if others:
        lines += style.wrapped("; ".join(others), "  ")
    return lines


def _name(name: str) -> str:
    return cut(clean(name), _LONGEST_NAME)


def _coloured(cell: Cell, width: int, style: Style) -> str:
    text, kind = cell
    return _paint(clean(text), kind, style) + " " * (width - len(text))


def _paint(text: str, kind: str, style: Style) -> str:
    """Direct links, one PCIe tree and paths between NUMA nodes each have a colour; the class name stays readable
    without it."""
    tone: Tone | None = (
        "direct" if kind in DIRECT else "near" if kind in NEAR else
        "warning" if kind == "SYS" else "faint" if kind in ("X", UNKNOWN) else None
    )  # fmt: skip
    return text if tone is None else style.paint(text, tone)
