"""Records of TensorFlow's format TFRecord, each with an image and its label as tf.train.Example, without TensorFlow.

A record is its length (8 bytes), the masked CRC-32C of these, its data, and the masked CRC-32C of the data, all little
endian (tensorflow.org/tutorials/load_data/tfrecord). An Example is the protobuf message
{features: {feature: map<string, Feature>}}; a Feature has a list of bytes (1) or of integers (3).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_IMAGE, _LABEL = b"image/encoded", b"image/class/label"
_HEAD = struct.Struct("<QI")
EXTRA_B = _HEAD.size + 4
"""The bytes of a record beside its data."""


def _table() -> list[int]:
    entries = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        entries.append(value)
    return entries


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC of RFC 3720 (Castagnoli)."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A CRC as it is stored."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(label: int, image: bytes) -> bytes:
    """The record of an image."""
    data = _example(label, image)
    length = struct.pack("<Q", len(data))
    return b"".join((length, struct.pack("<I", masked(crc32c(length))), data, struct.pack("<I", masked(crc32c(data)))))


def contents(stored: bytes, *, is_checked: bool = False) -> tuple[int, bytes]:
    """Label and image of a record. `is_checked`: the CRC of the data too, which takes milliseconds here. Raises
    ValueError for one that is cut off or changed."""
    if len(stored) < EXTRA_B:
        raise ValueError("a record of TFRecord is cut off")
    length, crc = _HEAD.unpack_from(stored)
    if masked(crc32c(stored[:8])) != crc or length != len(stored) - EXTRA_B:
        raise ValueError("the length of a record of TFRecord is wrong")
    data = stored[_HEAD.size : -4]
    if is_checked and masked(crc32c(data)) != struct.unpack("<I", stored[-4:])[0]:
        raise ValueError("the data of a record of TFRecord are not those that were written")
    return _parsed(data)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _example(label: int, image: bytes) -> bytes:
    values = ((_IMAGE, _message(1, _message(1, image))), (_LABEL, _message(3, _message(1, _varint(label)))))
    entries = (_message(1, _message(1, key) + _message(2, feature)) for key, feature in values)
    return _message(1, b"".join(entries))


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of a message whose fields all have a length."""
    at = 0
    while at < len(content):
        numbers = []
        for _ in range(2):
            value = shift = 0
            while True:
                byte = content[at]
                value |= (byte & 0x7F) << shift
                at, shift = at + 1, shift + 7
                if byte < 0x80:
                    break
            numbers.append(value)
        yield numbers[0] >> 3, content[at : at + numbers[1]]
        at += numbers[1]


def _parsed(data: bytes) -> tuple[int, bytes]:
    found = {}
    try:
        for _, features in _fields(data):
            for _, entry in _fields(features):
                parts = dict(_fields(entry))
                found[parts[1]] = dict(_fields(next(_fields(parts[2]))[1]))[1]
        return found[_LABEL][0], found[_IMAGE]
    except (KeyError, IndexError, StopIteration) as error:
        raise ValueError("a record of TFRecord is not an Example with an image and its label") from error
