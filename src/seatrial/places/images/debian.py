"""A release of Debian as a tar archive, from where this machine's apt has its packages (one-line entries and deb822
stanzas, sources.list(5)), and the packages that an image has. seatrial names no mirror: the packages of an image come
from those of the machine, or from the one of the definition.

As root it works in its own mount namespace, so that nothing stays mounted whatever ends it; without root in a user
namespace, with the ids of /etc/subuid.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.errors import ImageError
from seatrial.model.environment.image import DebianBase, Package
from seatrial.model.frozen import Frozen
from seatrial.places.images.tools import run_tool, tool, tool_environment
from seatrial.places.images.tree import EntryKind, Tree, text_file
from seatrial.processes.start import OutOfTimeError, output_of

APT = Path("/etc/apt")
_MAIN = "main"
"""The component of a release that has its base system; archives of others mostly do not have one of this name."""
_PARTS = ("", "-updates", "-security")
"""What a machine installs of a release: the release itself and what corrects it."""
_ENTRY = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>(?:\s+\S+)*)")
_KEPT = ("signed-by", "trusted", "check-valid-until")
"""The options that decide whether an archive is trusted; the others are about this machine."""
_MOST_LIST_B = 1 << 20


class AptSource(Frozen):
    """One suite of one archive, with its components and the options that are kept."""

    uri: str
    suite: str
    components: tuple[str, ...]
    options: tuple[str, ...] = ()

    def entry(self) -> str:
        """As a line of sources.list."""
        options = f"[{' '.join(self.options)}] " if self.options else ""
        return " ".join(("deb", f"{options}{self.uri}", self.suite, *self.components))


def machine_sources(apt: Path = APT) -> tuple[AptSource, ...]:
    """Those of sources.list and sources.list.d, in apt's order; files that cannot be read are left out."""
    found: list[AptSource] = []
    for path in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if path.suffix not in (".list", ".sources"):
            continue
        try:
            with path.open(encoding="utf-8", errors="replace") as stream:
                text = stream.read(_MOST_LIST_B)
        except OSError:
            continue
        found += read_deb822(text) if path.suffix == ".sources" else read_one_line(text)
    return tuple(found)


def sources_of(suite: str, known: Sequence[AptSource]) -> list[str]:
    """What mmdebstrap takes a release from: the entries for it; the archive alone, if the machine has another release.

    Empty if no source is one of a release.
    """
    main = [one for one in known if _MAIN in one.components]
    if any(one.suite == suite for one in main):
        return [one.entry() for one in main if one.suite in {f"{suite}{part}" for part in _PARTS}]
    own = (one.uri for one in main if any(other.suite == f"{one.suite}{_PARTS[1]}" for other in main))
    return list(own)[:1]


def read_one_line(text: str) -> Iterator[AptSource]:
    """The binary sources of a .list file: `deb [options] URI SUITE COMPONENT...`."""
    for line in text.splitlines():
        found = _ENTRY.fullmatch(line.partition("#")[0].strip())
        if found is not None:
            options = [word.lower() for word in (found["options"] or "").split() if word.lower().startswith(_KEPT)]
            yield AptSource(found["uri"], found["suite"], tuple(found["components"].split()), tuple(options))


def read_deb822(text: str) -> Iterator[AptSource]:
    """The binary sources of a .sources file: each stanza may have several types, URIs and suites."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = _fields_of(stanza)
        words = {name: value.split() for name, value in fields.items()}
        if "deb" not in words.get("types", ()) or fields.get("enabled", "yes").strip().lower() in ("no", "false", "0"):
            continue
        # A key that is in the stanza itself cannot be an option of a line.
        options = [
            f"{name}={','.join(words[name])}" for name in _KEPT if name in words and "-----BEGIN" not in words[name]
        ]
        for uri in words.get("uris", ()):
            for suite in words.get("suites", ()):
                yield AptSource(uri, suite, tuple(words.get("components", ())), tuple(options))


def _fields_of(stanza: str) -> Mapping[str, str]:
    """Name in lower case -> value; lines that begin with a blank continue the one before."""
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1].isspace():
            fields[name] = f"{fields.get(name, '')} {line}"
        elif ":" in line:
            name, value = (part.strip() for part in line.split(":", 1))
            name = name.lower()
            fields[name] = value
    return fields


_USUAL_WORDS = (
    ("Unable to locate package", "correct the name of the package, or choose a suite that has it"),
    ("Could not resolve", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("Could not connect", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("Temporary failure", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("does not have a Release file", "the mirror has no such suite: correct `debian` or `mirror`"),
    ("404  Not Found", "the mirror has no such suite or package: correct `debian`, `packages` or `mirror`"),
    ("NO_PUBKEY", "the key of the suite is unknown here: install debian-archive-keyring"),
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
        if found is not None and found.kind is EntryKind.FILE:
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
_OTHER_LISTS = ("var/lib/rpm", "usr/lib/sysimage/rpm", "lib/apk", "usr/lib/apk", "var/lib/pacman")
"""Where other package managers keep theirs, which we do not read."""
_MOST_B = 64 << 20


def installed_packages(tree: Tree) -> tuple[Package, ...] | None:
    """The packages in an image, by name; none if it has no package manager, None if it has one that is not dpkg, or its
    list cannot be read."""
    found: list[Package] = []
    lists = [path for path in (_STATUS, *_status_files(tree)) if path in tree]
    for path in lists:
        content = tree.read(path, _MOST_B)
        if content is None:
            return None
        found += parse_status(content.decode("utf-8", "replace"))
    if not lists and any(other in tree for other in _OTHER_LISTS):
        return None
    return tuple(sorted(found, key=lambda one: (one.name, one.architecture, one.version)))


def parse_status(text: str) -> Iterator[Package]:
    """The installed packages in a list of dpkg; text -> packages. A paragraph without a Status is installed: images
    without dpkg (distroless) have such."""
    for paragraph in text.split("\n\n"):
        fields = _fields_of(paragraph)
        if "package" not in fields or fields.get("status", "install ok installed").split()[-1:] != ["installed"]:
            continue
        name, version, architecture = (fields.get(key, "") for key in ("package", "version", "architecture"))
        if name and f"{name}{version}{architecture}".isprintable():
            yield Package(name, version, architecture)


def _status_files(tree: Tree) -> list[str]:
    if _STATUS_FOLDER.rstrip("/") not in tree:
        return []
    return [path for path, entry in tree.sorted() if path.startswith(_STATUS_FOLDER) and not path.endswith(".md5sums")]
