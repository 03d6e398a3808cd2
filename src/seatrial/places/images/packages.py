"""The packages that are installed in an image, from dpkg's own list (deb-status files: deb822(5), dpkg(1))."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seatrial.model.image_facts import Package
from seatrial.places.images.tree import Entry, Kind, Tree

_STATUS = "var/lib/dpkg/status"
_STATUS_FOLDER = "var/lib/dpkg/status.d/"
_OTHER_LISTS = (
    "var/lib/rpm",
    "usr/lib/sysimage/rpm",
    "lib/apk",
    "usr/lib/apk",
    "var/lib/pacman",
)
"""Where other package managers keep theirs, which we do not read."""
_MOST_B = 64 << 20


def installed_packages(tree: Tree) -> tuple[Package, ...] | None:
    """The packages in an image, by name; none if it has no package manager, None if it has one that is not dpkg, or its
    list cannot be read."""
    found: list[Package] = []
    lists = [path for path in (_STATUS, *_status_files(tree)) if path in tree]
    for path in lists:
        text = _text(tree.get(path))
        if text is None:
            return None
        found += parse_status(text)
    if not lists and any(other in tree for other in _OTHER_LISTS):
        return None
    return tuple(sorted(found, key=lambda one: (one.name, one.architecture, one.version)))


def parse_status(text: str) -> Iterator[Package]:
    """The installed packages in a list of dpkg; text -> packages. A paragraph without a Status is installed: images
    without dpkg (distroless) have such."""
    for paragraph in text.split("\n\n"):
        fields = _fields(paragraph)
        if "Package" not in fields or fields.get("Status", "install ok installed").split()[-1:] != ["installed"]:
            continue
        name, version, architecture = (fields.get(key, "") for key in ("Package", "Version", "Architecture"))
        if name and f"{name}{version}{architecture}".isprintable():
            yield Package(name, version, architecture)


def _fields(paragraph: str) -> Mapping[str, str]:
    lines = [line.partition(":") for line in paragraph.splitlines() if line[:1] not in ("", " ", "\t", "#")]
    return {name: value.strip() for name, colon, value in lines if colon}


def _status_files(tree: Tree) -> list[str]:
    if _STATUS_FOLDER.rstrip("/") not in tree:
        return []
    return [path for path, entry in tree.sorted() if path.startswith(_STATUS_FOLDER) and not path.endswith(".md5sums")]


def _text(entry: Entry | None) -> str | None:
    if entry is None or entry.kind is not Kind.FILE or entry.size > _MOST_B:
        return None
    with entry.content.open() as stream:
        return stream.read(entry.size).decode("utf-8", "replace")
