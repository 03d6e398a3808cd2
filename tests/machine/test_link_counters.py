"""Counters of links: read from tools and sysfs, and what they did in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SHARED_DATA

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.link_counters import read_ethtool_statistics, read_ibqueryerrors, read_perfquery
from seatrial.machine.sysfs.devices import read_link_counters
from seatrial.model.machine.links import CounterKind, counters_between

SAMPLES = SHARED_DATA / "fabrics"
PERFQUERY = b"""\
# Port extended counters: Lid 7 port 3 (CapMask: 0x5300)
PortXmitData:....................178791657177235
SymbolErrorCounter:..............4
LinkDownedCounter:...............1
PortXmitDiscards:................20046
"""


def sample(name: str) -> bytes:
    if not (SAMPLES / name).is_file():
        pytest.skip(f"{SAMPLES / name} is not here")
    return (SAMPLES / name).read_bytes()


def test_what_grew_is_named_with_its_meaning() -> None:
    before = read_perfquery(PERFQUERY)
    after = read_perfquery(PERFQUERY.replace(b".4\n", b".9\n").replace(b".1\n", b".2\n").replace(b"20046", b"20050"))
    changes = counters_between(before, after)
    assert [(change.counter.name, change.grew_by) for change in changes] == [
        ("symbol_error", 5),
        ("link_downed", 1),
        ("port_xmit_discards", 4),
    ]
    assert changes[0].counter.kind is CounterKind.ERROR and "damaged" in changes[0].counter.meaning
    assert not counters_between(before, before)


def test_a_reset_and_a_counter_at_its_end_are_unknown_not_zero() -> None:
    changes = counters_between(
        {"p": {"symbol_error": 65535, "link_downed": 3}}, {"p": {"symbol_error": 65535, "link_downed": 0}}
    )
    assert {(change.counter.name, change.grew_by) for change in changes} == {
        ("symbol_error", None),
        ("link_downed", None),
    }
    assert all(change.why for change in changes)


def test_this_machine_as_recorded(tmp_path: Path) -> None:
    for path, text in {
        "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "3\n",
        "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "99\n",
        "sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": "1\n",
        "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "N/A (no PMA)\n",
        "sys/class/net/eth0/statistics/rx_dropped": "7\n",
        "sys/class/net/eth0/device/vendor": "0x15b3\n",
        "sys/class/net/lo/statistics/rx_dropped": "7\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert read_link_counters(FileTree(tmp_path)) == {
        "mlx5_0 port 1": {"symbol_error": 3, "out_of_sequence": 1},
        "eth0": {"rx_dropped": 7},
    }


@pytest.mark.parametrize("damage", [b"SymbolErrorCounter:......\n", b"SymbolErrorCounter:......5\n"])
def test_damage_is_refused(damage: bytes) -> None:
    with pytest.raises(ParseError):
        read_perfquery(PERFQUERY + damage)


def test_no_counters_are_refused() -> None:
    for read in (read_perfquery, read_ibqueryerrors):
        with pytest.raises(ParseError, match="no counters"):
            read(b"hello\n")


def test_recorded_outputs() -> None:
    (port,) = read_perfquery(sample("perfquery-x-0x506b4b03005c2740.txt")).values()
    assert (port["link_downed"], port["port_xmit_discards"], port["port_xmit_wait"]) == (1, 20046, 41864608)
    for clean in ("0x7cfe9003003b4b96", "0x7cfe9003003b4bde"):
        (port,) = read_perfquery(sample(f"perfquery-x-{clean}.txt")).values()
        assert not port.get("link_downed") and not port.get("port_xmit_discards") and not port.get("symbol_error")
    errors = read_ibqueryerrors(sample("ibqueryerrors-sx6036-ceph.txt")).ports
    assert len(errors) == 14 and errors["0x2c903006e29b0 port 7"]["symbol_error"] == 65535
    ethernet = read_ethtool_statistics(sample("ethtool-S-mlx5-rx-discards-cut.txt"), "eth0")["eth0"]
    assert (ethernet["rx_discards_phy"], ethernet["out_of_buffer"]) == (58591428329, 990473555)
