"""`ibnetdiscover`: a record for each switch, adapter and router, with a line for each connected port.

Format: infiniband-diags, ibnetdiscover(8) "TOPOLOGY FILE FORMAT". Every link is in two records, so that a dump that was
cut off is noticed. `ibnetdiscover -p` prints a list of ports instead (`ibnetdiscover_ports`). ibdiagnet writes the same
records with the ports' labels on the front panel in round brackets. The input files of ibsim have them without rates,
and so do switches in dumps made before 2007.

`ibnetdiscover -p`: a line for each port, with the other end if it is connected.

Format: infiniband-diags, ibnetdiscover(8) `--ports`. Each line is complete in itself, so a part of the list is read;
the switches without a line are then reported. Adapters are given by the GUIDs of their ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, FabricSource, FabricText, LinkRate, PartKind, PortPart
from seatrial.fabric.readers.infiniband import Adapters, ToolMessages, guid, port_number, rate
from seatrial.machine.readers.dump import Line, choose, is_fence, without_prefix

TOOL = "ibnetdiscover"

_END = r"(?P<kind{0}>CA|SW|RT)\s+\d{{1,6}}\s+(?P<port{0}>\d{{1,4}})\s+(?P<guid{0}>0x[0-9a-fA-F]+)"
_START = re.compile(r"(?:CA|SW|RT)\s+\d+\s+\d+\s+0x", re.ASCII)
_LINE = re.compile(
    _END.format(1)
    + r"\s+(?P<width>\d{1,4}x|\?\?)\s+(?P<speed>\S+)\s+"
    + r"(?:-\s+" + _END.format(2) + r"\s+\(\s*'(?P<name1>.*)'\s+-\s+'(?P<name2>.*)'\s*\)|'(?P<name>.*)')\s*\Z",
    re.ASCII,
)  # fmt: skip
_PORT_KINDS = {"CA": PartKind.ADAPTER, "SW": PartKind.SWITCH, "RT": PartKind.ROUTER}
_PREFIXES = {"SW": "S", "RT": "R"}


def is_port_line(text: str) -> bool:
    """Whether a line begins as these do."""
    return _START.match(without_prefix(text).lstrip()) is not None


def read_port_lines(lines: Iterable[tuple[str, FabricSource]], missing: str = "") -> FabricDump:
    """The devices and ports of a list. Raises ParseError for the first damaged line."""
    matches: list[tuple[re.Match[str], FabricSource]] = []
    adapters = Adapters()
    for text, source in lines:
        match = _LINE.match(without_prefix(text).strip())
        if match is None:
            raise source.error("not a port in the form of `ibnetdiscover -p`")
        matches.append((match, source))
        for end in (1, 2) if match["kind2"] is not None else (1,):
            if match[f"kind{end}"] == "CA":
                adapters.add(guid(match[f"guid{end}"], source), int(match[f"port{end}"]), _name(match, end))
    devices: list[DevicePart] = []
    ports: list[PortPart] = []
    for match, source in matches:
        own, port = _device(match, 1, adapters, source), port_number(match["port1"], source)
        link = rate(match["width"].rstrip("x"), match["speed"], source)
        devices.append(DevicePart(own, _PORT_KINDS[match["kind1"]], _name(match, 1), source))
        if match["kind2"] is None:
            ports.append(PortPart(own, port, source, state="not connected"))
            continue
        other = _device(match, 2, adapters, source)
        devices.append(DevicePart(other, _PORT_KINDS[match["kind2"]], _name(match, 2), source, is_described=False))
        ports.append(PortPart(own, port, source, (other, port_number(match["port2"], source)), link))
    return FabricDump(TOOL, devices, ports, is_partial=True, missing=missing)


def _name(match: re.Match[str], end: int) -> str:
    name = match[f"name{end}"]
    return name if name is not None else match["name"]


def _device(match: re.Match[str], end: int, adapters: Adapters, source: FabricSource) -> str:
    own = guid(match[f"guid{end}"], source)
    kind = match[f"kind{end}"]
    return adapters.of(own) if kind == "CA" else f"{_PREFIXES[kind]}-{own}"


_BEGIN = re.compile(r"Topology file: generated (?P<when>.{0,80})")
_HEADER = re.compile(
    r'(?P<kind>Switch|Ca|Hca|Rt)\s+(?P<ports>\d{1,4})\s+"(?P<id>[^"]{1,80})"\s*(?:#\s*"(?P<name>.*)"(?P<rest>[^"]*))?\Z',
    re.ASCII,
)
_PORT_BEGIN = re.compile(r"\[\s*\d")
_LABELS = r"(?:\[ext \d+\])?(?:\s?\([^()\"]{1,40}\)){0,2}"
"""Behind the number of a port: its number on the chassis, GUID, label on the front panel."""
_PORT = re.compile(
    rf"\[(?P<port>\d{{1,4}})\]{_LABELS}\s+"
    rf'"(?P<peer>[^"]{{1,80}})"\s*\[(?P<peer_port>\d{{1,4}})\]{_LABELS}\s*'
    r"(?:w=(?P<w>\d{1,2})\s*)?(?:#(?P<comment>.*))?\Z",
    re.ASCII,
)
_COMMENT_NAME = re.compile(r'"(?P<name>.*)"')
_RATE = re.compile(r"\s(?P<width>\d{1,4}x|\?\?)(?P<speed>[A-Z0-9]+|\?\?\?)(?:\s|\Z)", re.ASCII)
_NO_RATE = re.compile(r"\slid \d{1,6}\s*\Z", re.ASCII)
_LIST = re.compile(r"(?:Switch|Ca|Router|Rt)\s*:\s+0x", re.ASCII)
_DIFFERENCE = re.compile(r"\s{0,8}<\s?(?:(?:Switch|Ca|Rt)\s+\d|\[\d|vendid=|(?:switch|ca|rt)guid=)", re.ASCII)
_FIELD = re.compile(r"(?P<key>vendid|devid|sysimgguid|switchguid|caguid|rtguid|hcaguid)\s*=\s*(?P<value>\S+)", re.ASCII)
_KINDS = {"Switch": PartKind.SWITCH, "Ca": PartKind.ADAPTER, "Hca": PartKind.ADAPTER, "Rt": PartKind.ROUTER}


def read_ibnetdiscover(texts: Sequence[FabricText]) -> FabricDump:
    """The devices and links of a dump, which may be in several files. Raises ParseError for damaged text, UsageError
    for several dumps in a file without `pick`."""
    reader = _Reader()
    port_lines: list[tuple[str, FabricSource]] = []
    for text in texts:
        for line in _picked(text):
            source = FabricSource.of(TOOL, line, text.name)
            if is_port_line(line.text):
                port_lines.append((line.text, source))
            else:
                reader.read(line, source)
    if port_lines and reader.devices:
        raise port_lines[0][1].error("a line of `ibnetdiscover -p` among records: give one of the two outputs")
    return read_port_lines(port_lines, reader.messages.missing) if port_lines else reader.dump(texts[0].name)


def _picked(text: FabricText) -> Sequence[Line]:
    """The lines of a file, or of the chosen dump in it."""
    lines = text.lines(TOOL)
    begins = [line for line in lines if _BEGIN.match(without_prefix(line.text))]
    if len(begins) <= 1 and text.pick in (None, 1):
        return lines
    begin = choose(begins or lines[:1], lambda line: line.number, text.pick, TOOL, "topology file")
    end = min((line.number for line in begins if line.number > begin.number), default=len(lines) + 1)
    return [line for line in lines if begin.number <= line.number < end]


class _Reader(Struct):
    devices: list[DevicePart] = []
    ports: list[PortPart] = []
    facts: dict[str, str] = {}
    messages: ToolMessages = field(default_factory=ToolMessages)
    _fields: dict[str, str] = {}
    _open: DevicePart | None = None
    _begin: FabricSource | None = None  # Where the dump says when it was made.
    _with_rate: set[PartKind] = set()
    _without_rate: dict[PartKind, FabricSource] = {}
    """The first line of a port without a rate, of each kind of device."""

    def read(self, line: Line, source: FabricSource) -> None:
        text = without_prefix(line.text).strip()
        if not text or is_fence(text):
            self._open = None
            return
        is_comment = line.text.lstrip().startswith("#")  # or the line of a dump that is commented out as a whole
        if _PORT_BEGIN.match(text) and not (is_comment and _PORT.match(text) is None):
            self._read_port(text, source)
        elif header := _HEADER.match(text):
            self._read_header(header, source)
        elif _LIST.match(text):
            raise source.error("a list of devices, as ibswitches and `ibnetdiscover -l` print it: it has no links")
        elif _DIFFERENCE.match(line.text):
            raise source.error("the differences between two fabrics (`ibnetdiscover --diff`): they are not one fabric")
        elif text.split(None, 1)[0] in _KINDS and '"' in text and not is_comment:
            raise source.error("the record of a device, but not in the form of ibnetdiscover")
        elif match := _FIELD.match(text):
            self._fields[match["key"]] = match["value"]
        elif begin := _BEGIN.match(text):
            if self._begin is not None and self._begin.file != source.file:
                other = f"{self._begin.file} on line {self._begin.line}"
                raise source.error(f"a dump begins here, and one in {other}: give the parts of one")
            self._begin = source
            self.facts["made"] = begin["when"].removeprefix("on ")
        elif not self.messages.take(text, source) and self._open is not None and not is_comment:
            raise source.error(f"not a port of {self._open.id}, whose record this is in")

    def _read_header(self, header: re.Match[str], source: FabricSource) -> None:
        named = self._fields
        model = f"{named['vendid']}:{named['devid']}" if "vendid" in named and "devid" in named else None
        self._open = DevicePart(
            id=header["id"],
            kind=_KINDS[header["kind"]],
            name=header["name"] if header["name"] is not None else header["id"],
            source=source,
            model=model,
            ports=port_number(header["ports"], source),
        )
        self._fields = {}
        self.devices.append(self._open)

    def _read_port(self, text: str, source: FabricSource) -> None:
        match = _PORT.match(text)
        if match is None:
            raise source.error('not a port in the form [1] "S-..."[2]')
        if self._open is None:
            raise source.error("a port without the record of a device above it")
        port = port_number(match["port"], source)
        if self._open.ports is not None and port > self._open.ports:
            raise source.error(f"port {port} of {self._open.id}, which has {self._open.ports} ports")
        peer, peer_port = match["peer"], port_number(match["peer_port"], source)
        self.ports.append(PortPart(self._open.id, port, source, (peer, peer_port), self._rate(match, source)))
        name = _COMMENT_NAME.search(match["comment"] or "")
        kind = PartKind.SWITCH if peer.startswith("S-") else PartKind.ADAPTER
        self.devices.append(DevicePart(peer, kind, name["name"] if name else peer, source, is_described=False))

    def _rate(self, match: re.Match[str], source: FabricSource) -> LinkRate:
        comment = match["comment"]
        if comment is None:
            return LinkRate(int(match["w"]) if match["w"] else None)
        kind = self._open.kind if self._open is not None else PartKind.ADAPTER
        end = f" {comment.rpartition(chr(34))[2]}"
        if found := _RATE.search(end):
            self._with_rate.add(kind)
            return rate(found["width"].rstrip("x"), found["speed"], source)
        if _NO_RATE.search(end) is None:
            raise _without_rate(source)
        self._without_rate.setdefault(kind, source)
        return LinkRate()

    def dump(self, file: str) -> FabricDump:
        if not any(device.is_described for device in self.devices):
            raise ParseError(TOOL, None, "", "no record of a switch or adapter in the file", file)
        for kind, source in self._without_rate.items():
            if kind in self._with_rate:
                raise _without_rate(source)
        return FabricDump(TOOL, self.devices, self.ports, facts=self.facts, missing=self.messages.missing)


def _without_rate(source: FabricSource) -> ParseError:
    return source.error("the comment has no rate, such as 4xEDR, at its end: was the line cut off?")
