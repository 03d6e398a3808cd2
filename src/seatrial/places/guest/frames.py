"""The frames that this process and the agent of a guest exchange over a port (native/launch/guest_frames.hpp)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

LONGEST_PAYLOAD_B = 16384
_END = 0xA5
_HEADER = struct.Struct("<cI")
_NUMBER = struct.Struct("<I")

BEGIN, DESCRIBE, START, INPUT, INPUT_ENDED, SIGNAL = b"S", b"E", b"X", b"I", b"Z", b"K"
BEGUN, OUTPUT, ERRORS, TAKEN, ENDED = b"B", b"O", b"R", b"C", b"Q"


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """A frame."""
    return _HEADER.pack(kind, len(payload)) + payload + bytes([_END])


def beginning(name: bytes) -> bytes:
    """What begins a session: zeros, which complete what a killed client left unfinished, and the session's name."""
    return b"\0" * (LONGEST_PAYLOAD_B + _HEADER.size + 1) + frame(BEGIN, name)


def command_frames(folder: str, words: Sequence[str], variables: Mapping[str, str]) -> bytes:
    """What starts a command."""
    texts = [folder, str(len(words)), *words, *(f"{name}={value}" for name, value in variables.items())]
    data = b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in texts)
    parts = [data[at : at + LONGEST_PAYLOAD_B] for at in range(0, len(data), LONGEST_PAYLOAD_B)]
    return b"".join(frame(DESCRIBE, part) for part in parts) + frame(START)


def number(payload: bytes) -> int:
    """The number in a payload. Raises ValueError."""
    if len(payload) != _NUMBER.size:
        raise ValueError(f"a number of {len(payload)} bytes")
    return int(_NUMBER.unpack(payload)[0])


class FrameReader:
    """Takes the frames of one session out of a stream of bytes.

    What a guest sends is not trusted: a damaged frame raises ValueError. What comes before the frame that begins the
    session is of an earlier one.
    """

    def __init__(self, session: bytes) -> None:
        self._wanted = frame(BEGUN, session)
        self._buffer = bytearray()
        self._has_begun = False

    @property
    def has_begun(self) -> bool:
        """Whether the guest has answered."""
        return self._has_begun

    def add(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Kind and payload of each frame that is now complete."""
        self._buffer += data
        if not self._has_begun:
            at = self._buffer.find(self._wanted)
            if at < 0:
                del self._buffer[: max(0, len(self._buffer) - len(self._wanted))]
                return
            del self._buffer[: at + len(self._wanted)]
            self._has_begun = True
        while len(self._buffer) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer)
            if length > LONGEST_PAYLOAD_B:
                raise ValueError(f"a frame of {length} bytes")
            end = _HEADER.size + length
            if len(self._buffer) <= end:
                return
            if self._buffer[end] != _END:
                raise ValueError("a frame without its end")
            payload = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[: end + 1]
            yield kind, payload
