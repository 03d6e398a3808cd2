"""The options of `seatrial vm`; the commands are loaded when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.options import Format, FormatOption

vm_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@vm_app.command()
def up(
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
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Start a guest."""
    from seatrial.cli.vm import up_command

    up_command(topology, kernel, emulated=emulated, as_json=output_format is Format.JSON)


@vm_app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", help="such as cat /proc/cpuinfo")] = None,
    put: Annotated[
        list[str] | None,
        typer.Option("--put", metavar="FILE[:PLACE]", help="copy a file or folder into the guest first, to /root"),
    ] = None,
    get: Annotated[
        list[str] | None,
        typer.Option("--get", metavar="FILE[:PLACE]", help="copy a file or folder of the guest here afterwards"),
    ] = None,
) -> None:
    """Run a command in the guest."""
    from seatrial.interface.guest import guest_exec

    raise typer.Exit(guest_exec(command or (), put or (), get or ()))


@vm_app.command("discover")
def discover_(output_format: FormatOption = Format.TEXT) -> None:
    """Describe the guest as discover describes a machine."""
    from seatrial.cli.vm import discover_command

    discover_command(as_json=output_format is Format.JSON)


@vm_app.command()
def status(output_format: FormatOption = Format.TEXT) -> None:
    """Show the guest."""
    from seatrial.cli.vm import status_command

    status_command(as_json=output_format is Format.JSON)


@vm_app.command()
def down() -> None:
    """End it; nothing of it is left."""
    from seatrial.cli.vm import down_command

    down_command()
