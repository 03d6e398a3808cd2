"""Passwords of BMCs: from a file that only its owner can read, the environment, or a program that prints it. They are
never arguments of programs, and never written anywhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.model.environment.site import IpmiAccess, PduAccess, RedfishAccess
from seatrial.processes.start import OutOfTimeError, output_of

_VARIABLES = {
    RedfishAccess: "SEATRIAL_REDFISH_PASSWORD",
    IpmiAccess: "SEATRIAL_IPMI_PASSWORD",
    PduAccess: "SEATRIAL_PDU_PASSWORD",
}
_LIMIT_S = 30.0
_MOST_BYTES = 4096


def password_of(access: RedfishAccess | IpmiAccess) -> str | None:
    """The password; None if none is given. Raises UsageError if a file or program does not give one."""
    if access.password_file is not None:
        return _in_file(access.password_file)
    if access.password_command:
        return _printed_by(access.password_command)
    return os.environ.get(_VARIABLES[type(access)])


def without_passwords(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program that is measured: it needs no password of a BMC."""
    return {name: value for name, value in environment.items() if name not in _VARIABLES.values()}


def _in_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "write the password of the BMC into it, with mode 0600") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{path}: is not a file", "write the password of the BMC into a file with mode 0600")
        if status.st_mode & 0o077:
            raise UsageError(f"{path}: others can read this password", f"chmod 600 {path}")
        return _first_line(os.read(descriptor, _MOST_BYTES), str(path))
    finally:
        os.close(descriptor)


def _printed_by(command: tuple[str, ...]) -> str:
    try:
        answer = output_of(command, os.environ, _LIMIT_S)
    except OSError as error:
        raise UsageError(f"{command[0]}: {error.strerror}", "correct password_command in the site file") from None
    except OutOfTimeError:
        raise UsageError(f"{command[0]}: did not end in {_LIMIT_S:g} s", "it must print the password alone") from None
    if answer.returncode:
        raise UsageError(f"{command[0]}: exit status {answer.returncode}", "it must print the password alone")
    return _first_line(answer.stdout[:_MOST_BYTES], command[0])


def _first_line(data: bytes, source: str) -> str:
    line = data.partition(b"\n")[0].strip(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{source}: is not UTF-8", "its first line must be the password") from None
    if not text:
        raise UsageError(f"{source}: is empty", "its first line must be the password")
    return text
