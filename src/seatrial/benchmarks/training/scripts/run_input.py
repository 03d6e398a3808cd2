"""Measures an input pipeline without a network: workers that read, decode and augment all images of a data set.

    python run_input.py SETTINGS OUTPUT CPUS

It runs in the interpreter of the site, which needs Pillow and nothing of seatrial. A pass is one epoch: its workers are
started and have opened the data set before its time begins, and it ends with the last worker. Passes that also decode
come first, then those that only read; then one thread decodes images that it has in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import images
from harness.data_set import DataSet, Unusable, made, order
from harness.formats import SEQUENTIAL, Damaged, Reader
from harness.record import Record

_DECODED_ALONE = 64


def main(settings_file: str, output: str, cpus: str) -> None:
    """Measure and write the record."""
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    own = [int(cpu) for cpu in cpus.split(",") if cpu]
    record = Record(settings["program"], own, 1)
    try:
        data_set = made(settings["data_set"])
        _measure(data_set, settings, own, record)
    except Unusable as reason:
        record.skip(str(reason), reason.need)
    except Damaged as error:
        raise SystemExit(str(error)) from None
    record.write(output)


def _measure(data_set: DataSet, settings: dict, cpus: Sequence[int], record: Record) -> None:
    workers, threads = settings["workers"], settings["decode_threads"]
    chosen = {"is_sequential": data_set.kind in SEQUENTIAL, "seed": settings["seed"], "streams": workers}
    wrong, digests, shares = 0, [], []
    for number in range(2 * settings["passes"]):
        decodes = number < settings["passes"]
        streams = order(data_set.entries, epoch=number, **chosen)
        known = data_set.cached_for(settings["cache"])
        shares.append(known["in_memory"])
        began, found = _pass(data_set, settings, streams, cpus, decodes)
        elapsed_s = max(one["ended"] for one in found) - began
        total = {name: sum(one[name] for one in found) for name in ("items", "bytes", "cpu_s", "read_s", "busy_s")}
        work = {**total, "available_s": elapsed_s * workers * threads}
        record.sample("pipeline" if decodes else "read", elapsed_s, work)
        wrong += sum(one["wrong"] for one in found) + abs(total["items"] - sum(map(len, streams)))
        digests = [digest for one in found for digest in one["digests"]]
    _decode_alone(data_set, settings, cpus, record)
    record.check("workers", len(found))
    record.check("moved_workers", sum(not one["is_bound"] for one in found))
    record.check("wrong_images", wrong)
    record.check("repeated_items", len(digests) - len(set(digests)))
    record.check("cached_data", max((share for share in shares if share != "unknown"), default=0.0))
    record.note("data", known)


class Worker:
    """Goes through images with its threads."""

    def __init__(self, data_set: DataSet, settings: dict, decodes: bool) -> None:
        self._set, self._decodes = data_set, decodes
        self._threads, self._seed = settings["decode_threads"], settings["seed"]
        self._size = settings["data_set"]["size"]
        self._reader = Reader(data_set.path, data_set.kind)

    def go_through(self, stream: Sequence[int]) -> dict:
        """What was done: counts, seconds, and when it ended."""
        before_s = time.process_time()
        parts = [stream[thread :: self._threads] for thread in range(self._threads)]
        if self._threads == 1:
            found = [self._part(parts[0])]
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                found = list(pool.map(self._part, parts))
        ended = time.clock_gettime(time.CLOCK_MONOTONIC)
        total = {name: sum(one[name] for one in found) for name in ("items", "bytes", "read_s", "busy_s", "wrong")}
        digests = [digest for one in found for digest in one["digests"]]
        return {**total, "cpu_s": time.process_time() - before_s, "ended": ended, "digests": digests}

    def _part(self, numbers: Sequence[int]) -> dict:
        read_B = wrong = 0
        read_s = 0.0
        digests = []
        expected = self._size[0] * self._size[1] * self._size[2]
        began = time.perf_counter()
        for number in numbers:
            asked = time.perf_counter()
            stored = self._reader.image(self._set.entries[number])
            read_s += time.perf_counter() - asked
            read_B += len(stored)
            if self._decodes:
                wrong += len(self._augmented(stored, number)) != expected
            else:
                digests.append(hashlib.blake2b(stored[-1024:], digest_size=8).hexdigest())
        busy_s = time.perf_counter() - began
        done = {"items": len(numbers), "bytes": read_B, "read_s": read_s, "busy_s": busy_s}
        return {**done, "wrong": wrong, "digests": digests}

    def _augmented(self, stored: bytes, number: int) -> bytes:
        try:
            return images.augmented(stored, self._size, self._seed, number)
        except OSError as error:
            raise Damaged(f"image {number} of {self._set.path} cannot be decoded: {error}") from error


def _pass(
    data_set: DataSet, settings: dict, streams: Sequence[Sequence[int]], cpus: Sequence[int], decodes: bool
) -> tuple:
    """When all workers began, and what each found."""
    threads = settings["decode_threads"]
    start, started = os.pipe()
    workers = []
    for number, stream in enumerate(streams):
        answer, to_answer = os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(started)
                os.close(answer)
                own = cpus[number * threads : (number + 1) * threads]
                with os.fdopen(to_answer, "w") as out:
                    _work(Worker(data_set, settings, decodes), stream, own, out, start)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        os.close(to_answer)
        workers.append((child, os.fdopen(answer)))
    os.close(start)
    ready = [lines.readline() for _, lines in workers]
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    os.close(started)
    texts = [lines.readline() for _, lines in workers]
    for child, lines in workers:
        lines.close()
        os.waitpid(child, 0)
    if not all((*ready, *texts)):
        raise SystemExit("a worker ended early: its message is above")
    found = [json.loads(text) for text in texts]
    for one in found:
        if "damaged" in one:
            raise Damaged(one["damaged"])
    return began, found


def _work(worker: Worker, stream: Sequence[int], cpus: Sequence[int], out: Any, start: int) -> None:
    """What a worker does: say that it is ready, wait for the start, go through its images, and say what it saw."""
    if cpus:
        os.sched_setaffinity(0, cpus)
    print("ready", file=out, flush=True)
    os.read(start, 1)
    try:
        found = worker.go_through(stream)
    except Damaged as error:
        found = {"damaged": str(error)}
    found["is_bound"] = not cpus or os.sched_getaffinity(0) == set(cpus)
    print(json.dumps(found), file=out, flush=True)


def _decode_alone(data_set: DataSet, settings: dict, cpus: Sequence[int], record: Record) -> None:
    """One thread on one CPU, with nothing else running: images that it has in memory."""
    if cpus:
        os.sched_setaffinity(0, cpus[:1])
    reader = Reader(data_set.path, data_set.kind)
    stored = [reader.image(entry) for entry in data_set.entries[:_DECODED_ALONE]]
    reader.close()
    for _ in range(settings["passes"]):
        began = time.perf_counter()
        for number, one in enumerate(stored):
            images.augmented(one, settings["data_set"]["size"], settings["seed"], number)
        record.sample("decode", time.perf_counter() - began, {"items": float(len(stored))})


if __name__ == "__main__":
    main(*sys.argv[1:])
