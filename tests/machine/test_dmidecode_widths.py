"""dmidecode: dumps that list fewer slots than they declare, the width of memory, modules without a socket."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from machine.dmi_dumps import EMPTY, GENOA, SKYLAKE, Server, Slot, dell

from seatrial.errors import ParseError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.model.machine.machine import Memory

SERVER = Server("Dell Inc.|PowerEdge R740", [SKYLAKE, None], dell(12, range(1, 7)))


def _declared(slots: int, announced: int | None = None) -> str:
    """SERVER with its 24 devices, an array that declares more, and perhaps the number of its structures."""
    text = SERVER.text().replace("Number Of Devices: 24", f"Number Of Devices: {slots}")
    if announced is None:
        return text
    return text.replace("Table at", f"{announced} structures occupying 4000 bytes.\nTable at")


def test_firmware_may_declare_more_slots_than_it_lists() -> None:
    structures = SERVER.text().count("Handle 0x")
    for text in (_declared(48), _declared(100), _declared(25, structures)):
        survey = read_dmidecode(text.encode())
        assert survey.modules == read_dmidecode(SERVER.data()).modules
        assert any("slots but lists 24" in sentence for sentence in survey.unread)
    no_end = re.sub(r"Handle 0xFEFF.*\nEnd Of Table\n", "", _declared(48))
    for text in (_declared(25), _declared(48, structures + 1), no_end):
        with pytest.raises(ParseError):
            read_dmidecode(text.encode())


def test_a_gap_between_the_devices_is_a_damaged_dump() -> None:
    blocks = _declared(48).split("\n\n")
    gone = "\n\n".join(block for block in blocks if "Locator: A3\n" not in block)
    with pytest.raises(ParseError, match="declares 48 devices, but has 23"):
        read_dmidecode(gone.encode())


def _memory(text: str) -> Memory:
    return assemble([read_dmidecode(text.encode())]).memory


def test_the_width_of_a_channel_if_the_type_is_not_stated() -> None:
    """An old dmidecode prints <OUT OF SPEC> for DDR5; the data width is enough."""
    text = replace(SERVER, processors=[SKYLAKE] * 2).text()
    known = _memory(text).peak.value
    assert known is not None
    unknown = text.replace("Type: DDR4", "Type: <OUT OF SPEC>")
    assert _memory(unknown).peak.value == known
    for width in ("Unknown", "32 bits"):
        assert _memory(unknown.replace("Data Width: 64 bits", f"Data Width: {width}")).peak.value is None
    with pytest.raises(ParseError, match="a width must be"):
        read_dmidecode(text.replace("Data Width: 64 bits", "Data Width: 64 b", 1).encode())


def test_soldered_memory_is_the_sum_of_its_buses() -> None:
    slots = [Slot(f"LP{n}", "16 GB", type="LPDDR5", configured="6400 MT/s") for n in range(4)]
    server = Server("ACME|Board", [SKYLAKE], slots)
    text = server.text().replace("Data Width: 64 bits", "Data Width: 32 bits")
    memory = _memory(text)
    assert memory.peak.value == 4 * 4 * 6400e6
    assert "4 x 32 bit x 6400 MT/s configured" in memory.peak.derivation
    assert _memory(text.replace("Data Width: 32 bits", "Data Width: Unknown")).peak.value is None
    rated = _memory(text.replace("Configured Memory Speed: 6400 MT/s", "Configured Memory Speed: Unknown"))
    assert rated.peak.value == 4 * 4 * 3200e6
    assert "rated" in rated.peak.derivation


def test_hbm_beside_modules_is_no_module() -> None:
    slots = [*dell(12, range(1, 7), sockets="A"), Slot("HBM0", "64 GB", type="HBM2")]
    memory = _memory(Server("Dell Inc.|PowerEdge R640", [SKYLAKE], slots).text())
    assert memory.sockets[0].dimms == 6
    assert memory.peak.value is None
    assert "64 GiB of HBM2" in memory.peak.derivation


@pytest.mark.parametrize(
    ("count", "verdict"),
    [(2, "unbalanced"), (8, "unbalanced"), (9, "unbalanced"), (12, "unknown"), (14, "unbalanced"), (24, "unknown")],
)
def test_modules_that_cannot_fill_the_channels_whatever_their_slots_are(count: int, verdict: str) -> None:
    """Slots without a socket in their names; two processors with 12 channels."""
    slots = [Slot(f"Module {n}", "32 GB" if n < count else EMPTY, type="DDR5") for n in range(24)]
    memory = _memory(Server("ACME|Board", [GENOA] * 2, slots).text())
    assert memory.verdict.value == verdict
