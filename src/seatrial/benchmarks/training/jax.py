"""`training.jax`: how fast JAX trains a network, on CPUs or one GPU, in one process.

Networks are plain functions of JAX, made from the layers of networks/; the whole step is one function that XLA
compiles. JAX makes dense gradients of tables, so `embedding` is skipped. CPUs are verified; CUDA was not run here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.training import framework
from seatrial.benchmarks.training.networks import networks
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.benchmark.python_script import PythonScript
from seatrial.model.machine.machine import Machine

_NAME = "training.jax"
_SCRIPT = framework.SCRIPTS / "run_jax.py"


def _prepare(machine: Machine, params: Params) -> Params:
    if params["model"] == "embedding":
        raise Skip("JAX makes dense gradients: a step would read and write whole tables, not the rows that it looks up")
    return framework.prepare_alone(machine, params)


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    return [str(_SCRIPT), framework.SETTINGS, framework.OUTPUT]


BENCHMARK = framework.benchmark(
    PythonScript(
        name="JAX",
        install="install JAX into a Python on PATH (python -m pip install jax; for GPUs: jax[cuda13]), or set "
        "environment.python to the path of one that has it",
        output=framework.OUTPUT,
        arguments=_arguments,
        parse=framework.read_run,
        version=(),
        inputs=lambda params: framework.settings(params, _NAME),
        variables=framework.variables,
        module="jax",
        package="jax",
        parts=framework.parts("run_jax.py", "jax_*.py", "numpy_*.py"),
        takes_cpus=True,
    ),
    name=_NAME,
    question="How fast does JAX train a network?",
    parameters=(
        *framework.parameters(tuple(networks()), precisions=("fp32", "tf32", "bf16"), without=("compiled",)),
        Parameter.choice(
            "memory_format", "channels-last", "order of images in memory", ("channels-last", "channels-first")
        ),
    ),
    prepare=_prepare,
)
