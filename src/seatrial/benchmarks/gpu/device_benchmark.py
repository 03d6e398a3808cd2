"""The parts of a declaration that all device benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Unpack

from msgspec.structs import replace

from seatrial.benchmarks.figures import More, rate
from seatrial.benchmarks.gpu.device_parameters import (
    AUTO,
    COMMON,
    devices_argument,
    for_devices,
    one_or_more,
    placement,
)
from seatrial.benchmarks.native_program import Words, native_program
from seatrial.model.benchmark.benchmark import Benchmark, Bound, Check, Figure
from seatrial.model.benchmark.parameter import Parameter, Params, Value
from seatrial.model.benchmark.role import HostCopies, Role
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.units import Unit

_CLASSES: Mapping[str, tuple[Value, Value]] = {"size": ("large", "1")}


def device_benchmark(
    file: str,
    *,
    name: str,
    question: str,
    parameters: Sequence[Parameter],
    figures: Sequence[Figure],
    checks: Sequence[Check],
    estimate_s: Callable[[Params], float],
    words: Sequence[Words] = (),
    prepare: Callable[[Machine, Params], Params] = one_or_more,
    placement: Callable[[Machine, Params], tuple[int, ...]] = placement,
    trial: Sequence[Params] = (),
    sizes: Mapping[str, tuple[Value, Value]] = _CLASSES,
) -> Benchmark:
    """A benchmark whose program and kernels are beside the declaration `file`, with the same stem. The standard trial
    of machines with GPUs has the experiments of `trial`; `sizes` are the values of `auto` on GPUs and on CPUs,
    `words` the arguments besides those that parameters declare. None of
    these benchmarks is verified on a GPU yet."""
    own = (*parameters, *COMMON)
    return Benchmark(
        name=name,
        question=question,
        program=native_program(file, own, devices_argument, *words, library="gpu"),
        parameters=own,
        figures=tuple(figures),
        checks=tuple(checks),
        placement=placement,
        prepare=prepare,
        on_devices=for_devices(sizes),
        estimate_s=estimate_s,
        trial=tuple(trial),
        is_in_trial=lambda machine: bool(machine.of_kind(DeviceKind.GPU)),
        verified=False,
    )


_MiB = 1 << 20
ARRAY_B = {"1": _MiB, "2": 8 * _MiB, "3": 32 * _MiB, "4": 64 * _MiB, "large": 1 << 30}
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
    counted: str,
    work: str,
    *,
    role_of_all: Role | HostCopies | None = None,
    **more: Unpack[More],
) -> tuple[Figure, Figure]:
    """A rate, plus NAME_all of devices that work at once, from the samples of the series SERIES_all."""
    one = rate(name, unit, counted, work, **more)
    return one, replace(
        one,
        name=f"{name}_all",
        work="all devices together, over the time of the slowest",
        series=f"{one.series}_all",
        is_there=of_several,
        role=role_of_all,
    )
