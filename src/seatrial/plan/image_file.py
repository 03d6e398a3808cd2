"""A definition of an image, read and checked: YAML text -> `model.image.ImageDefinition`, or one clear message with
file, line and key."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from seatrial.benchmarks import registry
from seatrial.errors import UnknownNameError, UsageError, did_you_mean, nearest_names
from seatrial.model.image import AddedFile, Base, DebianBase, GivenBase, ImageDefinition, ImageFormat, StaticBase
from seatrial.model.image_facts import FACTS_FOLDER
from seatrial.plan.model_faults import Accepted, validated
from seatrial.plan.study_yaml import MAX_BYTES, Document, Node, error_at, read_yaml
from seatrial.plan.study_yaml import Path as Place
from seatrial.plan.variables import variables_at

_SUITE = re.compile(r"[a-z][a-z0-9.-]{0,60}")
_MIRROR = re.compile(r"(?:https?://[A-Za-z0-9]|file:///)[A-Za-z0-9._~:/%+-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(?:=[A-Za-z0-9][A-Za-z0-9.+~:-]*)?")
_MARCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,60}")
_MODE = re.compile(r"(?:0o?)?[0-7]{3,4}")
_ONLY_COMMENTS = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:#[^\n]*)?")
_LONGEST_PATH = 4096
_KERNELS_OWN = ("proc", "sys", "dev")
_EXAMPLE = "write at least base: static or base: {debian: bookworm}"


def read_image_file(data: bytes, file: str, folder: Path) -> ImageDefinition:
    """The definition that a file holds; `file` is its name for messages, `folder` that of its relative paths.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, names what cannot be in an
    image (paths with .., setuid bits), or contradicts itself. Reads no other file.
    """
    if len(data) > MAX_BYTES:
        raise error_at(file, None, "larger than 1 MiB: not a definition of an image", "give its YAML file")
    if _ONLY_COMMENTS.fullmatch(data.removeprefix(b"\xef\xbb\xbf")):
        raise error_at(file, None, "the file is empty", _EXAMPLE)
    from seatrial.plan.image_schema import ACCEPTED, NAMED, ImageModel

    document = read_yaml(data, file)
    validated(document, ImageModel, Accepted(ACCEPTED, NAMED))
    base = _base(document, folder)
    packages = tuple(_packages(document, base))
    return ImageDefinition(
        file=file,
        digest=f"sha256:{hashlib.sha256(data).hexdigest()}",
        base=base,
        packages=packages,
        programs=tuple(_programs(document, folder)),
        files=tuple(_files(document, folder)),
        variables=tuple(variables_at(document, ("variables",), "definition")),
        build=tuple(_build(document, base)),
        march=_march(document),
        format=_format(document),
    )


def _base(document: Document, folder: Path) -> Base:
    node = document.node(("base",))
    if node is None or node.value == "static":
        return StaticBase()
    given = [name for name in ("debian", "image") if _value(document, ("base", name)) is not None]
    if len(given) != 1:
        seen = "debian and image are both given" if given else "neither debian nor image is given"
        raise document.refuse(("base",), seen, "write {debian: SUITE}, {image: PATH}, or static")
    mirror = _value(document, ("base", "mirror"))
    if given == ["image"]:
        if mirror is not None:
            raise document.refuse(("base", "mirror"), "an image has no mirror", "remove it, or write {debian: SUITE}")
        return GivenBase(_path(document, ("base", "image"), folder))
    suite = str(_value(document, ("base", "debian")))
    if not _SUITE.fullmatch(suite):
        raise document.refuse(
            ("base", "debian"), f"it cannot be {suite[:60]!r}", "write the name of a release: bookworm"
        )
    if mirror is not None and not _MIRROR.fullmatch(mirror):
        todo = "write a URL that begins with http://, https:// or file:///, without a password"
        raise document.refuse(("base", "mirror"), f"it cannot be {mirror[:60]!r}", todo)
    return DebianBase(suite, mirror)


def _packages(document: Document, base: Base) -> Iterator[str]:
    for place, text in _listed(document, "packages"):
        if not _PACKAGE.fullmatch(text):
            raise document.refuse(place, f"{text[:60]!r} is not the name of a Debian package", "write it as g++")
        if not isinstance(base, DebianBase):
            todo = "write base: {debian: SUITE}, or put what the package has into the base image"
            raise document.refuse(("packages",), "packages need base: {debian: SUITE}", todo)
        yield text


def _programs(document: Document, folder: Path) -> Iterator[Path]:
    names: dict[str, str] = {}
    for place, text in _listed(document, "programs"):
        found = None if "/" in text else shutil.which(text)
        path = Path(found) if found is not None else _path(document, place, folder)
        name = PurePosixPath(text).name
        if name in names:
            raise document.refuse(place, f"{text} and {names[name]} have the same name", "rename one of them")
        names[name] = text
        yield path


def _files(document: Document, folder: Path) -> Iterator[AddedFile]:
    mapping = document.node(("files",))
    for to, node in (mapping.entries if mapping is not None else {}).items():
        place: Place = ("files", to)
        line = mapping.key_lines[to] if mapping is not None else None
        yield _added(document, place, _place_in_image(document, place, to, line), node, folder)


def _added(document: Document, place: Place, to: str, node: Node, folder: Path) -> AddedFile:
    if node.is_scalar:
        return AddedFile(to, source=_path(document, place, folder))
    given = [name for name in ("from", "text", "link") if _value(document, (*place, name)) is not None]
    if len(given) != 1:
        seen = f"{' and '.join(given)} are both given" if given else "it states no content"
        raise document.refuse(place, seen, "give one of from, text, link")
    mode = _mode(document, (*place, "mode"))
    if given == ["from"]:
        return AddedFile(to, source=_path(document, (*place, "from"), folder), mode=mode)
    if given == ["text"]:
        return AddedFile(to, text=str(_value(document, (*place, "text"))), mode=mode)
    if mode is not None:
        raise document.refuse((*place, "mode"), "a link has no permissions of its own", "remove it")
    link = str(_value(document, (*place, "link")))
    if not link.isprintable():
        raise document.refuse((*place, "link"), "it has control characters", "write a path")
    return AddedFile(to, link=link)


def _place_in_image(document: Document, place: Place, to: str, line: int | None) -> str:
    """An absolute path in the image, without a slash at its end."""
    parts = to.strip("/").split("/")
    if not to.startswith("/") or not to.isprintable() or len(to) > _LONGEST_PATH or parts == [""]:
        raise document.refuse(place, "it is not a path in the image", "write an absolute path, such as /opt/app", line)
    if ".." in parts or "." in parts or "" in parts:
        raise document.refuse(place, "a path in the image has no .. , . or //", "write the path itself", line)
    if parts[0] in (*_KERNELS_OWN, FACTS_FOLDER):
        owner = "seatrial" if parts[0] == FACTS_FOLDER else "the kernel"
        raise document.refuse(place, f"/{parts[0]} in a container is {owner}'s", "choose another path", line)
    return "/" + "/".join(parts)


def _mode(document: Document, place: Place) -> int | None:
    node = document.node(place)
    if node is None or node.value is None:
        return None
    if not _MODE.fullmatch(node.written):
        raise document.refuse(place, f"it cannot be {node.shown()}", "write permissions in octal, such as 0755")
    mode = int(node.written.removeprefix("0o"), 8)
    if mode & 0o7000:
        raise document.refuse(place, "setuid, setgid and sticky bits are not accepted", "write permissions as 0755")
    return mode


def _build(document: Document, base: Base) -> Iterator[str]:
    for place, name in _listed(document, "build"):
        benchmark = registry().get(name)
        if benchmark is None:
            unknown = UnknownNameError("benchmark", name[:100], registry())
            raise document.refuse(place, unknown.message, unknown.todo)
        if benchmark.program.source is None:
            raise document.refuse(place, f"{name} has no program of seatrial", "remove it, and install its program")
        if isinstance(base, StaticBase):
            todo = "write base: {debian: SUITE} with g++ in packages, or build outside with -static: programs"
            raise document.refuse(("build",), "a static image has no compiler", todo)
        yield name


def _march(document: Document) -> str:
    text = _value(document, ("march",))
    if text is not None and not _MARCH.fullmatch(text):
        raise document.refuse(("march",), f"it cannot be {text[:60]!r}", "write native or x86-64-v3, for example")
    return text or "native"


def _format(document: Document) -> ImageFormat | None:
    text = _value(document, ("format",))
    if text is None:
        return None
    try:
        return ImageFormat(text)
    except ValueError:
        known = [one.value for one in ImageFormat]
        near = nearest_names(text[:60], known)
        todo = did_you_mean(near) if near else f"it takes {', '.join(known)}"
        raise document.refuse(("format",), f"it cannot be {text[:60]!r}", todo) from None


def _value(document: Document, place: Place) -> str | None:
    node = document.node(place)
    return None if node is None or node.value is None else str(node.value)


def _listed(document: Document, key: str) -> Iterator[tuple[Place, str]]:
    """The place and text of each item of a list. Raises UsageError for a duplicate."""
    node = document.node((key,))
    seen: set[str] = set()
    for position, item in enumerate(node.items if node is not None else ()):
        place: Place = (key, position)
        if str(item.value) in seen:
            raise document.refuse(place, f"{item.shown()} is listed twice", "keep one of them")
        seen.add(str(item.value))
        yield place, str(item.value)


def _path(document: Document, place: Place, folder: Path) -> Path:
    """A path outside the image: absolute, from ~/, or in the folder of the definition and not above it."""
    text = _value(document, place) or ""
    if not text.isprintable() or not text or len(text) > _LONGEST_PATH:
        raise document.refuse(place, "it is not a path", "write the path of a file or folder")
    if ".." in PurePosixPath(text).parts:
        todo = "write an absolute path, or one in the folder of this file"
        raise document.refuse(place, f"{text[:100]!r}: .. is not accepted", todo)
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise document.refuse(place, "no home directory for ~", "give the full path") from None


def read_image_path(path: Path) -> ImageDefinition:
    """The definition in a file. Raises UsageError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(
            f"the definition {str(path)!r} cannot be read: {why}", "give the YAML file of an image"
        ) from error
    return read_image_file(data, str(path), path.absolute().parent)
