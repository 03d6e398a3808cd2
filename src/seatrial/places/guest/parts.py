"""What a guest with a given topology is started from."""

from __future__ import annotations

import os
import re
from pathlib import Path

from seatrial.model.machine.guest import GuestTopology
from seatrial.places.guest.kernel import KERNEL, find_kernel
from seatrial.places.guest.qemu import Emulator, GuestError, find_emulator
from seatrial.places.guest.up import Parts
from seatrial.places.rank_helpers import guest_agent


def guest_parts(wanted: GuestTopology, kernel: Path | None = None, *, emulated: bool = False) -> Parts:
    """Its emulator, kernel and agent. `kernel` is the file of its kernel (None: $SEATRIAL_GUEST_KERNEL, else an
    installed one); `emulated` does not try KVM. Raises GuestError if a part is missing, or memory; BuildError if the
    agent cannot be built."""
    _need_memory(wanted.memory_B)
    emulator = find_emulator()
    if emulated:
        emulator = Emulator(emulator.path, "as asked")
    named = kernel or (Path(os.environ[KERNEL]) if os.environ.get(KERNEL) else None)
    return Parts(emulator, find_kernel(named), guest_agent())


def _need_memory(wanted_B: int) -> None:
    """Raises GuestError if this machine has less free memory: the guest would be killed, or others would."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if found is not None and int(found[1]) * 1024 < wanted_B:
        raise GuestError(
            f"the guest has {wanted_B >> 20} MiB of memory, and {int(found[1]) >> 10} MiB are free here",
            "give its nodes less memory",
        )
