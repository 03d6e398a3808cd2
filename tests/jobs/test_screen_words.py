"""What a screen that measures says first."""

from __future__ import annotations

from seatrial.jobs.screen import _lasting


def test_how_long_a_screen_takes_is_said_before_anything_is_measured() -> None:
    own = _lasting(4, 2, 12.0, in_turn=True, with_links=True)
    assert own.startswith("12 s on each node, one after the other (48 s), then 12 s of messages; longer where ")
    assert own.endswith("longer where 6 repeats of each benchmark take longer")
    free = _lasting(64, 1, None, in_turn=False, with_links=False)
    assert free.startswith("60 s on each node, all at once where they are free; longer where 6 repeats of the ")
