"""A definition of an image: its keys, and what they become (`model.environment.image.ImageDefinition`)."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from seatrial.benchmarks import benchmark_of, registry
from seatrial.errors import PlaceError, UnknownNameError
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.environment.image import (
    FACTS_FOLDER,
    AddedFile,
    Base,
    DebianBase,
    GivenBase,
    ImageDefinition,
    ImageFormat,
    StaticBase,
)
from seatrial.plan.file_model import (
    Faults,
    Kind,
    Model,
    Spot,
    either,
    listed,
    member,
    model,
    named,
    one_of,
    optional,
    required,
    scalar,
    text,
)
from seatrial.plan.files import MAX_BYTES, FileKind, read_file, read_yaml
from seatrial.plan.variables import variables

KIND = FileKind(
    "definition of an image", "give its YAML file", needs="write at least base: static or base: {debian: bookworm}"
)

_SUITE = re.compile(r"[a-z][a-z0-9.-]{0,60}")
_MIRROR = re.compile(r"(?:https?://[A-Za-z0-9]|file:///)[A-Za-z0-9._~:/%+-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(?:=[A-Za-z0-9][A-Za-z0-9.+~:-]*)?")
_MARCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,60}")
_MODE = re.compile(r"(?:0o?)?[0-7]{3,4}")
_LONGEST_PATH = 4096
_MOST = 10_000
_KERNELS_OWN = ("proc", "sys", "dev")
_EXAMPLE = benchmark_of(Role.MEMORY_BANDWIDTH)
_FORMATS = [one.value for one in ImageFormat]


def _matching(pattern: re.Pattern[str], todo: str) -> Kind[str]:
    return text().only(pattern.fullmatch, "it cannot be {}", todo)


def _path(spot: Spot, value: str) -> str:
    """A path outside the image: absolute, from ~/, or in the folder of the definition and not above it."""
    if not value.isprintable() or not value or len(value) > _LONGEST_PATH:
        raise spot.refuse("it is not a path", "write the path of a file or folder")
    if ".." in PurePosixPath(value).parts:
        todo = "write an absolute path, or one in the folder of this file"
        raise spot.refuse(f"{value[:100]!r}: .. is not accepted", todo)
    try:
        return str(Path(value).expanduser())
    except RuntimeError:
        raise spot.refuse("no home directory for ~", "give the full path") from None


def _built(spot: Spot, name: str) -> str:
    """A benchmark with a program of seatrial."""
    benchmark = registry().get(name)
    if benchmark is None:
        unknown = UnknownNameError("benchmark", name[:100], registry())
        raise spot.refuse(unknown.message, unknown.todo)
    if benchmark.program.source is None:
        raise spot.refuse(f"{name} has no program of seatrial", "remove it, and install its program")
    return name


def _mode(spot: Spot, _: object) -> int:
    written = spot.node.written
    if not _MODE.fullmatch(written):
        raise spot.cannot_be("write permissions in octal, such as 0755")
    mode = int(written.removeprefix("0o"), 8)
    if mode & 0o7000:
        raise spot.refuse("setuid, setgid and sticky bits are not accepted", "write permissions as 0755")
    return mode


def _check_place(spot: Spot, to: str) -> None:
    """Raises PlaceError for an invalid path in the image."""
    at, line = spot.inner(to), spot.node.key_lines[to]
    parts = _parts(to)
    if not to.startswith("/") or not to.isprintable() or len(to) > _LONGEST_PATH or parts == [""]:
        raise at.refuse("it is not a path in the image", "write an absolute path, such as /opt/app", line)
    if ".." in parts or "." in parts or "" in parts:
        raise at.refuse("a path in the image has no .. , . or //", "write the path itself", line)
    if parts[0] in (*_KERNELS_OWN, FACTS_FOLDER):
        owner = "seatrial" if parts[0] == FACTS_FOLDER else "the kernel"
        raise at.refuse(f"/{parts[0]} in a container is {owner}'s", "choose another path", line)


def _parts(to: str) -> list[str]:
    return to.strip("/").split("/")


_SCALAR: Kind[int | str] = scalar(int, str)


class BaseModelOfImage(Model):
    """What the image begins with: a release of Debian, or an image that exists."""

    debian = optional(
        "the name of a release of Debian, such as bookworm", _matching(_SUITE, "write the name of a release: bookworm")
    )
    mirror = optional(
        "the URL of a mirror of Debian: begins with http://, https:// or file:/// "
        "(default: that of this machine's apt)",
        _matching(_MIRROR, "write a URL that begins with http://, https:// or file:///, without a password"),
    )
    image = optional(
        "the path of a folder, tar, OCI archive or squashfs: absolute, from ~/, or in this file's folder",
        text().then(_path),
    )

    def base(self, folder: Path) -> Base:
        """The base; relative paths are in the folder."""
        if (self.debian is None) == (self.image is None):
            given = self.debian is not None
            seen = "debian and image are both given" if given else "neither debian nor image is given"
            raise self.refuse((), seen, "write {debian: SUITE}, {image: PATH}, or static")
        if self.debian is not None:
            return DebianBase(self.debian, self.mirror)
        if self.mirror is not None:
            raise self.refuse(("mirror",), "an image has no mirror", "remove it, or write {debian: SUITE}")
        return GivenBase(folder / str(self.image))


class ImageFileModel(Model):
    """What goes to a path of the image."""

    accepts = "the path of a file or folder, or a mapping with one of from, text, link, and mode"

    from_ = optional(
        "the path of a file or folder: absolute, from ~/, or in the folder of this file", text().then(_path)
    )
    text_ = optional("the content of the file", text(least=0, most=1 << 20))
    link = optional(
        "what the symbolic link points to", text().only(str.isprintable, "it has control characters", "write a path")
    )
    mode = optional("permissions, such as 0755; without setuid, setgid and sticky bits", _SCALAR.then(_mode))

    def added(self, to: str, folder: Path) -> AddedFile:
        """The file at its path in the image."""
        given = [name for name in ("from", "text", "link") if self.values.get(name) is not None]
        if len(given) != 1:
            seen = f"{' and '.join(given)} are both given" if given else "it states no content"
            raise self.refuse((), seen, "give one of from, text, link")
        if self.link is not None and self.mode is not None:
            raise self.refuse(("mode",), "a link has no permissions", "remove it")
        source = None if self.from_ is None else folder / self.from_
        return AddedFile(to, source=source, text=self.text_, link=self.link, mode=self.mode)


class ImageModel(Model):
    """The definition of an image."""

    base = required(
        "static, {debian: SUITE} such as {debian: bookworm}, or {image: PATH} of a folder, tar, OCI archive or "
        "squashfs",
        either(one_of("static"), model(BaseModelOfImage)),
    )
    packages = optional(
        "a list of Debian packages, such as [g++, openmpi-bin]; needs base: {debian: ...}",
        listed(
            text()
            .only(_PACKAGE.fullmatch, "{} is not the name of a Debian package", "write it as g++")
            .accepting("the name of a package, such as openmpi-bin, or with a version: openmpi-bin=4.1.4-3"),
            most=_MOST,
            unique=True,
        ),
        (),
    )
    programs = optional(
        "a list of statically linked programs, which go into /usr/bin",
        listed(
            text()
            .then(lambda spot, value: (None if "/" in value else shutil.which(value)) or _path(spot, value))
            .accepting("a command on PATH, or a path: absolute, from ~/, or in the folder of this file"),
            most=_MOST,
            unique=True,
        ),
        (),
    )
    files = optional(
        "a mapping of paths in the image to what goes there, such as {/opt/app: ./app}",
        named(
            either(text(least=0, most=None).then(_path), model(ImageFileModel)),
            _check_place,
            most=_MOST,
            propertyNames={"minLength": 1, "maxLength": _LONGEST_PATH},
        ),
    )
    variables = optional(
        "a mapping of environment variables to values, such as {OMP_PROC_BIND: close}",
        variables("definition", 1000),
        (),
    )
    build = optional(
        f"a list of benchmarks whose programs are compiled inside, such as [{_EXAMPLE}]; needs a compiler there",
        listed(text().then(_built).accepting(f"the name of a benchmark, such as {_EXAMPLE}"), most=1000, unique=True),
        (),
    )
    march = optional(
        "the instruction set that `build` compiles for: native (the default) or what -march accepts, such as x86-64-v3",
        _matching(_MARCH, "write native or x86-64-v3, for example"),
        "native",
    )
    format = optional(
        f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]} (default: by the ending of the image's name)",
        member(ImageFormat),
    )

    def definition(self, file: str, digest: str, folder: Path) -> ImageDefinition:
        """The definition in the file of that name; relative paths are in the folder."""
        base, faults = StaticBase() if isinstance(self.base, str) else self.base.base(folder), Faults()
        if self.packages and not isinstance(base, DebianBase):
            todo = "write base: {debian: SUITE}, or put what the package has into the base image"
            faults.found.append(self.refuse(("packages",), "packages need base: {debian: SUITE}", todo))
        if self.build and isinstance(base, StaticBase):
            todo = "write base: {debian: SUITE} with g++ in packages, or build outside with -static: programs"
            faults.found.append(self.refuse(("build",), "a static image has no compiler", todo))
        faults.found += self._same_names()
        faults.raise_all()
        return ImageDefinition(
            file=file,
            digest=digest,
            base=base,
            packages=self.packages,
            programs=tuple(folder / program for program in self.programs),
            files=tuple(self._added(folder)),
            variables=self.variables,
            build=self.build,
            march=self.march,
            format=self.format,
        )

    def _same_names(self) -> Iterator[PlaceError]:
        names: dict[str, str] = {}
        for position, node in enumerate(self.at("programs").node.items if self.programs else ()):
            name = PurePosixPath(node.written).name
            if name in names:
                seen = f"{node.written} and {names[name]} have the same name"
                yield self.refuse(("programs", position), seen, "rename one of them")
            names[name] = node.written

    def _added(self, folder: Path) -> Iterator[AddedFile]:
        for name, given in (self.files or {}).items():
            to = "/" + "/".join(_parts(name))
            yield AddedFile(to, source=folder / given) if isinstance(given, str) else given.added(to, folder)


def read_image_file(data: bytes, file: str, folder: Path) -> ImageDefinition:
    """The definition that a file holds; `file` is its name for messages, `folder` that of its relative paths.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, names what cannot be in an
    image (paths with .., setuid bits), or contradicts itself. Reads no other file.
    """
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return ImageModel.of(read_yaml(data, file, KIND)).definition(file, digest, folder)


def read_image_path(path: Path) -> ImageDefinition:
    """The definition in a file. Raises UsageError."""
    data = read_file(path, MAX_BYTES, "give the YAML file of an image", "the definition ")
    return read_image_file(data, str(path), path.absolute().parent)
