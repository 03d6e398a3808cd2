"""`training.pytorch`: how fast PyTorch trains a network, on CPUs or GPUs, in one process or several.

Several processes are started by torchrun; they exchange gradients by DistributedDataParallel, or with
`strategy=fsdp` also share parameters and optimizer state (fully_shard). CPUs, gloo and several processes of one node
are verified; CUDA and NCCL were not run here.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.training import data_sets, framework
from seatrial.benchmarks.training.networks import networks
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.program import NODES
from seatrial.model.benchmark.python_script import AUTO
from seatrial.model.machine.machine import Machine

_STARTER = framework.SCRIPTS / "start_torchrun.py"
_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def _prepare(machine: Machine, params: Params) -> Params:
    resolved = framework.prepare(machine, params)
    if resolved["strategy"] == "fsdp" and resolved["processes"] == 1:
        raise Skip("a single process has nothing to share: set processes to 2 or more, or strategy to ddp")
    if resolved["strategy"] == "fsdp" and framework.network_of(resolved).name == "embedding":
        raise Skip("FSDP has no sparse gradients, which this network makes")
    if framework.network_of(resolved).name == "embedding" and resolved["optimizer"] != "sgd":
        raise Skip("sparse gradients need optimizer=sgd")
    if resolved["backend"] == AUTO:
        return {**resolved, "backend": _BACKENDS[str(resolved["device"])]}
    return resolved


def _before(params: Params) -> Sequence[str]:
    """torchrun; on each of several nodes the script that becomes it."""
    nodes, processes = whole(params[NODES]), whole(params["processes"])
    if nodes > 1:
        return [str(_STARTER), str(nodes), str(processes // nodes)]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return torchrun if processes > 1 else []


BENCHMARK = framework.benchmark(
    "training.pytorch",
    "PyTorch",
    install="install PyTorch into a Python on PATH (python -m pip install torch; for CPUs alone: --index-url "
    "https://download.pytorch.org/whl/cpu)",
    module="torch",
    files=("start_torchrun.py", "torch_*.py"),
    before=_before,
    launched=NODES,
    question="How fast does PyTorch train a network?",
    parameters=(
        *framework.parameters(tuple(networks()), formats=data_sets.FORMATS),
        Parameter.choice(
            "strategy",
            "ddp",
            "of several processes; ddp: each has the whole network; fsdp: each has a part of it",
            ("ddp", "fsdp"),
        ),
        Parameter.choice(
            "backend",
            AUTO,
            "what exchanges gradients; auto: gloo on CPUs, nccl on GPUs; mpi: where PyTorch was built with it",
            (AUTO, "gloo", "nccl", "mpi"),
        ),
        Parameter.choice(
            "memory_format", "channels-first", "order of images in memory", ("channels-first", "channels-last")
        ),
        Parameter.integer("interop_threads", 1, "threads for operations that do not depend on each other", minimum=1),
        Parameter.switch("onednn", True, "kernels of oneDNN on CPUs"),
        Parameter.switch("autotune", False, "let cuDNN try its algorithms first"),
    ),
    prepare=_prepare,
)
