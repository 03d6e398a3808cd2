"""`lscpu` (util-linux) -> Survey: its summary (as text or `-J`), and its tables `-e` and `-p`, alone or below it.

Format: lscpu(1), util-linux, sys-utils/lscpu.c. The summary counts sockets, cores and threads, and lists the CPUs of
NUMA nodes, but does not state which CPUs share a core, a cache or (in general) a socket; the tables do. What only the
summary gives is taken where just one arrangement fits: one socket, one thread per core, one cache for each CPU or for
all. A cache is stated in three ways: "32K" is the size of each, "64 KiB (2 instances)" that of all together, and so is
"64 KiB" alone (2.34 to 2.36), without their number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, choose, read_lines, without_prefix
from seatrial.machine.readers.procfs import vector_isa
from seatrial.machine.readers.scalars import MAX_CPUS, read_cpu_list, write_cpu_list
from seatrial.machine.survey import CpuPart, FactBook, Survey
from seatrial.model.machine.machine import DeviceKind

TOOL = "lscpu"

_BEGIN = re.compile(r"\s{0,16}Architecture:\s+\S")
_FIELD = re.compile(r"\s*(?P<key>[A-Z][\w()\-. /]{0,60}?):\s+(?P<value>\S.*?)\s*\Z", re.ASCII)
_SINGLE = ("Architecture", "CPU(s)", "On-line CPU(s) list", "Off-line CPU(s) list", "NUMA node(s)")
_SEVERAL = (
    *("Vendor ID", "Model name", "CPU family", "Model", "Stepping", "Thread(s) per core", "Socket(s)", "Flags"),
    *("CPU max MHz", "Frequency boost", "Hypervisor vendor"),
)
"""Fields that are read; on machines with cores of several types, the latter are there once for each type."""
_CACHE = re.compile(r"(?P<name>L(?P<level>[1-4])(?P<type>[di]?))(?: cache)?\Z", re.ASCII)
_SIZE = re.compile(
    r"(?P<value>\d{1,9}(?:\.\d{1,3})?)\s?(?P<unit>[KMG]?)(?P<iB>iB)?(?:\s\((?P<number>\d{1,5}) instances?\))?\Z",
    re.ASCII,
)
_SCALES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_NODE = re.compile(r"NUMA node(?P<number>\d{1,5}) CPU\(s\)\Z", re.ASCII)
_WHOLE = re.compile(r"\d{1,6}\Z", re.ASCII)
_CLOCK = re.compile(r"\d{1,6}(?:[.,]\d{1,6})?\Z", re.ASCII)
_TABLE = re.compile(r"\s*(?:#\s?)?(?=CPU\b)(?P<columns>[A-Za-z0-9]+(?:[ ,:]+[A-Za-z0-9]+){2,30})\s*\Z", re.ASCII)
_ROW = re.compile(r"\s*\d{1,6}[ ,][\w.,: \-]{3,400}\Z", re.ASCII)
_HYPERVISORS = {"microsoft": "hyperv", "xen": "xen", "kvm": "kvm", "vmware": "vmware", "oracle": "virtualbox"}
_GRAIN = 4096  # The size of a cache is a multiple of it (sets x ways x line).
_TYPES = {"d": "data", "i": "instruction", "": "unified"}

Groups = Mapping[str, Mapping[str, frozenset[int]]]
"""Column of a table ("node", "socket", "core", "l3") -> number -> its CPUs."""


class _Summary(Struct):
    """The fields of a summary, and the line of each."""

    line: Line
    fields: dict[str, str] = {}
    lines: dict[str, Line] = {}
    is_wrapped: bool = False

    def whole(self, *keys: str) -> int | None:
        """The first of these fields that is a number; None if there is none ("-" on many Arm machines)."""
        texts = (self.fields.get(key, "") for key in keys)
        return next((int(text) for text in texts if _WHOLE.match(text)), None)

    def cpus(self, key: str) -> frozenset[int]:
        """The CPUs of a list. Raises ParseError if it is not one."""
        text = self.fields.get(key, "")
        try:
            return frozenset(read_cpu_list(text))
        except ParseError as error:
            raise self.lines[key].error(TOOL, error.why or "not a list of CPUs") from None


def read_lscpu(data: bytes, pick: int | None = None) -> Survey:
    """The processors of a machine. Raises ParseError for damaged or incomplete text; UsageError for several outputs in
    a file without `pick`."""
    lines = _of_json(read_lines(data, TOOL))
    begins = [line for line in lines if _BEGIN.match(without_prefix(line.text))]
    tables = list(_tables(lines))
    if not begins and not tables:
        raise ParseError(
            TOOL, None, "", "neither a line `Architecture:` nor a table (CPU NODE SOCKET CORE) in the file"
        )
    begin = choose(begins or [tables[0][0]], lambda line: line.number, pick, TOOL, "output of lscpu")
    end = min((line.number for line in begins if line.number > begin.number), default=1 << 40)
    own = [rows for rows in tables if begin.number <= rows[0].number < end or len(begins) <= 1]
    if len(own) > 1:
        raise own[1][0].error(TOOL, "a second table: are these two machines in one file?")
    summary = _summary([line for line in lines if begin.number <= line.number < end], begin) if begins else None
    groups = _groups(own[0]) if own else None
    return _survey(summary, groups, begin)


def _of_json(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines of `lscpu -J` as those of its text, each with the number of the line where the JSON begins."""
    begin = next((k for k, line in enumerate(lines) if without_prefix(line.text).strip() == "{"), None)
    if begin is None or '"lscpu"' not in "".join(line.text for line in lines[begin : begin + 3]):
        return lines
    text = "\n".join(without_prefix(line.text) for line in lines[begin:])
    try:
        document, _ = json.JSONDecoder().raw_decode(text)
        fields = list(_json_fields(document["lscpu"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise lines[begin].error(TOOL, "the JSON ends too early, or is not that of lscpu") from None
    return tuple(Line(lines[begin].number, f"{key} {value}", f"{key} {value}") for key, value in fields)


def _json_fields(entries: object) -> Iterator[tuple[str, str]]:
    stack = list(reversed(entries)) if isinstance(entries, list) else []
    while stack:
        entry = stack.pop()
        if isinstance(entry, dict) and isinstance(entry.get("field"), str):
            value = entry.get("data")
            yield entry["field"], value if isinstance(value, str) else ""
            children = entry.get("children")
            stack += reversed(children) if isinstance(children, list) else []


def _summary(lines: Sequence[Line], begin: Line) -> _Summary:
    found = _Summary(begin)
    differing: set[str] = set()
    last = ""
    for line in lines:
        text = without_prefix(line.text)
        match = _FIELD.match(text)
        if match is None:
            found.is_wrapped |= last == "Flags" and bool(text.strip()) and _TABLE.match(text) is None
            last = ""
            continue
        cache = _CACHE.match(match["key"])
        last = match["key"] if cache is None else f"{cache['name']} cache"
        if cache is None and last not in (*_SINGLE, *_SEVERAL) and _NODE.match(last) is None:
            continue
        if found.fields.get(last, match["value"]) != match["value"]:
            if last not in _SEVERAL:
                raise line.error(TOOL, f"{last} is given twice")
            differing.add(last)
        if line.is_ended:  # a value at the end of the file may have been cut off
            found.fields[last], found.lines[last] = match["value"], line
    for key in differing:
        del found.fields[key]
    return found


def _tables(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The header and the rows of each table."""
    rows: list[Line] | None = None
    for line in lines:
        text = line.text if line.text.lstrip().startswith("# CPU") else without_prefix(line.text)
        match = _TABLE.match(text)
        if match is not None and "core" in match["columns"].lower():
            if rows is not None and len(rows) > 1:
                yield rows
            rows = [line]
        elif rows is not None and _ROW.match(text):
            rows.append(line)
        elif rows is not None and text.strip():
            if len(rows) > 1:
                yield rows
            rows = None
    if rows is not None and len(rows) > 1:
        yield rows


def _groups(table: Sequence[Line]) -> Groups:
    """The CPUs of each node, socket, core and cache in a table. CPUs that are off are left out."""
    header = without_prefix(table[0].text).lstrip("# ").strip()
    comma = "," in header
    columns = [name.lower() for name in (header.replace(",,", ",").split(",") if comma else header.split())]
    found: dict[str, dict[str, set[int]]] = {}
    seen: set[int] = set()
    for line in table[1:]:
        if not line.is_ended and columns[-1] not in ("online", "maxmhz", "minmhz", "mhz"):
            raise line.error(TOOL, "the last row has no line break: was it cut off?")
        text = without_prefix(line.text).strip()
        cells = text.replace(",,", ",").split(",") if comma else text.split()
        row = dict(zip(columns, cells, strict=False))
        if row.get("online") == "no" or "-" in (row.get("core"), row.get("socket")):
            continue
        if len(cells) != len(columns) or not _WHOLE.match(row["cpu"]) or int(row["cpu"]) >= MAX_CPUS:
            raise line.error(TOOL, f"{len(cells)} cells below {len(columns)} columns")
        cpu = int(row["cpu"])
        if cpu in seen:
            raise line.error(TOOL, f"CPU {cpu} is here a second time")
        seen.add(cpu)
        for column, value in _cells(row):
            found.setdefault(column, {}).setdefault(value, set()).add(cpu)
    for number in found.get("node", ()):
        if not _WHOLE.match(number):
            raise table[0].error(TOOL, f"{number!r} in column NODE")
    return {
        name: {number: frozenset(each[number]) for number in sorted(each, key=lambda text: (len(text), text))}
        for name, each in found.items()
    }


def _cells(row: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(column, value) of the columns about topology. "L1d:L1i:L2:L3" is one column with a number for each; a CPU
    without L3 has fewer."""
    for column, value in row.items():
        names = column.split(":")
        if column in ("node", "socket", "core"):
            yield column, value
        elif all(_CACHE.match(name.upper().replace("D", "d").replace("I", "i")) for name in names):
            yield from ((name, number) for name, number in zip(names, value.split(":"), strict=False) if number)


def _survey(summary: _Summary | None, groups: Groups | None, begin: Line) -> Survey:
    unread: list[str] = []
    online = _online(summary, groups, begin)
    nodes = _nodes(summary, groups, online)
    sockets = None if summary is None else summary.whole("Socket(s)")
    packages = _packages(sockets, groups, nodes, online, unread)
    cores = _cores(summary, groups, online, packages, unread)
    book, cpu_book = FactBook(), FactBook()
    if summary is not None:
        _say_machine(summary, book)
        _say_processor(summary, cpu_book, unread)
    facts = cpu_book.facts()
    parts = [CpuPart(DeviceKind.PACKAGE, cpus, k, facts=facts) for k, cpus in enumerate(packages)]
    parts += [_part(DeviceKind.NUMA, cpus, number) for number, cpus in sorted(nodes.items())]
    parts += _caches(summary, groups, online, packages, cores)
    parts += [_part(DeviceKind.CORE, cpus, None) for cpus in cores]
    parts += list(_pus(summary, online, unread))
    return Survey(TOOL, facts=book.facts(), cpu_parts=tuple(parts), unread=tuple(unread))


def _part(kind: DeviceKind, cpus: frozenset[int], number: int | None) -> CpuPart:
    book = FactBook()
    book.say("cpus", write_cpu_list(cpus), TOOL)
    return CpuPart(kind, cpus, number, facts=book.facts())


def _online(summary: _Summary | None, groups: Groups | None, begin: Line) -> frozenset[int]:
    of_table = frozenset(cpu for cpus in (groups or {}).get("core", {}).values() for cpu in cpus)
    if summary is None:
        if not of_table:
            raise begin.error(TOOL, "no CPU in the table")
        return of_table
    number = summary.whole("CPU(s)")
    online = summary.cpus("On-line CPU(s) list") if "On-line CPU(s) list" in summary.fields else frozenset()
    if number is None or not 0 < number <= MAX_CPUS:
        raise summary.line.error(TOOL, "no line `CPU(s):` with their number: was the dump cut off?")
    online = online or frozenset(range(number))
    if len(online) > number:
        raise summary.line.error(TOOL, f"{len(online)} CPUs on line of {number}: damaged, or two machines")
    if of_table and of_table != online:
        raise begin.error(TOOL, "the table has other CPUs than the summary: are these two machines?")
    return online


def _nodes(summary: _Summary | None, groups: Groups | None, online: frozenset[int]) -> dict[int, frozenset[int]]:
    if summary is None:
        return {int(number): cpus for number, cpus in (groups or {}).get("node", {}).items()}
    found: dict[int, frozenset[int]] = {}
    for key in summary.fields:
        if (match := _NODE.match(key)) and (cpus := summary.cpus(key)):
            if not cpus <= online or any(cpus & other for other in found.values()):
                raise summary.lines[key].error(TOOL, "CPUs of another node, or that are not on line")
            found[int(match["number"])] = cpus
    stated = summary.whole("NUMA node(s)")
    listed = sum(_NODE.match(key) is not None for key in summary.fields)
    if stated is not None and listed < stated and "NUMA node0 CPU(s)" in summary.fields:
        raise summary.line.error(TOOL, f"{listed} of {stated} NUMA nodes: was the dump cut off?")
    return found


def _packages(
    sockets: int | None, groups: Groups | None, nodes: Mapping[int, frozenset[int]], online: frozenset[int],
    unread: list[str],
) -> list[frozenset[int]]:  # fmt: skip
    if groups is not None and "socket" in groups:
        return list(groups["socket"].values())
    if sockets is None or not 0 < sockets <= len(online):
        return []
    if sockets == 1:
        return [online]
    if len(nodes) == sockets and len({len(cpus) for cpus in nodes.values()}) == 1:
        unread.append(f"{TOOL}: it does not state which CPUs are in which socket; each NUMA node was taken for one")
        return [cpus for _, cpus in sorted(nodes.items())]
    unread.append(f"{TOOL}: it does not state which CPUs are in which socket (`lscpu -e` does)")
    return [frozenset()] * sockets


def _cores(
    summary: _Summary | None, groups: Groups | None, online: frozenset[int], packages: Sequence[frozenset[int]],
    unread: list[str],
) -> list[frozenset[int]]:  # fmt: skip
    if groups is not None:
        # `-p` and `-e` number cores over the whole machine; where they repeat in each socket, the socket decides.
        apart = [core & package for core in groups["core"].values() for package in packages or [online]]
        return [core for core in apart if core]
    if summary is not None and summary.whole("Thread(s) per core") == 1:
        return [frozenset({cpu}) for cpu in sorted(online)]
    unread.append(f"{TOOL}: it does not state which CPUs share a core (`lscpu -e` does)")
    return []


def _pus(summary: _Summary | None, online: frozenset[int], unread: list[str]) -> Iterator[CpuPart]:
    """The CPUs, with the highest clock unless it may be the one without boost (acpi-cpufreq)."""
    text = "" if summary is None else summary.fields.get("CPU max MHz", "").replace(",", ".")
    clock = float(text) * 1e6 if _CLOCK.match(text) else None
    if clock and summary is not None and summary.fields.get("Frequency boost") == "enabled":
        unread.append(f"{TOOL}: the highest clock; with boost enabled, `CPU max MHz` may be the one without boost")
        clock = None
    for cpu in sorted(online):
        book = FactBook()
        book.say("os_index", cpu, TOOL)
        book.say("max_frequency", clock or None, f"{TOOL}, CPU max MHz", "Hz")
        yield CpuPart(DeviceKind.PU, frozenset({cpu}), cpu, facts=book.facts())


def _say_machine(summary: _Summary, book: FactBook) -> None:
    fields = summary.fields
    book.say("architecture", fields.get("Architecture"), TOOL)
    vendor = fields.get("Hypervisor vendor")
    book.say("hypervisor", None if vendor is None else _HYPERVISORS.get(vendor.lower(), vendor.lower()[:40]),
             f"{TOOL}, Hypervisor vendor")  # fmt: skip
    threads = summary.whole("Thread(s) per core")
    book.say("smt_active", None if threads is None else threads > 1, f"{TOOL}, Thread(s) per core")
    book.say("offline_cpus", fields.get("Off-line CPU(s) list"), TOOL)
    boost = fields.get("Frequency boost")
    book.say("boost", None if boost not in ("enabled", "disabled") else boost == "enabled", f"{TOOL}, Frequency boost")


def _say_processor(summary: _Summary, book: FactBook, unread: list[str]) -> None:
    fields = summary.fields
    is_x86 = fields.get("Architecture", "") in ("x86_64", "i686", "i586")
    book.say("vendor", fields.get("Vendor ID"), TOOL)
    book.say("model_name", fields.get("Model name", "")[:200], TOOL)
    if is_x86:
        for name, key in (("family", "CPU family"), ("model", "Model"), ("stepping", "Stepping")):
            book.say(name, summary.whole(key), TOOL)
    flags = fields.get("Flags")
    if summary.is_wrapped:
        unread.append(f"{TOOL}: the instruction sets: the line of flags is broken over several lines")
    elif flags is not None:
        words = sorted(set(flags.split()))
        book.say("isa", " ".join(words), TOOL)
        book.say("vector_isa", vector_isa(words), TOOL)


def _caches(
    summary: _Summary | None, groups: Groups | None, online: frozenset[int], packages: Sequence[frozenset[int]],
    cores: Sequence[frozenset[int]],
) -> Iterator[CpuPart]:  # fmt: skip
    names = [name for name in (groups or {}) if _CACHE.match(_spelled(name))]
    stated = [
        key.removesuffix(" cache").lower() for key in (summary.fields if summary else {}) if key.endswith(" cache")
    ]
    for name in dict.fromkeys((*names, *stated)):
        match = _CACHE.match(_spelled(name))
        if match is None:
            continue
        size = _SIZE.match(summary.fields.get(f"{match['name']} cache", "")) if summary is not None else None
        number = int(size["number"]) if size is not None and size["number"] else None
        around = tuple((groups or {}).get(name, {}).values()) or _shared(number, online, packages, cores)
        each = None if size is None else _each(size, number or len(around))
        for cpus in around:
            book = FactBook()
            book.say("level", int(match["level"]), TOOL)
            book.say("type", _TYPES[match["type"]], TOOL)
            book.say("size", each, TOOL, "B")
            book.say("cpus", write_cpu_list(cpus), TOOL)
            yield CpuPart(DeviceKind.CACHE, cpus, None, int(match["level"]), name, book.facts())


def _spelled(name: str) -> str:
    """l1d as lscpu spells it."""
    return name[:2].upper() + name[2:]


def _shared(
    number: int | None, online: frozenset[int], packages: Sequence[frozenset[int]], cores: Sequence[frozenset[int]]
) -> Sequence[frozenset[int]]:
    """The CPUs of each of so many caches, if only one arrangement fits."""
    if number == 1:
        return [online]
    if cores and number == len(cores):
        return cores
    return packages if number == len(packages) and all(packages) else ()


def _each(size: re.Match[str], number: int) -> int | None:
    """Bytes of one cache; None if rounding leaves several sizes possible."""
    value, scale = float(size["value"]), _SCALES[size["unit"]]
    if not size["iB"] and not size["number"]:  # old releases state the size of one
        return int(value * scale) or None
    if not number:
        return None
    if "." not in size["value"]:
        total = int(value) * scale
        return total // number if total and total % number == 0 else None
    low, high = ((value + sign * 0.05) * scale / number for sign in (-1, 1))
    first, last = -(-int(low) // _GRAIN), int(high) // _GRAIN
    return first * _GRAIN if first == last else None
