"""apps.nwchem: NWChem on water made here, or on an input of the user; its log is read as `seatrial import nwchem=FILE`
does.

The molecules are the first ones of the ice of `apps.amber` (amber_water.py), by the Hartree-Fock method in the basis
6-31G*. Their energy is checked; that of one molecule, -76.0105 hartree, is a textbook value. The others were computed
with NWChem 7.0.2.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from math import inf

from seatrial.benchmarks.apps.amber_water import first_atoms
from seatrial.benchmarks.apps.given_input import Made, application
from seatrial.benchmarks.apps.output import Text
from seatrial.benchmarks.imported.nwchem import BENCHMARK as IMPORTED
from seatrial.model.benchmark import Check, Skip
from seatrial.model.given_input import CASE, INPUT, InputCase
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.protocol import ProgramRecord

_WATER, _INPUT = "water", "water.nw"
_ENERGY = {1: -76.0105300, 2: -152.0260452, 4: -304.0489896, 8: -608.1191646}
"""Molecules -> total energy in hartree."""
_TOLERANCE = 1e-5
"""Hartree a molecule: ten times what the convergence leaves open."""
_FOUND = re.compile(r"Total (?:SCF|DFT) energy = +(-?[0-9.]{1,30})")


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


def read_energy(data: bytes) -> ProgramRecord:
    """The last energy in the log (hartree); a log without one has a task of another kind. Raises ProtocolError."""
    text = Text("NWChem", data)
    found = text.found(_FOUND)
    energy = text.number(found[-1][1], "the energy") if found else None
    return ProgramRecord(checks={"energy": 0.0 if energy is None else energy}, ended=True)


def _energy(machine: Machine, params: Params) -> tuple[float, float]:
    if params[CASE] != _WATER:
        return (-inf, inf)
    molecules = whole(params["molecules"])
    slack = _TOLERANCE * molecules
    return (_ENERGY[molecules] - slack, _ENERGY[molecules] + slack)


def _prepare(params: Params) -> Params:
    if params[CASE] == _WATER and params["molecules"] not in _ENERGY:
        known = ", ".join(map(str, _ENERGY))
        raise Skip(f"the energy of {params['molecules']} molecules is not known: choose one of {known}")
    return params


def _estimate_s(params: Params) -> float | None:
    return 1.0 + 0.03 * whole(params["molecules"]) ** 3 if params[CASE] == _WATER else None


BENCHMARK = application(
    "apps.nwchem",
    "How long does NWChem take?",
    IMPORTED,
    tool="NWChem",
    programs=("nwchem", "nwchem.openmpi", "nwchem.mpich"),
    install="install NWChem (Debian: packages nwchem and nwchem-openmpi; Spack: spack install nwchem)",
    arguments=lambda params: [str(params[INPUT])],
    output="stdout",
    cases=(
        InputCase(_WATER, "molecules of water", "", _INPUT),
        InputCase(
            "c240", "the fullerene C240, basis 6-31G*", "https://nwchemgit.github.io/Benchmarks.html", "c240_631gs.nw"
        ),
    ),
    made=Made(
        inputs=_inputs,
        parameters=(
            Parameter(
                "molecules",
                ParameterKind.INTEGER,
                4,
                f"molecules of {_WATER}: {', '.join(map(str, _ENERGY))}",
                minimum=1,
            ),
        ),
        parse=read_energy,
        checks=(Check("energy", "total energy, in hartree", _energy),),
        prepare=_prepare,
        estimate_s=_estimate_s,
    ),
    stated={"ranks": "ranks"},
)
