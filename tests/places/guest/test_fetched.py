"""What a guest sends is not trusted."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.errors import SeatrialError, UsageError
from seatrial.places.guest.inside import unpack_fetched


def archive(
    *members: tuple[str, bytes | None], change: Callable[[tarfile.TarInfo], None] = lambda one: None
) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            member.size = len(data or b"")
            change(member)
            tar.addfile(member, io.BytesIO(data or b""))
    packed.seek(0)
    return packed


def test_a_folder_is_written(tmp_path: Path) -> None:
    unpack_fetched(archive(("out", None), ("out/a", b"1"), ("out/b", None), ("out/b/c", b"")), "out", tmp_path / "here")
    assert (tmp_path / "here" / "a").read_bytes() == b"1" and (tmp_path / "here" / "b" / "c").exists()


def link(member: tarfile.TarInfo) -> None:
    member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc", 0


def device(member: tarfile.TarInfo) -> None:
    member.type = tarfile.CHRTYPE


@pytest.mark.parametrize(
    "packed",
    [
        archive(("/etc/passwd", b"x")),
        archive(("out/../../x", b"x")),
        archive(("other", b"x")),
        archive(("out", b""), change=link),
        archive(("out", b""), change=device),
        io.BytesIO(b"no archive" * 100),
    ],
)
def test_anything_else_is_refused(packed: io.BytesIO, tmp_path: Path) -> None:
    with pytest.raises(SeatrialError):
        unpack_fetched(packed, "out", tmp_path / "inner" / "here")
    assert not list(tmp_path.rglob("*"))


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to("/nowhere")
    with pytest.raises(UsageError, match="already there"):
        unpack_fetched(archive(("out", b"x")), "out", tmp_path / "here")
