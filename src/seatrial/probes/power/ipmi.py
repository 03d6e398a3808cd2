"""The power of a node by IPMI's DCMI extension ("Get Power Reading"), through ipmitool or FreeIPMI's ipmi-dcmi.

Data Center Manageability Interface Specification 1.5, 6.6.1. Both programs print the value now, and an average over the
period that the BMC states. Passwords are given in the environment of the program, never among its arguments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from seatrial.model.environment.site import IpmiAccess
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.model.spelling import show
from seatrial.printable import printable
from seatrial.probes.power.source import Reading, Sensor, timed
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import on_path

_NAME, _OF = "ipmi:dcmi", "the node, as its BMC reports it"
_DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
_WITH_SBIN = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_LIMIT_S = 20.0

_NOW = re.compile(r"^\s*(?:Instantaneous power reading|Current Power)\s*:\s*(\d+)\s*Watts", re.MULTILINE)
_AVERAGE = re.compile(r"^\s*Average power[^:\n]*:\s*(\d+)\s*Watts", re.MULTILINE | re.IGNORECASE)
_PERIOD = re.compile(r"^\s*Sampling period\s*:\s*(\d+)\s*(Seconds|Milliseconds)", re.MULTILINE)
_PERIOD_MS = re.compile(r"^\s*Statistics reporting time period\s*:\s*(\d+)\s*milliseconds", re.MULTILINE)
_ACTIVE = re.compile(r"^\s*(?:Power reading state is|Power Measurement)\s*:\s*(\S+)", re.MULTILINE)
_OFF = frozenset({"deactivated", "not", "inactive"})


class DcmiPower(Frozen):
    """What "Get Power Reading" answers, in W; None: not stated. `period_s` is that of the average."""

    watts: float | None
    average_W: float | None
    period_s: float | None
    is_active: bool | None


def read_dcmi(text: str) -> DcmiPower:
    """What either program prints."""
    now, average, active = _NOW.search(text), _AVERAGE.search(text), _ACTIVE.search(text)
    period_s = None
    if (found := _PERIOD.search(text)) is not None:
        period_s = float(found[1]) / (1 if found[2] == "Seconds" else 1000)
    elif (found := _PERIOD_MS.search(text)) is not None:
        period_s = float(found[1]) / 1000
    return DcmiPower(
        None if now is None else float(now[1]),
        None if average is None else float(average[1]),
        period_s,
        None if active is None else active[1].lower() not in _OFF,
    )


def sensors(ask: Callable[[], str]) -> list[Sensor]:
    """The node's sensor, if a BMC answers. `ask` gives what either program prints; it raises OSError if there is no
    answer."""
    try:
        first = read_dcmi(ask())
    except OSError as error:
        return [Sensor(_NAME, Scope.NODE, SourceKind.GAUGE, _OF, partial(_read, ask), unusable=f"no answer: {error}")]
    return [Sensor(_NAME, Scope.NODE, SourceKind.GAUGE, _OF, partial(_read, ask), quantum=1.0, note=_note(first))]


def _note(first: DcmiPower) -> str:
    if first.watts is None or first.watts != first.average_W or not first.period_s:
        return ""
    return f"is the same as its average over {show(first.period_s, 's')}: it may be one"


def _read(ask: Callable[[], str]) -> Reading:
    try:
        with timed() as request:
            found = read_dcmi(ask())
    except OSError as error:
        return request.reading(fault=f"no answer: {error}")
    if found.is_active is False:
        return request.reading(fault="the BMC does not measure power (reading state: deactivated)")
    return request.reading(watts=found.watts, fault="" if found.watts is not None else "reports no value")


def asking(access: IpmiAccess | None, password: str | None) -> Callable[[], str] | None:
    """How the BMC is asked: over the network, or (None) through the driver of this node, by the program that is
    installed. None if there is neither program nor driver."""
    ipmitool, freeipmi = on_path("ipmitool"), on_path("ipmi-dcmi", _WITH_SBIN)
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")} | {"LC_ALL": "C"}
    if access is None and not any(Path(device).exists() for device in _DEVICES):
        return None
    if ipmitool is not None:
        command = [ipmitool]
        if access is not None:
            command += ["-I", "lanplus", "-H", access.host, "-p", str(access.port), "-U", access.user, "-E"]
            environment["IPMI_PASSWORD"] = password or ""
        return partial(_answer, [*command, "dcmi", "power", "reading"], environment)
    if freeipmi is not None and access is None:  # over the network, it takes a password as an argument or a file only
        return partial(_answer, [freeipmi, "--get-system-power-statistics"], environment)
    return None


def _answer(command: list[str], environment: Mapping[str, str]) -> str:
    try:
        answer = output_of(command, environment, _LIMIT_S)
    except OutOfTimeError:
        raise OSError(f"{Path(command[0]).name} did not end in {_LIMIT_S:g} s") from None
    if answer.returncode:
        said = printable(answer.stderr.decode("utf-8", "replace")).strip().splitlines()
        raise OSError(f"{Path(command[0]).name}: {said[-1][:200] if said else f'exit status {answer.returncode}'}")
    return answer.stdout.decode("utf-8", "replace")
