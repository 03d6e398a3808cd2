"""CalculiX CrunchiX (ccx): the elapsed time of the whole run, which it prints since version 2.16, and runs.

`apps.calculix`: a bar that is struck at its end, by the explicit dynamics of CalculiX, a code of finite elements.

The problem is made here: a steel bar of 2 m x 0.1 m x 0.1 m in m x m x 20 m hexahedra of 8 nodes (C3D8), free at both
ends. A pressure of 1 MPa suddenly acts on one end, and a wave runs into the bar; the run ends when it has come three
quarters of the way. The time increment is the stable one that CalculiX selects. Most of the time goes into the stresses
of the elements, which threads share (POSIX threads, not bound to CPUs).

Poisson's ratio is zero, so that the bar is one-dimensional exactly, and theory judges the result (K. F. Graff, Wave
Motion in Elastic Solids, chapter 2): the wave runs at c = sqrt(E / rho), behind it all material moves at v = p / (rho
c), and half of the work that the pressure has done is kinetic energy, half is strain energy. Mesh and increments smear
the front, where a little of the energy is missing: 0.7 % with 40 elements along the bar, less with more.

CalculiX prints its time for the whole run only, with reading the mesh; the increment has its share of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.run_output import not_read, output_file, run_output
from seatrial.applications.reading.text import Pattern, number
from seatrial.applications.running.copies import problem
from seatrial.benchmarks.figures import between, duration, exactly, wall_time
from seatrial.benchmarks.placement import openmp_variables, refuse_too_many, thread_count
from seatrial.model.benchmark.benchmark import Bound, Check, External
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import THREADS, ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_TOOL = "CalculiX"
_LOOKS_LIKE = "CalculiX Version 2.20, Copyright(C) 1998-2022 Guido Dhondt"
_BANNER = Pattern(r"CalculiX Version (\d[\w.]{0,20}), Copyright.{0,80}")
_TOTAL = Pattern(r"Total CalculiX Time: ([0-9]{1,9}\.[0-9]{6})")
"""Elapsed time of the whole run, in s; since version 2.16."""
_FINISHED = Pattern(r"Job finished")
_UP_TO = Pattern(r"Using up to ([0-9]{1,9}) cpu\(s\) for .{1,80}")
_COUNT = Pattern(r"(nodes|elements): {1,30}([0-9]{1,12})")

_STRESSES = Pattern(r"Using up to ([0-9]{1,9}) cpu\(s\) for the stress calculation\.")
_SELECTED = Pattern(r"SELECTED time increment: ?([0-9.eE+-]{1,30})")
_REMAINDER = Pattern(r"the increment size exceeds the remainder of the step and is decreased to ([0-9.eE+-]{1,30})")
_HEADING = Pattern(r"(displacements|total .{1,30}?) (?:\(vx,vy,vz\) )?for set (\w{1,40}) and time +([0-9.E+-]{1,30})")
_MOST_OFF = 0.01
"""Of an increment: how far its times are from a whole number of increments, as they have 7 digits."""
_MOST_INCREMENTS = 1e9
_LONG_EXPONENT = Pattern(r"([0-9])([+-][0-9]{3})")
"""Fortran leaves the E out of 1.5E-110."""
_TOTAL_LIKE = Pattern(r".{0,200}CalculiX Time.{0,200}")
_STEP = Pattern(r"STEP {1,20}([0-9]{1,9})")
_SIZES_HEADING = Pattern(r"The numbers below are estimated upper bounds")
_ERROR = Pattern(r"^\*ERROR\b|Segmentation fault|best solution and residuals are in")
_NOT_FINITE = r"(?i)^(?:average|largest|time avg).{0,80}= {0,10}[+-]?(?:nan|inf)"


IMPORTED = figures.imported(
    "calculix",
    "CalculiX",
    "How long did CalculiX take?",
    (
        *figures.counts(threads="threads, at most", nodes="nodes of the mesh (upper bound)"),
        figures.count("elements", "elements of the mesh (upper bound)"),
    ),
    (figures.time("wall", "elapsed time of the whole run, with reading the input"),),
)


def _measured(log: Log, begin: Found, finished: Found) -> Measured:
    total = log.of_form(_TOTAL_LIKE, _TOTAL, "Total CalculiX Time: 1.234567")
    if not begin.line.number < finished.line.number < total.line.number:
        raise total.error("the banner, `Job finished` and this line are not in this order")
    notes = {"steps": len({step.match[1] for step in log.found(_STEP)})}
    return Measured([total.printed(1, "the time").sample("wall")], _parameters(log), notes)


def _parameters(log: Log) -> dict[str, Value]:
    """Threads, and the size of the model. Raises ParseError if there are two sizes: two runs."""
    parameters: dict[str, Value] = {}
    if threads := [int(one.match[1]) for one in log.found(_UP_TO)]:
        parameters["threads"] = max(threads)
    if log.at_most_one(_SIZES_HEADING, "model") is not None:
        for size in log.found(_COUNT):
            parameters.setdefault(size.match[1], size.whole(2, f"the number of {size.match[1]}"))
    return parameters


READER = log_reader(
    IMPORTED,
    _TOOL,
    _measured,
    begin=(_BANNER.text, _LOOKS_LIKE),
    signs=((_ERROR.text, "the run failed"), (_NOT_FINITE, "the solution diverged (not a number)")),
    end=(_FINISHED.text, "no `Job finished`"),
)


@run_output("CalculiX")
def read_ccx(log: Log) -> ProgramRecord:
    """The output of one run with explicit time integration: its time, threads and elements. Not `ended` if it stopped
    early. Raises ProtocolError for output of other programs, of two runs, and damaged numbers."""
    notes: dict[str, Any] = {"version": log.banner(_BANNER, _LOOKS_LIKE).match[1]}
    if failed := [text for text in log.texts if _ERROR.search(text)]:
        return ProgramRecord(notes={**notes, "error": failed[0][:300]})
    if not log.found(_FINISHED):
        return ProgramRecord(notes=notes)
    total = log.only(_TOTAL, "`Total CalculiX Time`, which versions before 2.16 do not print")
    step_s = log.only(_SELECTED, "time increment").number(1, "the time increment")
    rests = log.found(_REMAINDER)
    extra = {"increment_s": step_s, "rest_s": rests[-1].number_or_zero(1, "an increment") if rests else 0.0}
    counts = {one.match[1]: one.whole(2, f"the number of {one.match[1]}", least=0) for one in log.found(_COUNT)}
    checks: dict[str, float | None] = {
        "threads": float(log.only(_STRESSES, "number of threads of the stresses").whole(1, "the threads")),
        "elements": float(counts["elements"]) if "elements" in counts else None,
    }
    sample = Sample(INCREMENTS, 0, total.number(1, "the time"), extra=extra)
    return ProgramRecord(samples=(sample,), checks=checks, notes=notes, ended=True)


class CalculixResults(Frozen):
    """What a `.dat` file has of one time (s of the simulation): numbers by (quantity, set)."""

    time_s: float
    values: Mapping[tuple[str, str], tuple[float, ...]]


@output_file("CalculiX")
def read_results(log: Log) -> CalculixResults:
    """The printed results of one time. Raises ProtocolError for several times, twice the same, and damaged numbers."""
    values: dict[tuple[str, str], tuple[float, ...]] = {}
    times: set[float] = set()
    key: tuple[str, str] | None = None
    for line, text in log.numbered():
        if heading := _HEADING.fullmatch(text):
            key = (heading[1], heading[2])
            times.add(line.number_or_zero(heading[3], "a time"))
        elif text:
            if key is None or key in values:
                raise line.error(f"in its results, {text[:60]!r} is not where it is expected")
            numbers = [number(_LONG_EXPONENT.sub(r"\1E\2", word)) for word in text.split()]
            values[key] = tuple(one for one in numbers if one is not None)
            if len(values[key]) < len(numbers):
                raise line.error("a result is not a number")
    if len(times) != 1:
        raise log.error(f"its results are of {len(times)} times, expected one")
    return CalculixResults(times.pop(), values)


def with_increments(record: ProgramRecord, time_s: float) -> ProgramRecord:
    """The record with the number of increments that make this time (s of the simulation): equal ones, and the last the
    rest. Raises ProtocolError if they do not."""
    (sample,) = record.samples
    equal = (time_s - sample.extra["rest_s"]) / sample.extra["increment_s"]
    if not 0 <= equal < _MOST_INCREMENTS or not time_s or abs(equal - round(equal)) > _MOST_OFF:
        raise not_read("CalculiX", f"its increments make a time of {time_s:g} s with {equal:g} increments")
    count = round(equal) + (1 if sample.extra["rest_s"] else 0)
    return replace(record, samples=(replace(sample, work={"increments": float(count)}),))


_NAME = "bar"
_LENGTH_M = 2.0
_SIDE_M = 0.1
_ALONG = 20
"""Elements along the bar for each one across."""
_YOUNG_PA = 210e9
_DENSITY_KGPM3 = 7800.0
_PRESSURE_PA = 1e6
_SPEED_MPS = math.sqrt(_YOUNG_PA / _DENSITY_KGPM3)
_BEHIND_MPS = _PRESSURE_PA / (_DENSITY_KGPM3 * _SPEED_MPS)
_TIME_S = 0.75 * _LENGTH_M / _SPEED_MPS

_S_PER_ELEMENT_AND_INCREMENT = 1.5e-5
_INCREMENTS_PER_ELEMENT = 20
_START_S = 1.0

INCREMENTS = "increments"


def _elements(params: Params) -> int:
    return int(_ALONG * whole(params["across"]) ** 3)


def _inputs(params: Params) -> dict[str, bytes]:
    across = whole(params["across"])
    along, width = _ALONG * across, _SIDE_M / across
    row = across + 1

    def node(i: int, j: int, k: int) -> int:
        return 1 + (i * row + j) * row + k

    nodes = (
        f"{node(i, j, k)},{i * width:.9g},{j * width:.9g},{k * width:.9g}"
        for i in range(along + 1)
        for j in range(row)
        for k in range(row)
    )
    corners = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
    places = ((i, j, k) for i in range(along) for j in range(across) for k in range(across))
    elements = (
        ",".join(map(str, (number, *(node(i + a, j + b, k + c) for a, b, c in corners))))
        for number, (i, j, k) in enumerate(places, 1)
    )
    printed = "FREQUENCY=1000000000"  # at the end of the step only
    lines = (
        *("*NODE, NSET=ALL", *nodes),
        *("*ELEMENT, TYPE=C3D8, ELSET=BAR", *elements),
        *("*ELSET, ELSET=STRUCK, GENERATE", f"1,{across**2}"),
        *("*NSET, NSET=END", "1", "*NSET, NSET=MIDDLE", f"{node(along // 2, 0, 0)}"),
        *("*MATERIAL, NAME=STEEL", "*ELASTIC", f"{_YOUNG_PA:.6g},0", "*DENSITY", f"{_DENSITY_KGPM3:.6g}"),
        "*SOLID SECTION, ELSET=BAR, MATERIAL=STEEL",
        *("*AMPLITUDE, NAME=SUDDEN", "0,1,1,1"),
        f"*STEP, INC={100 * _INCREMENTS_PER_ELEMENT * across}, NLGEOM=NO",
        *("*DYNAMIC, EXPLICIT", f"{width / _SPEED_MPS:.9e},{_TIME_S:.9e}"),
        *("*DLOAD, AMPLITUDE=SUDDEN", f"STRUCK, P6, {_PRESSURE_PA:.6g}"),
        *(f"*NODE PRINT, NSET=END, {printed}", "U", f"*NODE PRINT, NSET=MIDDLE, {printed}", "U"),
        *(f"*EL PRINT, ELSET=BAR, TOTALS=ONLY, {printed}", "ELSE,ELKE,EVOL"),
        "*END STEP",
    )
    return {f"{_NAME}.inp": "".join(f"{line}\n" for line in lines).encode()}


def _complete(record: ProgramRecord, files: Mapping[str, bytes]) -> ProgramRecord:
    """The record with its increments and with the wave, from the printed results. Raises ProtocolError."""
    if not files:
        return record
    results = read_results(next(iter(files.values())))
    record = with_increments(record, results.time_s)
    end = results.values.get(("displacements", "END"), ())
    middle = results.values.get(("displacements", "MIDDLE"), ())
    strain, kinetic, volume = (
        results.values.get((f"total {what}", "BAR"), (math.nan,))[0]
        for what in ("internal energy", "kinetic energy", "volume")
    )
    if len(end) != 4 or len(middle) != 4:
        return record
    work = _PRESSURE_PA * _SIDE_M**2 * end[1]
    arrived_s = results.time_s - middle[1] / _BEHIND_MPS
    checks = {
        "end_time": results.time_s / _TIME_S,
        "end_speed": end[1] / (_BEHIND_MPS * results.time_s),
        "wave_speed": 0.5 * _LENGTH_M / arrived_s / _SPEED_MPS if arrived_s > 0 else None,
        "energy": (strain + kinetic) / work if work > 0 else None,
        "kinetic_share": kinetic / (strain + kinetic) if strain + kinetic > 0 else None,
        "volume": volume / (_LENGTH_M * _SIDE_M**2),
    }
    return replace(record, checks={**record.checks, **checks})


def _about_one(low: float, high: float) -> Bound:
    return between(1.0 - low, 1.0 + high)


_SHARES = ("CCX_NPROC_RESULTS", "CCX_NPROC_STIFFNESS", "CCX_NPROC_EQUATION_SOLVER")


def _variables(params: Params) -> Mapping[str, str | None]:
    return {**openmp_variables(params), **dict.fromkeys(_SHARES, str(whole(params[THREADS]))), "NUMBER_OF_CPUS": None}


def _prepare(machine: Machine, params: Params) -> Params:
    threads = thread_count(machine, params[THREADS])
    refuse_too_many(machine, 1, 1, threads)
    return {**params, THREADS: threads}


def _estimate_s(params: Params) -> float:
    increments = _INCREMENTS_PER_ELEMENT * whole(params["across"])
    return _START_S + _S_PER_ELEMENT_AND_INCREMENT * _elements(params) * increments / whole(params[THREADS])


BENCHMARK = problem(
    External(
        name="ccx",
        install="install CalculiX 2.16 or later (Debian: package calculix-ccx; Spack: spack install calculix)",
        output="stdout",
        arguments=lambda params, directory: [_NAME],
        parse=read_ccx,
        version=(),  # `ccx -v` prints it and fails
        inputs=_inputs,
        variables=_variables,
        files=(f"{_NAME}.dat",),
        complete=_complete,
        is_timed=True,
    ),
    name="apps.calculix",
    question="How fast does CalculiX follow a wave through a bar that is struck?",
    parameters=(
        Parameter.integer(
            "across", 6, "elements along each side of the section; the bar has 20 times their cube in all", minimum=2
        ),
        Parameter.integer(THREADS, "all", "threads of the stress calculation, not bound; all: one per core", minimum=1),
    ),
    figures=(
        duration(
            "increment",
            "one time increment of all elements, with its share of reading the mesh",
            "increments",
            series=INCREMENTS,
        ),
        wall_time("the whole run, by our own clock"),
    ),
    checks=(
        Check(THREADS, "threads of the stress calculation, as CalculiX reports", exactly(THREADS)),
        Check("elements", "elements, as CalculiX reports", exactly(_elements)),
        Check("volume", "volume of all elements, over that of the bar", _about_one(1e-5, 1e-5)),
        Check("end_time", "time at the end, over the planned one", _about_one(1e-5, 1e-5)),
        Check("end_speed", "mean speed of the struck end, over that of theory", _about_one(2e-3, 2e-3)),
        Check("wave_speed", "speed of the wave, over sqrt(E / rho)", _about_one(5e-3, 5e-3)),
        Check("energy", "kinetic and strain energy, over the work of the pressure", _about_one(0.012, 2e-3)),
        Check("kinetic_share", "kinetic energy, over all energy", between(0.495, 0.505)),
    ),
    placement=lambda machine, params: (),
    prepare=_prepare,
    estimate_s=_estimate_s,
    ranks="one",
)
