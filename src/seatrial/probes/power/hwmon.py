"""Meters of boards, processors and GPUs that Linux's drivers show in /sys/class/hwmon.

Documentation/hwmon/sysfs-interface.rst: `powerN_input` and `powerN_average` in microwatts, `_average_interval` in
milliseconds, `_accuracy` in percent, `energyN_input` in microjoules. Which part a meter measures depends on its driver:
acpi_power_meter (ACPI 4.0, 10.4) measures the node, and on NVIDIA Grace what its `oem_info` names (NVIDIA Grace
Performance Tuning Guide, "Power Telemetry"); amd_energy the sockets and cores (Documentation/hwmon/amd_energy.rst).
"""

from __future__ import annotations

import re
from functools import partial

from seatrial.machine.files import FileTree
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.files import file_of, integer
from seatrial.probes.power.source import Sensor, Values

_FOLDER = "/sys/class/hwmon"
_VALUE = re.compile(r"(?P<stem>(?P<what>power|energy)(?P<number>\d+))_(?:input|average)")
_MICRO = 1e-6
_METER = "power_meter"
_GRACE = (
    (re.compile(r"Module Power Socket \d+"), Scope.DEVICE),
    (re.compile(r"Grace Power Socket \d+"), Scope.PACKAGE),
    (re.compile(r"(?:CPU|SysIO) Power Socket \d+"), Scope.PART),
)
_BY_DRIVER = {
    "amdgpu": Scope.DEVICE,
    "xe": Scope.DEVICE,
    "i915": Scope.DEVICE,
    "fam15h_power": Scope.PACKAGE,
    "zenpower": Scope.PACKAGE,
}
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_SOCKET = re.compile(r"Esocket\d+")


def sensors(tree: FileTree) -> list[Sensor]:
    """The meters of all drivers. Of `_input` and `_average` of one meter, the first is used."""
    found = []
    for name in tree.names(_FOLDER):
        folder = f"{_FOLDER}/{name}"
        files = tree.names(folder)
        if not any(_VALUE.fullmatch(file) for file in files):  # of older kernels, they are those of the device
            folder = f"{folder}/device"
            files = tree.names(folder)
        meters: dict[str, str] = {}
        for file in sorted(files, reverse=True):  # power1_input before power1_average
            if match := _VALUE.fullmatch(file):
                meters.setdefault(match["stem"], file)
        driver = tree.word(f"{_FOLDER}/{name}/name") or tree.word(f"{folder}/name") or name
        found += [_sensor(tree, folder, driver, stem, file) for stem, file in sorted(meters.items())]
    return [one for one in found if one is not None]


def _sensor(tree: FileTree, folder: str, driver: str, stem: str, file: str) -> Sensor | None:
    label = tree.word(f"{folder}/{stem}_label") or tree.word(f"{folder}/{stem}_oem_info") or ""
    if label.startswith("Ecore"):  # hundreds of them, in a package that is shown
        return None
    is_counter = stem.startswith("energy")
    interval_ms = tree.integer(f"{folder}/{stem}_average_interval")
    window_s = interval_ms / 1000 if interval_ms and file.endswith("_average") else None
    accuracy = (tree.word(f"{folder}/{stem}_accuracy") or "").rstrip("%")
    scope = _scope(driver, label)
    value = file_of(tree, f"{folder}/{file}", partial(_values, "joules" if is_counter else "watts"))
    return Sensor(
        f"hwmon:{folder.split('/')[4]}/{driver}/{label or stem}",
        scope,
        SourceKind.COUNTER if is_counter else SourceKind.GAUGE,
        label or driver,
        value.read,
        Supply.UNKNOWN if scope is Scope.NODE else Supply.DC,
        window_s=window_s,
        refresh_s=window_s,
        accuracy=float(accuracy) / 100 if accuracy.replace(".", "", 1).isdigit() else None,
        quantum=_MICRO,
        whole=_gpu(tree, folder) if scope is Scope.DEVICE and driver in _BY_DRIVER else "",
        file=value,
    )


def _gpu(tree: FileTree, folder: str) -> str:
    """The GPU by its PCI address, as amdsmi.py names it."""
    address = (tree.target(f"{folder}/device") or "").rpartition("/")[2].lower()
    return f"GPU {address}" if _PCI_ADDRESS.fullmatch(address) else ""


def _scope(driver: str, label: str) -> Scope:
    for names, scope in _GRACE:
        if names.match(label):
            return scope
    if driver == _METER:
        return Scope.NODE
    return Scope.PACKAGE if _SOCKET.fullmatch(label) else _BY_DRIVER.get(driver, Scope.PART)


def _values(what: str, data: bytes, _: float) -> Values:
    value = integer(data)
    return {"fault": "reports no value"} if value is None else {what: value * _MICRO}
