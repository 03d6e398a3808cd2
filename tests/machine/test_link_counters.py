"""Counters of links: read from sysfs, and what they did in between."""

from __future__ import annotations

from pathlib import Path

from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.devices import read_link_counters
from seatrial.model.machine.links import CounterKind, counters_between


def test_what_grew_is_named_with_its_meaning() -> None:
    before = {"lid 7 port 3": {"symbol_error": 4, "link_downed": 1, "port_xmit_discards": 20046}}
    after = {"lid 7 port 3": {"symbol_error": 9, "link_downed": 2, "port_xmit_discards": 20050}}
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
