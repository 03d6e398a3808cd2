"""apps.qe: the electrons of silicon by Quantum ESPRESSO's pw.x, a plane-wave code of density-functional theory.

The problem is made here: a supercell of the diamond lattice (a = 10.2 bohr, 8 atoms in a cubic cell), at Gamma, with
the local-density pseudopotential Si.pz-vbc.UPF that comes with Quantum ESPRESSO, a cutoff of 18 Ry, and the electrons
brought to self-consistency. Most of the time goes into three-dimensional transforms and dense linear algebra, and into
the all-to-all between ranks that the transforms need.

The total energy judges the result: it is a property of the problem, and must not depend on ranks, threads or libraries.
The expected energies were computed with pw.x 6.7: at Gamma, n^3 cells have the energy of one cell with n^3 k-points on
a grid that holds Gamma, which is cheap to compute (for n = 2 both were: they agree to 1e-7 Ry).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.benchmarks.apps.copies import with_copies
from seatrial.benchmarks.apps.layout import RANKS, THREADS, counted_by, cpus_of, openmp_variables, placement, resolved
from seatrial.benchmarks.apps.output import Text
from seatrial.benchmarks.bounds import exactly
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.model.benchmark import Benchmark, Better, Check, External, Figure, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

_INPUT = "silicon.in"
_PSEUDOPOTENTIAL = "Si.pz-vbc.UPF"
_ATOMS = 8
_BASIS = (
    *((0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)),
    *((0.25, 0.25, 0.25), (0.25, 0.75, 0.75), (0.75, 0.25, 0.75), (0.75, 0.75, 0.25)),
)
_ENERGY_RY = {1: -7.8249048, 2: -7.9143054, 3: -7.9212708, 4: -7.9221874, 5: -7.9223153, 6: -7.9223690}
"""Per atom, by the cells along an edge."""
_TOLERANCE_RY = 2e-5
_ACCURACY_RY = 1e-8
_S_PER_ATOM_CUBED = 1.2e-4
_START_S = 2.0

_BANNER = re.compile(r"Program PWSCF v\.?([0-9]\S{0,20}) +starts on .{1,60}")
_MISSING = re.compile(r"file .{0,300}\.UPF not found")
_ERROR = re.compile(r"from \S{1,40} : error # +.{1,40}|Error in routine \S{1,40} \(.{1,20}\):")
_NOT_CONVERGED = re.compile(r"convergence NOT achieved.{0,80}")
_CONVERGED = re.compile(r"convergence has been achieved in +([0-9]{1,4}) iterations")
_ENERGY = re.compile(r"! +total energy +=\s+(-?[0-9.]{1,30}) Ry")
_ACCURACY = re.compile(r"estimated scf accuracy +< +([0-9.E+-]{1,30}) Ry")
_ELECTRONS = re.compile(r"electrons +: +\S{1,20} CPU +(\S.{0,20}) WALL \( +1 calls\)")
_TOTAL = re.compile(r"PWSCF +: +.{1,20}? CPU +(\S.{0,20}) WALL")
_TIME = re.compile(r"(?:([0-9]{1,4})h)? *(?:([0-9]{1,2})m)? *(?:([0-9]{1,5}\.[0-9]{2})s)?")
_RANKS = re.compile(
    r"(?:Number of MPI processes: +|Parallel version \(MPI\), running on +)([0-9]{1,7})(?: processors)?"
)
_THREADED = re.compile(r"Parallel version \(MPI & OpenMP\), running on +([0-9]{1,9}) processor cores")
_THREADS = re.compile(r"Threads/MPI process: +([0-9]{1,6})")
_COUNT = re.compile(r"number of atoms/cell += +([0-9]{1,9})")
_DONE = re.compile(r"JOB DONE\.")

SCF = "scf"


def _inputs(params: Params) -> dict[str, bytes]:
    cells = whole(params["cells"])
    edge = range(cells)
    atoms = [
        " Si " + " ".join(f"{(corner + offset) / cells:.10f}" for corner, offset in zip((i, j, k), place, strict=True))
        for i in edge
        for j in edge
        for k in edge
        for place in _BASIS
    ]
    lines = (
        *("&control", " calculation='scf', prefix='si', outdir='.', disk_io='none'"),
        *(f" pseudo_dir='{params['pseudo_dir']}'", "/"),
        f"&system ibrav=1, celldm(1)={10.2 * cells:.1f}, nat={len(atoms)}, ntyp=1, ecutwfc=18.0 /",
        f"&electrons conv_thr={_ACCURACY_RY:.1e}, mixing_beta=0.7, startingwfc='atomic' /".replace("e-", "d-"),
        *("ATOMIC_SPECIES", f" Si 28.0855 {_PSEUDOPOTENTIAL}", "ATOMIC_POSITIONS crystal", *atoms, "K_POINTS gamma"),
    )
    return {_INPUT: "".join(f"{line}\n" for line in lines).encode()}


def read_pw(data: bytes) -> ProgramRecord:
    """One self-consistent calculation of pw.x: its iterations. Not `ended` if it stopped early; skipped where the
    pseudopotential is missing. Raises ProtocolError for output of other programs, of two runs, and damaged numbers."""
    text = Text("pw.x", data)
    if not data.strip():
        return ProgramRecord()
    banners = text.found(_BANNER)
    if len(banners) != 1:
        raise text.error(
            f"it has {len(banners) or 'no'} lines such as `Program PWSCF v.7.2 starts on ...`, expected one"
        )
    notes: dict[str, Any] = {"version": banners[0][1]}
    if text.found(_MISSING):
        why = f"pw.x finds no {_PSEUDOPOTENTIAL}: set pseudo_dir to the folder that has it"
        return ProgramRecord(notes=notes, skip=why, ended=True)
    if failed := [*text.found(_ERROR), *text.found(_NOT_CONVERGED)]:
        return ProgramRecord(notes={**notes, "error": failed[0][0][:300]})
    if not text.found(_DONE):
        return ProgramRecord(notes=notes)
    iterations = text.whole(text.only(_CONVERGED, "the number of iterations")[1], "the number of iterations")
    electrons_s = _seconds(text, text.only(_ELECTRONS, "the time of the electrons")[1])
    total_s = _seconds(text, text.only(_TOTAL, "the time of the run")[1])
    if not iterations or electrons_s > total_s + 0.01:
        raise text.error(f"{iterations} iterations took {electrons_s:g} s of {total_s:g} s")
    sample = Sample(
        SCF, 0, electrons_s, {"iterations": float(iterations)}, extra={"resolution": 0.01, "run_s": total_s}
    )
    return ProgramRecord(samples=(sample,), checks=_checks(text), notes=notes, ended=True)


def _checks(text: Text) -> dict[str, float | None]:
    """What must be as it was asked for, and what pw.x found."""
    atoms = text.whole(text.only(_COUNT, "the number of atoms")[1], "the number of atoms")
    energy = text.number_or_none(text.only(_ENERGY, "the total energy")[1], "the total energy")
    accuracy = text.found(_ACCURACY)
    threads = text.whole(found[0][1], "the threads") if (found := text.found(_THREADS)) else 1
    if threaded := text.found(_THREADED):
        ranks = text.whole(threaded[0][1], "the cores") / threads
    else:
        ranks = float(text.whole(text.only(_RANKS, "the number of processes")[1], "the ranks"))
    return {
        "atoms": float(atoms),
        "energy": None if energy is None or not atoms else energy / atoms,
        "accuracy": text.number(accuracy[-1][1], "the accuracy") if accuracy else None,
        "ranks": ranks,
        "threads": float(threads),
    }


def _seconds(text: Text, words: str) -> float:
    """A time such as `44.82s` or `1m 2.33s`."""
    match = _TIME.fullmatch(words.strip())
    if match is None or match[3] is None:
        raise text.error(f"a time is {words[:40]!r}, which is not of the form 1m 2.33s")
    return 3600.0 * int(match[1] or 0) + 60.0 * int(match[2] or 0) + float(match[3])


def _energy(machine: Machine, params: Params) -> tuple[float, float]:
    known = _ENERGY_RY[whole(params["cells"])]
    return (known - _TOLERANCE_RY, known + _TOLERANCE_RY)


def _prepare(machine: Machine, params: Params) -> Params:
    if params["cells"] not in _ENERGY_RY:
        raise Skip(f"the energy of {params['cells']} cells along an edge is not known: choose 1 to {max(_ENERGY_RY)}")
    return resolved(machine, params)


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    return ["-in", _INPUT]


def _atoms(params: Params) -> int:
    return int(_ATOMS * whole(params["cells"]) ** 3)


def _estimate_s(params: Params) -> float:
    return _START_S + _S_PER_ATOM_CUBED * _atoms(params) ** 3 / cpus_of(params)


_PROGRAM = External(
    name="pw.x",
    install="install Quantum ESPRESSO (Debian: packages quantum-espresso and quantum-espresso-data; Spack: "
    "spack install quantum-espresso)",
    output="stdout",
    arguments=_arguments,
    parse=read_pw,
    version=(),
    inputs=_inputs,
    variables=openmp_variables,
)

_ALONE = Benchmark(
    name="apps.qe",
    question="How fast does Quantum ESPRESSO bring the electrons of silicon to self-consistency?",
    program=_PROGRAM,
    parameters=(
        Parameter(
            "cells",
            ParameterKind.INTEGER,
            1,
            f"cubic cells of 8 atoms along an edge, {max(_ENERGY_RY)} at most",
            minimum=1,
        ),
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        THREADS,
        Parameter(
            "pseudo_dir",
            ParameterKind.TEXT,
            "/usr/share/espresso/pseudo",
            f"the folder of the pseudopotential {_PSEUDOPOTENTIAL}",
        ),
    ),
    figures=(
        Figure(
            name="step",
            series=SCF,
            unit="s",
            better=Better.LOWER,
            value=lambda sample: sample.elapsed_s / sample.work["iterations"],
            work="one iteration of all electrons to self-consistency",
        ),
        Figure(
            name="electrons",
            series=SCF,
            unit="s",
            better=Better.LOWER,
            value=lambda sample: sample.elapsed_s,
            work="all iterations to self-consistency",
        ),
    ),
    checks=(
        *counted_by("pw.x"),
        Check("atoms", "atoms, as pw.x reports", exactly(_atoms)),
        Check("energy", "total energy per atom, in Ry", bound=_energy),
        Check("accuracy", "estimated accuracy of the energy, in Ry", bound=lambda machine, params: (0.0, _ACCURACY_RY)),
    ),
    placement=placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)

BENCHMARK = with_copies(_ALONE)
