"""Files that are brought into a guest, and fetched from it, as tar archives. What a guest sends is not trusted."""

from __future__ import annotations

import stat
import tarfile
import tempfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from seatrial.errors import UsageError
from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.session import Streams

if TYPE_CHECKING:
    from seatrial.places.guest.session import Connection

_MOST_OUT_B = 1 << 33


def pack(source: Path, name: str, leave_out: Collection[str] = ()) -> IO[bytes]:
    """A tar archive with a file or folder under this name. `leave_out`: entries of the folder. Raises UsageError."""
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever asked for it

    def ours(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return None if PurePosixPath(member.name).name in leave_out else member

    try:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
            tar.add(source, name, filter=ours)
    except OSError as error:
        archive.close()
        raise UsageError(f"{source} cannot be brought into the guest: {error.strerror or error}") from error
    archive.seek(0)
    return archive


def unpack(guest: Connection, archive: IO[bytes], folder: str) -> None:
    """Unpack it in a folder of the guest. Raises GuestError."""
    with tempfile.TemporaryFile() as said:
        streams = Streams(archive.fileno(), said.fileno(), said.fileno())
        status = guest.run(["tar", "-x", "-o", "-f", "-", "-C", folder], streams, {}, "/")
        if status:
            raise GuestError(f"files cannot be brought into {folder} of the guest: {_said(said)}")


def fetch(guest: Connection, place: str, target: Path) -> None:
    """Write a file or folder of the guest to `target`, which must not be there. Raises GuestError, UsageError."""
    with tempfile.TemporaryFile() as archive, tempfile.TemporaryFile() as said:
        name = PurePosixPath(place)
        streams = Streams(None, archive.fileno(), said.fileno())
        status = guest.run(["tar", "-c", "-f", "-", "-C", str(name.parent), "--", name.name], streams, {}, "/")
        if status:
            raise GuestError(f"{place} of the guest cannot be fetched: {_said(said)}")
        archive.seek(0)
        unpack_fetched(archive, name.name, target)


def unpack_fetched(archive: IO[bytes], name: str, target: Path) -> None:
    """Write the files and folders of an archive from a guest to `target`, which must not be there.

    The guest is not trusted: links, devices and names outside are refused. Raises UsageError, GuestError.
    """
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is already there", "name another place for what is fetched, or remove it")
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or path.parts[:1] != (name,):
                    raise GuestError(f"the guest sent a file {member.name[:200]!r}, which was not asked for")
                place = target.joinpath(*path.parts[1:])
                if member.isdir():
                    place.mkdir()
                elif member.isreg() and member.size <= _MOST_OUT_B:
                    _write_file(tar, member, place)
                else:
                    raise GuestError(f"{member.name[:200]!r} of the guest is neither a file nor a folder")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise GuestError(f"what the guest sent is damaged: {error}", "try again") from error
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None  # noqa: S101 - it is a regular file
    with place.open("xb") as file:
        while piece := source.read(1 << 20):
            file.write(piece)
    place.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return " ".join(file.read(2000).decode("utf-8", "replace").split()) or "no reason given"
