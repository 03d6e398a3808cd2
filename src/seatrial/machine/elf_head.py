"""The head of an ELF file: its segments, and the build id that identifies its content."""

from __future__ import annotations

import struct
from typing import BinaryIO

from seatrial.model.frozen import Frozen

ELF_IDENT = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_MOST_SEGMENTS = 4096
_LARGEST_NOTES_B = 1 << 16
_NOTE, _BUILD_ID = 4, 3


class ElfHead(Frozen):
    """The head of an ELF-64 file (System V gABI): its type, its machine, and (type, offset, bytes) of its segments."""

    kind: int
    machine: int
    segments: tuple[tuple[int, int, int], ...]


def elf_head(stream: BinaryIO) -> ElfHead:
    """The head of a file that was just opened. Raises ValueError if it is not a little-endian 64-bit ELF file."""
    start = stream.read(_HEADER.size)
    if len(start) < _HEADER.size or not start.startswith(ELF_IDENT):
        raise ValueError("it is not a little-endian 64-bit ELF file")
    kind, machine, _, _, table, _, _, _, size, number, *_ = _HEADER.unpack(start)
    if size != _SEGMENT.size or number > _MOST_SEGMENTS:
        raise ValueError("its header is not that of a program or shared object")
    stream.seek(table)
    segments = stream.read(size * number)
    if len(segments) < size * number:
        raise ValueError("it is cut off")
    return ElfHead(kind, machine, tuple((one[0], one[2], one[5]) for one in _SEGMENT.iter_unpack(segments)))


def build_id_in(stream: BinaryIO) -> str:
    """The GNU build id, hexadecimal, in the notes of a file that was just opened (System V gABI, "Note Section"); "" if
    the linker wrote none, or if it is not an ELF-64 file. Raises OSError."""
    try:
        for kind, offset, length in elf_head(stream).segments:
            if kind == _NOTE and length <= _LARGEST_NOTES_B:
                stream.seek(offset)
                if build_id := _in_notes(stream.read(length)):
                    return build_id
    except (struct.error, ValueError):
        pass
    return ""


def _in_notes(notes: bytes) -> str:
    """Records of name size, content size, type, name, content, each part padded to 4 bytes."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        content = at + 12 + (name_size + 3 & ~3)
        if kind == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0" and name_size == 4:
            return notes[content : content + size].hex()
        at = content + (size + 3 & ~3)
    return ""
