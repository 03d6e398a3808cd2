"""gpu.bus-speed: copies between the host's memory and a device's, as SHOC's BusSpeedDownload and BusSpeedReadback, by
size.

A size is copied again and again, one copy behind the other: 2k copies less k copies, so that neither the start of a
train nor its end counts. Pinned copies of 64 KiB and more are timed by the device, all others by the host.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_parameters import COMMON, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

_KiB = 1 << 10
_MiB = 1 << 20
_AUTO_B = 64 * _MiB
"""Where the program decides; on a processor it takes less."""


def _largest_B(params: Params) -> int:
    return 0 if params["largest_B"] == "auto" else whole(params["largest_B"])


def _arguments(params: Params) -> list[str]:
    return [*device_arguments(params), "--host", str(params["host"]), "--largest", str(_largest_B(params))]


def _estimate_s(params: Params) -> float:
    return 3.0 + (_largest_B(params) or _AUTO_B) * 2e-8


def _rate(name: str, work: str, *, is_of_all: bool = False) -> Figure:
    return Figure(
        name=name,
        series=name,
        unit="B/s",
        better=Better.HIGHER,
        value=lambda sample: sample.work["bytes"] / sample.elapsed_s,
        work=work,
        is_there=lambda params: not is_of_all or (params["mode"] == "EP" and params["devices"] != 1),
    )


BENCHMARK = Benchmark(
    name="gpu.bus-speed",
    question="How fast do data travel between the host's memory and a device's?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        Parameter(
            "largest_B",
            ParameterKind.BYTES,
            "auto",
            "sizes are the powers of 4 from 1 KiB, and this; auto: 64 MiB, or 16 MiB where the device is a processor",
            words=("auto",),
            minimum=_KiB,
        ),
        Parameter(
            "host",
            ParameterKind.CHOICE,
            "pinned",
            "the host's memory: pinned, which the device reaches by itself, or pageable as programs usually have it",
            words=("pinned", "pageable"),
        ),
        *COMMON,
    ),
    figures=(
        _rate("download", "bytes from the host to the device"),
        _rate("readback", "bytes from the device to the host"),
        _rate("download_all", "the same of all devices together, by the time of the slowest", is_of_all=True),
        _rate("readback_all", "the same of all devices together, by the time of the slowest", is_of_all=True),
    ),
    checks=(Check("error", "bytes that came back otherwise than they were sent", zero),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
