"""What does not change from one command to the next, remembered in the cache: versions, macros, symbols of libraries.

A value is used while everything that it may depend on is the same: the files (by inode, size and times), the variables,
the CPU, the loader's cache (which installing a library renews), this user, and seatrial. Failures are not remembered.
Values are read from the trusted cache only (docs/adr/0020), and a cache that cannot be used costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.environments.asking import Answer, ask
from seatrial.environments.cache import make_folder, own_cache
from seatrial.errors import SeatrialError
from seatrial.version import __version__

_FOLDER = "answers"
_LOADER_CACHE = Path("/etc/ld.so.cache")
_CPUINFO = Path("/proc/cpuinfo")
_CPU = re.compile(r"^(?:vendor_id|cpu|CPU|model|stepping|flags|Features)\b.*?:.*$", re.MULTILINE)
_VARYING = re.compile(r"^cpu MHz.*$", re.MULTILINE)
_FIRST_CPU_B = 1 << 14
_UNRELATED = frozenset(("_", "SHLVL", "PWD", "OLDPWD", "TERM", "COLUMNS", "LINES", "HOSTNAME", "TMPDIR", "LS_COLORS"))
_UNRELATED_PREFIXES = ("SEATRIAL_", "PYTEST_", "SSH_", "SLURM_", "XDG_SESSION", "DBUS_")
"""Variables that differ between commands, but not in what a program says of itself."""


def remembered(
    what: Sequence[str],
    files: Iterable[Path],
    make: Callable[[], Any],
    still_true: Callable[[Any], bool] = lambda value: True,
) -> Any:
    """`make()`, a JSON value, or the one that an earlier command made, if `what` and the `files` are the same and it is
    `still_true`. Raises what `make` raises."""
    key = hashlib.sha256(json.dumps([*what, *map(state_of, files), *_surroundings()]).encode()).hexdigest()
    name = f"{key}.json"
    with suppress(SeatrialError, OSError, ValueError, TypeError, LookupError):  # damaged, or of another shape
        if (known := own_cache().read(_FOLDER, name)) is not None:
            value = json.loads(known)
            if still_true(value):
                return value
    value = make()
    with suppress(SeatrialError, OSError):
        own_cache().names()  # nothing is written into a cache that is not trusted
        folder = own_cache().path / _FOLDER
        make_folder(folder)
        fresh = folder / f".{name}.{secrets.token_hex(4)}"
        fresh.write_text(json.dumps(value), encoding="utf-8")
        fresh.chmod(0o644)
        fresh.replace(folder / name)
    return value


def ask_once(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_s: float | None = None,
    files: Iterable[Path] = (),
) -> Answer:
    """As `ask`, for questions to which a program gives the same answer until it, one of `files` or a variable changes.

    Raises BuildError.
    """
    variables = os.environ if environment is None else environment

    def asked() -> list[str]:
        answer = ask(command, environment) if limit_s is None else ask(command, environment, limit_s)
        return [answer.stdout, answer.stderr]

    stdout, stderr = remembered([*command, *related(variables)], [Path(command[0]), *files], asked, _is_answer)
    return Answer(stdout, stderr)


def _is_answer(value: Any) -> bool:
    return isinstance(value, list) and [type(text) for text in value] == [str, str]


def related(variables: Mapping[str, str]) -> list[str]:
    """The variables that may change an answer, as NAME=VALUE, sorted."""
    return sorted(
        f"{name}={value}"
        for name, value in variables.items()
        if name not in _UNRELATED and not name.startswith(_UNRELATED_PREFIXES)
    )


def state_of(path: Path) -> list[str | int]:
    """The file behind a path, and what changes with its content; the path alone if there is none."""
    try:
        real = path.resolve()
        found = real.stat()
    except OSError:
        return [str(path)]
    return [str(path), str(real), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


@cache
def _cpu() -> str:
    """The first CPU, as the kernel describes it, without its clock."""
    try:
        with _CPUINFO.open("rb") as file:
            text = file.read(_FIRST_CPU_B).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(_CPU.findall(_VARYING.sub("", text.partition("\n\n")[0])))


def _surroundings() -> list[Any]:
    return [__version__, os.geteuid(), _cpu(), state_of(_LOADER_CACHE)]
