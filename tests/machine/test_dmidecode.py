"""dmidecode's text: every form in which people paste it, and the first wrong line of a damaged one."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine.dmi_dumps import EMPTY, MILAN, SKYLAKE, Server, Slot, dell, hpe
from machine.smbios_tables import Dimm, dump, slots, table
from usual import usually_first

from seatrial.errors import ParseError, UsageError
from seatrial.machine.memory_population import system_modules
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.machine.readers.memory_locators import SlotPosition, read_places
from seatrial.machine.readers.smbios import read_smbios
from seatrial.machine.survey import Survey
from seatrial.model.machine.machine import DeviceKind

GIB = 1 << 30
SERVER = Server("Dell Inc.|PowerEdge R740", [SKYLAKE, None], dell(12, range(1, 7)))


def _shape(survey: Survey) -> list[tuple[object, ...]]:
    return [(m.locator, m.size_bytes, m.rated_MTps, m.configured_MTps, m.rank) for m in survey.modules]


def test_a_whole_dump_is_read() -> None:
    survey = read_dmidecode(SERVER.data())
    module = survey.modules[0]
    assert (module.locator, module.bank, module.size_bytes, module.memory_type) == ("A1", "", 32 * GIB, "DDR4")
    assert (module.rated_MTps, module.configured_MTps, module.rank) == (3200, 2933, 2)
    assert (module.manufacturer, module.part_number) == ("Samsung", "M393A4K40DB3-CWE")
    assert (module.socket, module.channel) == (1, None)
    assert [m.size_bytes for m in survey.modules[6:12]] == [0] * 6
    assert len(survey.modules) == survey.memory_slots == 24
    assert survey.name == "PowerEdge R740"
    facts = survey.facts
    assert facts.text("product") == "Dell Inc. PowerEdge R740"
    assert (facts.text("bios_vendor"), facts.text("bios_version"), facts.text("bios_date")) == (
        "ACME",
        "1.2.3",
        "03/09/2020",
    )
    assert (facts.text("ecc"), facts.integer("sockets"), facts.integer("memory_slots")) == ("multi-bit ECC", 1, 24)
    assert facts.integer("memory_total") == 12 * 32 * GIB
    assert "hypervisor" not in facts
    assert "SECRET" not in repr(survey), "serial numbers and asset tags are hardware identity"


def test_populated_processors_are_packages() -> None:
    survey = read_dmidecode(replace(SERVER, processors=[SKYLAKE, MILAN, None]).data())
    first, second = survey.cpu_parts
    assert (first.kind, first.os_index, first.cpus) == (DeviceKind.PACKAGE, 0, frozenset())
    assert (first.facts.text("vendor"), first.facts.text("model_name")) == ("GenuineIntel", SKYLAKE[2])
    assert [first.facts.integer(key) for key in ("family", "model", "stepping")] == [6, 85, 4]
    assert (second.os_index, second.facts.text("vendor"), second.facts.integer("family")) == (1, "AuthenticAMD", 25)


def _without_handles(text: str) -> str:
    """As `dmidecode -q` prints it."""
    text = re.sub(r"(?m)^Handle .*\n", "", text)
    text = re.sub(r"(?m)^\tArray Handle: .*\n|^\tError Information Handle: .*\n", "", text)
    return re.sub(r"(?m)\A(#|Getting|SMBIOS|Table).*\n", "", text).split("\n\n", 1)[1]


_FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "quiet": _without_handles,
    "tabs lost": lambda text: text.replace("\t", ""),
    "tabs are spaces": lambda text: text.replace("\t", "        "),
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "fence and prose": lambda text: f"Here is what we have.\n\n```\n$ sudo dmidecode\n{text}```\n\nNote: slow node.\n",
    "prompt before and after": lambda text: f"[root@n1 ~]# dmidecode\n{text}[root@n1 ~]# exit\n",
    "prompt right after": lambda text: text.rstrip() + "\nroot@n1:~# \n",
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "commented": lambda text: "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines()),
    "no header": lambda text: text.split("\n\n", 1)[1],
    "clock speed": lambda text: text.replace("Configured Memory Speed", "Configured Clock Speed").replace(
        "MT/s", "MHz"
    ),
    "megabytes": lambda text: text.replace("Size: 32 GB", "Size: 32768 MB"),
}


@pytest.mark.parametrize("form", _FORMS.values(), ids=list(_FORMS))
def test_every_form_reads_the_same(form: Callable[[str], str]) -> None:
    whole = read_dmidecode(SERVER.data())
    survey = read_dmidecode(form(SERVER.text()).encode())
    assert _shape(survey) == _shape(whole)
    assert [part.facts.text("model_name") for part in survey.cpu_parts] == [SKYLAKE[2]]
    assert survey.facts.text("product") == "Dell Inc. PowerEdge R740"


@pytest.mark.parametrize("types", [{17}, {16, 17}, {4, 17}, {4, 16, 17}, {4}, {16}, {0, 1}])
def test_every_selection_of_types_is_read(types: set[int]) -> None:
    survey = read_dmidecode(replace(SERVER, types=frozenset(types)).data())
    assert len(survey.modules) == (24 if 17 in types else 0)
    assert survey.memory_slots == (24 if 16 in types else None)
    assert len(survey.cpu_parts) == (1 if 4 in types else 0)
    assert (survey.why_no_modules is None) == (17 in types)
    assert any(said.startswith("processors:") for said in survey.unread) == (17 in types and 4 not in types)


def test_types_one_after_the_other_are_one_machine() -> None:
    parts = [replace(SERVER, types=frozenset({kind})).text() for kind in (4, 17, 16)]
    survey = read_dmidecode("\n".join(parts).encode())
    assert (len(survey.modules), survey.memory_slots, len(survey.cpu_parts)) == (24, 24, 1)


def test_two_dumps_are_separated() -> None:
    other = replace(SERVER, slots=dell(12, (1,)))
    for glued in (SERVER.text() + other.text(), SERVER.text() + other.text().split("\n\n", 1)[1]):
        with pytest.raises(UsageError, match="2 dumps") as caught:
            read_dmidecode(glued.encode())
        assert not isinstance(caught.value, ParseError)
        lines = [int(number) for number in re.findall(r"line (\d+)", caught.value.message)]
        assert len(lines) == 2
        assert _shape(read_dmidecode(glued.encode(), 2)) == _shape(read_dmidecode(other.data()))
        assert _shape(read_dmidecode(glued.encode(), 1)) == _shape(read_dmidecode(SERVER.data()))
        with pytest.raises(UsageError, match="no dump of dmidecode 3"):
            read_dmidecode(glued.encode(), 3)


def _change(find: str, put: str, count: int = 1) -> str:
    text = SERVER.text()
    assert find in text
    return text.replace(find, put, count)


_DAMAGED = [
    ("a size", _change("Size: 32 GB", "Size: 32 G3"), "\tSize: 32 G3", "a size must"),
    ("a size cut", _change("Size: 32 GB", "Size: 32"), "\tSize: 32", "a size must"),
    (
        "a rate",
        _change("Configured Memory Speed: 2933 MT/s", "Configured Memory Speed: 29x3 MT/s"),
        "\tConfigured Memory Speed: 29x3 MT/s",
        "a speed must",
    ),
    (
        "two joined lines in one",
        _change("DDR4\n", "DDR4\tType Detail: X\n"),
        "\tType: DDR4\tType Detail: X",
        "two joined lines",
    ),
    ("a use", _change("System Memory", "Syst3m Memory"), "\tUse: Syst3m Memory", "not a use"),
    (
        "a handle of another structure",
        _change("Array Handle: 0x1000", "Array Handle: 1000"),
        "\tArray Handle: 1000",
        "0x1000",
    ),
    ("a status", _change("Populated, Enabled", "Pop"), "\tStatus: Pop", "Populated"),
    ("a rank", _change("Rank: 2", "Rank: two"), "\tRank: two", "a rank must"),
    ("a line without a key", _change("\tForm Factor: DIMM", "\tForm Fac"), "\tForm Fac", "Key: value"),
    (
        "a handle line",
        _change("Handle 0x1105, DMI type 17, 84 bytes", "Handle 0x1105, DMI typ"),
        "Handle 0x1105, DMI typ",
        "expected",
    ),
    (
        "a handle twice",
        _change("Handle 0x1105,", "Handle 0x1104,"),
        "Handle 0x1104, DMI type 17, 84 bytes",
        "is on line",
    ),
    ("a title", _change("Memory Device\n\tArray", "Memory Dev\n\tArray"), "Memory Dev", "DMI type 17"),
    ("a handle lost", _change("Handle 0x1105, DMI type 17, 84 bytes\n", ""), "Memory Device", "without its Handle"),
    (
        "a beginning lost",
        _change("Handle 0x1105, DMI type 17, 84 bytes\nMemory Device\n", ""),
        "\tArray Handle: 0x1000",
        "beginning",
    ),
    (
        "two structures in one",
        _change("\n\nHandle 0x1105, DMI type 17, 84 bytes\nMemory Device", ""),
        "\tArray Handle: 0x1000",
        "twice",
    ),
    (
        "a hole in a structure",
        _change("\tLocator: A3\n", "\n\tLocator: A3\n"),
        "\tLocator: A3",
        "whose beginning is missing",
    ),
    (
        "a number of devices",
        _change("Number Of Devices: 24", "Number Of Devices: 2x"),
        "\tNumber Of Devices: 2x",
        "number",
    ),
]


@pytest.mark.parametrize(("text", "line", "why"), [case[1:] for case in _DAMAGED], ids=[case[0] for case in _DAMAGED])
def test_the_first_wrong_line_is_named(text: str, line: str, why: str) -> None:
    with pytest.raises(ParseError, match=re.escape(why)) as caught:
        read_dmidecode(text.encode())
    assert caught.value.tool == "dmidecode"
    assert caught.value.text == line
    assert caught.value.line is not None
    assert text.splitlines()[caught.value.line - 1] == line


def test_missing_devices_are_a_cut_dump() -> None:
    blocks = SERVER.text().split("\n\n")
    gone = [block for block in blocks if "Locator: A3\n" not in block]
    with pytest.raises(ParseError, match="declares 24 devices, but has 23") as caught:
        read_dmidecode("\n\n".join(gone).encode())
    assert caught.value.text == "End Of Table"
    by_array = Server("HPE|ProLiant DL380 Gen10", [SKYLAKE] * 2, hpe(12, (1, 3, 5, 8, 10, 12)), arrays=2)
    assert len(read_dmidecode(by_array.data()).modules) == 24
    moved = by_array.text().replace("Array Handle: 0x1001", "Array Handle: 0x1000", 1)
    with pytest.raises(ParseError, match="array 0x1001 declares 12 devices, but has 11"):
        read_dmidecode(moved.encode())


@pytest.mark.parametrize("step", usually_first([37, 7]))
def test_a_cut_anywhere_gives_no_wrong_machine(step: int) -> None:
    """Each shorter file is refused, or shows less: never a module or processor that differs."""
    for kinds in (SERVER.types, frozenset({16, 17}), frozenset({17})):
        server = replace(SERVER, types=kinds)
        text = server.text()
        whole = read_dmidecode(text.encode())
        for end in range(0, len(text.rstrip()), step):
            try:
                survey = read_dmidecode(text[:end].encode())
            except UsageError:
                continue
            assert _shape(survey) == _shape(whole)[: len(survey.modules)]
            if kinds != {17}:  # the array, or the whole table, shows that it is cut off
                assert len(survey.modules) in (0, 24)


def test_a_cut_quiet_dump_is_compared_with_its_other_modules() -> None:
    text = _without_handles(replace(SERVER, types=frozenset({17}), slots=dell(6, range(1, 7), sockets="A")).text())
    assert len(read_dmidecode(text.encode()).modules) == 6
    with pytest.raises(ParseError, match="cut off"):
        read_dmidecode(text[: text.rindex("\tRank")].encode())


@pytest.mark.parametrize(
    "text",
    [
        "# dmidecode 3.3\nScanning /dev/mem for entry point.\n/dev/mem: Permission denied\n",
        "# dmidecode 3.3\n/sys/firmware/dmi/tables/smbios_entry_point: Permission denied\n",
        "# dmidecode 3.3\n# No SMBIOS nor DMI entry point found, sorry.\n",
    ],
)
def test_a_refused_dmidecode_asks_for_root(text: str) -> None:
    with pytest.raises(ParseError, match="run it as root") as caught:
        read_dmidecode(text.encode())
    assert caught.value.line == len(text.splitlines())


@pytest.mark.parametrize("data", [b"", b"\n", b"hello\n", b"# dmidecode 3.3\n", bytes(range(256))])
def test_other_input_is_rejected(data: bytes) -> None:
    with pytest.raises(ParseError):
        read_dmidecode(data)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("16 GB", 16 * GIB),
        ("16384 MB", 16 * GIB),
        ("1 TB", 1 << 40),
        ("512 kB", 512 << 10),
        ("Unknown", None),
        (EMPTY, 0),
        ("None", 0),
    ],
)
def test_sizes(size: str, expected: int | None) -> None:
    server = replace(SERVER, slots=[Slot("A1", size)], types=frozenset({17}))
    assert read_dmidecode(server.data()).modules[0].size_bytes == expected


@pytest.mark.parametrize(
    ("speed", "expected"),
    [("3200 MT/s", 3200.0), ("2933 MHz", 2933.0), ("1333 MHz (0.8 ns)", 1333.0), ("Unknown", None), ("70 ns", None)],
)
def test_speeds(speed: str, expected: float | None) -> None:
    server = replace(SERVER, slots=[Slot("A1", "16 GB", configured=speed)], types=frozenset({17}))
    assert read_dmidecode(server.data()).modules[0].configured_MTps == expected


@given(st.integers(0, 10**6))
def test_permuted_structures_give_the_same_machine(seed: int) -> None:
    head, *blocks = SERVER.text().rstrip().split("\n\n")
    random.Random(seed).shuffle(blocks)
    survey = read_dmidecode("\n\n".join([head, *blocks]).encode() + b"\n")
    assert sorted(_shape(survey), key=str) == sorted(_shape(read_dmidecode(SERVER.data())), key=str)


@given(st.binary(max_size=200), st.integers(0, 12_000), st.integers(0, 12_000))
def test_any_bytes_give_a_survey_or_a_usage_error(glue: bytes, start: int, end: int) -> None:
    data = SERVER.data()
    for mutant in (glue, data[:start] + glue + data[end:]):
        try:
            read_dmidecode(mutant)
        except UsageError as error:
            assert "dmidecode" in str(error)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_names_give_places(locator: str, bank: str) -> None:
    assert len(read_places([(locator, bank, True), (bank, locator, False)])) == 2


@pytest.mark.parametrize(
    ("names", "places"),
    [
        ([("CPU0_C1D0", "NODE 0")], [SlotPosition(0, "C1")]),
        ([("DIMM_P1_I1", "BANK 1")], [SlotPosition(1, "I")]),
        ([("CPU1_DIMM_A1", "P1 CHANNEL A")], [SlotPosition(1, "A")]),
        ([("DIMM000 J22", "_Node0_Channel2_Dimm0")], [SlotPosition(0, "CHANNEL2")]),
        ([("P0_MC1_DIM_CH_D0", "NODE 1")], [SlotPosition(0, "D")]),
        ([("Controller1-ChannelA-DIMM0", "BANK 2")], [SlotPosition(None, "CONTROLLER1 CHANNELA")]),
        ([("A1", ""), ("B12", "")], [SlotPosition(1, None), SlotPosition(2, None)]),
        ([(f"DIMM_A{n}", "") for n in range(1, 10)], [SlotPosition(1, None)] * 9),
        ([(f"DIMM_A{n}", "") for n in (1, 2)], [SlotPosition(None, "A")] * 2),
        ([("DIMM-1A", ""), ("DIMM-1B", "")], [SlotPosition(None, "A"), SlotPosition(None, "B")]),
        ([("DIMM A1", "Primary Main Board/CPU 4")], [SlotPosition(4, "A")]),
        ([("DIMM 1", "CPU 2")], [SlotPosition(2, None)]),
        ([("one", "Slot"), ("two", "Slot")], [SlotPosition(None, None)] * 2),
    ],
)
def test_names_of_many_vendors(names: list[tuple[str, str]], places: list[SlotPosition]) -> None:
    assert list(read_places([(locator, bank, True) for locator, bank in names])) == places


def test_the_binary_table_and_its_text_give_the_same_modules(tmp_path: Path, need: Callable[[str, str], str]) -> None:
    program = need("dmidecode", "apt install dmidecode")
    data = table([*slots(2, 3), Dimm("DIMM X", size_mib=0, rated=0, configured=0), Dimm("Y", memory_type=0x1A, rank=1)])
    file = tmp_path / "dump.bin"
    file.write_bytes(dump(data))
    for options in ([], ["-q"], ["-t", "17"], ["-t", "memory"]):
        done = subprocess.run([program, "--from-dump", str(file), *options], capture_output=True, check=True)
        smbios = read_smbios(data)
        read = read_dmidecode(done.stdout).modules
        binary = system_modules(smbios.modules, smbios.arrays, "dmidecode")
        assert [module.locator for module in read] == [module.locator for module in binary]
        assert [module for module in read if module.size_bytes] == [module for module in binary if module.size_bytes]


def test_modules_that_name_a_processor_as_their_array_are_those_of_the_only_array() -> None:
    """As the firmware of VMware has it."""
    text = "\n".join(
        line.replace("0x1000", "0x0400") if "Array Handle" in line else line for line in SERVER.text().split("\n")
    )
    survey = read_dmidecode(text.encode())
    assert _shape(survey) == _shape(read_dmidecode(SERVER.data()))
    assert any("names a Processor Information as their array" in one for one in survey.unread)


def test_a_disabled_processor_is_not_a_package() -> None:
    text = replace(SERVER, processors=[SKYLAKE, SKYLAKE]).text()
    assert len(read_dmidecode(text.encode()).cpu_parts) == 2
    at = text.rindex("Populated, Enabled")
    survey = read_dmidecode(
        (text[:at] + "Populated, Disabled By BIOS" + text[at + len("Populated, Enabled") :]).encode()
    )
    assert len(survey.cpu_parts) == survey.facts.integer("sockets") == 1
    assert "processors: 1 more are populated but disabled, and not counted" in survey.unread
