"""What all device benchmarks share: their declaration, sizes and figures, and the parameters of which devices, how many
at once, in which precision.

S, EP and TP are those of SHOC (A. Danalis et al., "The Scalable Heterogeneous Computing (SHOC) Benchmark Suite",
GPGPU-3, 2010): one device; the same problem on each device at once; devices that share one problem. Each device is
driven by its own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Unpack

import msgspec
from msgspec.structs import replace

from seatrial.benchmarks.figures import More, Words, native_program, rate, zero
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark.benchmark import Benchmark, Bound, Check, Figure, HostCopies, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.units import Unit

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


def number_of_devices(minimum: int) -> Parameter:
    """For programs without modes, in which the host may compute as well."""
    none = "; 0: the host alone" if minimum == 0 else ""
    return Parameter.integer(
        "devices", "auto", f"number of devices, starting at `device`; auto: all{none}", minimum=minimum
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


def largest_size(meaning: str, minimum: int) -> Parameter:
    """The largest size of a sweep, for programs that choose it themselves where it is `auto`."""
    return Parameter.size("largest_B", AUTO, meaning, minimum=minimum, option="--largest", spelled={AUTO: "0"})


def largest_B(params: Params, auto_B: int) -> int:
    """That size; `auto_B` is what programs choose on a GPU."""
    return auto_B if params["largest_B"] == AUTO else whole(params["largest_B"])


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
    """A CPU for each device's thread; if the number of devices is unknown yet, one per core."""
    return spread(machine, thread_count(machine, "all" if params["devices"] == "auto" else params["devices"]))


def devices_argument(params: Params) -> list[str]:
    """The argument with the numbers of the devices; the first alone before it is known how many there are."""
    first, count = whole(params["device"]), 1 if params["devices"] == "auto" else whole(params["devices"])
    if count == 0:
        return ["--devices", "none"]
    return ["--devices", ",".join(str(first + k) for k in range(count))]


def _common(devices: Parameter) -> tuple[Parameter, ...]:
    return (BACKEND, DEVICE, devices, OPTIMISED)


COMMON: Sequence[Parameter] = _common(DEVICES)


VERIFIED = Path(__file__).with_name("verified.json")
"""Which of these benchmarks ran rightly on a GPU: name -> device, driver and date, as bench/gpu_trial.py writes it."""


@cache
def _verified() -> Mapping[str, Mapping[str, str]]:
    return msgspec.json.decode(VERIFIED.read_bytes(), type=dict[str, dict[str, str]])


def is_verified(name: str) -> bool:
    """Whether a benchmark ran rightly on a GPU."""
    return name in _verified()


def evidence(name: str) -> str:
    """Such as: "checked on NVIDIA H200, CUDA 13.0, 2026-12-01"; "" if it never ran rightly on a GPU."""
    found = _verified().get(name)
    return "" if found is None else f"checked on {found['device']}, {found['driver']}, {found['date']}"


_CLASSES: Mapping[str, tuple[Value, Value]] = {"size": ("large", "1")}


def benchmark(
    file: str,
    *,
    name: str,
    question: str,
    parameters: Sequence[Parameter],
    figures: Sequence[Figure],
    estimate_s: Callable[[Params], float],
    error: str = "",
    tolerances: Mapping[str, float] | None = None,
    checks: Sequence[Check] = (),
    words: Sequence[Words] = (),
    prepare: Callable[[Machine, Params], Params] = one_or_more,
    placement: Callable[[Machine, Params], tuple[int, ...]] = placement,
    trial: Sequence[Params] = (),
    sizes: Mapping[str, tuple[Value, Value]] = _CLASSES,
    devices: Parameter = DEVICES,
) -> Benchmark:
    """A benchmark whose program and kernels are beside the declaration `file`, with the same stem. The standard trial
    of machines with GPUs has the experiments of `trial`; `sizes` are the values of `auto` on GPUs and on CPUs,
    `words` the arguments besides those that parameters declare. `error` says what the check of that name measures: by
    precision at most these `tolerances`, without them 0; `checks` are further ones. `VERIFIED`
    has those that ran on a GPU."""
    error_check = Check("error", error, zero if tolerances is None else up_to(tolerances))
    own = (*parameters, *_common(devices))
    return Benchmark(
        name=name,
        question=question,
        program=native_program(file, own, devices_argument, *words, library="gpu"),
        parameters=own,
        figures=tuple(figures),
        checks=(*((error_check,) if error else ()), *checks),
        placement=placement,
        prepare=prepare,
        on_devices=for_devices(sizes),
        estimate_s=estimate_s,
        trial=tuple(trial),
        is_in_trial=lambda machine: bool(machine.of_kind(DeviceKind.GPU)),
        verified=is_verified(name),
        evidence=evidence(name),
    )


ARRAY_B = {"1": 1 << 20, "2": 8 << 20, "3": 32 << 20, "4": 64 << 20, "large": 1 << 30}
"""SHOC's classes of arrays in memory, in bytes, and one beyond the caches of today."""


def size_class(sizes: Mapping[str, int], meaning: str, option: str = "") -> Parameter:
    """SHOC's size classes by number, and `large`, which exceeds current caches. The program takes the size of the class
    by `option`, unless that says less than all of it."""
    description = f"{meaning}; auto: large, or 1 if the device is a CPU"
    spelled = {word: str(chosen_size(sizes, {"size": word})) for word in (AUTO, *sizes)}
    return Parameter.choice("size", AUTO, description, (AUTO, *sizes), option=option, spelled=spelled)


def chosen_size(sizes: Mapping[str, int], params: Params) -> int:
    """The size of the class; before the devices are known, the largest."""
    return sizes["large" if params["size"] == AUTO else str(params["size"])]


def array_bytes(params: Params) -> int:
    """The size of an array of the class."""
    return chosen_size(ARRAY_B, params)


def element_bytes(params: Params) -> int:
    """The size of a number in the precision of the experiment."""
    return 8 if params["precision"] == "fp64" else 4


def up_to(tolerances: Mapping[str, float]) -> Bound:
    """From 0 to the tolerance in the precision of the experiment."""
    return lambda machine, params: (0.0, tolerances[str(params["precision"])])


def of_several(params: Params) -> bool:
    """Whether devices work at once on separate problems, so that their samples are combined."""
    return params["mode"] == "EP" and params["devices"] != 1


def rates(
    name: str,
    unit: Unit,
    work: str,
    counted: str = "",
    *,
    role_of_all: Role | HostCopies | None = None,
    **more: Unpack[More],
) -> tuple[Figure, Figure]:
    """A rate, plus NAME_all of devices that work at once, from the samples of the series SERIES_all."""
    one = rate(name, unit, work, counted, **more)
    return one, replace(
        one,
        name=f"{name}_all",
        work="all devices together, over the time of the slowest",
        series=f"{one.series}_all",
        is_there=of_several,
        role=role_of_all,
    )
