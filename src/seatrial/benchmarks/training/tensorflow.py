"""`training.tensorflow`: how fast TensorFlow trains ResNet-50, on CPUs or one GPU, in one process.

The network is made of tf.nn's functions from the layers of networks/, the step is one graph. Only the networks that
were run are offered: CIFAR-10 quick and ResNet-50. CPUs are verified; CUDA was not run here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.training import framework
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.benchmark.python_script import PythonScript

_NAME = "training.tensorflow"
_SCRIPT = framework.SCRIPTS / "run_tensorflow.py"


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    return [str(_SCRIPT), framework.SETTINGS, framework.OUTPUT]


BENCHMARK = framework.benchmark(
    PythonScript(
        name="TensorFlow",
        install="install TensorFlow into a Python on PATH (python -m pip install tensorflow-cpu; for GPUs: "
        "tensorflow[and-cuda]), or set environment.python to the path of one that has it",
        output=framework.OUTPUT,
        arguments=_arguments,
        parse=framework.read_run,
        version=(),
        inputs=lambda params: framework.settings(params, _NAME),
        variables=framework.variables,
        module="tensorflow",
        package="tensorflow",
        parts=framework.parts("run_tensorflow.py", "tensorflow_*.py", "numpy_*.py"),
        takes_cpus=True,
    ),
    name=_NAME,
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
