"""Messages between seatrial and the processes that it starts: values of built-in types, over a socket."""

from __future__ import annotations

import marshal

TYPE_CHECKING = False  # the guard loads this module in each command: it imports little
if TYPE_CHECKING:
    import socket
    from typing import Any

_LENGTH_BYTES = 8
_PART_BYTES = 1 << 20


def pack(message: Any) -> bytes:
    """A message with its length."""
    body = marshal.dumps(message)
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


def receive(channel: socket.socket) -> Any:
    """The next message; None if the other side closed the channel or was killed."""
    head = _exactly(channel, _LENGTH_BYTES)
    body = None if head is None else _exactly(channel, int.from_bytes(head, "little"))
    return None if body is None else marshal.loads(body)  # noqa: S302  from our own process, over our own socket


def _exactly(channel: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = channel.recv(min(count - len(parts), _PART_BYTES))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
