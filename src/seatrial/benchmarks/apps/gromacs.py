"""apps.gromacs: a box of water in GROMACS, one of the most used codes on HPC machines.

The box is made by GROMACS' own tools from `spc216.gro`, the 216 molecules of liquid water at 300 K that come with it:
`solvate` fills a box of that edge, `genconf` repeats it `edge` times in each direction, and `grompp` gives each atom a
velocity. Repeated whole, the box has no seams, so it needs no minimisation, and the number of atoms is exact. The water
is SPC, rigid by SETTLE (H. J. C. Berendsen et al., in: Intermolecular Forces, Reidel 1981, pp. 331-342); PME with a
cutoff of 0.9 nm and a grid of 0.12 nm, 2 fs a step, held at 300 K by velocity rescaling: what its users run.

Everything that mdrun would tune while it runs is fixed (PME tuning, load balancing, the life of a pair list: options of
the versions from 2020 on), and the counters are reset after 100 steps. seatrial binds the ranks, so mdrun does not.

The check of the energy. The pair list's buffer is chosen by GROMACS so that missed pairs let the conserved energy drift
by no more than `verlet-buffer-tolerance`, 0.005 kJ/mol/ps per atom (its default; GROMACS manual, mdp options). Beside
that it changes once, in the first steps, in which random velocities and the positions become what leap-frog conserves:
that takes a share of (omega dt)^2 / 8 of kT in each mode, 0.02 kJ/mol at most in the fastest ones (librations, some
1.3e14 rad/s). It was 0.0014 kJ/mol per atom, and 0.002 with its noise (GROMACS 2022.5, 3 ps, two seeds); 0.004 is
allowed. A sound run drifts by less than 0.0005 a ps afterwards; with 8 fs a step it drifts by 0.075.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.apps.copies import with_copies
from seatrial.benchmarks.apps.gromacs_output import MEASURED, read_gromacs
from seatrial.benchmarks.apps.layout import RANKS, THREADS, counted_by, cpus_of, openmp_variables, placement, resolved
from seatrial.benchmarks.apps.time_step import time_step
from seatrial.benchmarks.bounds import exactly, zero
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.benchmarks.placement import thread_count
from seatrial.model.benchmark import Benchmark, Better, Check, External, Figure
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

_LOG, _RUN_INPUT = "md.log", "topol.tpr"
_MOLECULES = 216
_ATOMS_OF_A_BOX = 3 * _MOLECULES
_BOX_NM = "1.86206"
_SMALLEST_EDGE = 2
_ATOMS_PER_CORE = 2592
"""As many atoms as each of two cores has of the smallest box; below some hundred, communication is all there is."""
_SETTLING_STEPS = 100
_DT_PS = 0.002
_LIST_STEPS = 40
_TOLERANCE = 0.005
"""kJ/mol/ps per atom."""
_CHANGE_AT_FIRST = 0.004
"""kJ/mol per atom."""
_TEMPERATURE_K, _TEMPERATURE_SLACK_K = 300.0, 15.0
_OVERRIDING = ("GMX_NO_NONBONDED", "GMX_EMULATE_GPU", "GMX_MAXCONSTRWARN", "GMX_VERLET_BUFFER_RES")
_SENSITIVE_TO = (
    "GMX_DISABLE_SIMD_KERNELS",
    "GMX_NBNXN_SIMD_2XNN",
    "GMX_NBNXN_SIMD_4XN",
    "GMX_NBNXN_EWALD_ANALYTICAL",
    "GMX_NBNXN_EWALD_TABLE",
    "GMX_NO_LJ_COMB_RULE",
    "GMX_DISABLE_DYNAMICPRUNING",
    "GMX_NSTLIST_DYNAMICPRUNING",
    "GMX_DD_ORDER_ZYX",
    "GMX_DD_USE_SENDRECV2",
    "GMX_NO_CART_REORDER",
    "GMX_PMEONEDD",
    *(f"GMX_{part}_NUM_THREADS" for part in ("DOMDEC", "NONBONDED", "PAIRSEARCH", "PME", "SETTLE", "UPDATE")),
)
"""Variables of GROMACS 2022 with which a user chooses kernels and threads; those before would change the problem."""
_SLOW_CORE_RATE = 4e5
"""Atom steps per second; a core of 2024 makes 1.2 million with a build for SSE4.1."""
_START_S = 3.0

_MDP = f"""\
integrator = md
dt = {_DT_PS}
nsteps = {{steps}}
cutoff-scheme = Verlet
nstlist = {_LIST_STEPS}
verlet-buffer-tolerance = {_TOLERANCE}
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
fourierspacing = 0.12
pme-order = 4
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = {_TEMPERATURE_K}
gen-vel = yes
gen-temp = {_TEMPERATURE_K}
gen-seed = 87287
ld-seed = 87287
nstcalcenergy = 100
nstenergy = 1000
nstlog = 1000
"""

# Lengths in nm, energies in kJ/mol, masses in u. SETTLE holds O-H at 0.1 nm and H-H at 0.1633 nm.
_TOPOLOGY = """\
[ defaults ]
1 2 no 1.0 1.0
[ atomtypes ]
OW 8 15.9994 0.0 A 0.316557 0.650194
HW 1 1.008 0.0 A 0.0 0.0
[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW 1 -0.82 15.9994
2 HW 1 SOL HW1 1 0.41 1.008
3 HW 1 SOL HW2 1 0.41 1.008
[ settles ]
1 1 0.1 0.1633
[ exclusions ]
1 2 3
2 1 3
3 1 2
[ system ]
water
[ molecules ]
SOL {molecules}
"""


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved(machine, params)
    edge = _auto_edge(thread_count(machine, "all")) if params["edge"] == "auto" else whole(params["edge"])
    return {**params, "edge": edge}


def _auto_edge(cores: int) -> int:
    """The smallest box that gives each core its share of atoms. It does not depend on the ranks: a strong scaling
    measures one problem."""
    edge = _SMALLEST_EDGE
    while _ATOMS_OF_A_BOX * edge**3 < _ATOMS_PER_CORE * cores:
        edge += 1
    return edge


def _atoms(params: Params) -> int:
    return int(_ATOMS_OF_A_BOX * whole(params["edge"]) ** 3)


def _steps(params: Params) -> int:
    return _SETTLING_STEPS + whole(params["steps"])


def _inputs(params: Params) -> dict[str, bytes]:
    return {
        "md.mdp": _MDP.format(steps=_steps(params)).encode(),
        "topol.top": _TOPOLOGY.format(molecules=_atoms(params) // 3).encode(),
    }


def _preparation(params: Params) -> list[list[str]]:
    edge = str(whole(params["edge"]))
    common = ["-quiet", "-nobackup"]
    return [
        ["solvate", *common, "-cs", "spc216.gro", "-box", _BOX_NM, _BOX_NM, _BOX_NM, "-o", "cell.gro"],
        ["genconf", *common, "-f", "cell.gro", "-nbox", edge, edge, edge, "-o", "conf.gro"],
        ["grompp", *common, "-f", "md.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", _RUN_INPUT, "-po", "all.mdp"],
    ]


def _arguments(params: Params, directory: Path) -> list[str]:
    return [
        *("mdrun", "-quiet", "-nobackup", "-s", _RUN_INPUT, "-g", _LOG),
        *("-nb", "cpu", "-pme", "cpu", "-bonded", "cpu", "-update", "cpu"),
        *("-notunepme", "-dlb", "no", "-nstlist", str(_LIST_STEPS)),
        *("-pin", "off", "-ntomp", str(whole(params["threads"]))),
        *("-resetstep", str(_SETTLING_STEPS), "-noconfout", "-cpt", "-1"),
    ]


def _variables(params: Params) -> dict[str, str | None]:
    return {**openmp_variables(params), **dict.fromkeys(_OVERRIDING)}


def ns_per_day(params: Params, steps_per_s: float) -> str:
    """A step rate in ns/day, the customary unit."""
    value = steps_per_s * _DT_PS * 86.4
    return f"{value:.0f} ns/day" if value >= 100 else f"{value:.3g} ns/day"


def _drift(machine: Machine, params: Params) -> tuple[float, float]:
    """GROMACS divides the change of the whole run by its time, the change of the first steps with it."""
    bound = _TOLERANCE + _CHANGE_AT_FIRST / (_steps(params) * _DT_PS)
    return (-bound, bound)


def _temperature(machine: Machine, params: Params) -> tuple[float, float]:
    return (_TEMPERATURE_K - _TEMPERATURE_SLACK_K, _TEMPERATURE_K + _TEMPERATURE_SLACK_K)


def _estimate_s(params: Params) -> float:
    return _START_S + _atoms(params) * _steps(params) / (_SLOW_CORE_RATE * cpus_of(params))


_PROGRAM = External(
    name="gmx_mpi",
    install="install GROMACS with MPI (Debian: package gromacs; Spack: spack install gromacs +mpi)",
    output=_LOG,
    arguments=_arguments,
    parse=read_gromacs,
    version=("-quiet", "--version"),
    inputs=_inputs,
    preparation=_preparation,
    variables=_variables,
    sensitive_to=_SENSITIVE_TO,
)

_ALONE = Benchmark(
    name="apps.gromacs",
    question="How fast does GROMACS simulate a box of water?",
    program=_PROGRAM,
    parameters=(
        Parameter(
            "edge",
            ParameterKind.INTEGER,
            "auto",
            "box edge, in cells of 1.862 nm and 216 molecules; auto: 2 (5184 atoms), or more for 2592 atoms per core",
            words=("auto",),
            minimum=_SMALLEST_EDGE,
        ),
        Parameter("steps", ParameterKind.INTEGER, 500, "measured time steps, after 100 unmeasured ones", minimum=100),
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        THREADS,
    ),
    figures=(
        Figure(
            name="step_rate",
            series=MEASURED,
            unit="op/s",
            better=Better.HIGHER,
            value=lambda sample: sample.work["steps"] / sample.elapsed_s,
            work="time steps of 2 fs; 1000 per second are 172.8 ns/day",
            customary=ns_per_day,
        ),
        time_step(MEASURED, "one time step of 2 fs"),
    ),
    checks=(
        *counted_by("GROMACS"),
        Check("atoms", "atoms, as GROMACS reports", exactly(_atoms)),
        Check("steps", "time steps of the whole run", exactly(_steps)),
        Check(
            "measured_steps",
            "time steps after the counters were reset, including the step of the reset",
            bound=exactly(lambda params: whole(params["steps"]) + 1),
            derive=lambda machine, params, samples: samples[0].work["steps"],
        ),
        Check("constraint_warnings", "molecules that could not be kept rigid", zero),
        Check("energy_drift", "change of the conserved energy, in kJ/mol/ps per atom", bound=_drift),
        Check("temperature_K", "mean temperature", bound=_temperature),
        Check(
            "time_step_ps",
            "the time step that ns/day is based on",
            bound=exactly(_DT_PS),
            derive=lambda machine, params, samples: samples[0].extra["dt_ps"],
        ),
    ),
    placement=placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)

BENCHMARK = with_copies(_ALONE)
