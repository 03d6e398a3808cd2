"""NVIDIA's build of HPL: the output of HPL among lines of its own, read as that of HPL."""

from __future__ import annotations

import re

from msgspec.structs import replace

from seatrial.benchmarks.apps.hpl_output import TOOL
from seatrial.errors import ParseError
from seatrial.imports.hpl import read as read_hpl
from seatrial.imports.reader import Reader
from seatrial.model.imported import ImportedFile

_MARK = re.compile(rb"NVIDIA|CUDA|GPU")


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError as the reader of HPL does, and for another build."""
    found = read_hpl(data)
    if not _MARK.search(data):
        why = "no line such as `HPL-NVIDIA 25.4.0  -- NVIDIA accelerated HPL benchmark`: `import hpl=FILE` reads others"
        raise ParseError(TOOL, None, "", why)
    experiments = tuple(replace(one, benchmark="imported.hpl-nvidia") for one in found.experiments)
    return replace(found, experiments=experiments)


READER = Reader("hpl-nvidia", read)
