"""NVIDIA's build of HPCG: its output on the terminal, with the report of HPCG, which is read as that of HPCG.

Before the report it prints ratings of its own, of other phases and versions of the benchmark: none of them counts.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from seatrial.benchmarks.apps.hpcg_output import TOOL
from seatrial.errors import ParseError
from seatrial.imports.application_log import Log
from seatrial.imports.hpcg import read as read_hpcg
from seatrial.imports.reader import Reader
from seatrial.model.imported import ImportedFile

_BANNER = re.compile(r"HPCG-NVIDIA ([0-9][0-9.]{0,15})\s{1,9}--.{0,100}")
_MARK = re.compile(rb"NVIDIA|CUDA|GPU")


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError as the reader of HPCG does, and for another build."""
    found = read_hpcg(data)
    if not _MARK.search(data):
        why = "no line such as `HPCG-NVIDIA 25.4.0  -- NVIDIA accelerated HPCG`: `import hpcg=FILE` reads others"
        raise ParseError(TOOL, None, "", why)
    banner = Log(TOOL, data).at_most_one(_BANNER, "title `HPCG-NVIDIA`")
    version = found.version if banner is None else f"{found.version} (HPCG-NVIDIA {banner.text(1)})"
    experiments = tuple(replace(one, benchmark="imported.hpcg-nvidia") for one in found.experiments)
    return replace(found, version=version, experiments=experiments)


READER = Reader("hpcg-nvidia", read)
