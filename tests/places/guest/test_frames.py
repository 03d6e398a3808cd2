"""The frames between this process and a guest: whatever came before, only those of this session count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.places.guest import session as frames

_NAME = b"0123456789abcdef"


def read(*pieces: bytes) -> list[tuple[bytes, bytes]]:
    reader = frames.FrameReader(_NAME)
    return [found for piece in pieces for found in reader.add(piece)]


@given(before=st.binary(max_size=200), payloads=st.lists(st.binary(max_size=300), max_size=5), cut=st.integers(1, 50))
def test_frames_are_read_in_any_pieces_after_anything(before: bytes, payloads: list[bytes], cut: int) -> None:
    data = before + frames.frame(frames.BEGUN, _NAME) + b"".join(frames.frame(frames.OUTPUT, one) for one in payloads)
    pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
    assert read(*pieces) == [(frames.OUTPUT, one) for one in payloads]


def test_what_an_earlier_session_left_is_not_read() -> None:
    earlier = frames.frame(frames.BEGUN, b"another-session-") + frames.frame(frames.OUTPUT, b"of before")[:-3]
    assert read(earlier, frames.frame(frames.BEGUN, _NAME), frames.frame(frames.OUTPUT, b"now")) == [
        (frames.OUTPUT, b"now")
    ]


@pytest.mark.parametrize("damaged", [b"O\xff\xff\xff\xff", b"O\x01\x00\x00\x00a!"])
def test_a_damaged_frame_is_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="frame"):
        read(frames.frame(frames.BEGUN, _NAME) + damaged)


@given(st.binary(max_size=400))
def test_a_guest_can_send_anything(sent: bytes) -> None:
    try:
        found = read(frames.frame(frames.BEGUN, _NAME), sent)
    except ValueError:
        return
    assert sum(len(payload) + 6 for _, payload in found) <= len(sent)


def test_a_long_command_is_sent_in_several_frames() -> None:
    sent = frames.command_frames("/root", ["echo", "x" * 40_000], {"A": "b"})
    assert sent.count(b"\xa5") >= 4 and sent.endswith(frames.frame(frames.START))
