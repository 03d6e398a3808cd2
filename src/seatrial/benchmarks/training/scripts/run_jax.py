"""Trains a network with JAX, and writes what it measured.

    python run_jax.py SETTINGS OUTPUT CPUS

It runs in the interpreter of the site, which needs JAX and nothing of seatrial. A launcher of ranks starts several
processes of it. Each binds itself to its CPUs before JAX starts threads. The whole step is one compiled function. JAX
runs steps asynchronously: the time of a step lasts until its loss is there; on a device the next step is in its queue
by then, so that it never waits for the host.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.process import Process, launched
from harness.training import MOMENTUM, POOL, Training, data_seed, on_storage, write_skip

_FINGERPRINT_ITEMS, _FINGERPRINT_STEPS, _FINGERPRINT_RATE = 2, 3, 0.01
_PRODUCTS = {"fp32": "float32", "tf32": "tensorfloat32", "bf16": "default"}
_ADAM_1, _ADAM_2, _ADAM_EPSILON, _ADAM_DECAY = 0.9, 0.999, 1e-8, 0.01
"""As in PyTorch's AdamW."""


def main(settings_file: str, output: str, cpus: str) -> None:
    """Train and write the record."""
    begun = time.perf_counter()
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    process = launched([int(cpu) for cpu in cpus.split(",") if cpu], settings)
    is_bound = process.bind()
    _set_before_start(settings)
    import jax
    import jax_processes

    if process.count > 1:
        if reason := jax_processes.missing():
            write_skip(settings, process, output, reason)
            return
        jax_processes.join(process, settings["nodes"], settings["device"])
    try:
        device = jax.local_devices(backend=settings["device"])[0]
    except RuntimeError:
        write_skip(settings, process, output, "this JAX finds no GPU", "gpu")
        return
    jax.config.update("jax_default_matmul_precision", _PRODUCTS[settings["precision"]])
    run = JaxTraining(settings, process, device)
    run.measure(begun)
    name = device.device_kind if settings["device"] == "cuda" else ""
    found = run.gathered(is_bound)
    if process.number == 0:
        run.report(found, output, "JAX", jax.__version__, name)
    run.barrier()


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
        import jax_processes
        import numpy as np
        import numpy_data
        import numpy_network

        super().__init__(settings, process)
        self.jax, self.device, self.made_up = jax, device, numpy_data.made_up
        self.all = jax_processes.Processes(process.count, device)
        self.each, every = jax_processes.EACH, jax_processes.ALL
        self.specs = (every, self.each, every)
        self.channels_last = settings["memory_format"] == "channels-last"
        begun = time.perf_counter()
        self.fingerprint = self._fingerprint()
        self.fingerprint_s = time.perf_counter() - begun
        layers = self.document["layers"]
        made = numpy_network.init(layers, tuple(self.document["size"]), np.random.default_rng(settings["seed"]))
        start = jax.device_put((made[0], made[1], _started(settings["optimizer"], made[0])), device)
        self.state = self._joined(start)
        self.state_alone: Any = None
        self.last: Any = None
        self.parameters = sum(one.size for one in jax.tree.leaves(made[0]))
        options = jax_network.Options(
            dtype=jnp.bfloat16 if settings["precision"] == "bf16" else jnp.float32,
            channels_last=self.channels_last,
            recompute=settings["recompute"],
        )
        self.gradients = partial(_gradients, layers, options)
        self.steps, self.steps_alone = self._compiled(self.all), self._compiled(jax_processes.Processes(1, device))
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

    def _joined(self, state: tuple) -> tuple:
        """The state of all processes: each has its own running statistics."""
        return tuple(self.all.joined(part, spec) for part, spec in zip(state, self.specs, strict=True))

    def _compiled(self, of: Any) -> tuple:
        """The step of these processes, compiled when it is made first: one function, or with several batches one that
        adds their gradients and one that updates."""
        jax, count = self.jax, self.settings["accumulate"]
        update = partial(_updated, self.settings["optimizer"], self.settings["learning_rate"])

        def step(state: tuple, batch: tuple) -> tuple:
            found, statistics, loss, _ = self.gradients(state[0], state[1], batch)
            parameters, memory = update(state[0], of.mean(found), state[2])
            return (parameters, statistics, memory), loss[None]

        def zeros(parameters: list) -> tuple:
            return jax.tree.map(jax.numpy.zeros_like, parameters), jax.numpy.zeros(1)

        def add(state: tuple, total: tuple, batch: tuple) -> tuple:
            found, statistics, loss, _ = self.gradients(state[0], state[1], batch)
            total = jax.tree.map(lambda a, b: a + b / count, total, (found, loss))
            return (state[0], statistics, state[2]), total

        def finish(state: tuple, total: tuple) -> tuple:
            parameters, memory = update(state[0], of.mean(total[0]), state[2])
            return (parameters, state[1], memory), total[1]

        each, both = self.each, (self.specs, self.each)
        return (
            jax.jit(of.shared(step, both, both), donate_argnums=0),
            jax.jit(of.shared(zeros, self.specs[:1], each)),
            jax.jit(of.shared(add, (*both, each), both), donate_argnums=(0, 1)),
            jax.jit(of.shared(finish, both, both), donate_argnums=0),
        )

    def _advanced(self, made: tuple, state: tuple, batches: Iterator) -> tuple:
        """State and loss after one step with such functions; the state before is given up."""
        step, zeros, add, finish = made
        if self.settings["accumulate"] == 1:
            return step(state, next(batches))
        total = zeros(state[0])
        for _ in range(self.settings["accumulate"]):
            state, total = add(state, total, next(batches))
        return finish(state, total)

    def step(self, *, is_local: bool = False) -> None:
        """One training step; a local one with the parameters of this process alone."""
        self.waited_s = 0.0
        if is_local:
            batches = map(self.all.own, self._batches())
            self.state_alone, self.last = self._advanced(self.steps_alone, self.state_alone, batches)
        else:
            self.state, self.last = self._advanced(self.steps, self.state, self._batches())
            self.losses.append(self.last)
        self.wait_s.append(self.waited_s)

    def _batches(self) -> Iterator:
        while True:
            begun = time.perf_counter()
            batch = self.all.joined(next(self.data), self.each)
            self.waited_s += time.perf_counter() - begun
            yield batch

    def block(self, steps: int, *, is_local: bool = False) -> tuple:
        """As for every framework; local steps are compiled before."""
        if is_local:
            self.state_alone = self._copy_of_own()
            self.step(is_local=True)
            self.last.block_until_ready()
        seen = super().block(steps, is_local=is_local)
        self.state_alone = None
        return seen

    def _copy_of_own(self) -> Any:
        """What this process has of the state."""
        return self.jax.tree.map(self.jax.numpy.copy, self.all.own(self.state))

    def waited_for(self) -> float:
        """The time, once all steps are done."""
        self.jax.block_until_ready(self.state)
        return time.perf_counter()

    def each_step(self, steps: int, *, is_local: bool) -> list:
        """Make the steps; the time of each. On a device, the next one is started before this one is waited for."""
        ahead = 1 if self.settings["device"] != "cpu" else 0
        marks = [self.waited_for()]
        made: list = []
        for number in range(steps + ahead):
            if number < steps:
                self.step(is_local=is_local)
                made.append(self.last)
            if number >= ahead:
                made[number - ahead].block_until_ready()
                marks.append(time.perf_counter())
        return [end - start for start, end in pairwise(marks)]

    def value(self, loss: Any) -> float:
        """The number of this process."""
        return float(self.all.own(loss)[0])

    def gradients_apart(self) -> float:
        """How far a step of all processes, with an optimizer that has made none, is from one with the mean of the
        gradients that each process computes by itself; relative, of the parameter that is farthest."""
        import numpy as np
        from numpy_data import worst_apart

        batches = [next(self._batches()) for _ in range(self.settings["accumulate"])]
        parameters, statistics, _ = self._copy_of_own()
        before = self.jax.device_get(parameters)
        started = self.jax.device_put(_started(self.settings["optimizer"], before), self.device)
        found: Any = self.jax.tree.map(np.zeros_like, before)
        own = self.jax.jit(lambda *given: self.gradients(*given)[0])
        for batch in batches:
            its = own(parameters, statistics, self.all.own(batch))
            found = self.jax.tree.map(lambda a, b: a + np.asarray(b) / len(batches), found, its)
        mean = self.all.mean_of_all(found)
        update = self.jax.jit(partial(_updated, self.settings["optimizer"], self.settings["learning_rate"]))
        expected = self.jax.device_get(update(before, mean, started)[0])
        state, _ = self._advanced(self.steps, self._joined((parameters, statistics, started)), iter(batches))
        return worst_apart(*map(self.jax.tree.leaves, (before, expected, self.all.own(state[0]))))

    def result(self) -> str:
        """The loss of one batch, the same for all processes, with the parameters of this one as they are now."""
        parameters, statistics, _ = self.all.own(self.state)
        batch = tuple(map(self._placed, self.made_up(self.document, 2, 7)))
        loss = self.jax.jit(lambda *given: self.gradients(*given)[2])(parameters, statistics, batch)
        return f"{float(loss):.17g}"

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
        """A hash of the losses of a short run in fp32, and of sums of its activations' bit patterns. It is the same on
        every healthy processor of one kind with the same library and threads; on GPUs if `deterministic` is set."""
        import jax_network
        import numpy as np
        import numpy_network

        layers = self.document["layers"]

        def step(state: tuple, batch: tuple) -> tuple:
            options = jax_network.Options(channels_last=self.channels_last, sums=[])
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
    """Gradients, new statistics, the loss, and the sums of bit patterns if they are asked for."""
    import jax
    import jax_network

    def loss_of(parameters: list) -> tuple:
        outputs, new = jax_network.apply(layers, parameters, statistics, batch[0], options)
        return jax_network.loss_of(outputs, batch[1]), (new, options.sums or [])

    (loss, (new, sums)), found = jax.value_and_grad(loss_of, has_aux=True)(parameters)
    return found, new, loss, sums


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
