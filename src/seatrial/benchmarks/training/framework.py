"""Benchmarks that train a network with a framework: their parameters, figures and checks, whatever the framework.

A repeat is one run of a script in the site's own Python. Samples: `training` is the measured block of steps, from a
common start to its slowest process; `step` is each of its steps, `first_step` the very first one, `start` what comes
before it. Warm-up, of at most `warmup` steps, lies between the first step and the block (scripts/harness/steps.py).

The rate is that of the block: items over its time, without start, first step and warm-up (S8 in docs/studies.md
divides by the training time in this way). Model FLOP utilization is the rate in model FLOP (networks/layers.py) over
the peak of the CPUs in use, as `cpu.peak` measures it.

Checks come before any figure: the network has its published size, its first loss is that of random parameters, the
loss falls to a stated value within stated steps at the batch in use, every process has its own data and the mean
gradients, and ends with the same parameters. `fingerprint` is a hash of a short deterministic run that each process
makes by itself: processors that compute the same agree bit by bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.benchmarks.cpu.gemm import fma_ceiling
from seatrial.benchmarks.figures import between, duration, exactly, rate, zero
from seatrial.benchmarks.nodes import NODE_PLACEMENT, NODES, machines_of, node_count, on_each_node
from seatrial.benchmarks.placement import openmp_variables, refuse_too_many, spread, thread_count
from seatrial.benchmarks.training import data_sets
from seatrial.benchmarks.training.networks import networks
from seatrial.benchmarks.training.networks.layers import Network, Size
from seatrial.model.benchmark.benchmark import Benchmark, Better, Ceiling, Check, Figure, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import ProgramRecord, parse_record
from seatrial.model.benchmark.python_script import AUTO, PythonScript
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import Sample

SCRIPTS = Path(__file__).with_name("scripts")
SETTINGS, OUTPUT = "training.json", "training.jsonl"
PROCESSES = "processes"
BLOCK = "training"
_MOST_FIRST_CHANGE = 0.1
_START_S = 6.0
_CORE_FLOPS = 4e10
_LOCAL_STEPS = 20
"""Steps beside the measured ones: warm-up and checks."""


def network_of(params: Params) -> Network:
    """The network of resolved parameters."""
    return networks()[str(params["model"])]


def size_of(params: Params) -> Size:
    """The size of one item: that of the network, or a shorter sequence."""
    network = network_of(params)
    return (whole(params["sequence"]),) if network.counts == "tokens" else network.size


def parameters(
    models: Sequence[str],
    *,
    processes: int | str = 1,
    precisions: Sequence[str] = ("fp32", "tf32", "bf16", "fp16"),
    without: Sequence[str] = (),
    formats: tuple[str, ...] = (),
) -> tuple[Parameter, ...]:
    """What every framework lets one set, except the names `without`. Several nodes get one launcher each, which starts
    the processes of its node. `formats`: those of data sets that it reads."""
    read = f"; {data_sets.FORMAT_HELP}" if formats else ""
    every = (
        Parameter.choice("model", "cifar10-quick", "the network", tuple(models)),
        Parameter.choice(
            "precision",
            "fp32",
            "of products; tf32: on GPUs, from fp32; bf16, fp16: with parameters in fp32; fp16 with loss scaling",
            tuple(precisions),
        ),
        Parameter.integer("batch", AUTO, "images, sequences or samples of each process in a step", minimum=1),
        Parameter.integer("sequence", AUTO, "tokens of a sequence; only for networks of tokens", minimum=2),
        Parameter.integer("accumulate", 1, "batches whose gradients are added before an update", minimum=1),
        Parameter.integer(PROCESSES, processes, "processes, each with its part of every step", minimum=1),
        NODES,
        NODE_PLACEMENT,
        Parameter.integer("threads", AUTO, "threads of each process; auto: the cores, divided", minimum=1),
        Parameter.choice("device", "cpu", "what computes", ("cpu", "cuda")),
        Parameter.choice(
            "data",
            "device",
            f"made-up data, resident on the device, or copied from host memory{read}",
            ("device", "host", *formats),
        ),
        *(data_sets.LOADER if formats else ()),
        Parameter.choice("optimizer", AUTO, "auto: that of the network", (AUTO, "sgd", "momentum", "adamw")),
        Parameter.switch("recompute", False, "compute activations inside of blocks again, to save memory"),
        Parameter.switch("compiled", False, "let the framework compile the network"),
        Parameter.switch("deterministic", False, "only algorithms with reproducible results"),
        Parameter.switch("checkpoint", True, "measure how long training stands still for a checkpoint"),
        Parameter.integer("seed", 0, "of parameters and data"),
        Parameter.integer("warmup", 30, "the most steps before the measured ones", minimum=6),
        Parameter.integer("steps", AUTO, "measured steps", minimum=1),
    )
    return tuple(one for one in every if one.name not in without)


def prepare(machine: Machine, params: Params) -> Params:
    """The parameters with numbers for what the network and the machine decide. Raises Skip for what does not fit."""
    network = network_of(params)
    sequence = params.get("sequence", AUTO)
    if sequence != AUTO and network.counts != "tokens":
        raise Skip(f"{network.name} has no sequences")
    if sequence != AUTO and whole(sequence) > network.size[0]:
        raise Skip(f"{network.name} takes sequences of at most {network.size[0]} tokens")
    if params["precision"] == "tf32" and params["device"] == "cpu":
        raise Skip("TF32 is a format of GPUs; use fp32 or bf16")
    processes = whole(params[PROCESSES])
    nodes = node_count(machine, params[NODES.name], processes)
    cores = min(thread_count(one, "all") for one in machines_of(machine, nodes))
    each = processes // nodes
    of_workers = data_sets.cpus_of_workers(params) if data_sets.reads_storage(params) else 0
    threads = max(1, cores // each) if params["threads"] == AUTO else whole(params["threads"])
    if of_workers and params["threads"] == AUTO:
        threads -= of_workers
        data_sets.refuse_one_cpu(machine, threads)
    refuse_too_many(machine, nodes, processes, threads + of_workers)
    defaults: dict[str, Value] = {
        "batch": network.batch,
        "sequence": network.size[0] if network.counts == "tokens" else 0,
        "threads": threads,
        NODES.name: nodes,
        "optimizer": network.optimizer,
        "steps": network.steps,
    }
    words = (AUTO, "all")
    numbers = {name: defaults[name] if value in words and name in defaults else value for name, value in params.items()}
    if data_sets.IMAGES.name not in params:
        return numbers
    accumulated = whole(numbers["accumulate"])
    steps = accumulated * (1 + whole(numbers["warmup"]) + whole(numbers["steps"]))
    return {**numbers, **data_sets.prepared(numbers, network, whole(numbers["batch"]), steps)}


_OF_SGD = {"sgd": 1.0, "momentum": 0.1, "adamw": 0.01}
"""Steps of momentum 0.9 are ten times as long in the end; those of Adam have another size."""


def _learning_rate(network: Network, optimizer: str) -> float:
    return network.learning_rate * _OF_SGD[optimizer] / _OF_SGD[network.optimizer]


def settings(params: Params, program: str) -> dict[str, bytes]:
    """The file from which the script of `program` knows what to do."""
    network = network_of(params)
    size = size_of(params)
    given = {name: value for name, value in params.items() if name not in ("model", "sequence")}
    content = {
        **given,
        "network": network.document(size),
        "learning_rate": _learning_rate(network, str(params["optimizer"])),
        "task_steps": network.task_steps,
        "counts": network.counts,
        "units": network.units(size),
        "item_flop": network.step_flop(size),
        "program": program,
        "data_set": data_sets.document(params, size),
        "cpus_of_workers": data_sets.cpus_of_workers(params),
    }
    return {SETTINGS: json.dumps(content).encode()}


def read_run(data: bytes) -> ProgramRecord:
    """The record of a script, with figures of all its steps: the 95th percentile and the longest. Raises
    ProtocolError."""
    record = parse_record(data)
    steps = sorted(sample.elapsed_s for sample in record.samples if sample.series == "step")
    if not record.ended or not steps:
        return record
    added = (
        Sample("step_p95", 0, steps[ceil(0.95 * len(steps)) - 1], {"steps": 1.0}),
        Sample("step_max", 0, steps[-1], {"steps": 1.0}),
    )
    return replace(record, samples=(*record.samples, *added))


def estimate_s(params: Params) -> float:
    """One repeat on a CPU."""
    network = network_of(params)
    items = whole(params["batch"]) * whole(params["accumulate"])
    step_s = items * network.step_flop(size_of(params)) / (_CORE_FLOPS * whole(params["threads"]))
    return (
        _START_S
        + data_sets.making_s(params, network)
        + step_s * (whole(params["steps"]) + network.task_steps + _LOCAL_STEPS)
    )


def placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPUs of all threads and workers, by node and process: with devices, those near the device of each."""
    threads = whole(params["threads"]) + data_sets.cpus_of_workers(params)

    def of_node(node: Machine, count: int) -> tuple[int, ...]:
        order = spread(node, len(node.allowed_cpus))
        return _near_devices(node, count // threads, threads, order) if params["device"] != "cpu" else order[:count]

    return on_each_node(machine, params[NODES.name], whole(params[PROCESSES]) * threads, of_node)


def _near_devices(node: Machine, processes: int, threads: int, order: Sequence[int]) -> tuple[int, ...]:
    """The CPUs of each process: free ones that the machine's graph calls near to the GPU of its number, or any."""
    near = {one.device: frozenset(one.cpus or ()) for one in node.affinity}
    gpus = [near.get(device.id, frozenset()) for device in node.of_kind(DeviceKind.GPU)]
    taken: list[int] = []
    for number in range(processes):
        own = gpus[number] if number < len(gpus) else frozenset()
        free = sorted((cpu for cpu in order if cpu not in taken), key=lambda cpu: cpu not in own)
        taken += free[:threads]
    return tuple(taken)


def _share(name: str, work: str, value: Callable[[Sample], float], series: str, **more: Any) -> Figure:
    return Figure(name, "1", Better.LOWER, value, work, series=series, is_secondary=True, **more)


def _worked(name: str) -> Callable[[Sample], float]:
    return lambda sample: sample.work[name]


def _counted(params: Params, value: float) -> str:
    return f"{value:.4g} {network_of(params).counts}/s"


def _several(params: Params) -> bool:
    return whole(params[PROCESSES]) > 1


def _may_wait(params: Params) -> bool:
    return params["data"] != "device"


def _peak(params: Params) -> Ceiling | None:
    """The FMA rate of as many cores, as measured; unknown for other precisions and devices."""
    if params["device"] != "cpu" or params["precision"] != "fp32":
        return None
    return fma_ceiling("fp32", whole(params[PROCESSES]) * whole(params["threads"]), "threads")


_EXCHANGE = "steps with the exchange of gradients against the same without it: what is not hidden behind computing"

FIGURES = (
    rate(
        "rate",
        "op/s",
        "images, tokens or samples of all processes",
        "items",
        series=BLOCK,
        customary=_counted,
        role=Role.TRAINING_RATE,
    ),
    rate(
        "rate_per_device",
        "op/s",
        "the same of one process",
        "per_device",
        series=BLOCK,
        customary=_counted,
        is_secondary=True,
        is_of_one_worker=True,
    ),
    duration("step", "one step", "steps", series="step"),
    duration("step_p95", "the step that 95 % of all steps are not longer than", series="step_p95", is_secondary=True),
    duration("step_max", "the longest step", series="step_max", is_secondary=True),
    duration("first_step", "the first step, with what is compiled and allocated in it", series="first_step"),
    duration(
        "start",
        "start of the processes and the library, and making of network and data",
        series="start",
        is_secondary=True,
    ),
    _share(
        "data_wait",
        "share of the time in which the process that waits longest waits for data",
        lambda sample: sample.work["wait_s"] / sample.elapsed_s,
        BLOCK,
        role=Role.DATA_WAIT,
    ),
    Figure(
        "busy",
        "1",
        Better.HIGHER,
        lambda sample: 1.0 - sample.work["wait_s"] / sample.elapsed_s,
        "share of the time in which the process that waits longest does not wait for data: 1 - `data_wait` (MLPerf "
        "Storage: accelerator utilization)",
        series="waiting",
        is_there=_may_wait,
        role=Role.BUSY,
    ),
    duration(
        "input_pipeline",
        "reading, decoding, cutting and joining a batch by a worker",
        is_there=data_sets.reads_storage,
        role=Role.INPUT_PIPELINE,
    ),
    Figure(
        "input_cpu",
        "s",
        Better.LOWER,
        _worked("cpu_s"),
        "CPU time of a worker for a batch",
        series="input_pipeline",
        is_there=data_sets.reads_storage,
        is_secondary=True,
    ),
    _share(
        "communication",
        _EXCHANGE,
        lambda sample: max(0.0, 1.0 - sample.work["local_s"] / sample.elapsed_s),
        "exchange",
        is_there=_several,
    ),
    _share(
        "slowest_process",
        "the longest time of a process's own step over that of the median process, without the exchange",
        lambda sample: sample.work["own_s"] / sample.work["others_s"],
        "exchange",
        is_there=_several,
    ),
    rate(
        "model_flops",
        "flop/s",
        "products of forward and backward pass, as the network defines them; nothing that is computed twice",
        "flop",
        series=BLOCK,
        ceiling=_peak,
        is_secondary=True,
    ),
    duration(
        "checkpoint",
        "how long training stands still for a checkpoint, until it is safe on storage",
        series="checkpoint",
        is_secondary=True,
        is_there=lambda params: bool(params["checkpoint"]),
    ),
    rate(
        "checkpoint_rate",
        "B/s",
        "bytes of the checkpoint",
        "bytes",
        series="checkpoint",
        is_secondary=True,
        is_there=lambda params: bool(params["checkpoint"]),
    ),
    Figure(
        "host_memory",
        "B",
        Better.LOWER,
        _worked("bytes"),
        "largest resident size of a process",
        series="memory_B",
        is_secondary=True,
    ),
    Figure(
        "device_memory",
        "B",
        Better.LOWER,
        _worked("bytes"),
        "largest allocation on a device",
        series="device_B",
        is_secondary=True,
        is_there=lambda params: params["device"] != "cpu",
    ),
)


def _loss_at_start(machine: Machine, params: Params) -> tuple[float, float]:
    expected = network_of(params).first_loss
    return (1 - _MOST_FIRST_CHANGE) * expected, (1 + _MOST_FIRST_CHANGE) * expected


def _loss_at_end(machine: Machine, params: Params) -> tuple[float, float]:
    return 0.0, network_of(params).task_loss


CHECKS = (
    Check("processes", "processes, as the framework reports", exactly("processes")),
    Check("moved_processes", "processes that were not on their CPUs", zero),
    Check("parameters", "parameters of the network", exactly(lambda params: network_of(params).parameters)),
    Check("loss_at_start", "the loss of random parameters", _loss_at_start),
    Check("loss_not_finite", "steps whose loss is not a number", zero),
    Check("repeated_items", "items of the first batches of all processes, or of an epoch, that are the same", zero),
    data_sets.CACHED_CHECK,
    Check(
        "gradient_error",
        "difference between the gradients in use and the mean of those of all processes, relative",
        between(0.0, 0.05),
        is_there=_several,
    ),
    Check("results_differ", "processes that end with other parameters than most", zero, is_there=_several),
    Check(
        "fingerprints_differ", "processes whose deterministic run gave other bits than most", zero, is_there=_several
    ),
    Check(
        "loss_at_end",
        "the loss after as many steps on data that can be learnt as its network states (networks/); above it, training "
        "with this precision, batch and optimizer does not converge",
        _loss_at_end,
        if_nan="not a number: training diverged",
    ),
)


def parts(*patterns: str) -> tuple[Path, ...]:
    """The files of a script: those of these patterns, and what all scripts share."""
    return tuple(sorted(path for pattern in (*patterns, "harness/*.py") for path in SCRIPTS.glob(pattern)))


def benchmark(
    name: str,
    library: str,
    *,
    install: str,
    module: str,
    files: Sequence[str],
    question: str,
    launched: str = PROCESSES,
    parameters: tuple[Parameter, ...],
    prepare: Callable[[Machine, Params], Params] = prepare,
    before: Callable[[Params], Sequence[str]] = lambda params: (),
) -> Benchmark:
    """The benchmark of a framework; `install` says how to get it. Its script is `run_<name>.py`. `files` are patterns
    of what this imports beside the harness, `before` are the words that start several processes of it, `launched` is
    the parameter with the number of those that a launcher starts."""
    script = SCRIPTS / f"run_{name.partition('.')[2]}.py"
    program = PythonScript(
        name=library,
        install=f"{install}, or set environment.python to the path of one that has it",
        output=OUTPUT,
        arguments=lambda params, directory: [*before(params), str(script), SETTINGS, OUTPUT],
        parse=read_run,
        version=(),
        inputs=lambda params: settings(params, name),
        variables=openmp_variables,
        module=module,
        package=module,
        parts=parts(script.name, *files),
        takes_cpus=True,
        launched=launched,
    )
    return Benchmark(
        name=name,
        question=question,
        program=program,
        parameters=parameters,
        figures=FIGURES,
        checks=CHECKS,
        placement=placement,
        prepare=prepare,
        ranks="mpi",
        estimate_s=estimate_s,
    )
