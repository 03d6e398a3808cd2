"""Payload against what interfaces counted."""

from __future__ import annotations

import pytest

from seatrial.errors import ParseError
from seatrial.machine.readers.procfs import read_net_dev
from seatrial.model.machine.links import Traffic, too_little

NET_DEV = """Inter-|   Receive                                          |  Transmit
 face |bytes  packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:     0       0    0    0    0     0          0         0      0       0    0    0    0     0       0          0
  eth0:18446744073709551615 4 0 0 0 0 0 0 90 1 0 0 0 0 0 0
"""


def test_both_directions_together() -> None:
    counted = {"n1": Traffic(600, 500), "n2": Traffic(500, 400)}
    assert too_little({"n1": 1000.0, "n2": 900.0}, counted) == ""
    why = too_little({"n1": 1000.0, "n2": 1000.0}, counted)
    assert why.startswith("the ranks on n2 sent and received 1 kB, but its interfaces counted 900 B")
    assert "fewer bytes than before" in too_little({"n1": 1.0}, {"n1": Traffic(-1, 50)})


def test_counters_are_read() -> None:
    found = read_net_dev(NET_DEV)
    assert found == {"lo": Traffic(0, 0), "eth0": Traffic(sent_B=90, received_B=18446744073709551615)}
    assert found["lo"].since(Traffic(0, 0)) == Traffic(0, 0)
    with pytest.raises(ParseError):
        read_net_dev(NET_DEV + "eth1: 3 4\n")
