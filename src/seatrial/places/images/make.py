"""Makes an image from its definition: base, packages, files, programs, and at the end the facts about all of it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from seatrial.errors import ImageError, UsageError
from seatrial.model.environment.image import (
    FACTS_FILE,
    FACTS_FOLDER,
    IMAGE_ENDINGS,
    MOST_FACTS_B,
    DebianBase,
    GivenBase,
    ImageDefinition,
    ImageFacts,
    ImageFormat,
    ImageProgram,
    facts_text,
    read_facts,
)
from seatrial.model.frozen import Frozen
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.places.images.debian import forget_host, installed_packages, make_debian
from seatrial.places.images.entries import EntryLeftOut, add_tar
from seatrial.places.images.given import add_files, add_given, add_programs, check_outside, facts_of_image, kind_of
from seatrial.places.images.oci import ARCHITECTURES, write_oci
from seatrial.places.images.programs import WantedProgram, add_built
from seatrial.places.images.tools import move_into_place, private_folder, refuse_existing, tool
from seatrial.places.images.tree import Entry, Tree, add_mount_points, add_static_root, folder, text_file
from seatrial.places.images.write import Content, need_sif, write_folder, write_sif, write_squashfs, write_tar
from seatrial.version import __version__

EPOCH_S = 946_684_800
"""The time that every image has unless SOURCE_DATE_EPOCH states one: the year 2000, UTC."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LATEST_S = 1 << 32
"""squashfs has times of 32 bits."""
_SPARE_B = 16 << 20


class MadeImage(Frozen):
    """An image that was made: `digest` identifies it as a file (OCI: its manifest; a folder: its content), `size_B` are
    the bytes of the file, or of the files in a folder."""

    path: Path
    format: ImageFormat
    digest: str
    size_B: int
    facts: ImageFacts


def make_image(
    definition: ImageDefinition,
    image: Path,
    *,
    force: bool = False,
    wanted: Iterable[WantedProgram] = (),
    isa: Callable[[], Iterable[str]] = tuple,
    announce: Callable[[str], None] = lambda text: None,
) -> MadeImage:
    """Make the image; `wanted` are the programs to compile inside, `isa` the features of this CPU.

    Whatever ends it: the image is there whole, or as it was before. Raises UsageError before anything is made for what
    the definition or the name of the image has wrong, ImageError.
    """
    epoch_s = _epoch()
    kind = format_of(definition, image)
    image = image.absolute()
    _check_place(image, kind, force=force)
    check_outside(definition)
    if isinstance(definition.base, GivenBase):
        kind_of(definition.base.path)
    _check_tools(definition, kind)
    try:
        with private_folder(Path(tempfile.gettempdir()), 0o711) as work, private_folder(image.parent) as beside:
            tree, base, left_out, variables = _based(definition, work, epoch_s, announce)
            add_programs(tree, definition.programs)
            add_files(tree, definition.files)
            add_mount_points(tree)
            programs: tuple[ImageProgram, ...] = ()
            if wanted := tuple(wanted):
                programs = add_built(tree, wanted, definition.march, isa, work, announce)
            maker = _Maker(definition, tree, base, variables | dict(definition.variables), programs, left_out)
            announce(f"writing {image}")
            made = maker.write(beside, kind, image)
            move_into_place(beside / image.name, image, replace=force)
            return made
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise ImageError(f"the image cannot be made: {error.strerror or error}{where}") from error


def format_of(definition: ImageDefinition, image: Path) -> ImageFormat:
    """How an image is written. Raises UsageError if neither the definition nor the ending of the name states it."""
    if definition.format is not None:
        return definition.format
    for ending, kind in IMAGE_ENDINGS.items():
        if image.name.endswith(ending) and image.name != ending:
            return kind
    if image.suffix:
        endings = ", ".join(IMAGE_ENDINGS)
        raise UsageError(
            f"{image.name}: the ending {image.suffix} is not one of an image",
            f"use {endings} or no ending (a folder), or state `format` in the definition",
        )
    return ImageFormat.FOLDER


def _epoch() -> int:
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return EPOCH_S
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) >= _LATEST_S:
        raise UsageError(f"SOURCE_DATE_EPOCH cannot be {text[:40]!r}", "set it to seconds since 1970, or unset it")
    return int(text)


def _check_place(image: Path, kind: ImageFormat, *, force: bool) -> None:
    """Raises UsageError if the image cannot be put there."""
    if image.name in ("", ".", "..") or not image.name.isprintable():
        raise UsageError(f"{str(image)!r} is not the name of an image", "give another name with -o")
    if not image.parent.is_dir():
        raise UsageError(f"{image.parent} is not a folder", "create it first, or give another name with -o")
    if not force:
        refuse_existing(image)
        return
    if not os.path.lexists(image):
        return
    if image.is_symlink() or image.is_dir() != (kind is ImageFormat.FOLDER) or not (image.is_dir() or image.is_file()):
        raise UsageError(f"{image} is of another kind, and is not replaced", "remove it, or give another name with -o")
    if image.is_dir() and facts_of_image(image) is None:
        todo = "remove it yourself, or give another name with -o"
        raise UsageError(f"{image} is not an image that seatrial made, and is not replaced", todo)


def _check_tools(definition: ImageDefinition, kind: ImageFormat) -> None:
    """Raises ImageError for a missing tool, before anything is made."""
    if kind is ImageFormat.SQUASHFS:
        tool("mksquashfs", "squashfs-tools")
    if kind is ImageFormat.SIF:
        need_sif()
    if isinstance(definition.base, DebianBase):
        tool("mmdebstrap", "mmdebstrap")


def _based(
    definition: ImageDefinition, work: Path, epoch_s: int, announce: Callable[[str], None]
) -> tuple[Tree, str, EntryLeftOut, dict[str, str]]:
    """The tree of the base, the base in words, what of it was left out, and its variables."""
    tree, left_out = Tree(epoch_s), EntryLeftOut()
    match definition.base:
        case DebianBase() as base:
            number = len(definition.packages)
            more = f" and {number} {'package' if number == 1 else 'packages'}" if number else ""
            announce(f"installing Debian {base.suite}{more} with mmdebstrap")
            add_tar(tree, make_debian(base, definition.packages, work, epoch_s), epoch_s, None)
            forget_host(tree)
            return tree, f"Debian {base.suite}{f' from {base.mirror}' if base.mirror else ''}", left_out, {}
        case GivenBase() as base:
            announce(f"reading {base.path}")
            variables = add_given(tree, base.path, work, left_out)
            words = f"{kind_of(base.path).value} {base.path.name}"
            stated = _usable(variables)
            if (facts := read_facts(tree.read(FACTS_FILE, MOST_FACTS_B) or b"")) is not None:
                words = f"{words} ({facts.content})"
                stated |= _usable(f"{name}={value}" for name, value in facts.variables)
            return tree, words, left_out, stated
    add_static_root(tree)
    return tree, "static", left_out, {}


def _usable(variables: Iterable[str]) -> dict[str, str]:
    """The variables of a base that can be shown."""
    pairs = (text.partition("=") for text in variables)
    return {
        name: value
        for name, _, value in pairs
        if _VARIABLE.fullmatch(name) and value.isprintable() and not sounds_like_a_secret(name)
    }


class _Maker(Frozen):
    """Everything that goes into an image, ready to be written."""

    definition: ImageDefinition
    tree: Tree
    base: str
    variables: dict[str, str]
    programs: tuple[ImageProgram, ...]
    left_out: EntryLeftOut

    def write(self, beside: Path, kind: ImageFormat, image: Path) -> MadeImage:
        """Write the image into the private folder `beside`, under its later name."""
        self._need_space(beside, kind)
        self.tree.remove(FACTS_FILE)
        self.tree.add(FACTS_FOLDER, folder(self.tree.mtime_s))
        made, root = beside / image.name, beside / "root.tar.part"
        facts: list[ImageFacts] = []

        def last(content: Content) -> Entry:
            facts.append(self._facts(content))
            return text_file(facts_text(facts[0]), self.tree.mtime_s)

        with root.open("xb") as stream:
            self.tree.add(FACTS_FILE, write_tar(self.tree, stream, last))
        digest = self._write(kind, root, made, facts[0])
        size_B = facts[0].size_B if kind is ImageFormat.FOLDER else made.stat().st_size
        return MadeImage(image, kind, digest, size_B, facts[0])

    def _write(self, kind: ImageFormat, root: Path, made: Path, facts: ImageFacts) -> str:
        """Write it in its format; its digest."""
        epoch_s = self.tree.mtime_s
        match kind:
            case ImageFormat.FOLDER:
                write_folder(self.tree, made, with_owners=os.geteuid() == 0)
                return facts.content
            case ImageFormat.TAR:
                root.rename(made)
            case ImageFormat.SQUASHFS:
                write_squashfs(root, made, epoch_s)
            case ImageFormat.OCI:
                name = f"localhost/{re.sub('[^a-z0-9]+', '-', made.name.split('.')[0].lower()).strip('-') or 'image'}"
                return write_oci(
                    root,
                    made,
                    architecture=facts.architecture,
                    variables=self.variables,
                    epoch_s=epoch_s,
                    name=f"{name}:latest",
                )
            case ImageFormat.SIF:
                unpacked = made.with_name("sif-root")
                write_folder(self.tree, unpacked, with_owners=os.geteuid() == 0)
                write_sif(need_sif(), unpacked, made, epoch_s)
        with made.open("rb") as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"

    def _facts(self, content: Content) -> ImageFacts:
        return ImageFacts(
            content=content.digest,
            definition=self.definition.digest,
            base=self.base,
            architecture=ARCHITECTURES.get(platform.machine(), platform.machine()),
            epoch_s=self.tree.mtime_s,
            packages=installed_packages(self.tree),
            variables=tuple(sorted(self.variables.items())),
            programs=self.programs,
            files=content.files,
            size_B=content.size_B,
            dropped_setuid=len(self.left_out.setuid),
            version=__version__,
        )

    def _need_space(self, beside: Path, kind: ImageFormat) -> None:
        """Raises ImageError if the image does not fit, before it is written."""
        entries = {id(entry): entry.size for _, entry in self.tree.sorted()}
        needed = sum(entries.values()) * (1 if kind is ImageFormat.TAR else 2) + _SPARE_B
        free = shutil.disk_usage(beside).free
        if needed > free:
            raise ImageError(
                f"the image needs about {needed >> 20} MiB while it is made, and {beside.parent} has {free >> 20} MiB",
                "free some space, or give another path with -o",
            )
