"""Output of OpenSBLI's benchmark (Taylor-Green vortex). Every rank prints the banner, and their lines may be mixed."""

from __future__ import annotations

import re

from seatrial.imports.application_log import Log
from seatrial.imports.reader import Reader
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "OpenSBLI"
_BANNER = re.compile(r"This is the benchmark application developed for the CFD application of the")
_EDGE = re.compile(r"The number of grid points used per direction are ([0-9]{1,9})")
_POINTS = re.compile(r"The total number of grid points are ([0-9]{1,18})")
_RANK = re.compile(r"rank ([0-9]{1,9}) \([-0-9 ]{1,60}\)")
_PERFORMED = re.compile(r"performed ([0-9]{1,12}) iterations")
_TOTAL = re.compile(r"Total Wall time of the time iteration loop for ([0-9]{1,12}) iterations, ([^ ,]{1,30})")
_ONE = re.compile(r"Time taken for 1 iteration, ([^ ,]{1,30})")


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if it did not end, holds two runs, or contradicts itself."""
    log = Log(_TOOL, data)
    if not log.found(_BANNER):
        raise log.error("no line `This is the benchmark application developed for the CFD application of the`")
    total, one = log.only(_TOTAL, "`Total Wall time`"), log.only(_ONE, "`Time taken for 1 iteration`")
    performed = log.only(_PERFORMED, "`performed N iterations`")
    time, iteration = total.printed(2, "the time"), one.printed(1, "the time of an iteration")
    iterations = total.whole(1, "the iterations")
    if performed.whole(1, "the iterations") != iterations:
        raise total.error(f"{iterations} iterations, but {performed.match[1]} were performed")
    if not time.scaled(1.0 / iterations).agrees(iteration):
        raise one.error(f"{iterations} iterations of this time are not {total.match[2]} s")
    parameters: dict[str, Value] = {"iterations": iterations}
    edge, points = log.maybe(_EDGE, "grid"), log.maybe(_POINTS, "grid")
    if edge is not None:
        parameters["edge"] = edge.whole(1, "the grid")
        if points is not None and points.whole(1, "the grid") != edge.whole(1, "the grid") ** 3:
            raise points.error(f"not {edge.match[1]} points in each direction")
    ranks = {found.whole(1, "the rank", least=0) for found in log.found(_RANK)}
    if ranks and ranks == set(range(len(ranks))):  # lines of ranks may be torn: then their number is not known
        parameters["ranks"] = len(ranks)
    samples = (
        time.sample("wall"),
        time.sample("step", count=iterations),
    )
    return ImportedFile(_TOOL, "", (ImportedExperiment("imported.opensbli", samples, parameters),))


READER = Reader("opensbli", read)
