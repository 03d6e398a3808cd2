"""What a screen that measures says first."""

from __future__ import annotations

from seatrial.jobs.screen import _lasting


def test_how_long_a_screen_takes_is_said_before_anything_is_measured() -> None:
    own = _lasting(4, 2, 34.0, 12.0, in_turn=True, with_links=True)
    assert own.startswith("about 34 s on each node, one after the other (2 min), then at least 12 s of messages; ")
    assert own.endswith("longer where 6 repeats of each benchmark take longer than on this machine")
    free = _lasting(64, 1, 60.0, 12.0, in_turn=False, with_links=False)
    assert free.startswith("about 60 s on each node, all at once where they are free; longer where 6 repeats of the ")
