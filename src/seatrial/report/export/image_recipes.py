"""A definition of an image in the languages of others: an Apptainer definition file and a Containerfile.

They describe the same base, packages, files and variables; digests differ from ours, since those tools write times and
their own layers. Where packages and images come from is the site's: no mirror is named but that of the definition.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.model.environment.image import AddedFile, DebianBase, GivenBase, ImageDefinition, StaticBase


def apptainer_definition(definition: ImageDefinition) -> str:
    """An Apptainer definition file (Apptainer user guide, "Definition Files"). Sources have absolute paths.

    Raises UsageError for what it cannot state.
    """
    _refuse_build(definition)
    return "\n".join([_made_from(definition), *_apptainer(definition)]) + "\n"


def containerfile(definition: ImageDefinition, folder: Path) -> str:
    """A Containerfile for `podman build -f FILE FOLDER`, whose sources are below `folder`, the build context.

    Raises UsageError for a source elsewhere, and for what it cannot state.
    """
    _refuse_build(definition)
    return "\n".join([_made_from(definition), *_containerfile(definition, folder.resolve())]) + "\n"


RECIPES: Mapping[str, Callable[[ImageDefinition, Path], str]] = {
    "apptainer": lambda definition, folder: apptainer_definition(definition),
    "containerfile": containerfile,
}
"""KIND of `--also-as` -> the text of a definition, whose folder is given."""


def _made_from(definition: ImageDefinition) -> str:
    return f"# The same image as {Path(definition.file).name}, written by seatrial container make."


def _apptainer(definition: ImageDefinition) -> Iterator[str]:
    setup: list[str] = []
    match definition.base:
        case DebianBase(suite, mirror):
            yield from ("Bootstrap: debootstrap", f"OSVersion: {suite}", f"MirrorURL: {mirror or '{{ MIRROR }}'}")
            if mirror is None:
                yield "# The mirror of this site: apptainer build --build-arg MIRROR=URL ..."
        case GivenBase(path) if path.is_dir() or path.suffix in (".sqfs", ".squashfs"):
            yield from ("Bootstrap: localimage", f"From: {path}")
        case GivenBase(path) if path.name.endswith((".oci.tar", ".oci")):
            yield from ("Bootstrap: oci-archive", f"From: {path}")
        case GivenBase(path):
            yield "Bootstrap: scratch"
            setup = [f'tar -C "$APPTAINER_ROOTFS" -xf {shlex.quote(str(path))}']
        case StaticBase():
            yield "Bootstrap: scratch"
            setup = [
                'mkdir -p "$APPTAINER_ROOTFS/usr/bin" "$APPTAINER_ROOTFS/tmp"',
                'ln -s usr/bin "$APPTAINER_ROOTFS/bin"',
            ]
    files = list(_sources(definition))
    for spaced in (word for source, to in files for word in (str(source), to) if any(map(str.isspace, word))):
        raise UsageError(f"an Apptainer definition cannot copy {spaced!r}: it has a space", "rename it")
    made, modes = [], []
    for one in definition.files:
        made += _made_by_shell(one, '"$APPTAINER_ROOTFS"')
        if one.source is not None and one.mode is not None:
            modes.append(f"chmod {one.mode:04o} {shlex.quote(one.to)}")
    if setup or made:
        yield from ("", "%setup", *(f"    {line}" for line in (*setup, *made)))
    if files:
        yield from ("", "%files", *(f"    {shlex.quote(str(source))} {shlex.quote(to)}" for source, to in files))
    post = [*_install(definition), *modes]
    if post and isinstance(definition.base, StaticBase):
        raise UsageError(
            "an Apptainer definition of a static root cannot set `mode` of copied files: there is no chmod inside",
            "give the files these permissions, and leave `mode` out",
        )
    if post:
        yield from ("", "%post", *(f"    {line}" for line in post))
    if definition.variables:
        yield from ("", "%environment")
        yield from (f"    export {name}={shlex.quote(value)}" for name, value in definition.variables)


def _containerfile(definition: ImageDefinition, folder: Path) -> Iterator[str]:
    match definition.base:
        case DebianBase(suite, mirror):
            if mirror is not None:
                yield f"# The definition names the mirror {mirror}; this uses that of the image below."
            yield "# The image of Debian that this site uses: podman build --build-arg DEBIAN=IMAGE ..."
            yield from (f"ARG DEBIAN=debian:{suite}-slim", "FROM ${DEBIAN}")
        case GivenBase(path) if path.name.endswith((".oci.tar", ".oci")):
            yield f"FROM oci-archive:{path}"
        case GivenBase(path) if path.is_dir():
            yield from ("FROM scratch", f"COPY {_json_words(_below(path, folder) + '/', '/')}")
        case GivenBase(path) if path.suffix == ".tar":
            yield from ("FROM scratch", f"ADD {_json_words(_below(path, folder), '/')}")
        case GivenBase(path):
            raise UsageError(
                f"a Containerfile cannot begin with {path}", "give a folder, a tar or an OCI archive as base"
            )
        case StaticBase():
            yield "FROM scratch"
    has_shell = not isinstance(definition.base, StaticBase)
    install = list(_install(definition))
    if install:
        yield f"RUN {' && '.join(install)}"
    for source, to in _sources(definition):
        is_folder = source.is_dir()
        mode = next((one.mode for one in definition.files if one.to == to and one.mode is not None), None)
        chmod = "" if mode is None else f"--chmod={mode:04o} "
        slash = "/" if is_folder else ""
        yield f"COPY {chmod}{_json_words(_below(source, folder) + slash, to + slash)}"
    for one in definition.files:
        made = _made_by_shell(one, "")
        if made and not has_shell:
            raise UsageError(
                f"a Containerfile of a static root cannot make {one.to}: there is no shell inside",
                "write texts into files and name them with `from`, and leave links out",
            )
        if made:
            yield f"RUN {' && '.join(made)}"
    yield from (f"ENV {name}={_quoted(value)}" for name, value in definition.variables)


def _refuse_build(definition: ImageDefinition) -> None:
    if definition.build:
        raise UsageError(
            "the programs of `build` are compiled by seatrial, which other tools cannot do",
            "leave `build` out of this definition; seatrial compiles for an image when it measures in it",
        )


def _sources(definition: ImageDefinition) -> Iterator[tuple[Path, str]]:
    """Source outside and path inside of what is copied."""
    for program in definition.programs:
        yield program.resolve(), f"/usr/bin/{program.name}"
    for one in definition.files:
        if one.source is not None:
            yield one.source.resolve(), one.to


def _install(definition: ImageDefinition) -> Iterator[str]:
    if definition.packages:
        names = " ".join(map(shlex.quote, definition.packages))
        yield "apt-get update"
        yield f"DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {names}"
        yield "rm -rf /var/lib/apt/lists/*"


def _made_by_shell(one: AddedFile, root: str) -> list[str]:
    """The commands that make a text or a link below `root`."""
    to = f"{root}{shlex.quote(one.to)}"
    above = f"{root}{shlex.quote(os.path.dirname(one.to) or '/')}"  # noqa: PTH120 - a path of the image
    if one.link is not None:
        return [f"mkdir -p {above}", f"ln -sfn {shlex.quote(one.link)} {to}"]
    if one.text is None:
        return []
    mode = 0o644 if one.mode is None else one.mode
    return [f"mkdir -p {above}", f"printf %b {_printf_text(one.text)} > {to}", f"chmod {mode:04o} {to}"]


def _printf_text(text: str) -> str:
    """A text for `printf %b` in one line."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return shlex.quote(escaped)


def _below(path: Path, folder: Path) -> str:
    path = path.resolve()
    if not path.is_relative_to(folder):
        raise UsageError(
            f"{path} is outside {folder}: a Containerfile copies only from the folder that it is built with",
            "put it into the folder of the definition",
        )
    return path.relative_to(folder).as_posix()


def _json_words(*words: str) -> str:
    return json.dumps(list(words), ensure_ascii=False)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'
