"""`training.input`: how many images per second this node reads, decodes and augments, without a network.

Workers are processes of plain Python with Pillow: the limit of a node for any framework that decodes with libjpeg. The
DataLoader of `training.pytorch` does the same for each image, and besides normalizes, joins and hands over batches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from seatrial.benchmarks.figures import duration, exactly, rate, zero
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.benchmarks.training import data_sets, framework
from seatrial.benchmarks.training.networks import networks
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import parse_record
from seatrial.model.benchmark.python_script import AUTO, PythonScript
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_NAME = "training.input"
_SCRIPT = framework.SCRIPTS / "run_input.py"
_MODELS = tuple(name for name, network in networks().items() if network.counts == "images")
_FEWEST, _MOST, _PIXELS = 512, 4096, 1 << 22
_IMAGE_S = 4e-8


def _cpus(params: Params) -> int:
    return whole(params["workers"]) * whole(params["decode_threads"])


def _prepare(machine: Machine, params: Params) -> Params:
    """The numbers that the words stand for. Raises Skip."""
    size = networks()[str(params["model"])].size
    threads = whole(params["decode_threads"])
    workers = params["workers"]
    if workers == AUTO:
        workers = max(1, thread_count(machine, "all") // threads)
    thread_count(machine, whole(workers) * threads)
    images: Value = max(_FEWEST, min(_MOST, _PIXELS // (size[1] * size[2])), 2 * whole(workers))
    if params["images"] != AUTO:
        images = params["images"]
    if whole(images) < whole(workers):
        raise Skip(f"{images} images are too few for {workers} workers")
    return {
        **params,
        "workers": workers,
        "images": images,
        "needed": 0 if params["needed"] == "none" else params["needed"],
    }


def _settings(params: Params) -> Mapping[str, bytes]:
    size = networks()[str(params["model"])].size
    content = {**params, "program": _NAME, "data_set": data_sets.document(params, size)}
    return {framework.SETTINGS: json.dumps(content).encode()}


def _estimate_s(params: Params) -> float:
    network = networks()[str(params["model"])]
    pass_s = whole(params["images"]) * network.size[1] * network.size[2] * _IMAGE_S
    return 5.0 + data_sets.making_s(params, network) + 2 * whole(params["passes"]) * pass_s


def _used(sample: Sample) -> float:
    return sample.work["cpu_s"] / sample.work["available_s"]


def _decoding(sample: Sample) -> float:
    return 1.0 - sample.work["read_s"] / sample.work["busy_s"]


BENCHMARK = Benchmark(
    name=_NAME,
    question="How many images does this node read and decode for training?",
    program=PythonScript(
        name="Pillow",
        install="install Pillow into a Python on PATH (python -m pip install pillow), or set environment.python to the "
        "path of one that has it",
        output=framework.OUTPUT,
        arguments=lambda params, directory: [str(_SCRIPT), framework.SETTINGS, framework.OUTPUT],
        parse=parse_record,
        version=(),
        inputs=_settings,
        module="PIL",
        package="pillow",
        parts=framework.parts("run_input.py"),
        takes_cpus=True,
    ),
    parameters=(
        Parameter.choice("model", "resnet50", "the network whose images are read: their size", _MODELS),
        Parameter.choice("data", "files", data_sets.FORMAT_HELP, data_sets.FORMATS),
        data_sets.FOLDER,
        data_sets.IMAGES,
        data_sets.CACHE,
        Parameter.integer("workers", AUTO, "processes that read and decode; auto: one per core", minimum=1),
        data_sets.DECODE_THREADS,
        Parameter.integer(
            "needed",
            "none",
            "images per second that a training takes, to be compared with; none: as training was measured",
            minimum=1,
        ),
        Parameter.integer("seed", 0, "of the images and their order"),
        Parameter.integer("passes", 3, "times that all images are read, with decoding and without", minimum=1),
    ),
    figures=(
        rate(
            "rate",
            "op/s",
            "images that all workers read, decode, cut and flip",
            "items",
            series="pipeline",
            customary=lambda params, value: f"{value:.4g} images/s",
            role=Role.INPUT_RATE,
        ),
        rate("read_rate", "B/s", "bytes of JPEG that they read meanwhile", series="pipeline", is_secondary=True),
        rate("read", "B/s", "bytes of JPEG that they read without decoding", series="read", is_secondary=True),
        duration(
            "decode",
            "decoding, cutting and flipping of an image by one thread",
            "items",
            series="decode",
            is_secondary=True,
        ),
        Figure(
            "decoding",
            "1",
            Better.LOWER,
            _decoding,
            "share of the workers' time that is not reading",
            series="pipeline",
            is_secondary=True,
            role=Role.INPUT_DECODING,
        ),
        Figure(
            "cpu_share",
            "1",
            Better.HIGHER,
            _used,
            "CPU time of the workers over the time of their CPUs",
            series="pipeline",
            is_secondary=True,
        ),
    ),
    checks=(
        Check("workers", "workers that ran", exactly("workers")),
        Check("moved_workers", "workers that were not on their CPUs", zero),
        Check("wrong_images", "images that are missing, or have another size", zero),
        Check("repeated_items", "images that were read twice in an epoch", zero),
        data_sets.CACHED_CHECK,
    ),
    placement=lambda machine, params: spread(machine, _cpus(params)),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
