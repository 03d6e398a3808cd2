"""A made-up server of two packages with 128 cores and eight GPUs on which everything of a single node was measured."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

from report.page_samples import (
    ENVIRONMENTS,
    GB,
    GiB,
    cpu_tree,
    experiment,
    facts,
    figure,
    noise,
    peak,
    seen_and_places,
    stream,
)

from seatrial.analysis.rules import findings
from seatrial.benchmarks.cpu.linebounce import pairs_by_spread
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.limit import Limit, dram_bandwidth
from seatrial.model.machine.machine import (
    Affinity,
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    NamedLimit,
    Path,
    PeerAccess,
    Population,
    SocketMemory,
)
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.study.result import Trial

CORES = 128
PER_L3 = 8


def gpu_machine(name: str = "gpu-0007.cluster.example") -> Machine:
    """Two packages of 64 cores and eight L3 caches, each with four GPUs, each GPU with an adapter on its switch."""
    devices = cpu_tree(2, 64, 32 << 20, PER_L3, 2, 1536 * GiB, "AMD EPYC 9554 64-Core Processor")
    links: list[Link] = []
    ends: list[tuple[str, int, int]] = []
    for n in range(8):
        node = n // 4
        bus = 16 * n + 1
        host, up = f"pci-{bus:04x}:00", f"pci-{bus:04x}:01:00.0"
        devices.append(
            Device(host, DeviceKind.BRIDGE, f"host bridge {bus:04x}:00", f"numa-{node}", node, f"{bus:04x}:00")
        )
        devices.append(Device(up, DeviceKind.BRIDGE, f"switch {n}", host, node, f"{bus:04x}:01:00.0"))
        for kind, stem, model in ((DeviceKind.GPU, "gpu", "NVIDIA H100 SXM"), (DeviceKind.NIC, "mlx5_", "ConnectX-7")):
            port = f"pci-{bus:04x}:02:{len(devices) % 32:02x}.0"
            device = f"{stem}-{n}" if kind is DeviceKind.GPU else f"{stem}{n}"
            devices.append(Device(port, DeviceKind.BRIDGE, "switch port", up, node, port[4:]))
            devices.append(
                Device(
                    device,
                    kind,
                    model,
                    port,
                    node,
                    f"{bus:04x}:{3 + len(ends) % 20:02x}:00.0",
                    facts=facts(model_name=model),
                )
            )
            trained = 31.5e9 if device == "gpu-5" else 63.0e9
            links.append(Link(port, device, "PCIe", 63.0e9, trained, "sysfs"))
            ends.append((device, node, n))
    paths = []
    for (a, node_a, switch_a), (b, node_b, switch_b) in combinations(ends, 2):
        if a.startswith("gpu") and b.startswith("gpu"):
            paths.append(Path(a, b, "NV", 18))
        else:
            paths.append(Path(a, b, "PIX" if switch_a == switch_b else "NODE" if node_a == node_b else "SYS"))
    cpus = [tuple(range(64 * p, 64 * p + 64)) + tuple(range(128 + 64 * p, 192 + 64 * p)) for p in range(2)]
    dram = dram_bandwidth(24, 4800, "dmidecode")
    socket = SocketMemory(12, 12, 12, 768 * GiB, 4800, 4800)
    return Machine(
        name,
        tuple(devices),
        facts("/proc", kernel="5.14.0-427.el9.x86_64", thp_enabled="always", memory_total=1536 * GiB),
        tuple(links),
        tuple(paths),
        tuple(Affinity(device, cpus[node], node) for device, node, _ in ends),
        tuple(PeerAccess(a, b, "OK", "OK") for a, b in combinations([d for d, *_ in ends if d.startswith("gpu")], 2)),
        memory=Memory(Population.BALANCED, "both sockets have 12 of 12 channels filled", dram, (socket, socket)),
        limits=(NamedLimit("dram.bandwidth", dram),),
        allowed_cpus=tuple(range(256)),
        sources=("made up",),
    )  # fmt: skip


def latency(huge: bool, *, largest: int = 31) -> ExperimentResult:
    """A ladder with steps at 32 KiB, 1 MiB and 32 MiB; memory is slower without huge pages."""

    def base(size: float) -> float:
        def step(at: float) -> float:
            return 1 / (1 + math.exp(-4 * (math.log2(size) - math.log2(at) - 0.4)))

        return 1.1e-9 + 2.6e-9 * step(32 << 10) + 9e-9 * step(1 << 20) + (95e-9 if huge else 128e-9) * step(32 << 20)

    sizes = [size for power in range(12, largest) for size in (1 << power, 3 << (power - 1))][:-1]
    none = Limit.unknown("s", "no formula")
    made = [
        figure("load", base(s), none, unit="s", better=Better.LOWER, n=8, point={"working_set_B": s}, seed=s)
        for s in sizes
    ]  # fmt: skip
    parameters = {"cpu": "auto", "huge_pages": huge, "largest_B": sizes[-1], "per_octave": 2}
    return experiment("memory.latency", "How long does a load take?", parameters, made)


def one_way(pairs: list[tuple[int, int]], threads: int) -> ExperimentResult:
    """30 ns within an L3 cache, 110 ns within a package, 240 ns between packages."""

    def base(a: int, b: int) -> float:
        if a // PER_L3 == b // PER_L3:
            return 30e-9
        return (110e-9 if a // 64 == b // 64 else 240e-9) * (1 + 0.05 * noise("pair", a, b))

    made = [
        figure("one_way", base(a, b), None, unit="s", better=Better.LOWER, n=8, point={"cpu_a": a, "cpu_b": b}, seed=a)
        for a, b in pairs
    ]
    parameters = {"threads": threads, "pairs": len(pairs)}
    return experiment("cpu.linebounce", "How long does a cache line take?", parameters, made)


def some_pairs(cores: int = CORES, number: int = 160) -> list[tuple[int, int]]:
    """The sample that the benchmark takes of so many cores."""
    return list(pairs_by_spread(cores)[:number])


def files(direct: bool, pattern: str, *, brief: bool = False) -> ExperimentResult:
    """Reading and writing over file and record sizes."""
    sizes = (16 << 20, 256 << 20) if brief else tuple(1 << power for power in range(20, 31, 2))
    records = (4 << 10, 1 << 20) if brief else tuple(1 << power for power in range(12, 25, 2))
    made = []
    for call, factor in (("write", 1.0), ("read", 1.9)):
        for file in sizes:
            for record in records:
                if record <= file:
                    call_s = (70e-6 if direct else 1.1e-6) * (1.6 if pattern == "random" else 1)
                    rate = factor * record / (call_s + record / (2.9 * GB if direct else 9 * GB))
                    limit = Limit.unknown("B/s", "no source tells")
                    point = {"file_B": file, "record_B": record}
                    made.append(figure(call, rate, limit, n=6, spread=0.02, point=point, seed=file + record))
    word = "brief" if brief else "surface"
    parameters = {"pattern": pattern, "direct": direct, "file_B": word, "record_B": word, "folder": "results"}
    return experiment("io.file", "How fast are files?", parameters, made)


def gemm(precision: str, rate: float, n: int, threads: int) -> ExperimentResult:
    """A matrix product."""
    parameters = {"precision": precision, "n": n, "threads": threads, "blas": "openblas", "binding": "bound"}
    made = [figure("gemm", rate, None, unit="flop/s", n=9, work="2 n^3 flop per product")]
    return experiment("cpu.gemm", "How close to the peak is the BLAS?", parameters, made)


def thread_scaling(limit: Limit | None) -> list[ExperimentResult]:
    """memory.stream from one thread to all, with arrays that grow with the caches that the threads reach."""
    results = []
    for threads in (1, 2, 4, 8, 16, 32, 64, 128):
        whole = 735 * GB
        rates = [whole * share * (1 - math.exp(-threads * 34 * GB / whole)) for share in (0.78, 1.0)]
        for result in stream(limit, rates, threads, seed=threads):
            parameters = {**result.experiment.parameters, "array_B": max(1, threads // PER_L3) * (128 << 20)}
            results.append(experiment("memory.stream", result.question, parameters, result.figures))
    return results


@cache
def gpu_trial() -> Trial:
    """Everything that a single node shows."""
    machine = gpu_machine()
    results = (
        *thread_scaling(machine.memory.peak),
        *peak(3.7e9, CORES),
        gemm("fp64", 6.4e12, 9216, CORES),
        gemm("fp32", 12.1e12, 9216, CORES),
        *(latency(huge) for huge in (False, True)),
        one_way(some_pairs(), CORES),
        *(files(direct, pattern) for pattern in ("sequential", "random") for direct in (False, True)),
    )
    seen, places = seen_and_places(results, cpus=CORES)
    return Trial(machine, results, findings(machine, results, seen), (), ENVIRONMENTS, places, seen, "0.1.0")
