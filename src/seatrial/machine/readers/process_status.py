"""/proc/self/status -> the user and the allowed CPUs of this process (Linux, Documentation/filesystems/proc.rst)."""

from __future__ import annotations

from seatrial.errors import ParseError
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.model.frozen import Frozen


class ProcessStatus(Frozen):
    """Effective user id, and the CPUs of the affinity mask (already restricted by the cpuset); None is unknown."""

    effective_user: int | None
    allowed_cpus: tuple[int, ...] | None


def read_process_status(text: str) -> ProcessStatus:
    """Parse the lines `Uid` and `Cpus_allowed_list`; ignores all others. Never fails."""
    user: int | None = None
    cpus: tuple[int, ...] | None = None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == "Uid":
            words = value.split()
            user = int(words[1]) if len(words) == 4 and words[1].isascii() and words[1].isdecimal() else None
        elif key == "Cpus_allowed_list":
            try:
                cpus = read_cpu_list(value)
            except ParseError:
                cpus = None
    return ProcessStatus(user, cpus)
