"""A site file, read and checked: YAML text -> `model.site.Site`, or one clear message with file, line and key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import UnknownNameError, UsageError, did_you_mean, nearest_names
from seatrial.model.mpi import MpiFamily
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.model.site import Partition, Site, SiteEnvironment, System
from seatrial.plan.environment_axes import COMPILER, FLAGS, environment_value
from seatrial.plan.study_yaml import MAX_BYTES, Document, Node, error_at, read_yaml
from seatrial.plan.study_yaml import Path as Place

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_LAUNCHER = re.compile(r"(?:~/|/)?[A-Za-z0-9_.+@-]+(?:/[A-Za-z0-9_.+@-]+)*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,253}")
_ONLY_COMMENTS = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:#[^\n]*)?")
_LONGEST_VALUE = 4096


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
    document = read_yaml(data, file)
    _check_shape(document)
    environments = tuple(_environments(document))
    known = [environment.name for environment in environments]
    systems = tuple(
        System(name, tuple(_partitions(document, ("systems", name, "partitions"), known)))
        for name in _names(document, ("systems",))
    )
    return Site(environments, systems, file)


def _check_shape(document: Document) -> None:
    """Raises UsageError for the first place in the file that does not match the models."""
    from pydantic import ValidationError

    from seatrial.plan.site_schema import SiteModel

    try:
        SiteModel.model_validate(document.root.plain())
        return
    except ValidationError as error:
        faults = [_fault(document, fault) for fault in error.errors(include_url=False)]
    raise min(faults, key=lambda found: found[0])[1]


def _fault(document: Document, fault: Any) -> tuple[tuple[int, int], UsageError]:
    """((line, minus depth), the message) of one error that pydantic reported."""
    path: Place = ()
    for step in fault["loc"]:  # other steps are names of union members
        if document.node((*path, step)) is not None:
            path = (*path, step)
    line = document.line(path)
    if fault["type"] == "missing":
        missing = str(fault["loc"][-1])
        seen, todo = f"the key {missing} is missing", f"{missing} takes {_accepted((*path, missing))}"
        return (line, -len(path)), document.refuse(path, seen, todo, line)
    if fault["type"] == "extra_forbidden":
        parent, last = document.node(path[:-1]), str(path[-1])
        line = parent.key_lines.get(last, line) if parent is not None else line
        keys = _keys(path[:-1])
        nearest = nearest_names(last, keys)
        todo = did_you_mean(nearest) if nearest else f"keys: {', '.join(keys)}"
        return (line, -len(path)), document.refuse(path, "unknown key", todo, line)
    node = document.node(path) or document.root
    is_empty = node.value in (None, "", [], {})
    seen = "it is empty" if is_empty else f"it cannot be {node.shown()}"
    return (line, -len(path)), document.refuse(path, seen, f"it takes {_accepted(path)}", line)


def _general(path: Place) -> tuple[str, ...]:
    """A path with "*" in place of names and positions that the user chooses."""
    from seatrial.plan.site_schema import NAMED

    steps: list[str] = []
    for step in path:
        is_chosen = isinstance(step, int) or (bool(steps) and steps[-1] in NAMED)
        steps.append("*" if is_chosen else str(step))
    return tuple(steps)


def _accepted(path: Place) -> str:
    from seatrial.plan.site_schema import ACCEPTED

    place = _general(path)
    while ".".join(place) not in ACCEPTED:
        place = place[:-1]
    return ACCEPTED[".".join(place)]


def _keys(path: Place) -> list[str]:
    """The known keys of a mapping."""
    from seatrial.plan.site_schema import ACCEPTED

    lead = "".join(f"{step}." for step in _general(path))
    inner = [name.removeprefix(lead) for name in ACCEPTED if name and name.startswith(lead)]
    return [name for name in inner if "." not in name and name != "*"]


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
            tuple(_variables(document, (*place, "variables"))),
        )


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


def _variables(document: Document, place: Place) -> Iterator[tuple[str, str]]:
    mapping = document.node(place)
    for name, node in (mapping.entries if mapping is not None else {}).items():
        line = mapping.key_lines[name] if mapping is not None else None
        if not _VARIABLE.fullmatch(name):
            raise document.refuse(place, f"{name[:60]!r} is not a valid variable name", "write it in upper case", line)
        if sounds_like_a_secret(name):
            todo = "set it outside the site file"
            raise document.refuse(
                place, f"{name} suggests a secret, and variables appear in records and on pages", todo, line
            )
        if not node.written.isprintable() or len(node.written) > _LONGEST_VALUE:
            raise document.refuse((*place, name), f"{node.shown()} is not a valid value of a variable", "it takes text")
        yield name, node.written


def _partitions(document: Document, place: Place, known: Iterable[str]) -> Iterator[Partition]:
    known = tuple(known)
    for name in _names(document, place):
        at: Place = (*place, name)
        launcher, nodes = document.node((*at, "launcher")), document.node((*at, "nodes"))
        environments = tuple(_listed(document, (*at, "environments")))
        for position, environment in enumerate(environments):
            if environment not in known:
                unknown = UnknownNameError("environment", environment[:100], known)
                raise document.refuse((*at, "environments", position), unknown.message, unknown.todo)
        hosts = tuple(_listed(document, (*at, "hosts")))
        for position, host in enumerate(hosts):
            if not _HOST.fullmatch(host):
                raise document.refuse((*at, "hosts", position), "not a valid host name", "write it as n001")
        count = None if nodes is None or not isinstance(nodes.value, int) else nodes.value
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
        )


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
