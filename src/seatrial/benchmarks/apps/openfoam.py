"""apps.openfoam: the flow in a cavity whose lid moves, by icoFoam of OpenFOAM.

The case is made here: a square of n x n cells at a Reynolds number of 100, at rest at first. Time steps have a Courant
number of 0.8; after 26 n of them (20.8 times the time that the lid takes to pass) the flow is steady. Most of the time
goes into the pressure (conjugate gradients with an incomplete Cholesky factorisation): memory bandwidth, small messages
between neighbours, and all-reduces. The mesh and its parts (method `simple`, blocks as square as possible) are made
before the time counts.

The time of a step is elapsed time: OpenFOAM's profile of itself has it at both halves of the run, and the second
half counts. What the log prints cannot serve: `ExecutionTime` is the CPU time of rank 0, which does not grow while the
rank sleeps, and `ClockTime` counts whole seconds.

Checks of the flow. U. Ghia, K. N. Ghia, C. T. Shin, J. Comput. Phys. 48 (1982) 387, table I, give the velocity along
the centre line. Their own error is some 0.005: so much icoFoam differs with 64 cells and with 96; at the centre they
have -0.2058, it tends to -0.2091. The schemes used here are of second order: with 16 to 96 cells the velocity at the
centre is -0.2091 + 6.0 / n^2 within 0.5 / n^2. It is held to that more narrowly, as it must not depend on the number of
ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.benchmarks.apps.copies import with_copies
from seatrial.benchmarks.apps.layout import RANKS, cpus_of, placement, resolved
from seatrial.benchmarks.apps.openfoam_output import (
    PROBES,
    PROFILE,
    PROFILE_OF_RANK_0,
    STEPS,
    probed_velocities,
    read_solver,
    with_times,
)
from seatrial.benchmarks.apps.time_step import time_step
from seatrial.benchmarks.bounds import exactly
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.benchmarks.wall_time import wall_time
from seatrial.model.benchmark import Benchmark, Better, Check, External, Figure, Skip
from seatrial.model.declaration import WALL
from seatrial.model.layout import RANKS as RANKS_NAME
from seatrial.model.layout import THREADS
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

_SMALLEST = 16
_COURANT = 0.8
_STEPS_PER_CELL = 26
_VISCOSITY = 0.01
_PRESSURE_TOLERANCE = 1e-6
_DEPTH = 0.1

_PLACES = (0.5, 0.1016, 0.1719, 0.2813, 0.4531, 0.6172, 0.8516)
_GHIA = (-0.20581, -0.06434, -0.10150, -0.15662, -0.21090, -0.13641, 0.23151)
"""Velocity along the lid at these heights on the centre line, over that of the lid."""
_GHIA_ERROR = 0.007
_GHIA_ERROR_OF_MESH = 6.0
"""Times the square of the width of a cell."""
_CENTRE = -0.2091
_CENTRE_OF_MESH = 6.0
_CENTRE_SLACK = 2e-4
_CENTRE_SLACK_OF_MESH = 0.9

_S_PER_CELL_AND_STEP = 1e-6
_START_S = 3.0
_FILE = "FoamFile {{ version 2.0; format ascii; class {kind}; object {name}; }}\n"

_CONTROL = """\
application icoFoam;
startFrom startTime;
startTime 0;
stopAt endTime;
endTime {end:.12g};
deltaT {step:.12g};
writeControl timeStep;
writeInterval {half};
writeFormat binary;
timePrecision 10;
runTimeModifiable no;
profiling {{ active yes; cpuInfo no; memInfo no; sysInfo no; }}
functions
{{
    centreline
    {{
        type probes;
        libs ("libsampling.so");
        fields (U);
        writeControl timeStep;
        writeInterval {half};
        interpolationScheme cellPoint;
        probeLocations ({places});
    }}
}}
"""
_SCHEMES = """\
ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
"""
_SOLUTION = f"""\
solvers
{{
    p {{ solver PCG; preconditioner DIC; tolerance {_PRESSURE_TOLERANCE}; relTol 0.05; }}
    pFinal {{ $p; relTol 0; }}
    U {{ solver smoothSolver; smoother symGaussSeidel; tolerance 1e-8; relTol 0; }}
}}
PISO {{ nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }}
"""
_MESH = """\
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 {depth}) (1 0 {depth}) (1 1 {depth}) (0 1 {depth}));
blocks (hex (0 1 2 3 4 5 6 7) ({cells} {cells} 1) simpleGrading (1 1 1));
edges ();
boundary
(
    lid {{ type wall; faces ((3 7 6 2)); }}
    walls {{ type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }}
    sides {{ type empty; faces ((0 3 2 1) (4 5 6 7)); }}
);
"""
_PARTS = """\
numberOfSubdomains {ranks};
method simple;
simpleCoeffs {{ n ({along} {across} 1); delta 0.001; }}
"""
_VELOCITY = """\
dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField
{
    lid { type fixedValue; value uniform (1 0 0); }
    walls { type noSlip; }
    sides { type empty; }
}
"""
_PRESSURE = """\
dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField { lid { type zeroGradient; } walls { type zeroGradient; } sides { type empty; } }
"""


def _steps(params: Params) -> int:
    return _STEPS_PER_CELL * whole(params["cells"])


def _blocks(ranks: int) -> tuple[int, int]:
    """The most square grid of that many blocks."""
    across = next(n for n in range(math.isqrt(ranks), 0, -1) if ranks % n == 0)
    return ranks // across, across


def _inputs(params: Params) -> dict[str, bytes]:
    cells, ranks = whole(params["cells"]), whole(params[RANKS_NAME])
    step = _COURANT / cells
    along, across = _blocks(ranks)
    places = " ".join(f"(0.5 {height} {_DEPTH / 2})" for height in _PLACES)
    control = _CONTROL.format(end=_steps(params) * step, step=step, half=_steps(params) // 2, places=places)
    files = {
        "system/controlDict": ("dictionary", control),
        "system/fvSchemes": ("dictionary", _SCHEMES),
        "system/fvSolution": ("dictionary", _SOLUTION),
        "system/blockMeshDict": ("dictionary", _MESH.format(cells=cells, depth=_DEPTH)),
        "system/decomposeParDict": ("dictionary", _PARTS.format(ranks=ranks, along=along, across=across)),
        "constant/transportProperties": ("dictionary", f"nu [0 2 -1 0 0 0 0] {_VISCOSITY};\n"),
        "0/U": ("volVectorField", _VELOCITY),
        "0/p": ("volScalarField", _PRESSURE),
    }
    return {
        path: (_FILE.format(kind=kind, name=path.rpartition("/")[2]) + text).encode()
        for path, (kind, text) in files.items()
    }


_ONE_FILE_PER_RANK = ("-fileHandler", "uncollated")
"""The site's settings may collect the files of all ranks, which would then be elsewhere."""


def _preparation(params: Params) -> list[list[str]]:
    parts = [["decomposePar", *_ONE_FILE_PER_RANK]] if whole(params[RANKS_NAME]) > 1 else []
    return [["blockMesh"], *parts]


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    return [*(("-parallel",) if whole(params[RANKS_NAME]) > 1 else ()), *_ONE_FILE_PER_RANK]


def _prepare(machine: Machine, params: Params) -> Params:
    params = {name: value for name, value in resolved(machine, {**params, THREADS: 1}).items() if name != THREADS}
    if _blocks(whole(params[RANKS_NAME]))[0] > whole(params["cells"]):
        raise Skip(f"{params[RANKS_NAME]} ranks get no whole cells of a mesh of {params['cells']} x {params['cells']}")
    return params


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return placement(machine, {**params, THREADS: 1})


def _estimate_s(params: Params) -> float:
    cells = whole(params["cells"])
    solving_s = _S_PER_CELL_AND_STEP * cells**2 * _steps(params) * max(1.0, cells / 64)
    return _START_S + solving_s / cpus_of({**params, THREADS: 1})


def _complete(record: ProgramRecord, files: Mapping[str, bytes]) -> ProgramRecord:
    """The record with the times, and with the velocities checked against Ghia's. Raises ProtocolError."""
    record, found = with_times(record, files), probed_velocities(files)
    if len(found) != len(_GHIA):
        return record
    deviation = max(abs(value - given) for value, given in zip(found, _GHIA, strict=True))
    return replace(record, checks={**record.checks, "centreline": deviation, "centre": found[0]})


def _ghia_bound(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _GHIA_ERROR + _GHIA_ERROR_OF_MESH / whole(params["cells"]) ** 2)


def _centre_bound(machine: Machine, params: Params) -> tuple[float, float]:
    square = 1.0 / whole(params["cells"]) ** 2
    expected, slack = _CENTRE + _CENTRE_OF_MESH * square, _CENTRE_SLACK + _CENTRE_SLACK_OF_MESH * square
    return (expected - slack, expected + slack)


def _share_of_wall(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The elapsed time that OpenFOAM states over ours, which has the launcher in it."""
    by_series = {sample.series: sample for sample in samples}
    if not {STEPS, WALL} <= by_series.keys():
        return math.inf
    return float(by_series[STEPS].extra["program_s"]) / by_series[WALL].elapsed_s


_PROGRAM = External(
    name="icoFoam",
    install="install OpenFOAM of openfoam.com (Debian: package openfoam; Spack: spack install openfoam), or load "
    "its module",
    output="stdout",
    arguments=_arguments,
    parse=read_solver,
    version=(),
    inputs=_inputs,
    preparation=_preparation,
    defaults={"WM_PROJECT_DIR": "/usr/share/openfoam"},  # Debian's package has no script that sets it
    companions=("blockMesh", "decomposePar"),
    sensitive_to=("FOAM_SETTINGS", "WM_PROJECT_SITE", "WM_PROJECT_USER_DIR", "FOAM_CONFIG_ETC"),
    files=(PROFILE, PROFILE_OF_RANK_0, PROBES),
    complete=_complete,
    is_timed=True,
)

_ALONE = Benchmark(
    name="apps.openfoam",
    question="How fast does OpenFOAM compute the flow in a cavity whose lid moves?",
    program=_PROGRAM,
    parameters=(
        Parameter(
            "cells",
            ParameterKind.INTEGER,
            48,
            "cells along an edge of the square; the steps until the flow is steady grow with them",
            minimum=_SMALLEST,
        ),
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
    ),
    figures=(
        time_step(STEPS, "one time step of all cells, in the second half of the run"),
        Figure(
            name="pressure",
            series=STEPS,
            unit="s",
            better=Better.LOWER,
            value=lambda sample: float(sample.extra["pressure_s"]) / sample.work["steps"],
            work="solving for the pressure, in one time step",
        ),
        wall_time("the whole run: launcher, reading the mesh, all time steps"),
    ),
    checks=(
        Check(RANKS_NAME, "ranks, as OpenFOAM reports", exactly(RANKS_NAME)),
        Check(STEPS, "time steps", exactly(_steps)),
        Check("courant", "largest Courant number", bound=lambda machine, params: (0.0, 1.0)),
        Check(
            "pressure_residual",
            "largest residual of the pressure at the end of a time step",
            bound=lambda machine, params: (0.0, _PRESSURE_TOLERANCE),
        ),
        Check(
            "velocity_residual",
            "how far the velocity is from steady, as the residual before the last time step",
            bound=lambda machine, params: (0.0, 1e-5),
        ),
        Check(
            "continuity",
            "continuity error of the last time step, as OpenFOAM scales it",
            bound=lambda machine, params: (0.0, 1e-7),
        ),
        Check(
            "centreline",
            "largest deviation from the velocities of Ghia, Ghia and Shin (1982)",
            bound=_ghia_bound,
        ),
        Check(
            "centre",
            "velocity at the centre, which must not depend on ranks",
            bound=_centre_bound,
        ),
        Check(
            "clock",
            "elapsed time that OpenFOAM reports, over that of the whole run by our own clock",
            bound=lambda machine, params: (0.05, 1.02),
            derive=_share_of_wall,
        ),
    ),
    placement=_placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)

BENCHMARK = with_copies(_ALONE)
