"""Trains a network with JAX, and writes what it measured.

    python run_jax.py SETTINGS OUTPUT CPUS

It runs in the interpreter of the site, which needs JAX and nothing of seatrial. The process binds itself to its CPUs
before JAX starts threads. The whole step is one compiled function. JAX runs steps asynchronously: the time of a step
lasts until its loss is there; on a device the next step is in its queue by then, so that it never waits for the host.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.process import Process
from harness.training import MOMENTUM, POOL, Training, data_seed, on_storage, write_skip

_FINGERPRINT_ITEMS, _FINGERPRINT_STEPS, _FINGERPRINT_RATE = 2, 3, 0.01
_PRODUCTS = {"fp32": "float32", "tf32": "tensorfloat32", "bf16": "default"}
_ADAM_1, _ADAM_2, _ADAM_EPSILON, _ADAM_DECAY = 0.9, 0.999, 1e-8, 0.01
"""As in PyTorch's AdamW."""


def main(settings_file: str, output: str, cpus: str) -> None:
    """Train and write the record."""
    begun = time.perf_counter()
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    process = Process([int(cpu) for cpu in cpus.split(",") if cpu], settings["threads"])
    is_bound = process.bind()
    _set_before_start(settings)
    import jax

    try:
        device = jax.devices(settings["device"])[0]
    except RuntimeError:
        write_skip(settings, process, output, "this JAX finds no GPU", "gpu")
        return
    jax.config.update("jax_default_matmul_precision", _PRODUCTS[settings["precision"]])
    run = JaxTraining(settings, process, device)
    run.measure(begun)
    name = device.device_kind if settings["device"] == "cuda" else ""
    run.report(run.gathered(is_bound), output, "JAX", jax.__version__, name)


def _set_before_start(settings: dict) -> None:
    """Settings that JAX reads once, when it starts."""
    os.environ["JAX_PLATFORMS"] = settings["device"]
    os.environ["PJRT_NPROC"] = str(settings["threads"])
    flags = [one for one in os.environ.get("XLA_FLAGS", "").split() if "deterministic_ops" not in one]
    if settings["device"] == "cuda":
        flags.append(f"--xla_gpu_deterministic_ops={str(settings['deterministic']).lower()}")
    os.environ["XLA_FLAGS"] = " ".join(flags)


def _threads_of_xla() -> int:
    """Those that compute operations on CPUs."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return names.count("tf_XLAEigen")


class JaxTraining(Training):
    """A network with its data and optimizer, and what is seen of it."""

    def __init__(self, settings: dict, process: Process, device: Any) -> None:
        import jax
        import jax.numpy as jnp
        import jax_network
        import numpy as np
        import numpy_data
        import numpy_network

        super().__init__(settings, process)
        self.jax, self.device, self.made_up = jax, device, numpy_data.made_up
        self.channels_last = settings["memory_format"] == "channels-last"
        begun = time.perf_counter()
        self.fingerprint = self._fingerprint()
        self.fingerprint_s = time.perf_counter() - begun
        layers = self.document["layers"]
        made = numpy_network.init(layers, tuple(self.document["size"]), np.random.default_rng(settings["seed"]))
        self.state = jax.device_put((made[0], made[1], _started(settings["optimizer"], made[0])), device)
        self.parameters = sum(one.size for one in jax.tree.leaves(made[0]))
        options = jax_network.Options(
            dtype=jnp.bfloat16 if settings["precision"] == "bf16" else jnp.float32,
            channels_last=self.channels_last,
            recompute=settings["recompute"],
        )
        self.gradients = partial(_gradients, layers, options)
        self._compile()
        on_device = settings["data"] == "device"
        seed = data_seed(settings, process)
        self.data = numpy_data.MadeUp(self.document, settings["batch"], POOL, seed, self._placed, on_device)
        self.seen = {
            "threads": _threads_of_xla(),
            "products": str(jax.config.jax_default_matmul_precision),
            "deterministic": settings["deterministic"],
            "compilation_cache": jax.config.jax_compilation_cache_dir is not None,
            "xla_flags": os.environ["XLA_FLAGS"],
        }

    def _placed(self, array: Any) -> Any:
        """A copy on the device."""
        if array.ndim == 4 and self.channels_last:
            array = array.transpose(0, 2, 3, 1)
        return self.jax.device_put(self.jax.numpy.array(array), self.device)

    def _compile(self) -> None:
        """Let the step be compiled when it is made first: one function, or with several batches one that adds their
        gradients and one that updates."""
        jax, count = self.jax, self.settings["accumulate"]
        update = partial(_updated, self.settings["optimizer"], self.settings["learning_rate"])

        def step(state: tuple, batch: tuple) -> tuple:
            found, statistics, loss, _ = self.gradients(state[0], state[1], batch)
            parameters, memory = update(state[0], found, state[2])
            return (parameters, statistics, memory), loss

        def add(state: tuple, total: tuple, batch: tuple) -> tuple:
            found, statistics, loss, _ = self.gradients(state[0], state[1], batch)
            total = jax.tree.map(lambda a, b: a + b / count, total, (found, loss))
            return (state[0], statistics, state[2]), total

        def finish(state: tuple, total: tuple) -> tuple:
            parameters, memory = update(state[0], total[0], state[2])
            return (parameters, state[1], memory), total[1]

        self.whole_step = jax.jit(step, donate_argnums=0)
        self.add, self.finish = jax.jit(add, donate_argnums=(0, 1)), jax.jit(finish, donate_argnums=0)
        self.zeros = jax.jit(lambda parameters: (jax.tree.map(jax.numpy.zeros_like, parameters), 0.0))

    def step(self, *, is_local: bool = False) -> None:
        """One training step."""
        self.waited_s = 0.0
        if self.settings["accumulate"] == 1:
            self.state, loss = self.whole_step(self.state, self._next())
        else:
            total = self.zeros(self.state[0])
            for _ in range(self.settings["accumulate"]):
                self.state, total = self.add(self.state, total, self._next())
            self.state, loss = self.finish(self.state, total)
        self.losses.append(loss)
        self.wait_s.append(self.waited_s)

    def _next(self) -> tuple:
        begun = time.perf_counter()
        batch = next(self.data)
        self.waited_s += time.perf_counter() - begun
        return batch

    def waited_for(self) -> float:
        """The time, once all steps are done."""
        self.jax.block_until_ready(self.state)
        return time.perf_counter()

    def each_step(self, steps: int, *, is_local: bool) -> list:
        """Make the steps; the time of each. On a device, the next one is started before this one is waited for."""
        ahead = 1 if self.settings["device"] != "cpu" else 0
        marks = [self.waited_for()]
        first = len(self.losses)
        for number in range(steps + ahead):
            if number < steps:
                self.step()
            if number >= ahead:
                self.losses[first + number - ahead].block_until_ready()
                marks.append(time.perf_counter())
        return [end - start for start, end in pairwise(marks)]

    def device_memory_B(self) -> int:
        """The largest allocation on the device so far."""
        return int((self.device.memory_stats() or {}).get("peak_bytes_in_use", 0))

    def save(self, path: Path) -> None:
        """Write parameters, statistics and state of the optimizer."""
        import numpy as np

        with path.open("wb") as file:
            np.savez(file, *self.jax.tree.leaves(self.jax.device_get(self.state)))
            on_storage(file)

    def _fingerprint(self) -> str:
        """A hash of the losses of a short run in fp32, and of the norms of its activations, bit for bit. It is the same
        on every healthy processor of one kind with the same library and threads; on GPUs if `deterministic` is set."""
        import jax_network
        import numpy as np
        import numpy_network

        layers = self.document["layers"]

        def step(state: tuple, batch: tuple) -> tuple:
            options = jax_network.Options(channels_last=self.channels_last, norms=[])
            found, statistics, loss, seen = _gradients(layers, options, state[0], state[1], batch)
            parameters = self.jax.tree.map(lambda old, its: old - _FINGERPRINT_RATE * its, state[0], found)
            return (parameters, statistics), [loss, *seen]

        step = self.jax.jit(step)
        made = numpy_network.init(layers, tuple(self.document["size"]), np.random.default_rng(1))
        state, bits = self.jax.device_put(made[:2], self.device), hashlib.sha256()
        for number in range(_FINGERPRINT_STEPS):
            inputs, labels = self.made_up(self.document, _FINGERPRINT_ITEMS, 1 + number)
            state, seen = step(state, (self._placed(inputs), self._placed(labels)))
            bits.update(b"".join(np.asarray(one).tobytes() for one in seen))
        return bits.hexdigest()[:16]


def _gradients(layers: list, options: Any, parameters: list, statistics: list, batch: tuple) -> tuple:
    """Gradients, new statistics, the loss, and the norms of activations if they are asked for."""
    import jax
    import jax_network

    def loss_of(parameters: list) -> tuple:
        outputs, new = jax_network.apply(layers, parameters, statistics, batch[0], options)
        return jax_network.loss_of(outputs, batch[1]), (new, options.norms or [])

    (loss, (new, norms)), found = jax.value_and_grad(loss_of, has_aux=True)(parameters)
    return found, new, loss, norms


def _started(kind: str, parameters: list) -> tuple:
    """What an optimizer remembers before the first step."""
    import jax
    import numpy as np

    def zeros() -> list:
        return jax.tree.map(np.zeros_like, parameters)

    if kind == "adamw":
        return zeros(), zeros(), np.float32(0)
    return (zeros(),) if kind == "momentum" else ()


def _updated(kind: str, rate: float, parameters: list, found: list, memory: tuple) -> tuple:
    """New parameters, and what the optimizer remembers, as PyTorch's optimizers do it."""
    import jax
    import jax.numpy as jnp

    each = jax.tree.map
    if kind == "sgd":
        return each(lambda old, its: old - rate * its, parameters, found), memory
    if kind == "momentum":
        speed = each(lambda before, its: MOMENTUM * before + its, memory[0], found)
        return each(lambda old, its: old - rate * its, parameters, speed), (speed,)
    count = memory[2] + 1
    first = each(lambda before, its: _ADAM_1 * before + (1 - _ADAM_1) * its, memory[0], found)
    second = each(lambda before, its: _ADAM_2 * before + (1 - _ADAM_2) * its * its, memory[1], found)

    def moved(old: Any, one: Any, two: Any) -> Any:
        size = jnp.sqrt(two / (1 - _ADAM_2**count)) + _ADAM_EPSILON
        return old * (1 - rate * _ADAM_DECAY) - rate * one / (1 - _ADAM_1**count) / size

    return each(moved, parameters, first, second), (first, second, count)


if __name__ == "__main__":
    main(*sys.argv[1:])
