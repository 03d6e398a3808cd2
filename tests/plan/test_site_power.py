"""`power:` in a site file."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from seatrial.errors import UsageError
from seatrial.model.environment.site import IpmiAccess, PduAccess, PowerAccess, RedfishAccess
from seatrial.plan.schemas import SCHEMAS
from seatrial.plan.site_file import read_site

WHOLE = """
power: {ipmi: {host: bmc, user: reader, password_command: [pass, show, bmc], refresh: 500ms}}
systems:
  tera:
    partitions:
      compute:
        power:
          redfish: {url: "https://{node}-bmc:8443/redfish/v1/", user: reader, password_file: /etc/bmc, chassis: Node1}
          nodes:
            n007: {ipmi: {host: 10.0.0.7, port: 6230}}
            n008: {pdu: {url: "https://pdu-r07", outlets: [A4, 2/B4]}}
      login:
"""


def test_a_whole_file() -> None:
    site = read_site(WHOLE.encode(), "site.yaml")
    compute, login = site.place("tera:compute"), site.place("tera:login")
    assert site.power_at(compute, "n001") == PowerAccess(
        RedfishAccess("https://n001-bmc:8443", "reader", Path("/etc/bmc"), chassis="Node1")
    )
    assert site.power_at(compute, "n007") == PowerAccess(None, IpmiAccess("10.0.0.7", 6230))
    assert site.power_at(compute, "n008") == PowerAccess(pdu=PduAccess("https://pdu-r07", outlets=("A4", "2/B4")))
    assert site.power_at(login, "n001") == PowerAccess()
    here = IpmiAccess("bmc", 623, "reader", password_command=("pass", "show", "bmc"), refresh_s=0.5)
    assert site.power_at(None, "anything") == PowerAccess(None, here)
    jsonschema.validate(YAML(typ="safe").load(WHOLE), SCHEMAS["site"]())


@pytest.mark.parametrize(
    ("power", "seen"),
    [
        ("redfish: {url: 'https://root:secret@bmc'}", "the URL has a user"),
        ("redfish: {url: 'http://bmc'}", "http shows the password to everybody on the way"),
        ("redfish: {url: 'ftp://bmc'}", "url"),
        ("redfish: {url: 'https://'}", "url"),
        ("redfish: {url: 'https://bmc:port'}", "url"),
        ("redfish: {user: reader}", "url"),
        ("ipmi: {host: '-I open'}", "not a valid host name"),
        ("ipmi: {host: bmc, user: -E}", "not a valid user"),
        ("ipmi: {host: bmc, port: 0}", "port"),
        ("pdu: {url: 'https://pdu'}", "outlets"),
        ("pdu: {url: 'https://pdu', outlets: []}", "outlets"),
        ("ipmi: {host: bmc, password: secret}", "password"),
        ("ipmi: {host: bmc, password_file: /a, password_command: [b]}", "are both given"),
        ("ipmi: {host: bmc, refresh: 1}", "refresh"),
    ],
)
def test_what_is_refused(power: str, seen: str) -> None:
    with pytest.raises(UsageError, match=seen) as refused:
        read_site(f"power:\n  {power}\n".encode(), "site.yaml")
    assert "site.yaml: line 2" in str(refused.value)
    assert "secret" not in str(refused.value)
