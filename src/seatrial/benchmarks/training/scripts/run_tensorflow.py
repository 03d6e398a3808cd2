"""Trains a network with TensorFlow, and writes what it measured.

    python run_tensorflow.py SETTINGS OUTPUT CPUS

It runs in the interpreter of the site, which needs TensorFlow and nothing of seatrial. A launcher of ranks
starts several processes of it, which are the workers of a MultiWorkerMirroredStrategy. Each binds itself to its CPUs
before TensorFlow starts threads. The step is one graph (tf.function), which XLA compiles with `compiled`. Each
step is waited for: on a device, this leaves it without work between two steps.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.process import Process, launched
from harness.training import MOMENTUM, POOL, Training, data_seed, on_storage, write_skip

_FINGERPRINT_ITEMS, _FINGERPRINT_STEPS, _FINGERPRINT_RATE = 2, 3, 0.01
_DECAY = 0.01
_QUIET = "2"


def main(settings_file: str, output: str, cpus: str) -> None:
    """Train and write the record."""
    begun = time.perf_counter()
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    process = launched([int(cpu) for cpu in cpus.split(",") if cpu], settings)
    is_bound = process.bind()
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(settings["onednn"]))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _QUIET)
    import tensorflow as tf

    is_gpu = settings["device"] == "cuda"
    gpus = tf.config.list_physical_devices("GPU")[process.number_here :][:1] if is_gpu else []
    if is_gpu and not gpus:
        write_skip(settings, process, output, "this TensorFlow finds no GPU for each process", "gpu")
        return
    tf.config.set_visible_devices(gpus, "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(settings["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(settings["interop_threads"])
    tf.config.experimental.enable_tensor_float_32_execution(settings["precision"] == "tf32")
    if settings["deterministic"]:
        tf.keras.utils.set_random_seed(settings["seed"])
        tf.config.experimental.enable_op_determinism()
    run = TensorFlowTraining(settings, process)
    run.measure(begun)
    name = ""
    if is_gpu:
        name = tf.config.experimental.get_device_details(gpus[0])["device_name"]
    found = run.gathered(is_bound)
    if process.number == 0:
        run.report(found, output, "TensorFlow", tf.__version__, name)
    run.all.leave()


class TensorFlowTraining(Training):
    """A network with its data and optimizer, and what is seen of it."""

    def __init__(self, settings: dict, process: Process) -> None:
        import numpy_data
        import tensorflow as tf
        import tensorflow_network
        import tensorflow_processes

        super().__init__(settings, process)
        self.tf, self.network, self.made_up = tf, tensorflow_network, numpy_data.made_up
        self.all = tensorflow_processes.Processes(process, settings["nodes"], settings["device"])
        begun = time.perf_counter()
        self.fingerprint = self._fingerprint()
        self.fingerprint_s = time.perf_counter() - begun
        self.model = _Model(self, self.all)
        self.alone: Any = None
        self.parameters = sum(int(tf.size(one)) for one in self.model.trained)
        on_device, seed = settings["data"] == "device", data_seed(settings, process)
        self.data = numpy_data.MadeUp(self.document, settings["batch"], POOL, seed, self._placed, on_device)
        self.seen = {
            "threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "onednn": _has_onednn(),
            "compiled": settings["compiled"],
            "deterministic": settings["deterministic"],
            "tf32": settings["device"] == "cuda" and tf.config.experimental.tensor_float_32_execution_enabled(),
        }

    def initial(self, seed: int) -> tuple:
        """Parameters and running statistics of a network, as arrays."""
        import numpy as np
        import numpy_network

        return numpy_network.init(self.document["layers"], tuple(self.document["size"]), np.random.default_rng(seed))[
            :2
        ]

    def _placed(self, array: Any) -> Any:
        """A copy on the device."""
        return self.tf.identity(array.transpose(0, 2, 3, 1) if array.ndim == 4 else array)

    def step(self, *, is_local: bool = False) -> None:
        """One training step; a local one with the parameters of this process alone."""
        self.waited_s = 0.0
        loss = (self.alone if is_local else self.model).step(self._batches())
        if not is_local:
            self.losses.append(loss)
        self.wait_s.append(self.waited_s)

    def _batches(self) -> Iterator:
        while True:
            begun = time.perf_counter()
            batch = next(self.data)
            self.waited_s += time.perf_counter() - begun
            yield batch

    def block(self, steps: int, *, is_local: bool = False) -> tuple:
        """As for every framework; local steps are traced before."""
        if is_local:
            self.alone = self._copy()
            self.step(is_local=True)
        seen = super().block(steps, is_local=is_local)
        self.alone = None
        return seen

    def _copy(self) -> Any:
        """The network of this process alone, with an optimizer that has made no step."""
        import tensorflow_processes

        copy = _Model(self, tensorflow_processes.Processes())
        for own, its in zip(copy.trained, self.model.trained, strict=True):
            own.assign(its)
        return copy

    def gradients_apart(self) -> float:
        """How far a step of all processes, with an optimizer that has made none, is from one with the mean of the
        gradients that each process computes by itself; relative, of the parameter that is farthest."""
        from numpy_data import worst_apart

        batches = [next(self._batches()) for _ in range(self.settings["accumulate"])]
        copy = self._copy()
        before = [one.numpy() for one in copy.trained]
        found = [self.tf.zeros_like(one) for one in copy.trained]
        for batch in batches:
            own = copy.gradients(*batch)[0]
            found = [total + its / len(batches) for total, its in zip(found, own, strict=True)]
        copy.update(self.all.mean_of_all(found))
        self.model.forget()
        self.model.step(iter(batches))
        return worst_apart(before, *([one.numpy() for one in each] for each in (copy.trained, self.model.trained)))

    def result(self) -> str:
        """The loss of one batch, the same for all processes, with the parameters of this one as they are now."""
        batch = map(self._placed, self.made_up(self.document, 2, 7))
        return f"{float(self._copy().gradients(*batch)[1]):.17g}"

    def waited_for(self) -> float:
        """The time, once all steps are done."""
        if self.settings["device"] != "cpu":
            self.tf.test.experimental.sync_devices()
        return time.perf_counter()

    def reset_device_memory(self) -> None:
        """Forget the largest allocation so far."""
        if self.settings["device"] != "cpu":
            self.tf.config.experimental.reset_memory_stats("GPU:0")

    def device_memory_B(self) -> int:
        """The largest allocation on the device."""
        if self.settings["device"] == "cpu":
            return 0
        return int(self.tf.config.experimental.get_memory_info("GPU:0")["peak"])

    def save(self, path: Path) -> None:
        """Write parameters, statistics and state of the optimizer."""
        import numpy as np

        model = self.model
        state = [*model.trained, *self.tf.nest.flatten(model.statistics), *model.optimizer.variables]
        with path.open("wb") as file:
            np.savez(file, *(one.numpy() for one in state))
            on_storage(file)

    def _fingerprint(self) -> str:
        """A hash of the losses of a short run in fp32, and of sums of its activations' bit patterns. It is the same on
        every healthy processor of one kind with the same library and threads; on GPUs if `deterministic` is set."""
        tf = self.tf
        weights, statistics = tf.nest.map_structure(tf.Variable, self.initial(1))
        trained = tf.nest.flatten(weights)

        def step(inputs: Any, labels: Any) -> list:
            options = self.network.Options(sums=[])
            with tf.GradientTape() as tape:
                outputs = self.network.apply(self.document["layers"], weights, statistics, inputs, options)
                loss = self.network.loss_of(outputs, labels)
            for one, its in zip(trained, tape.gradient(loss, trained), strict=True):
                one.assign_sub(_FINGERPRINT_RATE * its)
            return [loss, *(options.sums or [])]

        run, bits = tf.function(step), hashlib.sha256()
        for number in range(_FINGERPRINT_STEPS):
            inputs, labels = self.made_up(self.document, _FINGERPRINT_ITEMS, 1 + number)
            seen = run(self._placed(inputs), self._placed(labels))
            bits.update(b"".join(one.numpy().tobytes() for one in seen))
        return bits.hexdigest()[:16]


class _Model:
    """Parameters, statistics and optimizer of these processes, and the graphs of a step."""

    def __init__(self, run: TensorFlowTraining, processes: Any) -> None:
        self._run, self._all, self._tf, tf = run, processes, run.tf, run.tf
        settings = run.settings
        weights, statistics = run.initial(settings["seed"])
        self.statistics = tf.nest.map_structure(lambda one: tf.Variable(one, trainable=False), statistics)
        with processes.scope():
            self.weights = tf.nest.map_structure(tf.Variable, weights)
            self.trained = tf.nest.flatten(self.weights)
            self.optimizer = self._optimizer()
            self.optimizer.build(self.trained)
        self._start = [one.numpy() for one in self.optimizer.variables]
        dtype = tf.bfloat16 if settings["precision"] == "bf16" else tf.float32
        self._options = run.network.Options(dtype=dtype, compiled=settings["compiled"])
        self._count = settings["accumulate"]
        zeros = [tf.zeros_like(one) for one in self.trained] if self._count > 1 else []
        self._totals = [tf.Variable(one, trainable=False) for one in zeros]
        compiled = settings["compiled"]
        self._whole, self._add, self._finish = (
            tf.function(processes.shared(one), jit_compile=compiled)
            for one in (self._step, self._added, self._finished)
        )
        self.gradients = tf.function(self._gradients, jit_compile=compiled)

    def _optimizer(self) -> Any:
        settings, optimizers = self._run.settings, self._tf.keras.optimizers
        kind, rate = settings["optimizer"], settings["learning_rate"]
        if kind == "adamw":
            return optimizers.AdamW(rate, weight_decay=_DECAY, epsilon=1e-8)
        return optimizers.SGD(rate, momentum=MOMENTUM if kind == "momentum" else 0.0)

    def _gradients(self, inputs: Any, labels: Any) -> tuple:
        network, layers = self._run.network, self._run.document["layers"]
        with self._tf.GradientTape() as tape:
            outputs = network.apply(layers, self.weights, self.statistics, inputs, self._options)
            loss = network.loss_of(outputs, labels)
        return tape.gradient(loss, self.trained), loss

    def update(self, found: list) -> None:
        """Of the parameters; the optimizer adds the gradients of all processes."""
        self.optimizer.apply_gradients(
            [(one / self._all.count, its) for one, its in zip(found, self.trained, strict=True)]
        )

    def _step(self, inputs: Any, labels: Any) -> Any:
        found, loss = self._gradients(inputs, labels)
        self.update(found)
        return loss

    def _added(self, inputs: Any, labels: Any) -> Any:
        found, loss = self._gradients(inputs, labels)
        for total, one in zip(self._totals, found, strict=True):
            total.assign_add(one / self._count)
        return loss / self._count

    def _finished(self) -> None:
        self.update([one.read_value() for one in self._totals])
        for total in self._totals:
            total.assign(self._tf.zeros_like(total))

    def step(self, batches: Iterator) -> Any:
        """The loss of one step: one graph, or with several batches one that adds their gradients and one that
        updates."""
        if self._count == 1:
            return self._whole(*next(batches))
        loss = sum(self._add(*next(batches)) for _ in range(self._count))
        self._finish()
        return loss

    def forget(self) -> None:
        """Leave the optimizer as if it had made no step."""
        for one, start in zip(self.optimizer.variables, self._start, strict=True):
            one.assign(start)


def _has_onednn() -> bool | None:
    """Whether kernels of oneDNN are in use; None if this version of TensorFlow does not say it."""
    with suppress(ImportError, AttributeError):
        from tensorflow.python.util import _pywrap_util_port

        return bool(_pywrap_util_port.IsMklEnabled())
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
