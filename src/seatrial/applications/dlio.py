"""DLIO: summary.json, and the `[METRIC]` lines of its log.

Throughput, accelerator utilisation and I/O are means over the epochs; the JSON has each epoch as well. I/O is
throughput times the size of a sample, so mean and deviation of both have one ratio. What DLIO calls MB is 2^20 B.

`apps.dlio`: DLIO, which reads the data of a training as its framework does, and sleeps in place of the computation; its
summary.json is read as `seatrial import dlio=FILE` does.

The data are made before each run, by the same program, and read from where they are: files of the published size in as
many as `files`. They may still be in memory then, if they fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.log import Log, Printed
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.given_input import CASE, OWN, InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "DLIO"
_MIB = 2.0**20
_PREFIX = r"(?:\[\w{1,10}\] )?(?:.{0,80} )?\[METRIC\] "
_TWO = r" +([0-9]{1,12}\.[0-9]{4,6}) \(([0-9]{1,12}\.[0-9]{4,6})\).{0,200}"
_ACCELERATORS = Pattern(_PREFIX + r"Number of Simulated Accelerators: +([0-9]{1,9})\b.{0,200}")
_MEETS = Pattern(_PREFIX + r"(?:train|eval)_au_meet_expectation: +(success|fail)\b.{0,200}")
_METRICS = {
    way: [
        Pattern(rf"{_PREFIX}{word} {what}:{_TWO}")
        for what in (
            r"Accelerator Utilization \[AU\] \(%\)",
            r"Throughput \(samples/second\)",
            rf"{moved}Throughput \(MB/second\)",
        )
    ]
    for way, word, moved in (("train", "Training", "I/O "), ("eval", "Eval", "(?:I/O )?"))
}
_TRAIN_LIKE = Pattern(_PREFIX + r"Training .{1,300}")
_MISSED = "DLIO says that the accelerators waited for data more than they may: this result is not valid for MLPerf"


def read(data: bytes) -> ImportedFile:
    """One run of DLIO. Raises ParseError if it did not end, measured nothing, or its numbers contradict each other."""
    return _read_json(data) if is_json(data, "num_accelerators") else _read_log(data)


def _read_json(data: bytes) -> ImportedFile:
    document = read_object(data, _TOOL, "metric", "num_accelerators")
    if "metric" not in document or "num_accelerators" not in document:
        raise document.error("no `metric` and `num_accelerators`: this is not the summary.json of DLIO")
    metric = document.object("metric")
    epochs = document.whole("epochs")
    if not epochs or not _is_in_order(document):
        raise document.error("no `epochs`, or `end` is not after `start`: the run has not ended")
    samples: list[Sample] = []
    for way in _METRICS:
        if f"{way}_throughput_mean_samples_per_second" in metric:
            numbers = [
                _mean(metric, way, "au", "percentage", epochs),
                _mean(metric, way, "throughput", "samples_per_second", epochs),
                _mean(metric, way, "io", "MB_per_second", None),
            ]
            samples += _samples(way, numbers, f"{way} metrics")
    for way in ("save", "load"):
        key = f"{way}_checkpoint_duration_mean_seconds"
        if key in metric and (seconds := metric.number(key)):
            samples.append(figures.time_sample(f"checkpoint_{way}", seconds))
    if not samples:
        raise document.error("no throughput of training or evaluation: DLIO measured nothing")
    parameters: dict[str, Value] = {}
    for name, key in (("accelerators", "num_accelerators"), ("nodes", "num_hosts"), ("epochs", "epochs")):
        if count := document.whole(key):
            parameters[name] = count
    missed = any(metric.text(f"{way}_au_meet_expectation") == "fail" for way in _METRICS)
    experiment = ImportedExperiment("imported.dlio", tuple(samples), parameters, remarks=(_MISSED,) if missed else ())
    return ImportedFile(_TOOL, "", (experiment,), host=document.text("hostname"))


def _is_in_order(document: JsonObject) -> bool:
    try:
        begin, end = (datetime.fromisoformat(document.text(key) or "") for key in ("start", "end"))
        return begin < end
    except (ValueError, TypeError):
        return False


def _mean(metric: JsonObject, way: str, what: str, unit: str, epochs: int | None) -> tuple[Printed, float]:
    """Mean and deviation, checked against the `epochs` if each is listed. Raises ParseError."""
    mean, deviation = (metric.number(f"{way}_{what}_{key}_{unit}") for key in ("mean", "stdev"))
    if mean == 0:
        raise metric.error(f"{way}_{what} is 0: DLIO measured nothing")
    if epochs is not None:
        values = metric.get(f"{way}_{what}_{unit}")
        listed = values if isinstance(values, list) else []
        if len(listed) != epochs:
            raise metric.error(f"{way}_{what} has {len(listed)} epochs of {epochs}")
        each = [JsonObject(_TOOL, f"{way}, an epoch", {what: value}).number(what) for value in listed]
        true = sum(each) / epochs
        spread = math.sqrt(sum((value - true) ** 2 for value in each) / epochs)
        if abs(true - mean) > 1e-6 * mean or abs(spread - deviation) > 1e-6 * mean:
            raise metric.error(f"{way}_{what}: mean or deviation is not that of the epochs")
    return Printed(mean, 0.0), deviation


def _read_log(data: bytes) -> ImportedFile:
    log = Log(_TOOL, data)
    accelerators = log.banner(_ACCELERATORS, "[METRIC] Number of Simulated Accelerators: 2")
    samples: list[Sample] = []
    for way, patterns in _METRICS.items():
        if not any(log.found(pattern) for pattern in patterns):
            continue
        numbers = [
            (one.printed(1, "the mean"), one.number_or_zero(2, "the deviation"))
            for one in (log.only(pattern, f"line `[METRIC]` of {way}") for pattern in patterns)
        ]
        samples += _samples(way, numbers, f"{way} metrics")
    if not any(sample.series.startswith("train") for sample in samples) and log.found(_TRAIN_LIKE):
        raise log.found(_TRAIN_LIKE)[0].error("a damaged metric")
    if not samples:
        raise log.not_ended("no throughput of training or evaluation below the accelerators")
    parameters: dict[str, Value] = {"accelerators": accelerators.whole(1, "accelerators")}
    missed = any(one.match[1] == "fail" for one in log.found(_MEETS))
    experiment = ImportedExperiment("imported.dlio", tuple(samples), parameters, remarks=(_MISSED,) if missed else ())
    return ImportedFile(_TOOL, "", (experiment,))


def _samples(way: str, numbers: Sequence[tuple[Printed, float]], where: str) -> list[Sample]:
    """Utilisation, throughput and I/O. Raises ParseError if they contradict each other."""
    (utilisation, _), (throughput, spread), (moved, moved_spread) = numbers
    if utilisation.value > 100 + utilisation.error + 1e-6:
        raise ParseError(_TOOL, None, "", f"{where}: a utilisation of {utilisation.value:g} %")
    slack = 2e-4 if throughput.error or moved.error else 0.0  # deviations have four decimals in the log
    expected = spread / throughput.value * moved.value
    if abs(expected - moved_spread) > 1e-6 * moved.value + slack + slack * moved.value / throughput.value:
        why = "I/O is throughput x size of a sample, but its deviation is not"
        raise ParseError(_TOOL, None, "", f"{where}: {why}")
    return [
        figures.rate_sample(f"{way}_utilisation", utilisation.value / 100, resolution=utilisation.resolution),
        throughput.rate_sample(f"{way}_throughput"),
        moved.rate_sample(f"{way}_io", _MIB),
    ]


IMPORTED = figures.imported(
    "dlio",
    "DLIO",
    "How fast did DLIO read the data of a training?",
    figures.counts(accelerators="simulated accelerators", nodes="hosts", epochs="epochs"),
    (
        *(
            figure
            for way, word in (("train", "training"), ("eval", "evaluation"))
            for figure in (
                figures.rate(f"{way}_throughput", "op/s", f"samples per second, mean over the epochs ({word})"),
                figures.rate(f"{way}_io", "B/s", f"bytes of these samples ({word})", figures.given_limit("B/s")),
                figures.rate(f"{way}_utilisation", "1", f"share of the time in which accelerators compute ({word})"),
            )
        ),
        figures.time("checkpoint_save", "mean time to write a checkpoint"),
        figures.time("checkpoint_load", "mean time to read a checkpoint"),
    ),
)

READER = figures.Reader("dlio", read)


_WORKLOADS = {
    "unet3d_a100": "3D U-Net, images of 140 MB, an A100",
    "resnet50_a100": "ResNet-50, records of 150 KB, an A100",
    "cosmoflow_a100": "CosmoFlow, samples of 2.6 MB, an A100",
}


def _arguments(params: Params, *, is_made: bool) -> Sequence[str]:
    parts = {"generate_data": not is_made, "train": is_made}
    workflow = [f"++workload.workflow.{part}={value}" for part, value in parts.items()]
    dataset = ["++workload.dataset.data_folder=data", f"++workload.dataset.num_files_train={params['files']}"]
    return [f"workload={params[CASE]}", *workflow, *dataset, f"hydra.run.dir={'output' if is_made else 'generated'}"]


def _prepare(params: Params) -> Params:
    if params[CASE] == OWN:
        raise Skip("your own workloads need a configuration folder of DLIO: run it yourself, and import dlio=FILE")
    return params


BENCHMARK = application(
    IMPORTED,
    "How fast is a training fed with data?",
    tool="DLIO",
    programs=("dlio_benchmark",),
    install="install DLIO (python -m pip install dlio-benchmark) and put dlio_benchmark on PATH",
    arguments=lambda params: _arguments(params, is_made=True),
    preparation=lambda params: (_arguments(params, is_made=False),),
    output="output/summary.json",
    cases=tuple(InputCase(name, what, "") for name, what in _WORKLOADS.items()),
    made=Made(parameters=(Parameter.integer("files", 16, "files of the data set", minimum=1),), prepare=_prepare),
    has_start=False,
    stated={"accelerators": "ranks"},
    evidence=FORMAT_SEEN,
)
