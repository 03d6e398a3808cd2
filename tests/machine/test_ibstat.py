"""`ibstat`: the adapters of a node."""

from __future__ import annotations

import pytest
from conftest import SHARED_DATA

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.adapters import read_ibstat

TEXT = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 2
\tFirmware version: 28.40.1000
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 10
\t\tLink layer: InfiniBand
"""


def test_both_ports() -> None:
    (device,) = assemble([read_ibstat(TEXT.encode())]).devices
    facts = device.facts
    assert (device.name, facts.text("hca_type"), facts.number("rate")) == ("mlx5_0", "MT4129", 25e9)
    assert (facts.text("state"), facts.text("port2_state")) == ("active", "down")
    assert facts.text("port2_physical_state") == "Polling"
    assert facts.number("port2_rate") is None, "10 is the rate of its slowest mode"


def test_other_kinds_of_devices() -> None:
    """Ethernet adapters with RDMA stand among the others."""
    other = TEXT.replace("CA 'mlx5_0'", "iWARP RNIC 'cxgb4_0'").replace("CA type", "iWARP RNIC type")
    devices = assemble([read_ibstat((TEXT + other).encode())]).devices
    assert [(device.name, device.facts.text("hca_type")) for device in devices] == [
        ("mlx5_0", "MT4129"),
        ("cxgb4_0", "MT4129"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        TEXT[: TEXT.index("\tPort 2")],
        TEXT.replace("Rate: 200", "Rate: fast"),
        TEXT.replace("\t\tState: Active\n", ""),
        TEXT + TEXT,
        TEXT.replace("Port 2:", "Port 1:"),
        TEXT.replace("'mlx5_0'", "'"),
        "ibpanic: [4711] main: stat of IB device 'mlx5_1' failed: (No such file or directory)\n" + TEXT,
        "hello\n",
        "",
    ],
)
def test_damage_is_refused(text: str) -> None:
    with pytest.raises((ParseError, UsageError)):
        read_ibstat(text.encode())


@pytest.mark.parametrize(
    ("name", "state", "rate"),
    [("ibstat-mlx5-initializing-no-sm.txt", "initializing", 12.5e9), ("ibstat-mt4129-rate-200.txt", "active", 25e9)],
)
def test_recorded(name: str, state: str, rate: float) -> None:
    path = SHARED_DATA / "fabrics" / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    (part,) = read_ibstat(path.read_bytes()).named_parts
    assert (part.name, part.facts.text("state"), part.facts.number("rate")) == ("mlx5_0", state, rate)
