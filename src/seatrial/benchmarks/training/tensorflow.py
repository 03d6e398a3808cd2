"""`training.tensorflow`: how fast TensorFlow trains ResNet-50, on CPUs or GPUs, in one process or several.

The network is made of tf.nn's functions from the layers of networks/, the step is one graph. Only the networks that
were run are offered: CIFAR-10 quick and ResNet-50. Several processes are started by the batch system or an MPI
launcher, and are the workers of a MultiWorkerMirroredStrategy. CPUs are verified; CUDA was not run here.
"""

from __future__ import annotations

from seatrial.benchmarks.training import framework
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine


def _prepare(machine: Machine, params: Params) -> Params:
    if params["compiled"] and params["device"] == "cpu" and whole(params["processes"]) > 1:
        raise Skip(
            "XLA cannot compile how TensorFlow exchanges gradients on CPUs: set processes to 1 or compiled to no"
        )
    return framework.prepare(machine, params)


BENCHMARK = framework.benchmark(
    "training.tensorflow",
    "TensorFlow",
    install="install TensorFlow into a Python on PATH (python -m pip install tensorflow-cpu; for GPUs: "
    "tensorflow[and-cuda])",
    module="tensorflow",
    files=("tensorflow_*.py", "numpy_*.py"),
    question="How fast does TensorFlow train ResNet-50?",
    parameters=(
        *framework.parameters(
            ("cifar10-quick", "resnet50"), precisions=("fp32", "tf32", "bf16"), without=("sequence", "recompute")
        ),
        Parameter.integer("interop_threads", 1, "threads for operations that do not depend on each other", minimum=1),
        Parameter.switch("onednn", True, "kernels of oneDNN on CPUs"),
    ),
    prepare=_prepare,
)
