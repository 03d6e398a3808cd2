"""Parameters shared by all device benchmarks: which devices, how many at once, in which precision.

S, EP and TP are those of SHOC (A. Danalis et al., "The Scalable Heterogeneous Computing (SHOC) Benchmark Suite",
GPGPU-3, 2010): one device; the same problem on each device at once; devices that share one problem. Each device is
driven by its own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark import Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, Value, whole

AUTO = "auto"

BACKEND = Parameter(
    "backend",
    ParameterKind.CHOICE,
    "auto",
    "driver interface; auto: cuda if it finds a device, else opencl",
    words=("auto", "cuda", "opencl"),
)

DEVICES = Parameter(
    "devices",
    ParameterKind.INTEGER,
    "auto",
    "number of devices that work at once, starting at `device`; auto: 1 for S, all for EP and TP",
    words=("auto",),
    minimum=1,
)

DEVICE = Parameter(
    "device", ParameterKind.INTEGER, 0, "index of the first device, as numbered by the backend", minimum=0
)

PRECISION = Parameter("precision", ParameterKind.CHOICE, "fp32", "floating-point precision", words=("fp32", "fp64"))

OPTIMISED = Parameter(
    "optimised", ParameterKind.FLAG, True, "compile kernels with optimisation; false helps to find compiler errors"
)


def mode_among(*words: str) -> Parameter:
    """The modes that a benchmark supports."""
    return Parameter(
        "mode",
        ParameterKind.CHOICE,
        "S",
        "S: one device; EP: the same problem on each device at once; TP: devices share one problem",
        words=words,
    )


def size_of(name: str, large: int, small: int, meaning: str, minimum: int) -> Parameter:
    """The problem size as a number. `auto` is resolved by `for_devices`."""
    description = f"{meaning}; auto: {large}, or {small} if the device is a CPU"
    return Parameter(name, ParameterKind.INTEGER, AUTO, description, words=(AUTO,), minimum=minimum)


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


def device_arguments(params: Params) -> list[str]:
    """The command line options that all device programs accept."""
    first, count = whole(params["device"]), 1 if params["devices"] == "auto" else whole(params["devices"])
    return [
        *("--backend", str(params["backend"])),
        *("--devices", ",".join(str(first + k) for k in range(count))),
        *("--optimised", "1" if params["optimised"] else "0"),
    ]


COMMON: Sequence[Parameter] = (BACKEND, DEVICE, DEVICES, OPTIMISED)
