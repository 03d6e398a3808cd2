"""`seatrial power`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import Output, SiteOption, SystemOption, print_json, print_painted, style_of
from seatrial.errors import UnknownNameError, UsageError
from seatrial.interface.meter import energy_by_meter
from seatrial.interface.power import energy_of, power_parts_out, power_sources
from seatrial.model.units import parse_seconds
from seatrial.probes.power.sources import RECORDED
from seatrial.report.documents.power import phases_document, power_document
from seatrial.report.text.power import energy_text, phases_text, power_text

_STDERR = 2


@command("power", context_settings={"allow_interspersed_args": False})
def _power(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="measure the energy of this command, and print it on stderr"),
    ] = None,
    recorded: Annotated[
        str | None,
        typer.Option("--from", metavar="redfish=DIR|sysfs=DIR", help="read a recorded tree instead of this node"),
    ] = None,
    watch: Annotated[
        str,
        typer.Option("--watch", metavar="TIME", help="how long to look how often each value changes"),
    ] = "3s",
    meter: Annotated[
        Path | None,
        typer.Option("--meter", metavar="FILE.csv", help="a power meter's file, aligned by the edges of the load"),
    ] = None,
    of: Annotated[
        Path | None,
        typer.Option("--of", metavar="RESULTS|FILE.json", help="with --meter: what has run, instead of a command"),
    ] = None,
    site: SiteOption = None,
    system: SystemOption = None,
    *,
    out: Annotated[Output, {"quiet": "the first sentence", "verbose": "every sensor of every part"}],
) -> int:
    """With a command: idle power is read before and after it, and its exit status is that of `power`."""
    tree = _recorded(recorded)
    if meter is not None and not words:
        if of is None:
            raise UsageError("--meter without a command", "add -- COMMAND, or --of RESULTS for what has run")
        phases = energy_by_meter(meter, of)
        out.show(lambda: phases_document(phases), lambda style: phases_text(phases, style, out.detail))
        return 0
    if of is not None:
        raise UsageError("--of is for --meter FILE.csv without a command", "see `seatrial power --help`")
    if not words:
        sources = power_sources(tree, watch=parse_seconds(watch), site=site, system=system)
        parts = power_parts_out(tree, site=site, system=system)
        out.show(
            lambda: power_document(sources, parts_out=parts),
            lambda style: power_text(sources, style, out.detail, parts),
        )
        return 0
    stdout = _STDERR if out.as_json else None
    found = energy_of(words, recorded=tree, site=site, system=system, stdout=stdout, meter=meter)
    if out.as_json:
        print_json(power_document((), found))
    else:
        print_painted(energy_text(found, style_of(sys.stderr), out.detail))
    return found.exit_status


def _recorded(given: str | None) -> tuple[str, Path] | None:
    if given is None:
        return None
    kind, equals, folder = given.partition("=")
    if not equals or not folder:
        raise UsageError(
            f"--from {given!r} is not of the form KIND=DIR", "for example: seatrial power --from redfish=bmc"
        )
    if kind not in RECORDED:
        raise UnknownNameError("kind of recorded tree", kind, RECORDED)
    return kind, Path(folder)
