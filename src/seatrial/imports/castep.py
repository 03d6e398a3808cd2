"""Logs of CASTEP: `Total time`, which is the sum of initialisation, calculation and finalisation. CASTEP appends a
second run to the same file, which is refused."""

from __future__ import annotations

import re

from seatrial.imports.application_log import Log
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "CASTEP"
_BANNER = re.compile(r"\| *Welcome to .{0,40}CASTEP version +([0-9][^ |]{0,20}) *\|")
_SECONDS = r" +time *= +(\S{1,20}) s"
_PARTS = ("Initialisation", "Calculation", "Finalisation")
_TOTAL = re.compile("Total" + _SECONDS)
_RANKS = re.compile(r"Calculation parallelised over ([0-9]{1,9}) processes\.")
_ATOMS = re.compile(r"Total number of ions in cell += +([0-9]{1,12})")
_UNCONVERGED = re.compile(r"\*Warning\* max\. SCF cycles performed.{0,120}")


def read(data: bytes) -> ImportedFile:
    """One run of CASTEP. Raises ParseError if it did not end, or its times contradict each other."""
    log = Log(_TOOL, data)
    banner = log.banner(_BANNER, "| Welcome to Academic Release CASTEP version 21.11|")
    if not log.found(_TOTAL):
        raise log.not_ended("there is no `Total time`")
    total_line = log.only(_TOTAL, "`Total time`")
    total = total_line.printed(1, "the total time")
    parts = [log.only(re.compile(part + _SECONDS), f"`{part} time`").printed(1, f"{part} time") for part in _PARTS]
    slack = total.error + sum(part.error for part in parts)
    if abs(sum(part.value for part in parts) - total.value) > 1.01 * slack:
        raise total_line.error("the total is not the sum of initialisation, calculation and finalisation")
    remarks = tuple(f"line {one.line.number}: {one.text(0)}" for one in log.found(_UNCONVERGED)[:1])
    parameters: dict[str, Value] = {
        name: found.whole(1, name)
        for name, pattern in (("ranks", _RANKS), ("atoms", _ATOMS))
        if (found := log.maybe(pattern, f"number of {name}")) is not None
    }
    samples = (
        time_sample("wall", total.value, resolution=total.resolution),
        time_sample("calculation", parts[1].value, resolution=parts[1].resolution),
    )
    experiment = ImportedExperiment("imported.castep", samples, parameters, remarks=remarks)
    return ImportedFile(_TOOL, banner.text(1), (experiment,))


READER = Reader("castep", read)
