"""apps.impact: an explicit crash code of seatrial, as a stand-in for those that cannot be distributed.

A bumper beam, a bowed square tube of steel, meets a rigid wall at 54 km/h: hexahedra with one integration point and
viscous hourglass control, an elastic-plastic metal, central differences with the largest stable step. The mesh is cut
by recursive bisection; in each step a rank exchanges one message with each neighbour and takes part in an all-reduce
of a single number, both while it computes. Rank 0 writes the plastic strains now and then.

`case=taylor` is the bar of G. I. Taylor instead: copper, 32.4 mm long, 6.4 mm thick, at 227 m/s, over 80 us. Its final
length is a check. Lengths that other codes gave for it are between 21.26 and 21.66 mm (A. Kamoulakos, 1990; Y. Y. Zhu
and S. Cescotto, Int. J. Numer. Methods Eng. 38, 1995; G. T. Camacho and M. Ortiz, Comput. Methods Appl. Mech. Eng. 142,
1997).

A whole crash should lose at most a tenth of its energy to hourglass forces; the first 20 us of a beam, when waves of a
few elements' length leave the contact, lose up to 15 %.

The flop of an element are counted by running its code with numbers that count; the bytes are those of one pass over
the arrays: nodes are moved while they are in a cache (impact.cpp). The limit is the lower of what memory and
arithmetic allow, both as measured on the same machine (S. Williams, A. Waterman, D. Patterson, "Roofline", Commun. ACM
52, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from seatrial.benchmarks.figures import between, duration, exactly, native_program, rate, time_step
from seatrial.benchmarks.placement import RANK_LAYOUT, cpus_of, placement, resolved, thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Ceiling, Check, Intensity, Role
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_ELEMENTS_PER_CORE = 50_000
_STEPS = 100
_TAYLOR_ELEMENTS = 4_000
_TAYLOR_LENGTH_m = (21.26e-3, 21.66e-3)
_SLOW_CORE_RATE = 3e6
"""Element updates per second of one core."""
_SETUP_RATE = 3e5
"""Elements per second that every rank makes and cuts."""

_DAY_S = 86_400.0

FLOP_OF_AN_ELEMENT = 816
_NODES_PER_ELEMENT = 1.5
"""Of the beam, whose walls are two elements thick."""
_SIZE_OF = {"fp64": 8, "fp32": 4}


def _bytes_of_an_element(params: Params) -> float:
    """State read and written, corners read, and 24 numbers of each node."""
    size = _SIZE_OF[str(params["precision"])]
    return 14 * size + 32 + 24 * size * _NODES_PER_ELEMENT


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved(machine, params)
    is_taylor = params["case"] == "taylor"
    elements, steps = params["elements"], params["steps"]
    if elements == "auto":
        elements = _TAYLOR_ELEMENTS if is_taylor else _ELEMENTS_PER_CORE * thread_count(machine, "all")
    if is_taylor and steps != "auto":
        raise UsageError("case=taylor runs for 80 us of simulated time", "leave out steps")
    if steps == "auto":
        steps = 0 if is_taylor else _STEPS
    return {**params, "elements": whole(elements), "steps": whole(steps)}


def _roofs(params: Params) -> tuple[Ceiling, ...]:
    """The memory roof, and the arithmetic one, as if all flop were FMAs: of as many single cores as there are threads,
    and of all cores at their common clock."""
    bytes_ = _bytes_of_an_element(params)
    nodes, cpus = whole(params["nodes"]), cpus_of(params)
    flop = f"{FLOP_OF_AN_ELEMENT} flop per element and step"
    each = "" if nodes == 1 else f" x {nodes} nodes"
    arithmetic = {"precision": str(params["precision"])}
    return (
        Ceiling(
            roles=(Role.MEMORY_BANDWIDTH,),
            parameters={"nontemporal": True, "threads": cpus // nodes},
            factor=nodes / bytes_,
            derivation=f"best triad of {{benchmark}} on as many threads{each} / {bytes_:g} B per element and step",
            ignored=("node", "memory", "huge_pages", "array_B", "kernel"),
        ),
        Ceiling(
            roles=(Role.FMA_RATE,),
            parameters={**arithmetic, "cores": "one"},
            factor=cpus / FLOP_OF_AN_ELEMENT,
            derivation=f"best FMA rate of one core ({{benchmark}}) x {cpus} CPUs / {flop}",
        ),
        Ceiling(
            roles=(Role.FMA_RATE,),
            parameters={**arithmetic, "cores": "all"},
            factor=nodes / FLOP_OF_AN_ELEMENT,
            derivation=f"best FMA rate of all cores ({{benchmark}}){each} / {flop}",
        ),
    )


def _intensity(params: Params) -> Intensity | None:
    if params["case"] != "beam":
        return None
    bytes_ = _bytes_of_an_element(params)
    return Intensity(
        f"crash, {params['precision']}",
        FLOP_OF_AN_ELEMENT,
        bytes_,
        f"Crash: {FLOP_OF_AN_ELEMENT} flop for {bytes_:g} B of an element and step.",
    )


def _elements(machine: Machine, params: Params) -> tuple[float, float]:
    """The mesh is made of whole sections, so it has about as many."""
    asked = whole(params["elements"])
    return (1, asked) if params["case"] == "taylor" else (0.8 * asked, 1.2 * asked)


def _steps(machine: Machine, params: Params) -> tuple[float, float]:
    steps = whole(params["steps"])
    return (steps, steps) if steps else (1, math.inf)


def _samples_are_alike(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """1 if the samples count the flop that the declaration states."""
    counted = {sample.work["flop"] / sample.work["updates"] for sample in samples if "flop" in sample.work}
    return float(counted <= {FLOP_OF_AN_ELEMENT})


def _estimate_s(params: Params) -> float:
    elements, steps = whole(params["elements"]), whole(params["steps"]) or 4000
    return 1.0 + elements / _SETUP_RATE + elements * steps / (_SLOW_CORE_RATE * cpus_of(params))


_PARAMETERS = (
    Parameter.choice(
        "case",
        "beam",
        "beam: a bumper beam; taylor: the bar of G. I. Taylor, whose final length is checked",
        ("beam", "taylor"),
        option="--case",
    ),
    Parameter.integer(
        "elements",
        "auto",
        "about so many hexahedra; auto: 50,000 per core, or 4,000 for the bar",
        minimum=500,
        option="--elements",
    ),
    Parameter.integer(
        "steps", "auto", "time steps; auto: 100, or 80 us of simulated time for the bar", minimum=20, option="--steps"
    ),
    Parameter.choice(
        "precision", "fp64", "of positions, velocities, forces and stresses", tuple(_SIZE_OF), option="--precision"
    ),
    *RANK_LAYOUT,
    Parameter.integer("threads", 1, "threads per rank", minimum=1, option="--threads"),
    Parameter.choice(
        "reduction",
        "overlapped",
        "the all-reduce of a step. overlapped: MPI_Iallreduce, ranks may be a step apart; blocking: MPI_Allreduce",
        ("overlapped", "blocking"),
        option="--reduction",
    ),
    Parameter.integer(
        "write_every", 0, "steps after which rank 0 writes the plastic strains; 0: never", option="--write-every"
    ),
)

BENCHMARK = Benchmark(
    name="apps.impact",
    question="How fast does an explicit crash code compute a bumper beam?",
    program=native_program(__file__, _PARAMETERS),
    parameters=_PARAMETERS,
    figures=(
        rate(
            "element_updates",
            "op/s",
            "elements x time steps, without writing",
            "updates",
            series="steps",
            ceiling=_roofs,
            intensity=_intensity,
        ),
        time_step("steps", "one time step of all elements"),
        duration(
            "run",
            "all time steps with what rank 0 writes, without making the mesh",
            customary=lambda params, value: f"{_DAY_S / value:.4g} jobs/day",
        ),
    ),
    checks=(
        Check("elements", "hexahedra of the mesh", _elements),
        Check("steps", "time steps", _steps),
        Check("threads", "threads per rank", exactly("threads")),
        Check("copies_differ_m", "largest difference between copies of a node on several threads", exactly(0)),
        Check(
            "length_m",
            "length at the end; of the bar: within what other codes gave",
            lambda machine, params: _TAYLOR_LENGTH_m if params["case"] == "taylor" else (0, math.inf),
        ),
        Check(
            "step_over_bound",
            "longest step over the longest stable one of the mesh at that moment, without damping",
            between(0, 1),
        ),
        Check(
            "energy_error",
            "energy of deformation, hourglass forces and wall minus the lost kinetic energy, over that energy",
            between(-0.05, 0.05),
        ),
        Check(
            "hourglass_share",
            "share of that energy taken by hourglass forces, which are not part of the metal",
            between(0, 0.2),
        ),
        Check(
            "momentum_error",
            "change of momentum without the wall's impulse, over the first one",
            lambda machine, params: (0, 1e-9 if params["precision"] == "fp64" else 1e-3),
        ),
        Check("flop", "1 if the program counts the flop that the limit is based on", exactly(1), _samples_are_alike),
    ),
    placement=placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
