"""Passwords of BMCs, from a file, the environment and a helper: in nothing that is written, printed, or started."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from probes.power.made_up_bmc import PASSWORD, USER, ipmi_bmc, password_file, redfish_bmc
from probes.power.maker_trees import lenovo
from probes.power.test_pdu import racks

from seatrial.probes.power import beside
from seatrial.store.cache import cache_folder

SITE = """
power:
  redfish:
    {{url: "{redfish}", user: {user}, password_file: {given}/password, ca_file: {given}/redfish/ca.pem}}
  pdu:
    {{url: "{pdu}", user: {user}, password_command: [{given}/helper], outlets: [A1], ca_file: {given}/pdu/ca.pem}}
  ipmi: {{host: 127.0.0.1, port: {port}, user: {user}}}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    ipmitool = shutil.which("ipmitool")
    if ipmitool is None:
        pytest.skip("needs ipmitool")
    given = tmp_path / "given"
    for name in ("given/redfish", "given/pdu", "bin", "home", "work"):
        (tmp_path / name).mkdir(parents=True)
    password_file(given)
    (given / "helper").write_text(f"#!/bin/sh\necho '{PASSWORD}'\n")
    (given / "helper").chmod(0o700)
    (tmp_path / "bin/ipmitool").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/work/arguments\nexec {ipmitool} "$@"\n')
    (tmp_path / "bin/ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    monkeypatch.setenv("SEATRIAL_IPMI_PASSWORD", PASSWORD)
    monkeypatch.setenv("SEATRIAL_SHARED_CACHE", f"{os.geteuid()}:{cache_folder()}")  # programs that were built
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "home/cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(beside, "SHORTEST_IDLE_S", 0.1)
    monkeypatch.setattr(beside, "LONGEST_IDLE_S", 0.1)
    with (
        redfish_bmc(lenovo().get, given / "redfish") as (redfish, _, _),
        redfish_bmc(racks().get, given / "pdu") as (pdu, _, _),
        ipmi_bmc(344) as port,
    ):
        file = tmp_path / "work/site.yaml"
        file.write_text(SITE.format(redfish=redfish, pdu=pdu, port=port, user=USER, given=given))
        yield file


@pytest.mark.real
def test_no_password_is_written_printed_or_passed_on(site: Path, tmp_path: Path) -> None:
    work = site.parent
    shown = seatrial_here("power", "--site", "site.yaml", "--watch", "0.1s", "--format", "json", cwd=work)
    sources = {one["name"]: one for one in json.loads(shown.stdout)["sources"]}
    for name in ("redfish:1/PowerControl/0", "pdu:A1", "ipmi:dcmi"):  # each password was the right one
        assert sources[name]["usable"], sources[name]["why"]
    measured = seatrial_here("power", "--site", "site.yaml", "--format", "json", "--", "env", cwd=work)
    assert {one["source"] for one in json.loads(measured.stdout)["measured"]["energies"]} >= {"pdu:A1", "ipmi:dcmi"}
    ran = seatrial_here(
        "run", "cpu.peak", "--budget", "1s", "--probe", "power", "--site", "site.yaml", "--results", "r", cwd=work
    )
    assert ran.returncode == 0, ran.stderr
    for done in (shown, measured, ran):
        assert PASSWORD not in done.stdout + done.stderr
    files = [file for folder in ("work", "home") for file in (tmp_path / folder).rglob("*") if file.is_file()]
    assert {"arguments", "site.yaml"} < {file.name for file in files}
    assert any("results" in str(file) or file.suffix == ".jsonl" for file in files)
    assert [file for file in files if PASSWORD.encode() in file.read_bytes()] == []
