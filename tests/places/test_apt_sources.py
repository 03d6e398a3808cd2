"""The sources of apt, and what mmdebstrap is given of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import ImageError
from seatrial.model.environment.image import DebianBase
from seatrial.places.images import debian
from seatrial.places.images.debian import (
    AptSource,
    debian_command,
    machine_sources,
    read_deb822,
    read_one_line,
    sources_of,
)

ONE_LINE = """# the site's
deb [arch=amd64 signed-by=/k.gpg] http://site.example/debian bookworm main contrib  # all
deb-src http://site.example/debian bookworm main
deb http://site.example/debian bookworm-updates main
deb http://site.example/security bookworm-security main
deb http://tools.example/apt bookworm stable
deb cdrom:
"""
DEB822 = """Types: deb deb-src
# a comment
URIs: http://site.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /k.gpg

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb
URIs: http://tools.example/apt
Suites: nodistro
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
"""


def test_lines_and_stanzas_are_read() -> None:
    first = AptSource("http://site.example/debian", "bookworm", ("main", "contrib"), ("signed-by=/k.gpg",))
    assert next(iter(read_one_line(ONE_LINE))) == first and len(list(read_one_line(ONE_LINE))) == 4
    assert list(read_deb822(DEB822)) == [
        AptSource("http://site.example/debian", "trixie", ("main",), ("signed-by=/k.gpg",)),
        AptSource("http://site.example/debian", "trixie-updates", ("main",), ("signed-by=/k.gpg",)),
        AptSource("http://tools.example/apt", "nodistro", ("main",)),
    ]


def test_a_release_comes_with_its_corrections_and_from_no_other_archive() -> None:
    known = tuple(read_one_line(ONE_LINE))
    assert sources_of("bookworm", known) == [
        "deb [signed-by=/k.gpg] http://site.example/debian bookworm main contrib",
        "deb http://site.example/debian bookworm-updates main",
        "deb http://site.example/security bookworm-security main",
    ]
    assert sources_of("trixie", known) == ["http://site.example/debian"], "of another release, the archive"
    assert sources_of("trixie", tuple(read_one_line("deb http://tools.example/apt nodistro main"))) == []


def test_the_command_has_the_sources_of_the_machine_or_of_the_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "tool", lambda name, package: name)
    with pytest.raises(ImageError, match="no mirror of Debian is known"):
        debian_command(DebianBase("bookworm"), (), tmp_path)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d" / "b.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "b.sources.save").write_text("deb http://old.example/ bookworm main")
    assert len(machine_sources(tmp_path)) == 7
    assert debian_command(DebianBase("trixie"), (), tmp_path)[-2:] == [
        "deb [signed-by=/k.gpg] http://site.example/debian trixie main",
        "deb [signed-by=/k.gpg] http://site.example/debian trixie-updates main",
    ]
    own = debian_command(DebianBase("bookworm", "file:///mirror"), ("g++",), tmp_path)
    assert own[-3:] == ["bookworm", "-", "file:///mirror"] and "--include=g++" in own
