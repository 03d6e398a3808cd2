"""Where an image is made: private folders that become an image at once, or vanish."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from seatrial.environments.private_copy import own_name, remove_folder, sweep
from seatrial.errors import ImageError, UsageError
from seatrial.processes.output import OutOfTimeError, output_of

PREFIX = ".seatrial-image-"
_AT_FDCWD = -100
_NO_REPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_REMOVE_LIMIT_S = 300.0


@contextmanager
def private_folder(place: Path, mode: int = 0o700) -> Iterator[Path]:
    """A folder of this process in `place`, removed at the end; those of killed processes are removed at the begin.

    Raises ImageError if `place` cannot be written.
    """
    sweep(place, PREFIX, _remove)
    folder = place / own_name(PREFIX)
    try:
        folder.mkdir(mode=0o700)
        folder.chmod(mode)
    except OSError as error:
        raise ImageError(f"{place} cannot be written: {error.strerror}", "give another place for the image") from error
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    remove_folder(folder)
    if not folder.exists() or os.geteuid() == 0:
        return
    helper = shutil.which("mmdebstrap")  # files of the ids that belong to us, which only a user namespace can remove
    if helper is not None:
        command = [helper, "--unshare-helper", "rm", "-rf", "--one-file-system", str(folder)]
        try:
            output_of(command, tool_environment(), _REMOVE_LIMIT_S)
        except (OSError, OutOfTimeError):
            return
        remove_folder(folder)


def move_into_place(made: Path, image: Path, *, replace: bool) -> Path | None:
    """Give what was made its name, in one step where the file system can: it is there whole, or not at all.

    What it replaces takes the place of `made`. Raises UsageError if the name exists and must not be replaced, OSError.
    """
    if replace and image.exists():
        if not _rename(made, image, _EXCHANGE):
            aside = made.with_name(f"{made.name}.before")
            image.rename(aside)
            made.rename(image)
        return made
    if not _rename(made, image, _NO_REPLACE):
        refuse_existing(image)
        made.rename(image)
    return None


def refuse_existing(image: Path) -> None:
    """Raises UsageError if there is something with the name of the image."""
    if os.path.lexists(image):
        raise UsageError(f"{image} exists already", "give another name, or replace it with --force")


def _rename(old: Path, new: Path, flag: int) -> bool:
    """renameat2(2); False if the C library or the file system has no such call."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    if number == errno.EEXIST:
        refuse_existing(new)
    raise OSError(number, os.strerror(number), str(new))


def tool_environment(**added: str) -> Mapping[str, str]:
    """The environment of the tools that make images: paths, proxies and nothing that changes what they write."""
    kept = ("PATH", "HOME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "LC_ALL": "C.UTF-8",
        "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
        **added,
    }
