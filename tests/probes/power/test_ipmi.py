"""IPMI: what ipmitool and FreeIPMI print, and a made-up BMC that the real ipmitool asks."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from probes.power.made_up_bmc import PASSWORD, USER, ipmi_bmc, password_file

from seatrial.errors import UsageError
from seatrial.model.environment.site import IpmiAccess, PowerAccess
from seatrial.model.machine.power import PowerSource, Scope
from seatrial.probes.power import ipmi
from seatrial.probes.power.credentials import password_of
from seatrial.probes.power.ipmi import Asking, DcmiPower, asking, read_dcmi
from seatrial.probes.power.sources import live_sensors, read_all

needs_ipmitool = pytest.mark.skipif(shutil.which("ipmitool") is None, reason="needs ipmitool")


def test_what_ipmitool_prints() -> None:
    text = """
    Instantaneous power reading:                   344 Watts
    Minimum during sampling period:                271 Watts
    Maximum during sampling period:                489 Watts
    Average power reading over sample period:      319 Watts
    IPMI timestamp:                           Thu Nov 26 10:31:44 2026
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
"""
    assert read_dcmi(text) == DcmiPower(344.0, 319.0, 1.0, True)
    assert read_dcmi(text.replace("activated", "deactivated")).is_active is False


def test_what_freeipmi_prints() -> None:
    text = """Current Power                        : 164 Watts
Minimum Power over sampling duration : 4 watts
Maximum Power over sampling duration : 304 watts
Average Power over sampling duration : 163 watts
Time Stamp                           : 11/26/2026 - 10:31:44
Statistics reporting time period     : 1000 milliseconds
Power Measurement                    : Active
"""
    assert read_dcmi(text) == DcmiPower(164.0, 163.0, 1.0, True)


def test_other_texts_have_no_power() -> None:
    for text in ("", "DCMI request failed because: Invalid command", "Current Power : n/a"):
        assert read_dcmi(text) == DcmiPower(None, None, None, None)


def start_count(ask: Asking) -> int:
    """Which shell it is."""
    assert ask._shell is not None
    return ask._shell._running.pid


@pytest.mark.real
def test_a_bmc_through_the_driver_of_this_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the name of ipmitool, which gets no address and answers in its shell, then fails and ends."""
    (tmp_path / "ipmi0").touch()
    (tmp_path / "ipmitool").write_text(
        f"""#!/bin/sh
echo "$*" > {tmp_path}/arguments
printf 'ipmitool> '
while read -r line; do
    echo "$line"
    if [ -e {tmp_path}/broken ]; then echo 'Could not open device' >&2; exit 1; fi
    [ -e {tmp_path}/refused ] && echo 'DCMI request failed because: Invalid command' >&2 ||
        echo '    Instantaneous power reading:  227 Watts'
    printf 'ipmitool> '
done
"""
    )
    (tmp_path / "ipmitool").chmod(0o755)
    monkeypatch.setattr(ipmi, "_DEVICES", (str(tmp_path / "ipmi0"),))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with live_sensors(PowerAccess()) as sensors:
        (sensor,) = (one for one in sensors if one.name == "ipmi:dcmi")
        assert sensor.read().watts == 227.0
        assert (tmp_path / "arguments").read_text() == "shell\n"
        (tmp_path / "refused").touch()
        assert sensor.read().fault == "no answer: ipmitool: DCMI request failed because: Invalid command"
        (tmp_path / "refused").rename(tmp_path / "broken")
        assert sensor.read().fault == "no answer: ipmitool: Could not open device"
    monkeypatch.setattr(ipmi, "_DEVICES", ())
    assert asking(None, None) is None


def asked(access: IpmiAccess) -> PowerSource:
    with live_sensors(PowerAccess(None, access)) as sensors:
        (found,) = (one for one in read_all(sensors) if one.name == "ipmi:dcmi")
    return found


@pytest.mark.real
@needs_ipmitool
def test_a_bmc_over_the_network(tmp_path: Path) -> None:
    with ipmi_bmc(344, 319) as port:
        access = IpmiAccess("127.0.0.1", port, USER, password_file(tmp_path))
        found = asked(access)
        assert (found.scope, found.watts, found.usable) == (Scope.NODE, 344.0, True)
        ask = asking(access, PASSWORD)
        assert ask is not None
        assert ask() and ask()
        before = start_count(ask)
        os.kill(ask._shell._running.pid, signal.SIGKILL)  # type: ignore[union-attr]
        assert "344 Watts" in ask()
        assert start_count(ask) != before
        ask.close()
        (tmp_path / "password").write_text("wrong\n")
        refused = asked(access)
        assert not refused.usable
        assert refused.why.startswith("no answer: ipmitool: ")
    with ipmi_bmc(0, is_active=False) as port:
        (tmp_path / "password").unlink()
        found = asked(IpmiAccess("127.0.0.1", port, USER, password_file(tmp_path)))
        assert found.why == "the BMC does not measure power (reading state: deactivated)"


def test_passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text("one\ntwo\n")
    access = IpmiAccess("bmc", password_file=file)
    file.chmod(0o640)
    with pytest.raises(UsageError, match="others can read this password"):
        password_of(access)
    file.chmod(0o600)
    assert password_of(access) == "one"
    file.write_text("")
    with pytest.raises(UsageError, match="is empty"):
        password_of(access)
    assert password_of(IpmiAccess("bmc", password_command=("echo", "three"))) == "three"
    with pytest.raises(UsageError, match="exit status 1"):
        password_of(IpmiAccess("bmc", password_command=("false",)))
    assert password_of(IpmiAccess("bmc")) is None
    monkeypatch.setenv("SEATRIAL_IPMI_PASSWORD", "four")
    assert password_of(IpmiAccess("bmc")) == "four"
