"""Where an image is made, in private folders that become an image at once, or vanish; runs the tools that images are
made with, and commands with a folder as their root.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from seatrial.environments.cached_files import remove_folder
from seatrial.errors import ImageError, UsageError
from seatrial.processes.own_folder import own_folder
from seatrial.processes.start import OutOfTimeError, Running, output_of
from seatrial.processes.working_folder import on_path, without_working_folder

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
    with ExitStack() as held:
        try:
            folder = held.enter_context(own_folder(place.absolute(), PREFIX, mode, _remove))
        except OSError as error:
            why = f"{place} cannot be written: {error.strerror}"
            raise ImageError(why, "give another path for the image") from error
        yield folder


def _remove(folder: Path) -> None:
    remove_folder(folder)
    if not folder.exists() or os.geteuid() == 0:
        return
    helper = on_path("mmdebstrap")  # files of the ids that belong to us, which only a user namespace can remove
    if helper is not None:
        command = [helper, "--unshare-helper", "rm", "-rf", "--one-file-system", str(folder)]
        try:
            output_of(command, tool_environment(), _REMOVE_LIMIT_S)
        except (OSError, OutOfTimeError):
            return
        remove_folder(folder)


def move_into_place(made: Path, image: Path, *, replace: bool) -> Path | None:
    """Give what was made its name, in one step where the file system can: it is there whole, or not at all.

    What it replaces gets the name of `made`. Raises UsageError if the name exists and must not be replaced, OSError.
    """
    if replace and image.exists():
        if not _rename(made, image, _EXCHANGE):
            image.rename(made.with_name(f"{made.name}.before"))
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
        "PATH": without_working_folder({"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"})["PATH"],
        **added,
    }


_MOST_SHOWN_B = 64 << 10
_MOST_LINES = 12


def tool(name: str, package: str) -> str:
    """The path of a tool. Raises ImageError, which names its Debian package."""
    found = on_path(name, tool_environment()["PATH"])
    if found is None:
        raise ImageError(f"{name} not found", f"install the package {package} (Debian: apt install {package})")
    return found


def run_tool(
    words: Sequence[str],
    *,
    source: Path | None = None,
    output: Path | None = None,
    accept: Sequence[int] = (0,),
    remedy: str = "",
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run a tool to its end: standard input from a file, standard output to a file; what it printed on stderr.

    It ends with this process, and everything that it started. Raises ImageError with its last lines.
    """
    printed = os.memfd_create("printed")
    opened = [printed]
    try:
        reading = os.open(source or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        opened.append(reading)
        writing = printed
        if output is not None:
            writing = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            opened.append(writing)
        status = _status(words, [reading, writing, printed], environment or tool_environment())
        text = os.pread(printed, _MOST_SHOWN_B, max(0, os.fstat(printed).st_size - _MOST_SHOWN_B))
    except OSError as error:
        raise ImageError(f"{words[0]} cannot be started: {error.strerror or error}") from error
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if status not in accept:
        raise ImageError(f"{Path(words[0]).name} failed (exit {status}):\n{_last_lines(text)}", remedy)
    return text


def _status(words: Sequence[str], descriptors: Sequence[int], environment: Mapping[str, str]) -> int:
    running = Running(words, environment, descriptors)
    try:
        ending = running.wait()
    except BaseException:
        running.end()
        running.wait()
        raise
    return -9 if ending is None else ending.returncode


def _last_lines(text: bytes) -> str:
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return "\n".join(f"    {line[:400]}" for line in lines[-_MOST_LINES:])


_LIMIT_S = 60.0
_USER = ("--user", "--map-root-user")
_NAMESPACES = ("--mount", "--net", "--ipc")
_PATH = "/usr/local/bin:/usr/bin:/bin"


def inside(root: Path) -> tuple[str, ...]:
    """The words before a command that runs it inside `root`. Raises ImageError where neither a user namespace nor root
    allows that."""
    unshare = tool("unshare", "util-linux")
    why = ""
    for user in (_USER, ()) if os.geteuid() == 0 else (_USER,):
        words = (unshare, *user, *_NAMESPACES)
        if not (why := _why_not(words)):
            return (*words, f"--root={root.absolute()}", "--wd=/", "--")
    raise ImageError(
        f"programs cannot be compiled inside the image: {why[-300:]}",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root",
    )


def as_root() -> tuple[str, ...]:
    """The words before a command that let it see itself as root; none for root, and where there are no user
    namespaces."""
    if os.geteuid() == 0 or (unshare := on_path("unshare")) is None:
        return ()
    return () if _why_not((unshare, *_USER)) else (unshare, *_USER)


def _why_not(words: Sequence[str]) -> str:
    """Why these words cannot be before a command; "" if they can."""
    try:
        answer = output_of([*words, "true"], tool_environment(), _LIMIT_S)
    except (OSError, OutOfTimeError) as error:
        return str(error) or f"{words[0]} does not end"
    said = answer.stderr.decode("utf-8", "replace").strip()
    return "" if answer.returncode == 0 else said or f"exit status {answer.returncode}"


def inside_environment() -> dict[str, str]:
    """The environment of commands inside: that of a system without our variables."""
    return {"PATH": _PATH, "HOME": "/", "LC_ALL": "C", "TMPDIR": "/tmp"}  # noqa: S108 - of the image
