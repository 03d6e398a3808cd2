"""The files that describe a guest, as native/launch/copy_facts.cpp archives them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from seatrial.places.guest.channel import Channel
from seatrial.places.guest.files import pack, unpack
from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.session import Streams

_NAME = "copy_facts"


def copied_facts(channel: Channel, program: Path, patterns: Sequence[str]) -> bytes:
    """The archive of the files that match these patterns. `program` needs no libraries. Raises GuestError."""
    with channel.opened() as guest, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        with pack(program, _NAME) as archive:
            unpack(guest, archive, channel.there)
        given.write("".join(f"{pattern}\n" for pattern in patterns).encode())
        given.seek(0)
        copy = f"{channel.there}/{_NAME}"
        with tempfile.TemporaryFile() as said:
            streams = Streams(given.fileno(), printed.fileno(), said.fileno())
            status = guest.run([copy], streams, {}, "/")
        guest.run(["rm", "-f", "--", copy], Streams(None, 2, 2), {}, "/")
        if status:
            raise GuestError(f"the guest could not say what it is: exit status {status}", "seatrial vm status")
        printed.seek(0)
        return printed.read()
