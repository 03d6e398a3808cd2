"""`seatrial discover`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.analysis.device_copies import PeerRates, peer_rates
from seatrial.analysis.overlay import with_measured
from seatrial.cli.folder import machine_in, trial_of
from seatrial.cli.output import style_of, write_file
from seatrial.cli.sources import Sources
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document
from seatrial.report.text.machine import machine_text
from seatrial.report.text.terminal import PLAIN, Style


def discover_command(sources: Sources, results: Path | None, form: str, output: Path | None) -> None:
    """Print what this machine is (`form`: text, json or svg), or write it to a file.

    Where nothing but `results` is named, and they are of one machine, it is that one: see `machine_in`.
    """
    machine = None if results is None or sources.dumps or sources.live else machine_in(results)
    machine = machine or sources.machine()
    peers: tuple[PeerRates, ...] = ()
    if results is not None:
        trial = trial_of(machine, results)
        peers = peer_rates(machine, trial.results, trial.seen)
        machine = with_measured(machine, trial.results, trial.seen)
    text = _shown(machine, peers, form, style=style_of(sys.stdout) if output is None else PLAIN)
    if output is None:
        print(text)
    else:
        write_file(output, text + "\n")


def _shown(machine: Machine, peers: Sequence[PeerRates], form: str, *, style: Style) -> str:
    if form == "json":
        return json.dumps(machine_document(machine), indent=1, allow_nan=False)
    if form == "svg":
        from seatrial.report.drawing import machine_svg

        return machine_svg(machine, peers).rstrip("\n")
    return machine_text(machine, peers, style)
