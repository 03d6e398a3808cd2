"""A site file, read and checked: YAML text -> `model.site.Site`, or one clear message with file, line and key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.container import NO_CONTAINER
from seatrial.model.container_device import devices_of
from seatrial.model.container_mount import mounts_of
from seatrial.model.guest import NO_GUEST, RUNNING
from seatrial.model.job_options import BATCH_SYSTEMS, JobOptions
from seatrial.model.mpi import MpiFamily
from seatrial.model.site import (
    LOAD,
    POLL_S,
    SCRATCH,
    Partition,
    Site,
    SiteContainer,
    SiteEnvironment,
    SiteGuest,
    System,
)
from seatrial.model.units import parse_seconds
from seatrial.plan.environment_axes import (
    COMPILER,
    CONTAINER,
    CONTAINER_MPI,
    CONTAINER_RUNTIME,
    FLAGS,
    environment_value,
)
from seatrial.plan.model_faults import Accepted, validated
from seatrial.plan.study_yaml import MAX_BYTES, Document, Node, error_at, read_yaml
from seatrial.plan.study_yaml import Path as Place
from seatrial.plan.variables import variables_at

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}")
_SCRATCH = re.compile(r"/[A-Za-z0-9_./+-]*")
_LAUNCHER = re.compile(r"(?:~/|/)?[A-Za-z0-9_.+@-]+(?:/[A-Za-z0-9_.+@-]+)*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,253}")
_SSH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9_.:-]{0,253}")
NO_PYTHON = "none"
"""The value of `python:` for nodes without Python."""
_ONLY_COMMENTS = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:#[^\n]*)?")
_SHORTEST_POLL_S = 1.0
_Read = TypeVar("_Read")
_IN_NO_SCRIPT = re.compile(r"[\s'\"`\\$]")


def site_of(path: Path | None) -> Site:
    """The site of a file; None: `~/.config/seatrial/site.yaml` (or below $XDG_CONFIG_HOME), an empty site if
    there is no such file.

    Raises UsageError if a named file cannot be read, and as `read_site` does.
    """
    if path is not None:
        return _read(path)
    try:
        usual = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "seatrial" / "site.yaml"
    except RuntimeError:  # no home directory
        return Site()
    return _read(usual) if usual.exists() else Site()


def _read(path: Path) -> Site:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise UsageError(f"the site file {path} cannot be read: {why}", "name another with --site FILE") from error
    return read_site(data, str(path))


def read_site(data: bytes, file: str) -> Site:
    """The site that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, or contains unknown names.
    A file with nothing but comments is an empty site.
    """
    if len(data) > MAX_BYTES:
        raise error_at(file, None, "larger than 1 MiB: not a site file", "give the site's YAML file")
    if _ONLY_COMMENTS.fullmatch(data.removeprefix(b"\xef\xbb\xbf")):
        return Site(file=file)
    from seatrial.plan.site_schema import SiteModel

    document = read_yaml(data, file)
    validated(document, SiteModel, _words())
    environments = tuple(_environments(document))
    known = [environment.name for environment in environments]
    systems = tuple(
        System(
            name,
            tuple(_partitions(document, ("systems", name, "partitions"), known)),
            _one_of(document, ("systems", name, "batch"), BATCH_SYSTEMS),
            _time(document, ("systems", name, "poll"), _SHORTEST_POLL_S) or POLL_S,
        )
        for name in _names(document, ("systems",))
    )
    listed = document.node(("benchmarks",))
    folders = [_path(document, ("benchmarks", k)) for k in range(len(listed.items if listed is not None else ()))]
    of_modules = {name: found for name in _names(document, ("programs",)) if (found := _modules(document, name))}
    return Site(
        environments,
        systems,
        file,
        tuple(folders),
        tuple(_guests(document)),
        {
            name: _path(document, ("programs", name))
            for name in _names(document, ("programs",))
            if name not in of_modules
        },
        tuple(_containers(document)),
        of_modules,
    )


def _modules(document: Document, program: str) -> tuple[str, ...]:
    """The modules that a program is in; () if its path is given."""
    place: Place = ("programs", program)
    text = _text(document, place)
    if not text.startswith(f"{LOAD} "):
        return ()
    names = tuple(text.removeprefix(LOAD).split())
    if not names or not all(map(_MODULE.fullmatch, names)):
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"it takes {_accepted(place)}")
    return names


def _words() -> Accepted:
    from seatrial.plan.site_schema import ACCEPTED, NAMED

    return Accepted(ACCEPTED, NAMED)


def _accepted(path: Place) -> str:
    return _words().of(path)


def _environments(document: Document) -> Iterator[SiteEnvironment]:
    for name in _names(document, ("environments",)):
        place: Place = ("environments", name)
        family, launcher = document.node((*place, "family")), document.node((*place, "launcher"))
        compiler, flags = document.node((*place, "compiler")), document.node((*place, "flags"))
        mpi = document.node((*place, "mpi"))
        yield SiteEnvironment(
            name,
            None if _is_absent(mpi) else _path(document, (*place, "mpi")),
            None if _is_absent(family) else MpiFamily(_text(document, (*place, "family"))),
            None if _is_absent(launcher) else _launcher(document, (*place, "launcher")),
            None if _is_absent(compiler) else _of_axis(document, (*place, "compiler"), COMPILER),
            () if _is_absent(flags) else tuple(_of_axis(document, (*place, "flags"), FLAGS).split()),
            tuple(variables_at(document, (*place, "variables"))),
        )


def _containers(document: Document) -> Iterator[SiteContainer]:
    for name in _names(document, ("containers",)):
        place: Place = ("containers", name)
        if name == NO_CONTAINER:
            raise document.refuse(place, f"a container cannot be called {name!r}", "it means no container: rename it")
        runtime, mpi = document.node((*place, "runtime")), document.node((*place, "mpi"))
        image = _of_axis(document, (*place, "image"), CONTAINER)
        if image == NO_CONTAINER:
            raise document.refuse(
                (*place, "image"), f"it cannot be {image!r}", f"it takes {_accepted((*place, 'image'))}"
            )
        yield SiteContainer(
            name,
            image,
            None if _is_absent(runtime) else _of_axis(document, (*place, "runtime"), CONTAINER_RUNTIME),
            None if _is_absent(mpi) else _of_axis(document, (*place, "mpi"), CONTAINER_MPI),
            _each(document, (*place, "mounts"), mounts_of),
            _each(document, (*place, "devices"), devices_of),
            tuple(variables_at(document, (*place, "variables"))),
        )


def _each(document: Document, place: Place, read: Callable[[Iterable[str]], tuple[_Read, ...]]) -> tuple[_Read, ...]:
    """What the texts of a list state."""
    texts = list(_listed(document, place))
    for position, text in enumerate(texts):
        try:
            read([text])
        except UsageError as error:
            raise document.refuse((*place, position), error.message, error.todo) from None
    try:
        return read(texts)
    except UsageError as error:
        raise document.refuse(place, error.message, error.todo) from None


def _is_absent(node: Node | None) -> bool:
    return node is None or node.value is None


def _text(document: Document, place: Place) -> str:
    node = document.node(place)
    return str(node.value) if node is not None else ""


def _path(document: Document, place: Place) -> Path:
    text = _text(document, place)
    if not text.isprintable() or not (text.startswith(("/", "~/"))):
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"it takes {_accepted(place)}")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise document.refuse(place, "no home directory for ~", "give the full path") from None


def _python(document: Document, place: Place) -> Path | None:
    is_path = not _is_absent(document.node(place)) and _text(document, place) != NO_PYTHON
    return _path(document, place) if is_path else None


def _is_shared(document: Document, at: Place) -> bool:
    place = (*at, "shared")
    shared = document.node(place)
    if shared is None or shared.value is not False:
        return True
    if _text(document, (*at, "python")) != NO_PYTHON:
        why = "Python on the nodes needs the results folder on a file system that they share"
        raise document.refuse(place, why, "set python: none, so that jobs bring their programs with them")
    return False


def _scratch(document: Document, place: Place) -> Path:
    if _is_absent(document.node(place)):
        return SCRATCH
    text = _text(document, place)
    if not _SCRATCH.fullmatch(text):
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"it takes {_accepted(place)}")
    return Path(text)


def _launcher(document: Document, place: Place) -> str:
    text = _text(document, place)
    is_path = "/" in text
    if not _LAUNCHER.fullmatch(text) or (is_path and not text.startswith(("/", "~/"))):
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"it takes {_accepted(place)}")
    return str(_path(document, place)) if is_path else text


def _of_axis(document: Document, place: Place, axis: str) -> str:
    """A value that a study axis accepts as well, checked by the same rules."""
    try:
        return str(environment_value(axis, document.node(place) or document.root))
    except UsageError as error:
        raise document.refuse(place, error.message, error.todo) from None


def _partitions(document: Document, place: Place, known: Iterable[str]) -> Iterator[Partition]:
    known = tuple(known)
    for name in _names(document, place):
        at: Place = (*place, name)
        launcher = document.node((*at, "launcher"))
        environments = tuple(_listed(document, (*at, "environments")))
        for position, environment in enumerate(environments):
            if environment not in known:
                unknown = UnknownNameError("environment", environment[:100], known)
                raise document.refuse((*at, "environments", position), unknown.message, unknown.todo)
        hosts = tuple(_listed(document, (*at, "hosts")))
        for position, host in enumerate(hosts):
            if not _HOST.fullmatch(host):
                raise document.refuse((*at, "hosts", position), "not a valid host name", "write it as n001")
        count = _whole(document, (*at, "nodes"))
        if count is not None and hosts and count != len(hosts):
            raise document.refuse(
                (*at, "nodes"), f"{count} nodes, but {len(hosts)} hosts are named", "remove one of the two"
            )
        yield Partition(
            name,
            environments,
            None if _is_absent(launcher) else _dialect(document, (*at, "launcher")),
            hosts,
            len(hosts) if hosts else count,
            _job_options(document, at),
            _time(document, (*at, "time_limit"), 60.0),
            _python(document, (*at, "python")),
            _whole(document, (*at, "cpus_per_node")),
            _text(document, (*at, "python")) != NO_PYTHON,
            _is_shared(document, at),
            _scratch(document, (*at, "scratch")),
        )


def _guests(document: Document) -> Iterator[SiteGuest]:
    for name in _names(document, ("guests",)):
        at: Place = ("guests", name)
        if name in (NO_GUEST, RUNNING):
            raise document.refuse(
                ("guests",), f"{name!r} means something else in environment.vm", "choose another name"
            )
        ssh, topology = (_text(document, (*at, key)) for key in ("ssh", "topology"))
        if bool(ssh) == bool(topology):
            raise document.refuse(at, "it needs ssh or topology, and not both", f"it takes {_accepted(at)}")
        if ssh and not _SSH.fullmatch(ssh):
            raise document.refuse((*at, "ssh"), "not a host for ssh", f"it takes {_accepted((*at, 'ssh'))}")
        kernel: Place = (*at, "kernel")
        yield SiteGuest(
            name,
            ssh or None,
            _path(document, (*at, "topology")) if topology else None,
            None if _is_absent(document.node(kernel)) else _path(document, kernel),
        )


def _whole(document: Document, place: Place) -> int | None:
    node = document.node(place)
    return node.value if node is not None and isinstance(node.value, int) else None


def _job_options(document: Document, at: Place) -> JobOptions:
    def word(key: str) -> str | None:
        place = (*at, key)
        return None if _is_absent(document.node(place)) else _script_word(document, place)

    def listed(key: str, read: Callable[[Document, Place], str]) -> tuple[str, ...]:
        node = document.node((*at, key))
        return tuple(read(document, (*at, key, k)) for k in range(len(node.items if node is not None else ())))

    exclusive = document.node((*at, "exclusive"))
    return JobOptions(
        word("queue"),
        word("account"),
        word("qos"),
        word("constraint"),
        word("reservation"),
        _whole(document, (*at, "gpus_per_node")),
        exclusive is None or exclusive.value is not False,
        listed("modules", _script_word),
        listed("extra", _script_line),
    )


def _script_word(document: Document, place: Place) -> str:
    """A value that cannot change the meaning of a script's line."""
    text = _text(document, place)
    if not text.isprintable() or text.startswith("-") or _IN_NO_SCRIPT.search(text):
        todo = "it is written into job scripts: use a word without spaces and quotes"
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", todo)
    return text


def _script_line(document: Document, place: Place) -> str:
    text = _text(document, place)
    if not text.isprintable():
        raise document.refuse(place, "an extra line of the job script contains a line break", "make it several lines")
    return text


def _time(document: Document, place: Place, least_s: float) -> float | None:
    """A time in seconds; None if there is none."""
    if _is_absent(document.node(place)):
        return None
    try:
        found = parse_seconds(_text(document, place))
    except UsageError as error:
        raise document.refuse(place, error.message, error.todo) from None
    if not least_s <= found < float("inf"):
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"at least {least_s:g}s")
    return found


def _one_of(document: Document, place: Place, words: Collection[str]) -> str | None:
    text = None if _is_absent(document.node(place)) else _text(document, place)
    if text is not None and text not in words:
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"it takes {_accepted(place)}")
    return text


def _dialect(document: Document, place: Place) -> str:
    from seatrial.plan.site_schema import LAUNCHERS

    text = _text(document, place)
    if text not in LAUNCHERS:
        raise document.refuse(place, f"it cannot be {_shown(document, place)}", f"it takes {_accepted(place)}")
    return text


def _listed(document: Document, place: Place) -> Iterator[str]:
    """The texts of a list. Raises UsageError for a duplicate."""
    node = document.node(place)
    seen: set[str] = set()
    for position, item in enumerate(node.items if node is not None else ()):
        if str(item.value) in seen:
            raise document.refuse((*place, position), f"{item.shown()} is listed twice", "keep one of them")
        seen.add(str(item.value))
        yield str(item.value)


def _names(document: Document, place: Place) -> Iterator[str]:
    """The keys of a mapping of names."""
    node = document.node(place)
    for name in node.entries if node is not None else ():
        if not _NAME.fullmatch(name):
            line = node.key_lines[name] if node is not None else None
            todo = "letters, digits, -, _ and . (at most 100), the first a letter or digit"
            raise document.refuse(place, f"{name[:60]!r} is not a valid name", todo, line)
        yield name


def _shown(document: Document, place: Place) -> str:
    node = document.node(place)
    return node.shown() if node is not None else "nothing"
