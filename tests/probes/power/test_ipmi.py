"""IPMI: what ipmitool and FreeIPMI print, and a made-up BMC that the real ipmitool asks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from probes.power.made_up_bmc import USER, ipmi_bmc, password_file

from seatrial.errors import UsageError
from seatrial.model.environment.site import IpmiAccess, PowerAccess
from seatrial.model.machine.power import PowerSource, Scope
from seatrial.probes.power.credentials import password_of
from seatrial.probes.power.ipmi import DcmiPower, read_dcmi
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
