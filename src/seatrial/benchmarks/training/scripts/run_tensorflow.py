"""Trains a network with TensorFlow, and writes what it measured.

    python run_tensorflow.py SETTINGS OUTPUT CPUS

It runs in the interpreter of the site, which needs TensorFlow and nothing of seatrial. The process binds itself to its
CPUs before TensorFlow starts threads. The step is one graph (tf.function), which XLA compiles with `compiled`. Each
step is waited for: on a device, this leaves it without work between two steps.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.process import Process
from harness.training import MOMENTUM, POOL, Training, data_seed, on_storage, write_skip

_FINGERPRINT_ITEMS, _FINGERPRINT_STEPS, _FINGERPRINT_RATE = 2, 3, 0.01
_DECAY = 0.01
_QUIET = "2"


def main(settings_file: str, output: str, cpus: str) -> None:
    """Train and write the record."""
    begun = time.perf_counter()
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    process = Process([int(cpu) for cpu in cpus.split(",") if cpu], settings["threads"])
    is_bound = process.bind()
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(settings["onednn"]))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _QUIET)
    import tensorflow as tf

    is_gpu = settings["device"] == "cuda"
    if is_gpu and not tf.config.list_physical_devices("GPU"):
        write_skip(settings, process, output, "this TensorFlow finds no GPU", "gpu")
        return
    if not is_gpu:
        tf.config.set_visible_devices([], "GPU")
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
        name = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])["device_name"]
    run.report(run.gathered(is_bound), output, "TensorFlow", tf.__version__, name)


class TensorFlowTraining(Training):
    """A network with its data and optimizer, and what is seen of it."""

    def __init__(self, settings: dict, process: Process) -> None:
        import numpy_data
        import tensorflow as tf
        import tensorflow_network

        super().__init__(settings, process)
        self.tf, self.network, self.made_up = tf, tensorflow_network, numpy_data.made_up
        begun = time.perf_counter()
        self.fingerprint = self._fingerprint()
        self.fingerprint_s = time.perf_counter() - begun
        self.weights, self.statistics = self._variables(settings["seed"])
        self.trained = tf.nest.flatten(self.weights)
        self.parameters = sum(int(tf.size(one)) for one in self.trained)
        self.optimizer = self._optimizer()
        self.optimizer.build(self.trained)
        self._make_functions()
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

    def _variables(self, seed: int) -> tuple:
        """Parameters and running statistics of a network."""
        import numpy as np
        import numpy_network

        made = numpy_network.init(self.document["layers"], tuple(self.document["size"]), np.random.default_rng(seed))
        tf = self.tf
        return (
            tf.nest.map_structure(tf.Variable, made[0]),
            tf.nest.map_structure(lambda one: tf.Variable(one, trainable=False), made[1]),
        )

    def _optimizer(self) -> Any:
        kind, rate = self.settings["optimizer"], self.settings["learning_rate"]
        if kind == "adamw":
            return self.tf.keras.optimizers.AdamW(rate, weight_decay=_DECAY, epsilon=1e-8)
        return self.tf.keras.optimizers.SGD(rate, momentum=MOMENTUM if kind == "momentum" else 0.0)

    def _placed(self, array: Any) -> Any:
        """A copy on the device."""
        return self.tf.identity(array.transpose(0, 2, 3, 1) if array.ndim == 4 else array)

    def _make_functions(self) -> None:
        """Graphs of the step: one, or with several batches one that adds their gradients and one that updates."""
        tf, settings = self.tf, self.settings
        count = settings["accumulate"]
        dtype = tf.bfloat16 if settings["precision"] == "bf16" else tf.float32
        options = self.network.Options(dtype=dtype, compiled=settings["compiled"])
        totals = [tf.Variable(tf.zeros_like(one), trainable=False) for one in self.trained] if count > 1 else []

        def gradients(inputs: Any, labels: Any) -> tuple:
            with tf.GradientTape() as tape:
                outputs = self.network.apply(self.document["layers"], self.weights, self.statistics, inputs, options)
                loss = self.network.loss_of(outputs, labels)
            return tape.gradient(loss, self.trained), loss

        def step(inputs: Any, labels: Any) -> Any:
            found, loss = gradients(inputs, labels)
            self.optimizer.apply_gradients(zip(found, self.trained, strict=True))
            return loss

        def add(inputs: Any, labels: Any) -> Any:
            found, loss = gradients(inputs, labels)
            for total, one in zip(totals, found, strict=True):
                total.assign_add(one / count)
            return loss / count

        def finish() -> None:
            self.optimizer.apply_gradients(zip(totals, self.trained, strict=True))
            for total in totals:
                total.assign(tf.zeros_like(total))

        compiled = settings["compiled"]
        self.whole_step, self.add, self.finish = (tf.function(one, jit_compile=compiled) for one in (step, add, finish))

    def step(self, *, is_local: bool = False) -> None:
        """One training step."""
        waited_s, losses = 0.0, []
        for _ in range(self.settings["accumulate"]):
            begun = time.perf_counter()
            batch = next(self.data)
            waited_s += time.perf_counter() - begun
            losses.append(self.whole_step(*batch) if self.settings["accumulate"] == 1 else self.add(*batch))
        if self.settings["accumulate"] > 1:
            self.finish()
        self.losses.append(sum(losses))
        self.wait_s.append(waited_s)

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

        state = [*self.trained, *self.tf.nest.flatten(self.statistics), *self.optimizer.variables]
        with path.open("wb") as file:
            np.savez(file, *(one.numpy() for one in state))
            on_storage(file)

    def _fingerprint(self) -> str:
        """A hash of the losses of a short run in fp32, and of the norms of its activations, bit for bit. It is the same
        on every healthy processor of one kind with the same library and threads; on GPUs if `deterministic` is set."""
        tf = self.tf
        weights, statistics = self._variables(1)
        trained = tf.nest.flatten(weights)

        def step(inputs: Any, labels: Any) -> list:
            options = self.network.Options(norms=[])
            with tf.GradientTape() as tape:
                outputs = self.network.apply(self.document["layers"], weights, statistics, inputs, options)
                loss = self.network.loss_of(outputs, labels)
            for one, its in zip(trained, tape.gradient(loss, trained), strict=True):
                one.assign_sub(_FINGERPRINT_RATE * its)
            return [loss, *(options.norms or [])]

        run, bits = tf.function(step), hashlib.sha256()
        for number in range(_FINGERPRINT_STEPS):
            inputs, labels = self.made_up(self.document, _FINGERPRINT_ITEMS, 1 + number)
            seen = run(self._placed(inputs), self._placed(labels))
            bits.update(b"".join(one.numpy().tobytes() for one in seen))
        return bits.hexdigest()[:16]


def _has_onednn() -> bool | None:
    """Whether kernels of oneDNN are in use; None if this version of TensorFlow does not say it."""
    with suppress(ImportError, AttributeError):
        from tensorflow.python.util import _pywrap_util_port

        return bool(_pywrap_util_port.IsMklEnabled())
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
