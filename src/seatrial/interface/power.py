"""What measures power and energy here, and the energy of a command."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.interface.arguments import Time, check_runnable, seconds
from seatrial.launch.local import run_attached
from seatrial.model.environment.site import PowerAccess
from seatrial.model.machine.power import PartOut, PowerSource, Scope
from seatrial.model.results.energy import CommandEnergy
from seatrial.model.secrets import masked_words
from seatrial.plan.site_in_force import at_site, place_in_force, site_in_force
from seatrial.probes.power.beside import Beside, reading
from seatrial.probes.power.credentials import without_passwords
from seatrial.probes.power.measured import measured
from seatrial.probes.power.meter import energies_by_meter
from seatrial.probes.power.reader import orders_for
from seatrial.probes.power.source import Sensor
from seatrial.probes.power.sources import (
    live_sensors,
    parts_out_here,
    read_all,
    recorded_parts_out,
    recorded_sensors,
    watched,
)

WATCH_S = 3.0
METER_IDLE_S = 10.0
"""How long an external meter shows the power before and after a command."""
Recorded = tuple[str, str | Path]


def power_sources(
    recorded: Recorded | None = None,
    *,
    watch: Time = WATCH_S,
    site: str | Path | None = None,
    system: str | None = None,
) -> list[PowerSource]:
    """The sensors of this node, each once, with what it reads now and why it is usable or not. They are read for
    the time `watch`, to see how often each one changes. `recorded`: kind (redfish, sysfs) and folder of a tree that was
    recorded elsewhere. Raises UsageError."""
    with _sensors(recorded, site, system) as (sensors, _):
        return watched(sensors, seconds(watch)) if recorded is None else read_all(sensors)


def power_parts_out(
    recorded: Recorded | None = None, *, site: str | Path | None = None, system: str | None = None
) -> list[PartOut]:
    """Fans and power supplies that are out, and redundancy that is lost, as the BMC of this node (or a recorded tree)
    reports. Raises UsageError."""
    return recorded_parts_out(recorded[0], Path(recorded[1])) if recorded else parts_out_here(_access(site, system))


def energy_of(
    command: Sequence[str],
    *,
    recorded: Recorded | None = None,
    site: str | Path | None = None,
    system: str | None = None,
    stdout: int | None = None,
    meter: str | Path | None = None,
) -> CommandEnergy:
    """Run a command, and measure its energy with all usable sensors of this node; idle power is read before and after.

    `recorded` is ("sysfs", FOLDER) for a folder with sys in place of that of this node. `stdout` is a file descriptor
    for the command's output instead of ours. `meter` is a CSV file that an external power meter writes meanwhile; it is
    read after the command. Raises UsageError if nothing usable measures power here, or the command
    cannot be started.
    """
    check_runnable(command)
    with _sensors(recorded, site, system) as (known, access):
        sensors = _usable(known)
    if not sensors and meter is None:
        raise UsageError("nothing usable measures power here", "`seatrial power` lists what was found, and why not")
    tree = None if recorded is None else (recorded[0], str(recorded[1]))
    try:
        with reading(orders_for(sensors, access, tree), sensors) as beside:
            wait_idle(beside, meter)
            sys.stdout.flush()
            ended = run_attached(command, without_passwords(os.environ), stdout)
            wait_idle(beside, meter)
            readings = beside.readings()
    except OSError as error:
        raise UsageError(f"power was not measured: {error.strerror or error}", "see `seatrial power`") from error
    end_s = ended.clock_s + ended.wall_s
    energies = [measured(sensor, found, ended.clock_s, end_s) for sensor, found in zip(sensors, readings, strict=True)]
    if meter is not None:
        energies = [*energies_by_meter(Path(meter), [(ended.clock_s, end_s)]), *energies]
    out = power_parts_out(recorded, site=site, system=system)
    return CommandEnergy(tuple(masked_words(command)), ended.exit_status, ended.wall_s, tuple(energies), tuple(out))


def wait_idle(beside: Beside, meter: str | Path | None) -> None:
    """Wait until the power beside a program can be known. How often a meter writes is not known yet."""
    beside.wait_idle()
    if meter is not None:
        time.sleep(METER_IDLE_S)


@contextmanager
def _sensors(
    recorded: Recorded | None, site: str | Path | None, system: str | None
) -> Iterator[tuple[list[Sensor], PowerAccess]]:
    """The sensors, and how the BMC among them is reached."""
    if recorded is not None:
        yield recorded_sensors(recorded[0], Path(recorded[1])), PowerAccess()
        return
    access = _access(site, system)
    with live_sensors(access) as found:
        yield found, access


def _access(site: str | Path | None, system: str | None) -> PowerAccess:
    with at_site(site, system):
        return site_in_force().power_at(place_in_force(), socket.gethostname().partition(".")[0])


def _usable(sensors: Sequence[Sensor]) -> list[Sensor]:
    """Those that can be used now, of the node first."""
    states = {one.name: one for one in read_all(sensors)}
    found = [sensor for sensor in sensors if states[sensor.name].usable]
    return sorted(found, key=lambda sensor: sensor.scope is not Scope.NODE)
