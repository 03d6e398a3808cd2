"""Data sets of images on storage: what a training with `data=files`, or another format, and `training.input` read.

They are made on this machine before anything is measured (scripts/harness/data_set.py), and kept: a second run with the
same parameters uses the same files. Images are the same in all formats.
"""

from __future__ import annotations

from typing import Any

from seatrial.benchmarks.training.networks.layers import Network
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.python_script import AUTO
from seatrial.model.machine.machine import Machine

FORMATS = ("files", "lmdb", "webdataset", "tfrecord")
SHARED, OWN = "shared", "own"
_FEWEST = 512
_MOST_CACHED = 0.05
_MAKING_S = 1e-7
"""For each pixel, on one CPU."""

FORMAT_HELP = "files: JPEG files in a folder for each class; lmdb: a database; webdataset: tar files; tfrecord: records"
FOLDER = Parameter.text("folder", AUTO, "where the data set is kept; auto: in memory, cold: in TMPDIR", (AUTO,))
IMAGES = Parameter.integer("images", AUTO, "images of the data set", minimum=1)
CACHE = Parameter.choice(
    "cache", "warm", "warm: all files are in the page cache; cold: none is, when reading starts", ("warm", "cold")
)
DECODE_THREADS = Parameter.integer("decode_threads", 1, "threads of each worker that read and decode", minimum=1)
LOADER = (
    FOLDER,
    IMAGES,
    CACHE,
    Parameter.integer("workers", 2, "processes that read and decode for each process; 0: it does so itself"),
    Parameter.integer("prefetch", 2, "batches that each worker has ready", minimum=1),
    DECODE_THREADS,
    Parameter.choice(
        "worker_cpus",
        SHARED,
        "shared: workers use the CPUs of their process; own: others, one for each of their threads",
        (SHARED, OWN),
    ),
)
"""What a training that reads a data set lets one set."""

CACHED_CHECK = Check(
    "cached_data",
    "share of data to be read cold that was in memory before, as far as the kernel reports it",
    lambda machine, params: (0.0, _MOST_CACHED if params.get("cache") == "cold" else 1.0),
)


def reads_storage(params: Params) -> bool:
    """Whether it reads a data set."""
    return params["data"] in FORMATS


def cpus_of_workers(params: Params) -> int:
    """How many CPUs the workers of a process have beside those of its threads."""
    if params.get("worker_cpus") != OWN:
        return 0
    return whole(params["workers"]) * whole(params["decode_threads"])


def prepared(params: Params, network: Network, batch: int, steps: int) -> dict[str, Value]:
    """The parameters of `LOADER` for processes that take `batch` images at a time, `steps` times at most. Without a
    data set, their defaults. Raises Skip."""
    if not reads_storage(params):
        return {**{one.name: one.default for one in LOADER}, IMAGES.name: 0}
    if network.counts != "images":
        raise Skip(f"{network.name} has no images: data={params['data']} is for networks of images")
    workers, processes = whole(params["workers"]), whole(params["processes"])
    streams = processes * max(1, workers)
    least = batch * streams
    if params["cache"] == "cold":
        ahead = workers * whole(params["prefetch"])
        least *= -(-(steps + ahead) // max(1, workers))
    images = max(_FEWEST, least) if params["images"] == AUTO else whole(params["images"])
    if images < least:
        why = "each is read cold only once" if params["cache"] == "cold" else "each worker needs a batch"
        raise Skip(f"{images} images are too few: {why}, which takes {least} or more")
    return {**{one.name: params[one.name] for one in LOADER}, IMAGES.name: images}


def document(params: Params, size: Any) -> dict[str, Any] | None:
    """What the scripts make and read; None without a data set."""
    if not reads_storage(params):
        return None
    kept = {name: params[name] for name in ("folder", "images", "cache", "seed")}
    return {"format": params["data"], "size": list(size), **kept}


def making_s(params: Params, network: Network) -> float:
    """How long it takes to make the data set."""
    if not reads_storage(params):
        return 0.0
    return whole(params["images"]) * network.size[1] * network.size[2] * _MAKING_S


def refuse_one_cpu(machine: Machine, threads: int) -> None:
    """Raise Skip if workers with CPUs of their own leave none for the threads of a process."""
    if threads < 1:
        cpus = len(machine.allowed_cpus)
        raise Skip(f"worker_cpus=own leaves no CPU of {cpus} for the network: use fewer workers, or worker_cpus=shared")
