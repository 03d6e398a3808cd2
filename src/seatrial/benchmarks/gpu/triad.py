"""gpu.triad: a = b + s c with all arrays in the host's memory, as SHOC's Triad: blocks travel down, are worked on and
travel back, on two queues, so that copies and work overlap.

Counted as there: 3 elements travel and 2 operations are done for each element of a.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.units import Unit

_KiB = 1 << 10
_MiB = 1 << 20
_AUTO_B = 16 * _MiB
"""Where the program decides; on a processor it takes less."""


def _largest_B(params: Params) -> int:
    return 0 if params["largest_B"] == "auto" else whole(params["largest_B"])


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--largest", str(_largest_B(params))),
    ]


def _estimate_s(params: Params) -> float:
    return 3.0 + (_largest_B(params) or _AUTO_B) * 1e-7


def _rate(name: str, unit: Unit, counted: str, work: str, *, is_of_all: bool = False) -> Figure:
    return Figure(
        name=name,
        series="triad_all" if is_of_all else "triad",
        unit=unit,
        better=Better.HIGHER,
        value=lambda sample: sample.work[counted] / sample.elapsed_s,
        work=work,
        is_there=lambda params: not is_of_all or (params["mode"] == "EP" and params["devices"] != 1),
    )


_OF_ALL = "the same of all devices together, by the time of the slowest"

BENCHMARK = Benchmark(
    name="gpu.triad",
    question="How fast does a device work on data that come from the host and go back there?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        PRECISION,
        Parameter(
            "largest_B",
            ParameterKind.BYTES,
            "auto",
            "blocks of one array have 64 KiB, 256 KiB and so on to this; auto: 16 MiB, or 4 MiB where the device is a "
            "processor",
            words=("auto",),
            minimum=64 * _KiB,
        ),
        *COMMON,
    ),
    figures=(
        _rate("bandwidth", "B/s", "bytes", "b and c travel to the device and a from it"),
        _rate("rate", "flop/s", "flops", "an addition and a multiplication for each element"),
        _rate("bandwidth_all", "B/s", "bytes", _OF_ALL, is_of_all=True),
        _rate("rate_all", "flop/s", "flops", _OF_ALL, is_of_all=True),
    ),
    checks=(Check("error", "elements of a that are not exactly b + s c", zero),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
