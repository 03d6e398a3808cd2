"""Output of OpenSBLI's benchmark (Taylor-Green vortex). Every rank prints the banner, and their lines may be mixed.

`apps.opensbli`: OpenSBLI's benchmark, whose case is compiled in.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Value

_EDGE = Pattern(r"The number of grid points used per direction are ([0-9]{1,9})")
_POINTS = Pattern(r"The total number of grid points are ([0-9]{1,18})")
_RANK = Pattern(r"rank ([0-9]{1,9}) \([-0-9 ]{1,60}\)")
_PERFORMED = Pattern(r"performed ([0-9]{1,12}) iterations")
_ONE = Pattern(r"Time taken for 1 iteration, ([^ ,]{1,30})")


def _measured(log: Log, begin: Found, total: Found) -> Measured:
    one = log.only(_ONE, "`Time taken for 1 iteration`")
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
    if ranks and ranks == set(range(len(ranks))):  # lines of ranks may be torn: then their number is unknown
        parameters["ranks"] = len(ranks)
    return Measured([time.sample("wall"), time.sample("step", count=iterations)], parameters)


IMPORTED = figures.imported(
    "opensbli",
    "OpenSBLI",
    "How long did OpenSBLI take for its iterations?",
    figures.counts(ranks="processes", edge="grid points in each direction", iterations="time iterations"),
    (
        figures.time("wall", "elapsed time of all iterations, without the start"),
        figures.time("step", "elapsed time of an iteration, on average"),
    ),
)

READER = log_reader(
    IMPORTED,
    "OpenSBLI",
    _measured,
    begin=(
        "This is the benchmark application developed for the CFD application of the",
        "This is the benchmark application developed for the CFD application of the",
    ),
    is_begun_anywhere=True,  # every rank prints it
    end=(
        r"Total Wall time of the time iteration loop for ([0-9]{1,12}) iterations, ([^ ,]{1,30})",
        "no `Total Wall time`",
    ),
)


BENCHMARK = application(
    IMPORTED,
    "How long does OpenSBLI take for an iteration of a Taylor-Green vortex?",
    tool="OpenSBLI",
    programs=("OpenSBLI_mpi", "OpenSBLI_mpi_openmp"),
    install="build OpenSBLI's benchmark (https://github.com/hpc-uk/archer-benchmarks, apps/OpenSBLI) and put "
    "OpenSBLI_mpi on PATH",
    cases=(InputCase("tgv", "the Taylor-Green vortex of the size that was compiled in", ""),),
    made=Made(),
    has_start=False,
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
