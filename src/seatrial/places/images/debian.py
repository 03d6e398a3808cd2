"""A release of Debian as a tar archive, and the packages that an image has.

As root it works in a mount namespace of its own, so that nothing stays mounted whatever ends it; without root in a user
namespace, with the ids of /etc/subuid.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.errors import ImageError
from seatrial.model.environment.image import DebianBase, Package
from seatrial.places.images.apt_sources import APT, machine_sources, sources_of
from seatrial.places.images.tools import run_tool, tool, tool_environment
from seatrial.places.images.tree import Entry, Kind, Tree, text_file
from seatrial.processes.output import OutOfTimeError, output_of

_USUAL_WORDS = (
    ("Unable to locate package", "correct the name of the package, or choose a suite that has it"),
    ("Could not resolve", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("Could not connect", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("Temporary failure", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("does not have a Release file", "the mirror has no such suite: correct `debian` or `mirror`"),
    ("404  Not Found", "the mirror has no such suite or package: correct `debian`, `packages` or `mirror`"),
    ("NO_PUBKEY", "the key of the suite is not known here: install debian-archive-keyring"),
    ("No space left", "free some space, or set TMPDIR to a folder with more"),
)
_OF_THE_HOST = ("etc/hostname", "etc/resolv.conf")


def debian_command(base: DebianBase, packages: Sequence[str], apt: Path = APT) -> list[str]:
    """The command that prints the archive; without a mirror in the definition, from the sources of this machine's apt.

    Raises ImageError for a missing tool, and if no mirror is known.
    """
    sources = sources_of(base.suite, machine_sources(apt)) if base.mirror is None else [base.mirror]
    if not sources:
        raise ImageError(
            f"no mirror of Debian is known: {apt} has no source of a release",
            "name one in the definition: {debian: SUITE, mirror: URL}",
        )
    words = [
        tool("mmdebstrap", "mmdebstrap"),
        f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
        "--variant=minbase",
        "--format=tar",
        "--quiet",
        *([f"--include={','.join(packages)}"] if packages else []),
        base.suite,
        "-",
        *sources,
    ]
    if os.geteuid() == 0:
        return [tool("unshare", "util-linux"), "--mount", "--propagation", "private", "--", *words]
    return words


def make_debian(base: DebianBase, packages: Sequence[str], work: Path, epoch_s: int) -> Path:
    """The archive, in `work`. The same packages give the same bytes (SOURCE_DATE_EPOCH). Raises ImageError."""
    _need_user_namespace()
    temporary = work / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)  # without root, mmdebstrap writes as another user
    archive = work / "debian.tar"
    environment = tool_environment(SOURCE_DATE_EPOCH=str(epoch_s), TMPDIR=str(temporary))
    try:
        run_tool(debian_command(base, packages), output=archive, environment=environment)
    except ImageError as error:
        remedy = next((todo for words, todo in _USUAL_WORDS if words in error.message), "")
        raise ImageError(error.message, remedy) from error
    return archive


def forget_host(tree: Tree) -> None:
    """Empty what mmdebstrap copies from this machine: its name and its name servers."""
    for path in _OF_THE_HOST:
        found = tree.get(path)
        if found is not None and found.kind is Kind.FILE:
            tree.add(path, text_file(b"", tree.mtime_s))


def _need_user_namespace() -> None:
    """Raises ImageError if we are neither root nor able to be it in a user namespace with several ids."""
    if os.geteuid() == 0:
        return
    tool("newuidmap", "uidmap")
    try:
        answer = output_of([tool("mmdebstrap", "mmdebstrap"), "--unshare-helper", "true"], tool_environment(), 60.0)
    except (OSError, OutOfTimeError) as error:
        raise ImageError(f"mmdebstrap cannot be started: {error}") from error
    if answer.returncode != 0:
        words = answer.stderr.decode("utf-8", "replace").strip()
        raise ImageError(
            f"without root, packages need user namespaces with ids from /etc/subuid:\n    {words[-400:]}",
            "run as root, or have the administrator run: usermod --add-subuids 100000-165535 --add-subgids "
            "100000-165535 USER, and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
            "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu)",
        )


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
