"""Parameters shared by all device benchmarks: which devices, how many at once, in which precision.

S, EP and TP are those of SHOC (A. Danalis et al., "The Scalable Heterogeneous Computing (SHOC) Benchmark Suite",
GPGPU-3, 2010): one device; the same problem on each device at once; devices that share one problem. Each device is
driven by its own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.machine.machine import Machine

AUTO = "auto"

BACKEND = Parameter.choice(
    "backend",
    "auto",
    "driver interface; auto: cuda if it finds a device, else opencl",
    ("auto", "cuda", "opencl"),
    option="--backend",
)

DEVICES = Parameter.integer(
    "devices",
    "auto",
    "number of devices that work at once, starting at `device`; auto: 1 for S, all for EP and TP",
    minimum=1,
)

DEVICE = Parameter.integer("device", 0, "index of the first device, as numbered by the backend")

PRECISION = Parameter.choice("precision", "fp32", "floating-point precision", ("fp32", "fp64"), option="--precision")

OPTIMISED = Parameter.switch(
    "optimised", True, "compile kernels with optimisation; false helps to find compiler errors", option="--optimised"
)


def mode_among(*words: str, together: str = "") -> Parameter:
    """The modes that a benchmark supports. `together` is the option that tells its program whether devices share one
    problem."""
    meaning = "S: one device; EP: the same problem on each device at once; TP: devices share one problem"
    spelled = {word: "1" if word == "TP" else "0" for word in words}
    return Parameter.choice("mode", "S", meaning, words, option=together, spelled=spelled)


def size_of(name: str, large: int, small: int, meaning: str, minimum: int) -> Parameter:
    """The problem size as a number, which the program takes under this name. `auto` is resolved by `for_devices`."""
    description = f"{meaning}; auto: {large}, or {small} if the device is a CPU"
    return Parameter.integer(name, AUTO, description, minimum=minimum, option=f"--{name}", spelled={AUTO: str(large)})


def for_devices(sizes: Mapping[str, tuple[Value, Value]]) -> Callable[[Params, bool], Params]:
    """Resolves `auto` of each parameter: a size that fills a GPU, and one that a CPU finishes in time."""

    def settled(params: Params, are_processors: bool) -> Params:
        autos = {name: small if are_processors else large for name, (large, small) in sizes.items()}
        return {**params, **{name: value for name, value in autos.items() if params.get(name) == AUTO}}

    return settled


def one_or_more(machine: Machine, params: Params) -> Params:
    """The parameters with `devices` resolved as far as possible before devices are detected. Raises Skip if mode=S is
    given several."""
    if params.get("mode", "S") == "S":
        if params["devices"] not in ("auto", 1):
            raise Skip(f"mode=S uses one device, not {params['devices']}; for more, use EP or TP")
        return {**params, "devices": 1}
    return params


def placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """A CPU for each device's thread; if the number of devices is not known yet, one per core."""
    return spread(machine, thread_count(machine, "all" if params["devices"] == "auto" else params["devices"]))


def devices_argument(params: Params) -> list[str]:
    """The argument with the numbers of the devices; the first alone before it is known how many there are."""
    first, count = whole(params["device"]), 1 if params["devices"] == "auto" else whole(params["devices"])
    return ["--devices", ",".join(str(first + k) for k in range(count))]


COMMON: Sequence[Parameter] = (BACKEND, DEVICE, DEVICES, OPTIMISED)
