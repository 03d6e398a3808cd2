"""The power of a node by IPMI's DCMI extension ("Get Power Reading"), through ipmitool or FreeIPMI's ipmi-dcmi.

Data Center Manageability Interface Specification 1.5, 6.6.1. Both programs print the value now, and an average over the
period that the BMC states. Passwords are given in the environment of the program, never among its arguments.

A start of ipmitool costs 27 ms of a CPU, most of it for the keys of a session; a reading in its shell 0.2 ms. So one
shell is kept, and started again when its session has ended.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from seatrial.model.environment.site import IpmiAccess
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.model.spelling import show
from seatrial.printable import printable
from seatrial.probes.power.source import Reading, Sensor, timed
from seatrial.processes.start import OutOfTimeError, Running, output_of
from seatrial.processes.working_folder import NEUTRAL, on_path

_NAME, _OF = "ipmi:dcmi", "the node, as its BMC reports it"
_DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
_WITH_SBIN = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_LIMIT_S = 20.0
_PROMPT = b"ipmitool> "
_PIECE_B, _MOST_B = 1 << 16, 1 << 20

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


class Asking:
    """Asks a BMC: over the network, or (None) through the driver of this node, by the program that is installed."""

    def __init__(self, program: str, access: IpmiAccess | None, password: str | None) -> None:
        self._environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._environment["LC_ALL"] = "C"
        self._command = [program]
        self._shell: _Shell | None = None
        self._has_shell = Path(program).name == "ipmitool"
        if access is not None:
            self._command += ["-I", "lanplus", "-H", access.host, "-p", str(access.port), "-U", access.user, "-E"]
            self._environment["IPMI_PASSWORD"] = password or ""

    def __call__(self) -> str:
        """What the program prints. Raises OSError if there is no answer."""
        if not self._has_shell:
            return _answer([*self._command, "--get-system-power-statistics"], self._environment)
        known = self._shell
        try:
            return self._in_shell()
        except OSError:
            self.close()
            if known is None:
                raise
        return self._in_shell()  # the session of the one before had ended

    def close(self) -> None:
        """End the shell."""
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _in_shell(self) -> str:
        if self._shell is None:
            self._shell = _Shell([*self._command, "shell"], self._environment)
        try:
            return self._shell.answer("dcmi power reading")
        except OSError:
            self.close()
            raise


class _Shell:
    """The shell of ipmitool. What it prints ends with its prompt."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        with ExitStack() as ours:
            its_input, self._into = os.pipe()
            ours.callback(os.close, its_input)
            self._out, its_output = os.pipe()
            ours.callback(os.close, its_output)
            self._errors = os.memfd_create("errors")
            try:
                self._running = Running(command, environment, (its_input, its_output, self._errors), NEUTRAL)
            except BaseException:
                self._close_files()
                raise
        self._name = Path(command[0]).name
        try:
            self._until_prompt()
        except OSError:
            self.close()
            raise

    def answer(self, command: str) -> str:
        """What a command prints. Raises OSError if the shell ends, prints an error, or takes too long."""
        seen = os.fstat(self._errors).st_size
        try:
            os.write(self._into, f"{command}\n".encode())
        except OSError:
            raise OSError(f"{self._name}: {self._said(0)}") from None
        found = self._until_prompt()
        said = self._said(seen)
        if said and _NOW.search(found) is None:
            raise OSError(f"{self._name}: {said}")
        return found

    def close(self) -> None:
        """End it."""
        self._running.kill()
        self._running.wait()
        self._close_files()

    def _until_prompt(self) -> str:
        end_s, found = time.monotonic() + _LIMIT_S, bytearray()
        waiting = select.poll()
        waiting.register(self._out, select.POLLIN)
        while not found.endswith(_PROMPT):
            if not waiting.poll(max(0.0, 1000 * (end_s - time.monotonic()))):
                raise OSError(f"{self._name} did not answer in {_LIMIT_S:g} s")
            piece = os.read(self._out, _PIECE_B)
            found += piece
            if not piece or len(found) > _MOST_B:
                raise OSError(f"{self._name}: {self._said(0) or 'ended'}")
        return found.decode("utf-8", "replace")

    def _said(self, since: int) -> str:
        """The last line of its errors."""
        return _last_line(os.pread(self._errors, _MOST_B, since))

    def _close_files(self) -> None:
        for file in (self._into, self._out, self._errors):
            os.close(file)


def asking(access: IpmiAccess | None, password: str | None) -> Asking | None:
    """How the BMC is asked. None if there is neither program nor driver."""
    if access is None and not any(Path(device).exists() for device in _DEVICES):
        return None
    if (ipmitool := on_path("ipmitool")) is not None:
        return Asking(ipmitool, access, password)
    freeipmi = on_path("ipmi-dcmi", _WITH_SBIN)
    if freeipmi is not None and access is None:  # over the network, it takes a password as an argument or a file only
        return Asking(freeipmi, None, None)
    return None


def _answer(command: list[str], environment: Mapping[str, str]) -> str:
    try:
        answer = output_of(command, environment, _LIMIT_S)
    except OutOfTimeError:
        raise OSError(f"{Path(command[0]).name} did not end in {_LIMIT_S:g} s") from None
    if answer.returncode:
        said = _last_line(answer.stderr) or f"exit status {answer.returncode}"
        raise OSError(f"{Path(command[0]).name}: {said}")
    return answer.stdout.decode("utf-8", "replace")


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return printable(lines[-1].strip())[:200] if lines else ""
