"""`seatrial vm`: a guest on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import Output, message
from seatrial.errors import UsageError
from seatrial.places.guest.home import GUEST, guest_home_path
from seatrial.places.guest.of_run import copied_facts
from seatrial.places.guest.session import PORT, Channel
from seatrial.places.guest.up import (
    WORK,
    Transfer,
    bring_guest_up,
    read_guest_status,
    run_command,
    running_guest,
    take_guest_down,
)


@command("vm up")
def _up(
    topology: Annotated[
        Path, typer.Option("--topology", metavar="FILE", help="YAML: its nodes, devices and where they are")
    ],
    kernel: Annotated[
        Path | None,
        typer.Option(
            "--kernel",
            metavar="FILE",
            help="its Linux kernel, with modules in lib/modules beside the kernel's folder (default: "
            "$SEATRIAL_GUEST_KERNEL, else one of /boot)",
        ),
    ] = None,
    emulated: Annotated[bool, typer.Option("--emulated", help="do not try KVM")] = False,
    *,
    out: Output,
) -> None:
    """Start a guest."""
    from seatrial.places.guest.up import guest_parts  # late: `exec` should start fast, and builds nothing
    from seatrial.plan.topology_file import topology_of

    wanted, path = topology_of(topology), guest_home_path(os.environ)
    if path.exists():  # said before anything is built; `bring_guest_up` decides
        raise GUEST.already_there(path)
    bring_guest_up(path, wanted, guest_parts(wanted, kernel, emulated=emulated), message)
    _status(out)
    message("run in it: seatrial vm exec -- uname -a; end it: seatrial vm down")


@command("vm exec", context_settings={"allow_interspersed_args": False})
def _exec(
    words: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", help="such as cat /proc/cpuinfo")] = None,
    put: Annotated[
        list[str] | None,
        typer.Option("--put", metavar="FILE[:PATH]", help="copy a file or folder into the guest first, to /root"),
    ] = None,
    get: Annotated[
        list[str] | None,
        typer.Option("--get", metavar="FILE[:PATH]", help="copy a file or folder of the guest here afterwards"),
    ] = None,
) -> int:
    """Run a command in the guest."""
    if not words:
        raise UsageError("no command given", "for example: seatrial vm exec -- cat /proc/cpuinfo")
    into = [_transfer(text, lambda name: f"{WORK}/{name}") for text in put or ()]
    for one in into:
        if not PurePosixPath(one.target).is_absolute() or ".." in PurePosixPath(one.target).parts:
            raise UsageError(f"--put: the path {one.target!r} in the guest", "it must be an absolute path")
    back = [_transfer(text, lambda name: name) for text in get or ()]
    return run_command(guest_home_path(os.environ), words, into, back)


@command("vm discover")
def _discover(out: Output) -> None:
    """Describe the guest as discover describes a machine."""
    from seatrial.machine.copied import PATTERNS, discover_copied
    from seatrial.model.machine.document import machine_document
    from seatrial.places.rank_helpers import helper
    from seatrial.report.text.machine import machine_text

    path = guest_home_path(os.environ)
    running_guest(path)
    program = helper("copy_facts", is_static=True)
    machine = discover_copied(copied_facts(Channel(PORT, str(path), WORK), program, PATTERNS))
    out.show(lambda: machine_document(machine), lambda style: machine_text(machine, (), style))


@command("vm status")
def _status(out: Output) -> None:
    """Show the guest."""
    from seatrial.report.documents.places import guest_document
    from seatrial.report.text.places import guest_text

    document = guest_document(read_guest_status(guest_home_path(os.environ)))
    out.show(lambda: document, lambda style: guest_text(document, style))


@command("vm down")
def _down() -> None:
    """End it; nothing of it is left."""
    message("the guest is down" if take_guest_down(guest_home_path(os.environ)) else "no guest was up")


def _transfer(text: str, usual: Callable[[str], str]) -> Transfer:
    """SOURCE or SOURCE:TARGET."""
    source, colon, target = text.partition(":")
    name = PurePosixPath(source).name
    if not source or not name or (colon and not target):
        raise UsageError(f"{text!r} is not a file to copy", "write SOURCE or SOURCE:TARGET")
    return Transfer(source, target or usual(name))
