"""`training.tensorflow`: how fast TensorFlow trains ResNet-50, on CPUs or one GPU, in one process.

The network is made of tf.nn's functions from the layers of networks/, the step is one graph. Only the networks that
were run are offered: CIFAR-10 quick and ResNet-50. CPUs are verified; CUDA was not run here.
"""

from __future__ import annotations

from seatrial.benchmarks.training import framework
from seatrial.model.benchmark.parameter import Parameter

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
    prepare=framework.prepare_alone,
)
