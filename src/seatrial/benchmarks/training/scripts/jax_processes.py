"""Several processes of JAX as one mesh, with a device of each: what all of them have, and what each has for itself.

An array with `EACH` is split along its first dimension, a part for each process; one with `ALL` is the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from harness.nodes import meeting_point
from harness.process import Process
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

_AXIS = "processes"
ALL, EACH = PartitionSpec(), PartitionSpec(_AXIS)


def missing() -> str:
    """Why several processes cannot be used with this JAX; "" if they can."""
    return "" if hasattr(jax, "shard_map") else f"several processes need JAX 0.6 or later; this is {jax.__version__}"


def join(process: Process, nodes: int, device: str) -> None:
    """Connect all processes; gradients are exchanged by Gloo on CPUs and by NCCL on GPUs."""
    host, port = meeting_point(process.number)
    where = f"{host if nodes > 1 else '127.0.0.1'}:{port}"
    if device == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    own = None if device == "cpu" else process.number_here
    jax.distributed.initialize(where, process.count, process.number, own, "deactivate", coordinator_bind_address=where)


class Processes:
    """All processes of a run; with one, functions and arrays stay as they are."""

    def __init__(self, count: int, device: Any) -> None:
        self.are_several = count > 1
        self._device = device
        if self.are_several:
            first = {one.process_index: one for one in reversed(jax.devices())}
            self._mesh = jax.sharding.Mesh([first[number] for number in range(count)], (_AXIS,))

    def shared(self, function: Callable, inputs: tuple, outputs: Any) -> Callable:
        """The function as all processes make it together, with the specifications of its arrays."""
        if not self.are_several:
            return function
        return jax.shard_map(function, mesh=self._mesh, in_specs=inputs, out_specs=outputs, check_vma=False)

    def mean(self, tree: Any) -> Any:
        """Inside of a shared function: the mean over all processes."""
        return jax.lax.pmean(tree, _AXIS) if self.are_several else tree

    def joined(self, tree: Any, spec: PartitionSpec) -> Any:
        """Arrays of all processes, made of those of each on its device."""
        if not self.are_several:
            return tree
        sharding = NamedSharding(self._mesh, spec)
        count = self._mesh.size

        def made(own: Any) -> Any:
            shape = (count * own.shape[0], *own.shape[1:]) if spec == EACH else own.shape
            return jax.make_array_from_single_device_arrays(shape, sharding, [own])

        return jax.tree.map(made, tree)

    def own(self, tree: Any) -> Any:
        """The parts of this process, on its device."""
        return jax.tree.map(lambda one: one.addressable_data(0), tree) if self.are_several else tree

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.are_several:
            multihost_utils.sync_global_devices("barrier")

    def of_the_first(self, answer: bool) -> bool:
        """The answer of the first process."""
        return bool(multihost_utils.broadcast_one_to_all(np.int32(answer))) if self.are_several else answer

    def mean_of_all(self, tree: Any) -> Any:
        """The mean over all processes of their own arrays, computed by each from those of all."""
        return jax.tree.map(lambda one: np.mean(multihost_utils.process_allgather(np.asarray(one)), 0), tree)

    def gathered(self, own: dict) -> list:
        """What each process has, as JSON."""
        if not self.are_several:
            return [own]
        text = np.frombuffer(json.dumps(own).encode(), np.uint8)
        lengths = multihost_utils.process_allgather(np.int32(text.size))
        padded = np.zeros(int(lengths.max()), np.uint8)
        padded[: text.size] = text
        every = multihost_utils.process_allgather(padded)
        return [json.loads(row[:length].tobytes()) for row, length in zip(every, lengths.tolist(), strict=True)]
