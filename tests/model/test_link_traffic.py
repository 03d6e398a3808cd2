"""Payload against what interfaces counted."""

from __future__ import annotations

from seatrial.model.machine.links import NodeTraffic, too_little


def test_both_directions_together() -> None:
    counted = {"n1": NodeTraffic(600, 500), "n2": NodeTraffic(500, 400)}
    assert too_little({"n1": 1000.0, "n2": 900.0}, counted) == ""
    why = too_little({"n1": 1000.0, "n2": 1000.0}, counted)
    assert why.startswith("the ranks on n2 sent and received 1 kB, but its interfaces counted 900 B")
    assert "fewer bytes than before" in too_little({"n1": 1.0}, {"n1": NodeTraffic(-1, 50)})
