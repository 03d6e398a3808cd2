"""apps.lammps: the Lennard-Jones melt of LAMMPS, a molecular dynamics code used in many acceptance tests.

The problem is that of the benchmark `lj` which comes with LAMMPS (https://www.lammps.org/bench.html): atoms on an fcc
lattice of reduced density 0.8442 melt at a reduced temperature of 1.44, with a cutoff of 2.5 sigma, a skin of 0.3
sigma, neighbour lists that are built every 20 steps, and constant energy. Two things differ. The atoms melt for 100
steps before the measured ones, so these are all alike. And pair energies are shifted to zero at the cutoff, which
changes no force: without it the total energy changes with each pair that crosses the cutoff, which hides whether it
is conserved.

The check of the energy. Lists that live for 20 steps (0.1 tau) miss pairs that come from beyond the skin. At the melt's
temperature of 0.75 the distance of a pair changes by sqrt(2 T) 0.1 = 0.12 sigma meanwhile (one standard deviation,
without collisions). The pairs that get through a skin of 0.3 sigma, times the force of 0.039 epsilon/sigma at the
cutoff that they missed, give an error of 1.7e-5 epsilon per atom for each list. That is the most: collisions hold it at
a sixth of this (LAMMPS of 2022, 5000 steps). Velocity Verlet itself fluctuates by some 1e-5. With twice the time step,
or lists that live for 40 steps, the energy changes by more than five times the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.apps.copies import with_copies
from seatrial.benchmarks.apps.lammps_output import MEASURED, SETTLING, read_lammps
from seatrial.benchmarks.apps.layout import RANKS, THREADS, counted_by, cpus_of, openmp_variables, placement, resolved
from seatrial.benchmarks.apps.time_step import time_step
from seatrial.benchmarks.bounds import exactly
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.benchmarks.placement import thread_count
from seatrial.model.benchmark import Benchmark, Better, Check, External, Figure, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.sample import Sample

_INPUT = "in.melt"
_SMALLEST_EDGE = 20
"""Cells along an edge of the problem that comes with LAMMPS: 32,000 atoms."""
_ATOMS_PER_CELL = 4
_ATOMS_PER_CORE = 16_000
_SETTLING_STEPS = 100
_STEPS_OF_A_LIST = 20
_ENERGY_PER_LIST = 2e-5
_ENERGY_FLUCTUATION = 1e-4
_SLOW_CORE_RATE = 1.5e6
"""Atom steps per second; a core of 2022 makes 4 million with the plain kernels of a package build."""
_START_S = 1.0

_THREADED = ("omp", "intel")
_MODES = {"fp64": "double", "mixed": "mixed", "fp32": "single"}
"""Precision -> the words of the package INTEL."""


def _prepare(machine: Machine, params: Params) -> Params:
    package = str(params["package"])
    if whole(params["threads"]) > 1 and package not in _THREADED:
        raise Skip(f"package={package} does not support threads; omp and intel do")
    if params["precision"] != "fp64" and package != "intel":
        raise Skip(f"package={package} computes in fp64 only; package=intel offers others")
    params = resolved(machine, params)
    cells = _auto_edge(thread_count(machine, "all")) if params["cells"] == "auto" else whole(params["cells"])
    return {**params, "cells": cells}


def _auto_edge(cores: int) -> int:
    """The least number of cells along an edge that gives each core its share of atoms. It does not depend on the ranks:
    a strong scaling measures one problem."""
    edge = _SMALLEST_EDGE
    while _ATOMS_PER_CELL * edge**3 < _ATOMS_PER_CORE * cores:
        edge += 1
    return edge


def _atoms(params: Params) -> int:
    return int(_ATOMS_PER_CELL * whole(params["cells"]) ** 3)


def _inputs(params: Params) -> dict[str, bytes]:
    edge = whole(params["cells"])
    lines = (
        *("units lj", "atom_style atomic"),
        *("lattice fcc 0.8442", f"region box block 0 {edge} 0 {edge} 0 {edge}", "create_box 1 box"),
        *("create_atoms 1 box", "mass 1 1.0"),
        "velocity all create 1.44 87287 loop geom",  # the same velocities whatever the number of ranks
        *("pair_style lj/cut 2.5", "pair_coeff 1 1 1.0 1.0 2.5", "pair_modify shift yes"),
        *("neighbor 0.3 bin", f"neigh_modify delay 0 every {_STEPS_OF_A_LIST} check no"),
        *("fix 1 all nve", "timestep 0.005"),
        *("thermo_modify norm yes", "thermo 100"),
        *(f"run {_SETTLING_STEPS}", f"run {whole(params['steps'])}"),
    )
    return {_INPUT: "".join(f"{line}\n" for line in lines).encode()}


def _arguments(params: Params, directory: Path) -> list[str]:
    package, threads = str(params["package"]), str(whole(params["threads"]))
    chosen = {
        "none": [],
        "opt": ["-suffix", "opt"],
        "omp": ["-suffix", "omp", "-package", "omp", threads],
        "intel": [
            "-suffix",
            "intel",
            "-package",
            "intel",
            "0",
            "omp",
            threads,
            "mode",
            _MODES[str(params["precision"])],
        ],
    }[package]
    return ["-in", _INPUT, "-log", "none", "-nocite", *chosen]


def atom_steps(params: Params, rate: float) -> str:
    """The rate as LAMMPS itself prints it."""
    return f"{rate / 1e6:.3f} Matom-step/s"


def _kernels(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """1 if every run used the kernels of the requested package and precision; else 0."""
    suffix = "" if params["package"] == "none" else f"/{params['package']}"
    wanted = (f"lj/cut{suffix}", _MODES[str(params["precision"])])
    return float(all((sample.extra["pair"], sample.extra["precision"]) == wanted for sample in samples))


def _measured_only_once(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    return float([sample.series for sample in samples] == [SETTLING, MEASURED])


def _drift(machine: Machine, params: Params) -> tuple[float, float]:
    steps = _SETTLING_STEPS + whole(params["steps"])
    bound = _ENERGY_FLUCTUATION + _ENERGY_PER_LIST * steps / _STEPS_OF_A_LIST
    return (-bound, bound)


def _lists(params: Params) -> int:
    return whole(params["steps"]) // _STEPS_OF_A_LIST


def _estimate_s(params: Params) -> float:
    steps = _SETTLING_STEPS + whole(params["steps"])
    return _START_S + _atoms(params) * steps / (_SLOW_CORE_RATE * cpus_of(params))


_PROGRAM = External(
    name="lmp",
    install="install LAMMPS (Debian: package lammps; Spack: spack install lammps)",
    output="stdout",
    arguments=_arguments,
    parse=read_lammps,
    version=("-help",),
    inputs=_inputs,
    variables=openmp_variables,
)

_ALONE = Benchmark(
    name="apps.lammps",
    question="How fast does LAMMPS simulate a Lennard-Jones liquid?",
    program=_PROGRAM,
    parameters=(
        Parameter(
            "cells",
            ParameterKind.INTEGER,
            "auto",
            "fcc cells of 4 atoms along each edge; auto: 20 (32,000 atoms), or more for 16,000 atoms per core",
            words=("auto",),
            minimum=10,
        ),
        Parameter("steps", ParameterKind.INTEGER, 200, "measured time steps, after 100 of melting", minimum=100),
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        THREADS,
        Parameter(
            "package",
            ParameterKind.CHOICE,
            "none",
            "accelerator package to use; the build must include it",
            words=("none", "opt", *_THREADED),
        ),
        Parameter(
            "precision",
            ParameterKind.CHOICE,
            "fp64",
            "precision of the forces; mixed and fp32 with package=intel only",
            words=tuple(_MODES),
        ),
    ),
    figures=(
        Figure(
            name="atom_steps",
            series=MEASURED,
            unit="op/s",
            better=Better.HIGHER,
            value=lambda sample: sample.work["atom_steps"] / sample.elapsed_s,
            work="atoms x time steps of the Lennard-Jones melt, after melting",
            customary=atom_steps,
        ),
        time_step(MEASURED, "one time step of all atoms"),
    ),
    checks=(
        *counted_by("LAMMPS"),
        Check("atoms", "atoms, as LAMMPS reports", exactly(_atoms)),
        Check("steps", "measured time steps", exactly("steps")),
        Check("settling_steps", "time steps before the measured ones", exactly(_SETTLING_STEPS)),
        Check("runs", "1 if one measured run followed one of melting", exactly(1), _measured_only_once),
        Check("list_builds", "number of neighbour list builds", exactly(_lists)),
        Check("kernels", "1 if the kernels are those of the requested package and precision", exactly(1), _kernels),
        Check("energy_drift", "change of the total energy per atom, in epsilon", bound=_drift),
    ),
    placement=placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)

BENCHMARK = with_copies(_ALONE)
