"""`likwid-topology` (LIKWID, also with `-c`) -> Survey: hardware threads, caches and NUMA domains.

Format: LIKWID 4 and 5, src/applications/likwid-topology.lua. Each hardware thread has a row with its core, die and
socket; where cores are counted anew in each socket or die, these tell them apart. kB and MB are KiB and MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from seatrial.machine.readers.dump import Line, choose, read_lines, without_prefix
from seatrial.machine.readers.scalars import MAX_CPUS, write_cpu_list
from seatrial.machine.survey import CpuPart, FactBook, Survey
from seatrial.model.machine.machine import DeviceKind

TOOL = "likwid-topology"

_FIELD = re.compile(r"\s*(?P<key>[A-Z][A-Za-z ]{2,30}?(?: \d{1,4})?):\s+(?P<value>\S.*?)\s*\Z", re.ASCII)
_HEADER = re.compile(r"\s*HWThread\s+Thread\s+Core\s+(?P<die>Die\s+)?Socket\b", re.ASCII)
_ROW = re.compile(r"\s*(?P<numbers>\d{1,6}(?:\s+\d{1,6}){3,4})(?:\s+\*)?\s*\Z", re.ASCII)
_GROUP = re.compile(r"\(\s*([\d\s,]*?)\s*\)", re.ASCII)
_SIZE = re.compile(r"(?P<value>\d{1,9}(?:\.\d{1,6})?)\s(?P<unit>[kMGT]?B)\Z", re.ASCII)
_SCALES = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_WHOLE = re.compile(r"\d{1,6}\Z", re.ASCII)


class _Thread(Struct):
    cpu: int
    core: tuple[int, ...]
    socket: int


class _Output(Struct):
    """What one output states: its first line, the fields of its head, its threads, caches and domains."""

    line: Line
    fields: dict[str, str] = {}
    threads: list[_Thread] = []
    has_die: bool = False
    blocks: list[tuple[Line, dict[str, str]]] = []
    """The fields of each cache and NUMA domain."""


def read_likwid_topology(data: bytes, pick: int | None = None) -> Survey:
    """The processors of a machine. Raises ParseError for damaged or incomplete text; UsageError for several outputs in
    a file without `pick`."""
    lines = [
        line if line.text.lstrip()[:1] != "#" else Line(line.number, without_prefix(line.text), line.raw, line.is_ended)
        for line in read_lines(data, TOOL)
    ]
    headers = [line for line in lines if _HEADER.match(line.text)]
    header = choose(headers, lambda line: line.number, pick, TOOL, "table of hardware threads (HWThread Thread Core)")
    before = max((line.number for line in headers if line.number < header.number), default=0)
    after = min((line.number for line in headers if line.number > header.number), default=1 << 40)
    begin = _begin(lines, before, header.number)
    end = after if after == 1 << 40 else _begin(lines, header.number, after)
    output = _read([line for line in lines if begin <= line.number < end], header)
    return _survey(output)


def _begin(lines: Sequence[Line], after: int, before: int) -> int:
    """The number of the line `CPU name:` above a table of threads, else that of the table."""
    names = [line.number for line in lines if after < line.number < before and "CPU name:" in line.text]
    return names[-1] if names else before


def _read(lines: Sequence[Line], header: Line) -> _Output:
    output = _Output(header)
    match = _HEADER.match(header.text)
    output.has_die = match is not None and match["die"] is not None
    is_table = False
    for line in lines:
        text = line.text.replace("\t", " ")
        if line.number == header.number:
            is_table = True
        elif is_table and (row := _ROW.match(text)):
            output.threads.append(_thread(line, row, output))
        elif field := _FIELD.match(text):
            if is_table and field["key"].startswith("Socket"):
                is_table = False
            _take(output, line, field["key"], field["value"])
        elif is_table and text.strip() and not text.lstrip().startswith("---"):
            raise line.error(TOOL, "not a row of hardware threads")
    return output


def _take(output: _Output, line: Line, key: str, value: str) -> None:
    if not line.is_ended and key != "Total memory":
        raise line.error(TOOL, "the last line has no line break: was the dump cut off?")
    if key in ("Level", "Domain"):
        output.blocks.append((line, {}))
    fields = output.blocks[-1][1] if output.blocks and key != "NUMA domains" else output.fields
    if fields.setdefault(key, value) != value:
        raise line.error(TOOL, f"{key} is given twice")


def _thread(line: Line, row: re.Match[str], output: _Output) -> _Thread:
    numbers = [int(word) for word in row["numbers"].split()]
    if len(numbers) != 4 + output.has_die or not line.is_ended or numbers[0] >= MAX_CPUS:
        raise line.error(TOOL, "not a complete row of hardware threads")
    if any(thread.cpu == numbers[0] for thread in output.threads[-1:]) or numbers[0] in {t.cpu for t in output.threads}:
        raise line.error(TOOL, f"hardware thread {numbers[0]} is here a second time")
    socket = numbers[-1]
    return _Thread(numbers[0], (socket, *(numbers[3:4] if output.has_die else ()), numbers[2]), socket)


def _survey(output: _Output) -> Survey:
    known = frozenset(thread.cpu for thread in output.threads)
    sockets = _joined((thread.socket, thread.cpu) for thread in output.threads)
    cores = _joined((thread.core, thread.cpu) for thread in output.threads)
    _check(output, sockets, cores)
    model = FactBook()
    model.say("model_name", output.fields.get("CPU name", "")[:200], TOOL)
    parts = [CpuPart(DeviceKind.PACKAGE, cpus, k, facts=model.facts()) for k, (_, cpus) in enumerate(sockets.items())]
    domains = [fields["Domain"] for _, fields in output.blocks if "Domain" in fields]
    for line, fields in output.blocks:
        parts += _caches(line, fields, known) if "Level" in fields else [_domain(line, fields, known, domains)]
    parts += [_plain(DeviceKind.CORE, cpus, None) for cpus in cores.values()]
    parts += [_plain(DeviceKind.PU, frozenset({cpu}), cpu) for cpu in sorted(known)]
    book = FactBook()
    book.say("smt_active", len(known) > len(cores), f"{TOOL}: threads compared with cores")
    unread = () if domains else (f"{TOOL}: there are no NUMA domains in the text",)
    return Survey(TOOL, facts=book.facts(), cpu_parts=tuple(parts), unread=unread)


def _joined(pairs: Iterator[tuple[object, int]]) -> Mapping[object, frozenset[int]]:
    found: dict[object, set[int]] = {}
    for key, cpu in pairs:
        found.setdefault(key, set()).add(cpu)
    return {key: frozenset(cpus) for key, cpus in found.items()}


def _check(output: _Output, sockets: Mapping[object, frozenset[int]], cores: Mapping[object, frozenset[int]]) -> None:
    """Raise ParseError if parts of the output are missing or contradict each other."""
    if not output.threads:
        raise output.line.error(TOOL, "no hardware thread below this header")
    stated = _whole(output.fields.get("Sockets", ""))
    if stated is not None and stated != len(sockets):
        raise output.line.error(TOOL, f"{len(sockets)} of {stated} sockets: was the dump cut off?")
    for socket, cpus in sockets.items():
        listed = output.fields.get(f"Socket {socket}")
        if listed is None or _cpus(listed) != cpus:
            why = "is missing" if listed is None else "differs from the table"
            raise output.line.error(TOOL, f"the list of socket {socket} {why}: was the dump cut off?")
    most = _whole(output.fields.get("Threads per core", ""))
    widest = max(map(len, cores.values()))
    if most is not None and widest > most:
        raise output.line.error(TOOL, f"a core with {widest} hardware threads, where {most} are stated")
    domains = _whole(output.fields.get("NUMA domains", ""))
    found = sum("Domain" in fields for _, fields in output.blocks)
    if domains is not None and domains != found:
        raise output.line.error(TOOL, f"{found} of {domains} NUMA domains: was the dump cut off?")


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.match(text) else None


def _cpus(text: str) -> frozenset[int]:
    """The numbers in the first pair of brackets."""
    match = _GROUP.match(text)
    return frozenset(int(word[:7]) for word in re.split(r"[\s,]+", match[1]) if word) if match else frozenset()


def _caches(line: Line, fields: Mapping[str, str], known: frozenset[int]) -> Iterator[CpuPart]:
    level, size = _whole(fields["Level"]), _SIZE.match(fields.get("Size", ""))
    groups = [_cpus(f"({match})") for match in _GROUP.findall(fields.get("Cache groups", ""))]
    used = frozenset(cpu for cpus in groups for cpu in cpus)
    if level is None or not 1 <= level <= 9 or size is None or not groups:
        raise line.error(TOOL, "a cache without level, size and groups: was the dump cut off?")
    if not used <= known or sum(map(len, groups)) != len(used):
        raise line.error(TOOL, "groups of a cache with hardware threads that the table does not have, or twice")
    for cpus in groups:
        if not cpus:
            continue
        book = FactBook()
        book.say("level", level, TOOL)
        book.say("type", "data" if level == 1 else "unified", TOOL)
        book.say("size", int(float(size["value"]) * _SCALES[size["unit"]]), TOOL, "B")
        book.say("line_size", _whole(fields.get("Cache line size", "")) or None, TOOL, "B")
        book.say("ways", _whole(fields.get("Associativity", "")) or None, TOOL)
        book.say("cpus", write_cpu_list(cpus), TOOL)
        yield CpuPart(DeviceKind.CACHE, cpus, None, level, "l1d" if level == 1 else f"l{level}", book.facts())


def _domain(line: Line, fields: Mapping[str, str], known: frozenset[int], domains: Sequence[str]) -> CpuPart:
    number, cpus = _whole(fields["Domain"]), _cpus(fields.get("Processors", ""))
    if number is None or "Processors" not in fields or not cpus <= known:
        raise line.error(
            TOOL, "a NUMA domain without its number, or with hardware threads that the table does not have"
        )
    book = FactBook()
    size = _SIZE.match(fields.get("Total memory", ""))
    total = None if size is None else int(float(size["value"]) * _SCALES[size["unit"]])
    book.say("memory_total", total, f"{TOOL}, Total memory", "B", volatile=True)
    distances = fields.get("Distances", "").split()
    if len(distances) == len(domains) and all(map(_WHOLE.match, distances)):  # they are in the order of the domains
        book.say("distances", " ".join(map("{}:{}".format, domains, distances)), TOOL)
    book.say("cpus", write_cpu_list(cpus), TOOL)
    return CpuPart(DeviceKind.NUMA, cpus, number, facts=book.facts())


def _plain(kind: DeviceKind, cpus: frozenset[int], number: int | None) -> CpuPart:
    book = FactBook()
    book.say("os_index", number, TOOL)
    if kind is DeviceKind.CORE:
        book.say("cpus", write_cpu_list(cpus), TOOL)
    return CpuPart(kind, cpus, number, facts=book.facts())
