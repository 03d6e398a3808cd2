"""Results as people paste them: quoted, indented, labelled, compressed; right, or refused."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable

import pytest
from conftest import SHARED_DATA
from hostile.file_damage import samples
from msgspec.structs import replace

from seatrial.applications.readers import reader_of, readers
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedExperiment, ImportedFile

PASTED = SHARED_DATA / "pasted"
Altered = Callable[[str], bytes]


def before_each(label: str) -> Altered:
    return lambda text: "".join(f"{label}{line}\n" for line in text.splitlines()).encode()


FORMS: dict[str, Altered] = {
    "srun --label": before_each(" 0: "),
    "MPICH": before_each("[0] "),
    "mpirun --tag-output": before_each("[1,0]<stdout>:"),
    "tag-output, indented": before_each("    [1,0]<stdout>:"),
    "date and tag": before_each("Sun Dec 24 09:52:05 2017[1,0]<stdout>:"),
    "kubectl": before_each("2024-05-07T12:00:01.123456789Z "),
    "clush": before_each("node01: "),
    "quoted": before_each("> "),
    "quoted twice": before_each(">> "),
    "a block of code": before_each("    "),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "colours": before_each("\x1b[0m\x1b[32m"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
}


def plain(file: ImportedFile) -> list[ImportedExperiment]:
    """The experiments without the remark on what was taken off."""
    return [
        replace(e, remarks=tuple(remark for remark in e.remarks if not remark.startswith("read without")))
        for e in file.experiments
    ]


@pytest.mark.parametrize("kind", readers())
def test_every_form_of_a_text_has_its_figures(kind: str) -> None:
    contents = samples(f"import {kind}")
    if not contents:
        pytest.skip(f"no sample of {kind}: the third-party samples (shared/data) are not here")
    text = min(contents, key=len).decode("utf-8-sig").replace("\r\n", "\n")
    wanted = plain(reader_of(kind).read(text.encode()))
    wrong = []
    for name, altered in FORMS.items():
        try:
            found = plain(reader_of(kind).read(altered(text)))
        except ParseError as error:
            wrong.append(f"{name}: {error}")
        else:
            if found != wanted:
                wrong.append(f"{name}: other figures")
    assert not wrong
