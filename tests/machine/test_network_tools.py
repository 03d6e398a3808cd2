"""opainfo, cxi_stat and ethtool: recorded outputs, damage, and the tools where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SHARED_DATA

from seatrial.errors import UsageError
from seatrial.machine.dumps import READERS
from seatrial.machine.files import FileTree
from seatrial.machine.live import survey_tools
from seatrial.machine.sysfs.devices import survey_network

FABRICS = SHARED_DATA / "fabrics"
CXI = b"""\
Device: cxi0
    Network device: hsn0
    PCIE slot: 0000:21:00.0
        Link speed: BS_200G
        Link state: up
"""
OPA = b"""\
hfi1_0:1   PortGID:0xfe80:0011
   PortState:     Active
   LinkSpeed      Act: 25Gb         En: 25Gb
   LinkWidth      Act: 3            En: 1,4
"""
ETH = b"""\
Settings for eth0:
        Supported link modes:   1000baseT/Full
                                10000baseT/Full
        Speed: 1000Mb/s
        Duplex: Full
        Link detected: yes
"""


def sample(name: str) -> bytes:
    if not (FABRICS / name).is_file():
        pytest.skip(f"{FABRICS / name} is not here")
    return (FABRICS / name).read_bytes()


def test_each_tool() -> None:
    (cxi,) = READERS["cxi-stat"](CXI, None).named_parts
    assert (cxi.name, cxi.aliases, cxi.pci, cxi.facts.number("rate")) == ("cxi0", ("hsn0",), "0000:21:00.0", 25e9)
    (opa,) = READERS["opainfo"](OPA, None).named_parts
    assert (opa.facts.number("rate"), opa.facts.number("enabled_rate")) == (9.375e9, 12.5e9)
    (eth,) = READERS["ethtool"](ETH, None).named_parts
    assert (eth.facts.number("rate"), eth.facts.number("fastest_rate")) == (125e6, 1.25e9)
    assert (eth.facts.text("duplex"), eth.facts.text("state")) == ("full", "up")


@pytest.mark.parametrize(("kind", "data"), [("cxi-stat", CXI), ("opainfo", OPA), ("ethtool", ETH)])
def test_damage_is_refused(kind: str, data: bytes) -> None:
    for damaged in (b"", b"hello\n", data + data, data.partition(b"\n")[0], b"\0" + data):
        with pytest.raises(UsageError):
            READERS[kind](damaged, None)


@pytest.mark.parametrize(
    ("kind", "name", "names", "rate"),
    [
        ("opainfo", "opainfo-hfi1_0-active-4x25.txt", ["hfi1_0"], 12.5e9),
        ("cxi-stat", "cxi_stat-two-sawtooth-200g.txt", ["cxi0", "cxi1"], 25e9),
        ("ethtool", "ethtool-jc-default1.txt", ["enp0s3"], 125e6),
        ("ethtool", "ethtool-jc-default2.txt", ["enp1s0"], 5e9),
    ],
)
def test_recorded(kind: str, name: str, names: list[str], rate: float) -> None:
    parts = READERS[kind](sample(name), None).named_parts
    assert [part.name for part in parts] == names and {part.facts.number("rate") for part in parts} == {rate}


def test_the_data_of_a_module_are_not_the_settings_of_an_adapter() -> None:
    with pytest.raises(UsageError, match="ethtool"):
        READERS["ethtool"](sample("ethtool-jc-module-info.txt"), None)


def test_adapters_of_three_makers_in_sysfs(tmp_path: Path) -> None:
    for line in sample("sysfs-class-infiniband-hfi1_0-mlx4_0-mlx5.txt").decode().splitlines():
        path, _, text = line.partition(": ")
        if path.startswith("sys/"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(f"{text}\n")
    parts = {part.name: part.facts for part in survey_network(FileTree(tmp_path))}
    links = {
        name: [own.number("rate"), own.integer("link_width"), own.text("link_speed")] for name, own in parts.items()
    }
    assert links == {"hfi1_0": [12.5e9, 4, "EDR"], "mlx4_0": [5e9, 4, "QDR"], "mlx5_0": [3.125e9, 1, "EDR"]}
    assert parts["mlx4_0"].number("port2_rate") == 5e9


def test_installed_tools_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("cxi_stat", f"cat <<'END'\n{CXI.decode()}END\n"), ("opainfo", "echo no driver >&2; exit 4\n")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    opainfo, cxi = survey_tools()
    assert [part.name for part in cxi.named_parts] == ["cxi0"]
    assert "exit status 4: no driver" in opainfo.unread[0]
