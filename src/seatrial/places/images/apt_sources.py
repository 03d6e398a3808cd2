"""Where this machine's apt has its packages from: one-line entries and deb822 stanzas (sources.list(5)).

seatrial names no mirror: the packages of an image come from those of the machine, or from the one of the definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.model.frozen import Frozen

APT = Path("/etc/apt")
_MAIN = "main"
"""The component of a release that has its base system; archives of others mostly do not have one of this name."""
_PARTS = ("", "-updates", "-security")
"""What a machine installs of a release: the release itself and what corrects it."""
_ENTRY = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>(?:\s+\S+)*)")
_KEPT = ("signed-by", "trusted", "check-valid-until")
"""The options that decide whether an archive is trusted; the others are about this machine."""
_MOST_B = 1 << 20


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
                text = stream.read(_MOST_B)
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
        fields = _fields(stanza)
        words = {name: value.split() for name, value in fields.items()}
        if "deb" not in words.get("types", ()) or fields.get("enabled", "yes").strip().lower() in ("no", "false", "0"):
            continue
        # A key that stands in the stanza itself cannot be an option of a line.
        options = [
            f"{name}={','.join(words[name])}" for name in _KEPT if name in words and "-----BEGIN" not in words[name]
        ]
        for uri in words.get("uris", ()):
            for suite in words.get("suites", ()):
                yield AptSource(uri, suite, tuple(words.get("components", ())), tuple(options))


def _fields(stanza: str) -> Mapping[str, str]:
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
