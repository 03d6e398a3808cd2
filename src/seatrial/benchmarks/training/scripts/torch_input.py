"""Batches for training with PyTorch from a data set on storage: a DataLoader whose workers read, decode and augment."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from harness import images
from harness.data_set import DataSet, order
from harness.formats import SEQUENTIAL, Damaged, Reader
from harness.process import Process

_MOST_NOTED = 16384
_OF_DIGEST_B = 1024


class Images(torch.utils.data.Dataset):
    """The images of a data set, augmented, by (epoch, number). Each has the digest of what was read, by which images
    that are served twice are found."""

    def __init__(self, data_set: DataSet, size: list, seed: int, threads: int) -> None:
        self._set, self._size, self._seed, self._threads = data_set, size, seed, threads
        self._reader: Any = None
        self._pool: Any = None

    def __len__(self) -> int:
        return len(self._set.entries)

    def __getitem__(self, which: tuple) -> tuple:
        epoch, number = which
        entry = self._set.entries[number]
        stored = self._reader.image(entry)
        digest = hashlib.blake2b(stored[-_OF_DIGEST_B:], digest_size=8).hexdigest()
        return images.augmented(stored, self._size, self._seed + epoch, number), entry[3], f"{epoch} {digest}"

    def __getitems__(self, asked: list) -> tuple:
        """When a batch was begun, and its images, by as many threads as chosen."""
        begun = _now()
        if self._reader is None:  # in its worker: no file is shared between processes
            self._reader = Reader(self._set.path, self._set.kind)
            self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        return begun, list((map if self._pool is None else self._pool.map)(self.__getitem__, asked))


def _now() -> tuple:
    """The time, and the CPU time of this process."""
    return time.perf_counter(), time.process_time()


class Batches:
    """For each batch of this process the images in it, without end. `workers` take turns, so each gets the images of
    one stream; what is left of an epoch is not used."""

    def __init__(self, data_set: DataSet, settings: Mapping[str, Any], process: Process) -> None:
        self._set, self._settings, self._process = data_set, settings, process

    def __iter__(self) -> Iterator[list]:
        batch, readers = self._settings["batch"], max(1, self._settings["workers"])
        is_sequential = self._set.kind in SEQUENTIAL
        epoch = 0
        while True:
            streams = order(
                self._set.entries,
                is_sequential=is_sequential,
                seed=self._settings["seed"],
                epoch=epoch,
                streams=readers * self._process.count,
            )
            own = streams[self._process.number * readers : (self._process.number + 1) * readers]
            for start in range(0, len(own[0]) - batch + 1, batch):
                for stream in own:
                    yield [(epoch, number) for number in stream[start : start + batch]]
            epoch += 1


class Pipeline:
    """Batches as they are needed, of images that are read and decoded meanwhile."""

    def __init__(
        self,
        document: Mapping[str, Any],
        settings: Mapping[str, Any],
        data_set: DataSet,
        process: Process,
        device: torch.device,
        place: Callable,
    ) -> None:
        self._size, self._place, self._device = document["size"], place, device
        self.served: list = []
        self.made: list = []
        workers = settings["workers"]
        loader = torch.utils.data.DataLoader(
            Images(data_set, self._size, settings["seed"], settings["decode_threads"]),
            batch_sampler=Batches(data_set, settings, process),
            collate_fn=self._batch,
            num_workers=workers,
            prefetch_factor=settings["prefetch"] if workers else None,
            persistent_workers=workers > 0,
            pin_memory=device.type == "cuda",
            worker_init_fn=_Bound(process.cpus_of_workers),
            multiprocessing_context="fork" if workers else None,
        )
        self._loaded = iter(loader)

    def _batch(self, loaded: tuple) -> tuple:
        """Normalized images, labels, the digests, and how long this took, with the CPU time in it."""
        begun, items = loaded
        channels, height, width = self._size
        pixels = torch.frombuffer(bytearray(b"".join(item[0] for item in items)), dtype=torch.uint8)
        pixels = pixels.view(len(items), height, width, channels).permute(0, 3, 1, 2)
        inputs = (pixels.float() - images.MEAN) / images.DEVIATION
        inputs, labels = inputs.contiguous(), torch.tensor([item[1] for item in items])
        took = tuple(end - start for start, end in zip(begun, _now(), strict=True))
        return inputs, labels, [item[2] for item in items], took

    def digests(self) -> list:
        """That of each image that was served, with its epoch."""
        return self.served

    def __next__(self) -> tuple:
        try:
            inputs, labels, digests, took = next(self._loaded)
        except Damaged as error:  # with the traceback of its worker
            raise SystemExit(str(error).strip().splitlines()[-1]) from None
        if len(self.served) < _MOST_NOTED:
            self.served += digests
        self.made.append(took)
        inputs = self._place(inputs)
        if self._device.type == "cuda":
            return inputs.to(self._device, non_blocking=True), labels.to(self._device, non_blocking=True)
        return inputs, labels


class _Bound:
    """Binds each worker to the CPUs of all workers of its process; () leaves it on those of the process."""

    def __init__(self, cpus: list) -> None:
        self._cpus = cpus

    def __call__(self, _: int) -> None:
        if self._cpus:
            os.sched_setaffinity(0, self._cpus)
