"""`seatrial vm`: up, status, discover, down. (`exec` prints nothing of its own.)"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seatrial.cli.output import message, print_json, style_of
from seatrial.interface.guest import guest_down, guest_machine, guest_status, guest_up
from seatrial.model.machine_document import machine_document
from seatrial.places.guest.status import GuestStatus
from seatrial.report.documents.guest import guest_document
from seatrial.report.text.guest import guest_text
from seatrial.report.text.machine import machine_text


def up_command(topology: Path, kernel: Path | None, *, emulated: bool, as_json: bool) -> None:
    """Start a guest and print it."""
    _print(guest_up(topology, kernel, message, emulated=emulated), as_json=as_json)
    message("run in it: seatrial vm exec -- uname -a; end it: seatrial vm down")


def status_command(*, as_json: bool) -> None:
    """Print the guest as it is now."""
    _print(guest_status(), as_json=as_json)


def discover_command(*, as_json: bool) -> None:
    """Print the machine that the guest is."""
    machine = guest_machine()
    if as_json:
        print(json.dumps(machine_document(machine), indent=1, allow_nan=False))
    else:
        print(machine_text(machine, (), style_of(sys.stdout)))


def down_command() -> None:
    """End the guest; without one, say so."""
    message("the guest is down" if guest_down() else "no guest was up")


def _print(found: GuestStatus, *, as_json: bool) -> None:
    document = guest_document(found)
    if as_json:
        print_json(document)
    else:
        print(guest_text(document, style_of(sys.stdout)))
