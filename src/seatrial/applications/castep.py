"""CASTEP: its logs, and runs on its published inputs.

`Total time` is the sum of initialisation, calculation and finalisation. CASTEP appends a second run to the same file,
which is refused.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT, InputCase

_SECONDS = r" +time *= +(\S{1,20}) s"
_PARTS = {part: Pattern(part + _SECONDS) for part in ("Initialisation", "Calculation", "Finalisation")}

IMPORTED = figures.imported(
    "castep",
    "CASTEP",
    "How long did CASTEP take?",
    figures.RUN_PARAMETERS,
    (
        figures.time("wall", "elapsed time of the whole run"),
        figures.time("calculation", "elapsed time between initialisation and finalisation"),
    ),
)


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    total = end.printed(1, "the total time")
    parts = [log.only(line, f"`{part} time`").printed(1, f"{part} time") for part, line in _PARTS.items()]
    slack = total.error + sum(part.error for part in parts)
    if abs(sum(part.value for part in parts) - total.value) > 1.01 * slack:
        raise end.error("the total is not the sum of initialisation, calculation and finalisation")
    return Measured([total.sample("wall"), parts[1].sample("calculation")])


READER = log_reader(
    IMPORTED,
    "CASTEP",
    _measured,
    begin=(
        r"\| *Welcome to .{0,40}CASTEP version +([0-9][^ |]{0,20}) *\|",
        "| Welcome to Academic Release CASTEP version 21.11|",
    ),
    end=("Total" + _SECONDS, "there is no `Total time`"),
    states={
        "ranks": r"Calculation parallelised over ([0-9]{1,9}) processes\.",
        "atoms": r"Total number of ions in cell += +([0-9]{1,12})",
    },
    remarked=(r"\*Warning\* max\. SCF cycles performed.{0,120}", "{text}"),
)

BENCHMARK = application(
    IMPORTED,
    "How long does CASTEP take?",
    tool="CASTEP",
    programs=("castep.mpi", "castep"),
    install="CASTEP needs a licence (http://www.castep.org): put castep.mpi on PATH",
    arguments=lambda params: [str(params[INPUT]).removesuffix(".param")],
    output="*.castep",
    cases=(
        InputCase(
            "al3x3",
            "a slab of sapphire, 270 atoms",
            "http://www.castep.org/CASTEP/Benchmarks",
            "al3x3.param",
            ("al3x3.cell",),
            270,
        ),
    ),
    evidence=FORMAT_SEEN,
)
