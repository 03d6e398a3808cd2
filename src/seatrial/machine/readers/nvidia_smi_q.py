"""`nvidia-smi -q` (also with `-d` or `-i`): the state of each GPU, its PCIe link, its memory errors and power.

Format: the tool's output, and nvidia-smi(1) for the meaning of each field. Fields are nested by indentation; names
changed over the years ("Clocks Throttle Reasons" became "Clocks Event Reasons", "Power Limit" "Current Power Limit").
Volatile ECC errors were counted since the driver was loaded, aggregate ones in the life of the GPU. Serial numbers,
UUIDs and processes are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, choose, is_fence, prefix_of, read_lines
from seatrial.machine.survey import FactBook, PciPart, Survey, SurveyLinkRate
from seatrial.model.machine.fact import FactValue
from seatrial.model.machine.limit import PCIE_GTps
from seatrial.model.machine.links import pci_address
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.units import SIUnit

TOOL = "nvidia-smi-q"
SOURCE = "nvidia-smi -q"

_LOG = re.compile(r"=+\s?NVSMI LOG\s?=+\s*\Z")
_GPU = re.compile(r"GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*\Z", re.ASCII)
_LOST = re.compile(
    r".{0,80}\bGPU ?(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]): ?GPU is lost", re.ASCII
)
_FIELD = re.compile(r"(?P<key>\S(?:.{0,60}?\S)?)\s*:\s(?P<value>.*?)\s*\Z|(?P<head>[A-Za-z0-9](?:.{0,60}\S)?)\s*\Z")
_ATTACHED = re.compile(r"Attached GPUs\s*:\s*(?P<number>\d{1,3})\s*\Z", re.ASCII)
_DRIVER = re.compile(r"Driver Version\s*:\s*(?P<version>[\d.]{1,20})\s*\Z", re.ASCII)
_NUMBER = re.compile(r"(?P<value>-?\d{1,15}(?:\.\d{1,6})?)(?:\s?(?P<unit>W|C|MiB|x|%|us|MHz))?\Z", re.ASCII)
_DEVICE = re.compile(r"0x(?P<device>[0-9A-Fa-f]{4})(?P<vendor>[0-9A-Fa-f]{4})\Z", re.ASCII)

Fields = Mapping[tuple[str, ...], tuple[str, Line]]


class _Gpu(Struct):
    address: str
    line: Line
    fields: dict[tuple[str, ...], tuple[str, Line]] = {}


def read_nvidia_smi_q(data: bytes, pick: int | None = None) -> Survey:
    """The GPUs of a machine. Raises ParseError for damaged text; UsageError for several logs (`-l`) in a file without
    `pick`."""
    lines = read_lines(data, TOOL)
    logs = [line for line in lines if _LOG.match(_text(line).strip())]
    if len(logs) > 1 or pick not in (None, 1):
        log = choose(logs, lambda line: line.number, pick, TOOL, "NVSMI LOG")
        end = min((line.number for line in logs if line.number > log.number), default=1 << 40)
        lines = tuple(line for line in lines if log.number <= line.number < end)
    lost = [match["address"] for line in lines if (match := _LOST.match(_text(line).strip()))]
    gpus = _gpus(lines)
    if not gpus and not lost:
        is_xml = any("<nvidia_smi_log" in line.text for line in lines)
        why = (
            "this is its XML: give the text of `nvidia-smi -q`"
            if is_xml
            else "no GPU (GPU 00000000:18:00.0) in the file"
        )
        raise ParseError(TOOL, None, "", why)
    found = [match for line in lines if (match := _ATTACHED.match(_text(line).strip()))]
    unread: list[str] = []
    if found and len(gpus) != int(found[0]["number"]):
        if len(gpus) > int(found[0]["number"]):
            raise gpus[-1].line.error(TOOL, f"{len(gpus)} GPUs, where {found[0]['number']} are attached: two dumps?")
        unread.append(f"{TOOL}: {len(gpus)} of {found[0]['number']} attached GPUs are in the text")
    versions = (match["version"] for line in lines if (match := _DRIVER.match(_text(line).strip())))
    version = next(versions, None)
    parts = [*(_part(gpu, version) for gpu in gpus), *map(_lost, lost)]
    return Survey(SOURCE, pci_parts=tuple(parts), unread=tuple(unread))


def _text(line: Line) -> str:
    """The text without the prefixes of quotes and comments; its indentation stays."""
    return line.text[len(prefix_of(line.text)) :].expandtabs(8)


def _gpus(lines: Sequence[Line]) -> list[_Gpu]:
    found: list[_Gpu] = []
    outer = -1
    path: list[tuple[int, str]] = []
    is_open = False
    for line in lines:
        text = _text(line)
        bare = text.strip()
        indent = len(text) - len(text.lstrip())
        if match := _GPU.match(bare):
            address = pci_address(match["address"]) or ""
            if any(gpu.address == address for gpu in found):
                raise line.error(TOOL, f"GPU {address} is here a second time: are these two dumps in one file?")
            found.append(_Gpu(address, line))
            outer, path, is_open = indent, [], True
        elif not is_open or not bare:
            continue
        elif indent <= outer or is_fence(bare):
            if not found[-1].fields and _FIELD.match(bare) and ":" in bare:
                raise line.error(TOOL, "the fields of a GPU are not indented, so that their sections are unknown")
            is_open = False
        else:
            _take(found[-1], line, bare, indent, path)
    return found


def _take(gpu: _Gpu, line: Line, bare: str, indent: int, path: list[tuple[int, str]]) -> None:
    """Add a field; `path` is the sections around it, each with its indentation."""
    match = _FIELD.match(bare)
    if match is None:
        return
    while path and path[-1][0] >= indent:
        path.pop()
    key = match["head"] or match["key"]
    path.append((indent, key))
    names = tuple(name for _, name in path)
    if match["head"] is not None or "Processes" in names[0] or not line.is_ended:
        return  # the value on a last line without a line break may have been cut off
    known = gpu.fields.setdefault(names, (match["value"], line))
    if known[0] != match["value"] and names in _READ:
        raise line.error(TOOL, f"{' / '.join(names)} is given twice")


def _word(text: str) -> str | None:
    return None if text in ("", "N/A", "None", "[N/A]", "Unknown Error") else text[:120]


def _lower(text: str) -> str | None:
    word = _word(text)
    return None if word is None else word.lower()


def _yes(text: str) -> bool | None:
    return {"yes": True, "no": False}.get(text.lower())


def _active(text: str) -> bool | None:
    return {"active": True, "not active": False}.get(text.lower())


def _on(text: str) -> bool | None:
    return {"enabled": True, "disabled": False}.get(text.lower())


def _number(unit: str | None, scale: float = 1.0) -> Callable[[str], float | int | None]:
    """Reads a number with that unit, times `scale`; None for anything else."""

    def read(text: str) -> float | int | None:
        match = _NUMBER.match(text)
        if match is None or match["unit"] != unit:
            return None
        value = float(match["value"]) * scale
        return int(value) if value.is_integer() and unit != "W" and scale >= 1 else value

    return read


class _Read(Struct):
    """A fact, its unit, how its text is read, whether it changes while the machine runs, and its paths, the newest
    first."""

    fact: str
    paths: tuple[str, ...]
    read: Callable[[str], FactValue | None]
    unit: SIUnit | None = None
    volatile: bool = True


_COUNT, _WATT, _CELSIUS = _number(None), _number("W"), _number("C")
_REASONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")
_TIMES = "Clocks Event Reasons Counters"
_POWER = ("GPU Power Readings", "Power Readings")


def _each(sections: Sequence[str], *names: str) -> tuple[str, ...]:
    return tuple(f"{section}/{name}" for section in sections for name in names)


_FACTS = (
    _Read("model_name", ("Product Name",), _word, volatile=False),
    _Read("persistence_mode", ("Persistence Mode",), _on, volatile=False),
    _Read("memory_total", ("FB Memory Usage/Total",), _number("MiB", 1 << 20), "B", volatile=False),
    _Read("ecc_mode", ("ECC Mode/Current", "Ecc Mode/Current"), _lower, volatile=False),
    _Read("ecc_mode_pending", ("ECC Mode/Pending", "Ecc Mode/Pending"), _lower),
    _Read("compute_mode", ("Compute Mode",), _lower, volatile=False),
    _Read("mig_mode", ("MIG Mode/Current",), _lower, volatile=False),
    _Read("mig_mode_pending", ("MIG Mode/Pending",), _lower),
    _Read("performance_state", ("Performance State",), _word),
    _Read("utilization", ("Utilization/GPU", "Utilization/Gpu"), _number("%", 0.01), "1"),
    _Read("clocks_idle", _each(_REASONS, "Idle"), _active),
    _Read("power_capped", _each(_REASONS, "SW Power Cap"), _active),
    _Read("slowed_by_hardware", _each(_REASONS, "HW Slowdown"), _active),
    _Read("slowed_by_heat", _each(_REASONS, "HW Slowdown/HW Thermal Slowdown", "HW Thermal Slowdown"), _active),
    _Read("slowed_by_power_brake",
          _each(_REASONS, "HW Slowdown/HW Power Brake Slowdown", "HW Power Brake Slowdown"), _active),
    _Read("slowed_by_driver_for_heat", _each(_REASONS, "SW Thermal Slowdown"), _active),
    _Read("power_capped_time", (f"{_TIMES}/SW Power Capping",), _number("us", 1e-6), "s"),
    _Read("slowed_by_heat_time", (f"{_TIMES}/HW Thermal Slowdown",), _number("us", 1e-6), "s"),
    _Read("slowed_by_driver_for_heat_time", (f"{_TIMES}/SW Thermal Slowdown",), _number("us", 1e-6), "s"),
    _Read("slowed_by_power_brake_time", (f"{_TIMES}/HW Power Braking",), _number("us", 1e-6), "s"),
    _Read("power_draw", _each(_POWER, "Power Draw", "Average Power Draw", "Instantaneous Power Draw"), _WATT, "W"),
    _Read("power_limit", _each(_POWER, "Current Power Limit", "Enforced Power Limit", "Power Limit"), _WATT, "W"),
    _Read("power_limit_default", _each(_POWER, "Default Power Limit"), _WATT, "W", volatile=False),
    _Read("temperature_C", ("Temperature/GPU Current Temp", "Temperature/Gpu"), _CELSIUS),
    _Read("temperature_slowdown_C", ("Temperature/GPU Slowdown Temp",), _CELSIUS, volatile=False),
    _Read("temperature_margin_C", ("Temperature/GPU T.Limit Temp",), _CELSIUS),
    _Read("retired_pages_correctable", ("Retired Pages/Single Bit ECC",), _COUNT, "1"),
    _Read("retired_pages_uncorrectable", ("Retired Pages/Double Bit ECC",), _COUNT, "1"),
    _Read("page_retirement_pending", _each(("Retired Pages",), "Pending Page Blacklist", "Pending"), _yes),
    _Read("rows_remapped_correctable", ("Remapped Rows/Correctable Error",), _COUNT, "1"),
    _Read("rows_remapped_uncorrectable", ("Remapped Rows/Uncorrectable Error",), _COUNT, "1"),
    _Read("row_remapping_pending", ("Remapped Rows/Pending",), _yes),
    _Read("row_remapping_failed", ("Remapped Rows/Remapping Failure Occurred",), _yes),
    _Read("sram_threshold_exceeded", ("ECC Errors/Aggregate/SRAM Threshold Exceeded",), _yes),
    _Read("reset_required", ("GPU Reset Status/Reset Required",), _yes),
    _Read("recovery_action", ("GPU Recovery Action",), _lower),
    _Read("fabric_state", ("Fabric/State",), _lower),
    _Read("fabric_status", ("Fabric/Status",), _lower),
    _Read("pcie_replays", ("PCI/Replays Since Reset",), _COUNT, "1"),
    _Read("pcie_max_lanes", ("PCI/GPU Link Info/Link Width/Max",), _number("x"), volatile=False),
    _Read("pcie_lanes", ("PCI/GPU Link Info/Link Width/Current",), _number("x")),
)  # fmt: skip
_ERRORS = {
    "correctable": ("SRAM Correctable", "DRAM Correctable", "Single Bit/Total"),
    "uncorrectable": (
        *("SRAM Uncorrectable", "SRAM Uncorrectable Parity", "SRAM Uncorrectable SEC-DED", "DRAM Uncorrectable"),
        "Double Bit/Total",
    ),
}
"""What is added to the errors of a GPU; older drivers have totals of single and double bits."""
_GENERATION = "PCI/GPU Link Info/PCIe Generation"
_READ = frozenset(
    tuple(path.split("/"))
    for path in (*(path for each in _FACTS for path in each.paths), f"{_GENERATION}/Max", f"{_GENERATION}/Current")
)


def _part(gpu: _Gpu, driver: str | None) -> PciPart:
    book = FactBook()
    found = {"/".join(path): value for path, (value, _) in gpu.fields.items()}
    for each in _FACTS:
        values = (each.read(found[path]) for path in each.paths if path in found)
        book.say(each.fact, next((v for v in values if v is not None), None), SOURCE, each.unit, volatile=each.volatile)
    for age in ("Volatile", "Aggregate"):
        for kind, names in _ERRORS.items():
            counts = [_COUNT(found.get(f"ECC Errors/{age}/{name}", "")) for name in names]
            known = [count for count in counts if count is not None]
            book.say(f"ecc_{kind}_{age.lower()}", sum(known) if known else None, SOURCE, "1", volatile=True)
    book.say("driver_version", driver, SOURCE)
    ids = _DEVICE.match(found.get("PCI/Device Id", ""))
    book.say("vendor_id", "10de", f"{SOURCE} lists NVIDIA GPUs")
    book.say("device_id", None if ids is None else ids["device"].lower(), SOURCE)
    capable, trained = _GTps(found.get(f"{_GENERATION}/Max", "")), _GTps(found.get(f"{_GENERATION}/Current", ""))
    book.say("pcie_max_GTps", capable, SOURCE, "1")
    book.say("pcie_GTps", trained, SOURCE, "1", volatile=True)
    facts = book.facts()
    rates = [
        SurveyLinkRate(speed, lanes) if speed and lanes else None
        for speed, lanes in ((capable, facts.integer("pcie_max_lanes")), (trained, facts.integer("pcie_lanes")))
    ]
    return PciPart(
        gpu.address, "0000", capable=rates[0], trained=rates[1], kind=DeviceKind.GPU, source=SOURCE, facts=facts
    )


def _GTps(text: str) -> float | None:
    """GT/s of a generation of PCIe."""
    number = int(text) if len(text) == 1 and text.isascii() and text.isdecimal() else 0
    return PCIE_GTps[number - 1] if 0 < number <= len(PCIE_GTps) else None


def _lost(address: str) -> PciPart:
    book = FactBook()
    book.say("vendor_id", "10de", f"{SOURCE} lists NVIDIA GPUs")
    book.say("is_lost", True, SOURCE, volatile=True)
    return PciPart(
        pci_address(address) or address.lower(), "0000", kind=DeviceKind.GPU, source=SOURCE, facts=book.facts()
    )
