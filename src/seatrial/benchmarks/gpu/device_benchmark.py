"""The parts of a declaration that all device benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import AUTO, COMMON, for_devices, one_or_more, placement
from seatrial.model.benchmark import ALL_OF_IT, Attainable, Benchmark, Better, Bound, Check, Figure, Native
from seatrial.model.limit import Limit
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, Value
from seatrial.model.quotients import WorkRate
from seatrial.model.role import HostCopies, Role
from seatrial.model.sample import Sample
from seatrial.model.units import Unit

LimitOf = Callable[[Machine, Params, Sequence[Sample]], Limit]

_CLASSES: Mapping[str, tuple[Value, Value]] = {"size": ("large", "1")}
_ALL = "all devices together, over the time of the slowest"


def device_benchmark(
    file: str,
    *,
    name: str,
    question: str,
    arguments: Callable[[Params], Sequence[str]],
    parameters: Sequence[Parameter],
    figures: Sequence[Figure],
    checks: Sequence[Check],
    estimate_s: Callable[[Params], float],
    prepare: Callable[[Machine, Params], Params] = one_or_more,
    placement: Callable[[Machine, Params], tuple[int, ...]] = placement,
    trial: Sequence[Params] = (),
    sizes: Mapping[str, tuple[Value, Value]] = _CLASSES,
) -> Benchmark:
    """A benchmark whose program and kernels are beside the declaration `file`, with the same stem. The standard trial
    of machines with GPUs has the experiments of `trial`; `sizes` are the values of `auto` on GPUs and on CPUs. None of
    these benchmarks is verified on a GPU yet."""
    return Benchmark(
        name=name,
        question=question,
        program=Native(Path(file).with_suffix(".cpp"), arguments, library="gpu"),
        parameters=(*parameters, *COMMON),
        figures=tuple(figures),
        checks=tuple(checks),
        placement=placement,
        prepare=prepare,
        on_devices=for_devices(sizes),
        estimate_s=estimate_s,
        trial=tuple(trial),
        is_in_trial=_has_gpus,
        verified=False,
    )


def _has_gpus(machine: Machine) -> bool:
    return bool(machine.of_kind(DeviceKind.GPU))


def size_class(sizes: Mapping[str, int], meaning: str) -> Parameter:
    """SHOC's size classes by number, and `large`, which exceeds current caches."""
    description = f"{meaning}; auto: large, or 1 if the device is a CPU"
    return Parameter("size", ParameterKind.CHOICE, AUTO, description, words=(AUTO, *sizes))


def chosen_size(sizes: Mapping[str, int], params: Params) -> int:
    """The size of the class; before the devices are known, the largest."""
    return sizes["large" if params["size"] == AUTO else str(params["size"])]


def element_bytes(params: Params) -> int:
    """The size of a number in the precision of the experiment."""
    return 8 if params["precision"] == "fp64" else 4


def up_to(tolerances: Mapping[str, float]) -> Bound:
    """From 0 to the tolerance in the precision of the experiment."""
    return lambda machine, params: (0.0, tolerances[str(params["precision"])])


def of_several(params: Params) -> bool:
    """Whether devices work at once on separate problems, so that their samples are combined."""
    return params["mode"] == "EP" and params["devices"] != 1


def _always(params: Params) -> bool:
    return True


def rate(
    name: str,
    unit: Unit,
    counted: str,
    work: str,
    *,
    series: str,
    limit: LimitOf | None = None,
    one_limit_over: tuple[str, ...] = (),
    attainable: Attainable = ALL_OF_IT,
    is_there: Callable[[Params], bool] = _always,
    role: Role | HostCopies | None = None,
) -> Figure:
    """The work `counted` in a sample over its time, of one device or of those that share one problem."""
    return Figure(
        name=name,
        series=series,
        unit=unit,
        better=Better.HIGHER,
        value=WorkRate(counted),
        work=work,
        limit=limit,
        attainable=lambda params: attainable,
        one_limit_over=one_limit_over,
        is_there=is_there,
        role=role,
    )


def rates(
    name: str,
    unit: Unit,
    counted: str,
    work: str,
    *,
    series: str,
    limit: LimitOf | None = None,
    one_limit_over: tuple[str, ...] = (),
    attainable: Attainable = ALL_OF_IT,
    role: Role | HostCopies | None = None,
    role_of_all: Role | HostCopies | None = None,
) -> tuple[Figure, Figure]:
    """Like `rate`, plus NAME_all of devices that work at once, from the samples of the series SERIES_all."""
    return (
        rate(
            name,
            unit,
            counted,
            work,
            series=series,
            limit=limit,
            one_limit_over=one_limit_over,
            attainable=attainable,
            role=role,
        ),
        rate(
            f"{name}_all",
            unit,
            counted,
            _ALL,
            series=f"{series}_all",
            limit=limit,
            one_limit_over=one_limit_over,
            attainable=attainable,
            is_there=of_several,
            role=role_of_all,
        ),
    )
