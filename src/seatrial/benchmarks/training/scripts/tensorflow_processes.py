"""Several processes of TensorFlow as the workers of a MultiWorkerMirroredStrategy, each with one device."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import tensorflow as tf
from harness.nodes import meeting_points
from harness.process import Process

_LOCAL = "127.0.0.1"


class Processes:
    """All processes of a run, or this one alone, whose functions and variables stay as they are. To be made before
    TensorFlow computes anything."""

    def __init__(self, process: Process | None = None, nodes: int = 1, device: str = "cpu") -> None:
        self.count = 1 if process is None else process.count
        self._strategy: Any = None
        if process is None or self.count == 1:
            return
        self._is_first = process.number == 0
        points = meeting_points(process.number, self.count)
        workers = [f"{host if nodes > 1 else _LOCAL}:{port}" for host, port in points]
        task = {"type": "worker", "index": process.number}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
        by = tf.distribute.experimental.CommunicationImplementation
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=by.RING if device == "cpu" else by.AUTO
        )
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
        self._sum, self._gather = (
            tf.function(self.shared(one), autograph=False, reduce_retracing=True) for one in (_summed, _joined)
        )

    def scope(self) -> Any:
        """In it, variables are those of all processes, and begin with the values of the first."""
        return nullcontext() if self._strategy is None else self._strategy.scope()

    def shared(self, function: Callable) -> Callable:
        """The function as all processes make it together."""
        strategy = self._strategy
        return function if strategy is None else lambda *given: strategy.run(function, given)

    def mean_of_all(self, tensors: list) -> list:
        """The mean over all processes of their own tensors."""
        return [one / self.count for one in self._sum(tensors)]

    def barrier(self) -> None:
        """Wait for all processes."""
        if self._strategy is not None:
            self._sum(tf.constant(1.0)).numpy()

    def leave(self) -> None:
        """End this process once all are here. The last exchange fails in a process whose peer has left before."""
        if self._strategy is None:
            return
        self.barrier()
        with suppress(tf.errors.OpError):
            self.barrier()
        sys.stderr.flush()
        os._exit(0)

    def of_the_first(self, answer: bool) -> bool:
        """The answer of the first process."""
        if self._strategy is None:
            return answer
        return bool(self._sum(tf.constant(float(answer and self._is_first))).numpy())

    def gathered(self, own: dict) -> list:
        """What each process has, as JSON."""
        if self._strategy is None:
            return [own]
        text = list(json.dumps(own).encode())
        lengths = self._gather(tf.constant([len(text)])).numpy()
        every, found = bytes(self._gather(tf.constant(text)).numpy().tolist()), []
        for length in lengths.tolist():
            found.append(json.loads(every[:length]))
            every = every[length:]
        return found


def _summed(value: Any) -> Any:
    placed = tf.nest.map_structure(tf.identity, value)  # what is exchanged must be on a device
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, placed)


def _joined(value: Any) -> Any:
    return tf.distribute.get_replica_context().all_gather(tf.identity(value), axis=0)
