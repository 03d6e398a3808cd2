"""`training.jax`: how fast JAX trains a network, on CPUs or GPUs, in one process or several.

Networks are plain functions of JAX, made from the layers of networks/; the whole step is one function that XLA
compiles. JAX makes dense gradients of tables, so `embedding` is skipped. Several processes are started by the batch
system or an MPI launcher, and are one mesh with a device of each (jax.distributed, shard_map). CPUs are verified; CUDA
was not run here.
"""

from __future__ import annotations

from seatrial.benchmarks.training import framework
from seatrial.benchmarks.training.networks import networks
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.machine.machine import Machine


def _prepare(machine: Machine, params: Params) -> Params:
    if params["model"] == "embedding":
        raise Skip("JAX makes dense gradients: a step would read and write whole tables, not the rows that it looks up")
    return framework.prepare(machine, params)


BENCHMARK = framework.benchmark(
    "training.jax",
    "JAX",
    install="install JAX into a Python on PATH (python -m pip install jax; for GPUs: jax[cuda13])",
    module="jax",
    files=("jax_*.py", "numpy_*.py"),
    question="How fast does JAX train a network?",
    parameters=(
        *framework.parameters(tuple(networks()), precisions=("fp32", "tf32", "bf16"), without=("compiled",)),
        Parameter.choice(
            "memory_format", "channels-last", "order of images in memory", ("channels-last", "channels-first")
        ),
    ),
    prepare=_prepare,
)
