"""What programs and files say reaches a terminal, a page and a message without what acts on it."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from analysis.test_index import put
from hypothesis import given
from hypothesis import strategies as some

from seatrial.cli.process import Shown
from seatrial.model.pasted import unpacked
from seatrial.printable import SPACES, printable, shown, without_sequences, without_sequences_of_bytes
from seatrial.report.pages.view import templates

ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
TITLE, COLOUR, BIDI = "\x1b]0;mine\x07", "\x1b[1;31m", "\u202egnp.\u2066exe"


@given(some.text(alphabet=some.sampled_from("ab[]0;m\n\x1b\x07\x9b\u202e\u200b\\(BJ?25h\r"), max_size=40))
def test_nothing_that_acts_is_left(text: str) -> None:
    assert not ACTS.search(printable(text)) and not ACTS.search(shown(text, is_terminal=False))
    kept = re.sub(r"\x1b\[(?:[0-9;]*m|\?25[hl]|[0-9]*[AK])|\r", "", shown(text, is_terminal=True))
    assert not ACTS.search(kept)


def test_whole_sequences_go_and_the_rest_is_seen() -> None:
    assert printable(f"{TITLE}a{COLOUR}b\x1b(B\x1b[m{BIDI}\x1b") == "ab?gnp.?exe?"
    assert without_sequences(f"{TITLE}1{COLOUR}2\x1b[0m\n") == "12\n"
    assert without_sequences_of_bytes(unpacked(f"{COLOUR}2\x1b[0m\n".encode(), 100)) == b"2\n"
    assert printable(f"64{SPACES[0]}MiB", SPACES) == f"64{SPACES[0]}MiB"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_stream_for_people_has_colours_only_on_a_terminal(is_terminal: bool) -> None:
    raw = io.BytesIO()
    raw.isatty = lambda: is_terminal  # type: ignore[method-assign]
    stream = Shown(raw, "utf-8", write_through=True)
    print(f"{COLOUR}x\x1b[0m{TITLE}{BIDI}\t64{SPACES[0]}MiB", file=stream)
    stream.write_data(f"{BIDI}\n")
    first, second = raw.getvalue().decode().splitlines()
    text = f"?gnp.?exe\t64{SPACES[0]}MiB"
    assert first == (f"{COLOUR}x\x1b[0m{text}" if is_terminal else f"x{text}")
    assert second == (BIDI.replace("\u202e", "?").replace("\u2066", "?") if is_terminal else BIDI)


def test_a_page_has_no_text_that_changes_its_direction() -> None:
    assert not ACTS.search(templates().from_string("{{ text }}").render(text=f"{BIDI}\u200b"))


@pytest.mark.real
def test_names_of_files_are_printed_without_sequences(tmp_path: Path) -> None:
    put(tmp_path / "r", 2)
    command = [sys.executable, "-m", "seatrial", "report", "r", "-o", f"{TITLE.replace('/', '')}{BIDI}.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.decode().endswith("/?gnp.?exe.html\n"), done
