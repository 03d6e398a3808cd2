"""NWChem: its logs, and runs on water made here or on an input of the user.

The elapsed time is that of `Total times`; the CPU time beside it is not.

The molecules are the first ones of the ice of `apps.amber` (amber_water.py), by the Hartree-Fock method in the basis
6-31G*. Their energy is checked; that of one molecule, -76.0105 hartree, is a textbook value. The others were computed
with NWChem 7.0.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import inf

from seatrial.applications.amber_water import first_atoms
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.run_output import run_output
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import Made, application
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.given_input import CASE, INPUT, InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.machine.machine import Machine

_TIMES = r" times +cpu: +([0-9]{1,12}\.[0-9])s +wall: +([0-9]{1,12}\.[0-9])s"
_TASK = Pattern("Task +" + _TIMES.lstrip())

IMPORTED = figures.imported(
    "nwchem",
    "NWChem",
    "How long did NWChem take?",
    figures.RUN_PARAMETERS,
    (figures.time("wall", "elapsed time of the whole run"),),
)


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    wall = end.printed(2, "the elapsed time")
    tasks = [one.printed(2, "the elapsed time of a task") for one in log.found(_TASK)]
    if sum(task.value - task.error for task in tasks) > wall.value + wall.error:
        raise end.error("the tasks took longer than the whole run")
    return Measured([wall.sample("wall")])


READER = log_reader(
    IMPORTED,
    "NWChem",
    _measured,
    begin=(r"nwchem branch += +(\S{1,40})", "nwchem branch   = 7.0.0"),
    refused=(
        (
            r"(?:.{0,40}Received an Error in Communication.{0,80}|There is an error .{1,80}"
            r"|For more information see the NWChem manual.{0,120})",
            "NWChem failed here: the run has no figure",
        ),
    ),
    end=("Total" + _TIMES, "there is no `Total times`"),
    states={"ranks": r"nproc += +([0-9]{1,9})"},
    remarked=("Calculation failed to converge", "the calculation did not converge"),
)

_WATER, _INPUT = "water", "water.nw"
_ENERGY = {1: -76.0105300, 2: -152.0260452, 4: -304.0489896, 8: -608.1191646}
"""Molecules -> total energy in hartree."""
_TOLERANCE = 1e-5
"""Hartree a molecule: ten times what the convergence leaves open."""
_FOUND = Pattern(r"Total (?:SCF|DFT) energy = +(-?[0-9.]{1,30})")


def _inputs(params: Params) -> Mapping[str, bytes]:
    if params[CASE] != _WATER:
        return {}
    elements = itertools.cycle("OHH")
    atoms = first_atoms(whole(params["molecules"]))
    lines = (
        *("start water", "geometry units angstrom noautosym noautoz"),
        *(f" {element} {x:.6f} {y:.6f} {z:.6f}" for element, (x, y, z) in zip(elements, atoms, strict=False)),
        *("end", "basis", " * library 6-31g*", "end", "scf", " thresh 1e-6", "end", "task scf energy"),
    )
    return {_INPUT: "".join(f"{line}\n" for line in lines).encode()}


@run_output("NWChem", ProgramRecord(ended=True))
def read_energy(log: Log) -> ProgramRecord:
    """The last energy in the log (hartree); a log without one has a task of another kind. Raises ProtocolError."""
    found = log.found(_FOUND)
    energy = found[-1].result(1, "the energy") if found else None
    return ProgramRecord(checks={"energy": energy or 0.0}, ended=True)


def _energy(machine: Machine, params: Params) -> tuple[float, float]:
    if params[CASE] != _WATER:
        return (-inf, inf)
    molecules = whole(params["molecules"])
    slack = _TOLERANCE * molecules
    return (_ENERGY[molecules] - slack, _ENERGY[molecules] + slack)


def _prepare(params: Params) -> Params:
    if params[CASE] == _WATER and params["molecules"] not in _ENERGY:
        known = ", ".join(map(str, _ENERGY))
        raise Skip(f"the energy of {params['molecules']} molecules is unknown: choose one of {known}")
    return params


BENCHMARK = application(
    IMPORTED,
    "How long does NWChem take?",
    tool="NWChem",
    programs=("nwchem", "nwchem.openmpi", "nwchem.mpich"),
    install="install NWChem (Debian: packages nwchem and nwchem-openmpi; Spack: spack install nwchem)",
    arguments=lambda params: [str(params[INPUT])],
    cases=(
        InputCase(_WATER, "molecules of water", "", _INPUT),
        InputCase(
            "c240", "the fullerene C240, basis 6-31G*", "https://nwchemgit.github.io/Benchmarks.html", "c240_631gs.nw"
        ),
    ),
    made=Made(
        inputs=_inputs,
        parameters=(
            Parameter.integer("molecules", 4, f"molecules of {_WATER}: {', '.join(map(str, _ENERGY))}", minimum=1),
        ),
        parse=read_energy,
        checks=(Check("energy", "total energy, in hartree", _energy),),
        prepare=_prepare,
        estimate_s=lambda params: 1.0 + 0.03 * whole(params["molecules"]) ** 3 if params[CASE] == _WATER else None,
    ),
    stated={"ranks": "ranks"},
)
