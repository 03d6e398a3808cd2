"""Made-up trials for the tests of the page: a small virtual machine, a server of two sockets, hostile names."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable

from seatrial.analysis.rules import findings
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Attainable, Better
from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.limit import Basis, FmaUnit, Limit, dram_bandwidth, fma_rate
from seatrial.model.machine.machine import (
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    NamedLimit,
    Population,
    SocketMemory,
)
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValue, share_of
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.study.result import NotMeasured, RecordPlace, Trial

GB = 1e9
GiB = 1 << 30
START = 1.79e9
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&`{{7*7}}"


def noise(*of: object) -> float:
    """A number around 0 of standard deviation 1, within +-3, always the same for the same arguments."""
    twelve = (byte / 255 for byte in hashlib.sha256(repr(of).encode()).digest()[:12])
    return max(-3.0, min(sum(twelve) - 6.0, 3.0))


def facts(source: str = "test", **values: str | int | float | bool) -> Facts:
    return Facts({name: (Fact(value, source, unit=_unit(name)),) for name, value in values.items()})


def _unit(name: str):
    if name.endswith("_frequency"):
        return "Hz"
    return "B" if name.split("_")[0] in ("memory", "swap", "size", "page") and name != "memory_channels" else None


def figure(
    name: str,
    median: float,
    limit: Limit | None,
    *,
    unit="B/s",
    better=Better.HIGHER,
    spread: float = 0.004,
    n: int = 12,
    point=None,
    seed: int = 0,
    start: int = 0,
    shape: Callable[[int], float] = lambda k: 0.0,
    work: str = "",
    attainable: Attainable = ALL_OF_IT,
    one_limit_over: tuple[str, ...] = (),
) -> FigureResult:
    """A figure whose repeats scatter around `median`; `shape` adds a drift or a step, as a share."""
    values = [median * (1 + spread * noise(name, seed, k) + shape(k)) for k in range(n)]
    ordered = sorted(values)
    cut = max(0, round(n / 2 - 0.98 * math.sqrt(n)) - 1)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    repeats = tuple(RepeatValue(k, start + k * 8, START + start + k * 8 * 1.3, value) for k, value in enumerate(values))
    ci95 = (ordered[cut], ordered[-1 - cut]) if n >= 6 else None
    return FigureResult(
        name,
        point or {},
        unit,
        better,
        work,
        middle,
        ci95,
        ordered[0] * 0.98,
        ordered[-1] * 1.01,
        n * 40,
        limit,
        repeats,
        share_of(middle, limit, better),
        attainable,
        one_limit_over,
    )


def experiment(
    benchmark: str, question: str, parameters, figures=(), outcome=None, environment="env1"
) -> ExperimentResult:
    made = Experiment(benchmark, parameters, environment, "prog", "mach")
    return ExperimentResult(made.id, made, question, outcome or Outcome.ok(), tuple(figures))


def seen_and_places(results, *, load=(0.4, 2.6), steal=0.0, cpus=2):
    seen, places, line = {}, {}, 0
    for result in results:
        repeats = result.figures[0].repeats if result.figures else ()
        for repeat in repeats:
            line += 1
            places[result.id, repeat.repeat] = RecordPlace("records/vm-4711-1790000000.jsonl", line)
            threads = int(result.experiment.parameters.get("threads", cpus))
            seen[result.id, repeat.repeat] = {
                "command": ["/home/u/.cache/seatrial/ab12/stream", "--record", "/scratch/r", "--cpus", "0,1"],
                "program_s": 0.6,
                "load_1m": round(load[0] + (load[1] - load[0]) * abs(noise("load", line)) / 3, 2),
                "steal_s": 0.01,
                "steal_share": steal * abs(noise("steal", line)) / 3,
                "clock_Hz": [3.69e9 + 1e6 * noise("clock", line, t) for t in range(threads)],
                "affinity": [[cpu] for cpu in range(threads)],
                "notes": {"huge_pages": "granted", "array_B": 268435456},
            }
        if not repeats and not result.outcome.is_ok:
            line += 1
            places[result.id, 0] = RecordPlace("records/vm-4711-1790000000.jsonl", line)
    return seen, places


STREAM_QUESTION = "What memory bandwidth do threads reach on arrays larger than the caches?"
PEAK_QUESTION = "Do the cores reach the arithmetic rate that their clock and FMA units allow?"
ENVIRONMENTS = {
    "env1": {
        "name": "gcc-12",
        "compiler": {"path": "/usr/bin/g++", "version": "12.2.0", "family": "gcc"},
        "flags": ["-std=c++20", "-O3", "-march=znver4", "-pthread"],
        "target": {"march": "znver4", "isa": ["avx2", "avx512f"], "resolution": "from /proc/cpuinfo of this CPU"},
        "libc": "glibc 2.36",
    }
}


PLAIN = {
    counted: Attainable(counted / (counted + 8), f"plain stores: at most {share} of it can be counted")
    for counted, share in ((16, "67 %"), (24, "75 %"))
}


def stream(limit: Limit | None, rates, threads, *, seed=0, **figure_options) -> list[ExperimentResult]:
    results = []
    for nontemporal, rate in ((False, rates[0]), (True, rates[1])):
        parameters = {"threads": threads, "nontemporal": nontemporal, "huge_pages": True, "array_B": 256 << 20}
        own = limit
        if limit is not None and limit.basis is Basis.MEASURED:
            own = None if nontemporal else limit
        if own is None:
            own = Limit.unknown("B/s", "no source describes the memory modules")
        results.append(
            experiment(
                "memory.stream",
                STREAM_QUESTION,
                parameters,
                [
                    figure(
                        name,
                        rate * factor,
                        own,
                        seed=seed + nontemporal,
                        start=nontemporal * 1 + threads * 2,
                        work=f"{counted} B per element, as STREAM counts",
                        attainable=ALL_OF_IT if nontemporal or own.basis is not Basis.PHYSICAL else PLAIN[counted],
                        one_limit_over=("threads", "nontemporal", "huge_pages", "array_B"),
                        **figure_options,
                    )
                    for name, factor, counted in (
                        ("copy", 0.97, 16),
                        ("scale", 0.965, 16),
                        ("add", 1.0, 24),
                        ("triad", 1.003, 24),
                    )
                ],
            )
        )
    return results


def peak(clock: float, cores: int, *, share=0.995) -> list[ExperimentResult]:
    results = []
    for precision, lanes in (("fp64", 8), ("fp32", 16)):
        for number, word in ((1, "one"), (cores, "all")):
            limit = fma_rate([(clock, FmaUnit(1, 512, 4, "uops.info, Zen 4"))] * number, precision)
            results.append(
                experiment(
                    "cpu.peak",
                    PEAK_QUESTION,
                    {"precision": precision, "cores": word},
                    [
                        figure(
                            "fma",
                            (limit.value or 0) * share,
                            limit,
                            unit="flop/s",
                            spread=0.0008,
                            seed=number + lanes,
                            start=3 + number,
                            work="2 flop per FMA and vector lane",
                        )
                    ],
                )
            )
    return results


def cpu_tree(packages: int, cores_per_package: int, l3_size: int, cores_per_l3: int, smt: int, memory: int, name: str):
    """Packages, one NUMA node each, caches, cores and CPUs, as discovery names them."""
    devices = []
    core_number = 0
    for p in range(packages):
        identity = facts(
            "/proc/cpuinfo",
            vendor="AuthenticAMD",
            model_name=name,
            microcode="0xa101148",
            isa="avx2 avx512f",
            microarchitecture="Zen 4",
            fma_pipes=1,
        )
        devices.append(Device(f"package-{p}", DeviceKind.PACKAGE, name, None, p, facts=identity))
        numa = facts(
            "/sys", memory_total=memory // packages, cpus=f"{p * cores_per_package}-{(p + 1) * cores_per_package - 1}"
        )
        devices.append(Device(f"numa-{p}", DeviceKind.NUMA, f"numa-{p}", f"package-{p}", p, facts=numa))
        for c in range(cores_per_package):
            n = core_number
            if c % cores_per_l3 == 0:
                l3 = f"l3-{n // cores_per_l3}"
                l3_facts = facts("/sys", level=3, size=l3_size, type="unified")
                devices.append(Device(l3, DeviceKind.CACHE, l3, f"numa-{p}", p, facts=l3_facts))
            parent = l3
            for cache, level, size, kind in (
                ("l2", 2, 1 << 20, "unified"),
                ("l1d", 1, 32 << 10, "data"),
                ("l1i", 1, 32 << 10, "instruction"),
            ):
                cache_facts = facts("/sys", level=level, size=size, type=kind)
                devices.append(Device(f"{cache}-{n}", DeviceKind.CACHE, f"{cache}-{n}", parent, p, facts=cache_facts))
                parent = f"{cache}-{n}"
            devices.append(Device(f"core-{n}", DeviceKind.CORE, f"core-{n}", parent, p))
            for thread in range(smt):
                os_index = n + thread * packages * cores_per_package
                extra = (
                    {"governor": "schedutil", "max_frequency": 4.3e9, "frequency_driver": "acpi-cpufreq"}
                    if smt > 1
                    else {}
                )
                devices.append(
                    Device(
                        f"pu-{os_index}",
                        DeviceKind.PU,
                        f"pu-{os_index}",
                        f"core-{n}",
                        p,
                        facts=facts("/sys", os_index=os_index, **extra),
                    )
                )
            core_number += 1
    return devices


def vm_machine(name: str = "vm") -> Machine:
    devices = cpu_tree(1, 2, 32 << 20, 2, 1, 23 * GiB, "AMD EPYC")
    devices += [
        Device("pci-0000:00", DeviceKind.BRIDGE, "host bridge 0000:00", "numa-0", 0, "0000:00"),
        Device(
            "block-vda",
            DeviceKind.BLOCK,
            "vda",
            "pci-0000:00",
            0,
            "0000:00:02.0",
            facts=facts("/sys", size=274877906944),
        ),
        Device("nic-eth0", DeviceKind.NIC, "eth0", "pci-0000:00", 0, "0000:00:03.0"),
    ]
    said = dict(
        facts(
            "/proc",
            kernel="6.18.44",
            os="Debian GNU/Linux 12 (bookworm)",
            libc="glibc 2.36",
            hypervisor="kvm",
            container="docker",
            thp_enabled="madvise",
            clocksource="tsc",
            smt_active=False,
            privileges="user",
            numa_balancing=0,
            page_size=4096,
        )
    )
    said["memory_total"] = (
        Fact(25276510208, "/proc/meminfo (MemTotal)", unit="B"),
        Fact(5060644864, "hwloc 2.9.0", unit="B"),
        Fact(8.5 * GiB, "the control group", unit="B"),
    )
    return Machine(
        name,
        tuple(devices),
        Facts(said),
        allowed_cpus=(0, 1),
        sources=("sysfs and procfs", "hwloc 2.9.0"),
        limits=(NamedLimit("dram.bandwidth", Limit.unknown("B/s", "no source describes the memory modules")),),
        unread=("SMBIOS: /sys/firmware/dmi/tables/DMI cannot be read without root",),
    )


@functools.cache
def vm_trial(*, steady: bool = True) -> Trial:
    """The 2-core virtual machine: no DRAM limit, a measured ceiling, one figure in two levels."""
    machine = vm_machine()
    ceiling = Limit(57.3 * GB * 0.75, "B/s", "best non-temporal rate measured here x 24/32", Basis.MEASURED)
    jump = (lambda k: 0.0) if steady else (lambda k: -0.45 if k in (2, 3, 7, 8, 9) else 0.0)
    results = (
        *stream(ceiling, (38.4 * GB, 57.1 * GB), 2),
        *stream(ceiling, (24.1 * GB, 31.7 * GB), 1, seed=9, shape=jump),
        *peak(3.69e9, 2),
    )
    seen, places = seen_and_places(results, load=(0.4, 6.9), steal=0.0 if steady else 0.08)
    return Trial(
        machine,
        results,
        findings(machine, results, seen),
        (
            NotMeasured("gpu.max-flops", "What arithmetic rate does the GPU reach?", "no GPU was found"),
            NotMeasured("mpi.latency", "How long does a small message take?", "mpi: no mpicc was found; install one"),
        ),
        ENVIRONMENTS,
        places,
        seen,
        "0.1.0",
    )


def server_machine() -> Machine:
    devices = cpu_tree(2, 32, 32 << 20, 8, 2, 768 * GiB, "AMD EPYC 9334 32-Core Processor")
    links = []
    for n in range(4):
        bridge, gpu = f"pci-0000:{n * 32 + 1:02x}:01.1", f"gpu-{n}"
        node = n // 2
        devices.append(Device(bridge, DeviceKind.BRIDGE, f"bridge {bridge[4:]}", f"numa-{node}", node, bridge[4:]))
        devices.append(Device(gpu, DeviceKind.GPU, "NVIDIA H100 PCIe", bridge, node, f"0000:{n * 32 + 2:02x}:00.0"))
        links.append(Link(bridge, gpu, "PCIe", 63.0e9, 63.0e9 if n != 2 else 31.5e9, "sysfs"))
    devices.append(Device("pci-0000:c1:01.1", DeviceKind.BRIDGE, "bridge 0000:c1:01.1", "numa-1", 1, "0000:c1:01.1"))
    devices.append(
        Device(
            "nic-mlx5_0",
            DeviceKind.NIC,
            "mlx5_0",
            "pci-0000:c1:01.1",
            1,
            "0000:c2:00.0",
            ("ib0",),
            facts("/sys", model_name="ConnectX-7"),
        )
    )
    links.append(Link("pci-0000:c1:01.1", "nic-mlx5_0", "PCIe", 63.0e9, 63.0e9, "sysfs"))
    dram = dram_bandwidth(20, 4800, "dmidecode")
    memory = Memory(
        Population.UNBALANCED,
        "socket 1 has 8 of 12 channels filled",
        dram,
        (SocketMemory(12, 12, 12, 384 * GiB, 4800, 4800), SocketMemory(12, 8, 8, 384 * GiB, 4800, 5600)),
    )
    said = facts(
        "/proc",
        kernel="5.14.0-427.el9.x86_64",
        os="Rocky Linux 9.4",
        libc="glibc 2.34",
        product="Supermicro AS-2025",
        bios_version="1.4",
        bios_date="2024-03-02",
        thp_enabled="never",
        clocksource="hpet",
        smt_active=True,
        boost=True,
        privileges="root",
        numa_balancing=1,
        memory_total=765 * GiB,
        page_size=4096,
        cgroup_cpu_limit=96.0,
    )
    return Machine(
        "cn-0421.cluster.example",
        tuple(devices),
        said,
        tuple(links),
        memory=memory,
        allowed_cpus=tuple(range(128)),
        limits=(NamedLimit("dram.bandwidth", dram),),
        sources=("sysfs and procfs", "hwloc 2.9.0", "SMBIOS"),
    )


@functools.cache
def server_trial() -> Trial:
    """Two sockets, 64 cores: low bandwidth, a sweep, all kinds of outcomes."""
    machine = server_machine()
    dram = machine.memory.peak
    sweep = [
        experiment(
            "memory.latency",
            "How long does a dependent load take?",
            {"huge_pages": huge},
            [
                figure(
                    "load",
                    base,
                    Limit.unknown("s", "no limit is known for latency"),
                    unit="s",
                    better=Better.LOWER,
                    spread=0.01,
                    n=8,
                    point={"working_set_B": 1 << exponent},
                    seed=exponent,
                    start=huge * 2,
                )
                for exponent in range(12, 31)
                for base in [
                    1.1e-9
                    + 2.6e-9 / (1 + math.exp(15 - exponent))
                    + 9e-9 / (1 + math.exp(20 - exponent))
                    + (85e-9 if huge else 120e-9) / (1 + math.exp(1.4 * (25.5 - exponent)))
                ]
            ],
        )
        for huge in (False, True)
    ]
    results = (
        *stream(dram, (384 * GB, 481 * GB), 64, n=14, shape=lambda k: -0.002 * k),
        *stream(dram, (31 * GB, 34 * GB), 1, seed=4, n=14),
        experiment(
            "memory.stream",
            STREAM_QUESTION,
            {"threads": 128, "nontemporal": False, "huge_pages": True, "array_B": 256 << 20},
            outcome=Outcome.invalid("triad_mismatches", "3 elements differ, 0 may"),
        ),
        *peak(3.7e9, 64),
        experiment(
            "cpu.peak",
            PEAK_QUESTION,
            {"precision": "fp16", "cores": "all"},
            outcome=Outcome.unsupported("isa", "this CPU has no AVX512-FP16"),
        ),
        *sweep,
        experiment(
            "io.file",
            "How fast are files?",
            {"file_B": 1 << 30},
            outcome=Outcome.failed(Stage.BUILD, "g++ ended with 1", "io.cpp:12:3: error: no member 'x'\n  12 | a.x();"),
        ),
        experiment("io.file", "How fast are files?", {"file_B": 1 << 32}, outcome=Outcome.timed_out(20.0)),
        experiment(
            "io.file", "How fast are files?", {"file_B": 1 << 40}, outcome=Outcome.skipped("the disk is too small")
        ),
    )
    seen, places = seen_and_places(results, cpus=64)
    return Trial(
        machine,
        results,
        findings(machine, results, seen),
        (),
        ENVIRONMENTS,
        places,
        seen,
        "0.1.0",
    )


@functools.cache
def hostile_trial() -> Trial:
    """Every name that may come from outside holds markup."""
    name = HOSTILE
    machine = Machine(
        name,
        (
            Device(
                name,
                DeviceKind.PACKAGE,
                name,
                facts=Facts({name: (Fact(name, name),), "model_name": (Fact(name, name),)}),
            ),
            Device("x", DeviceKind.NIC, name, None, None, name),
        ),
        Facts({"kernel": (Fact(name, name, FactKind.ASSERTED),), "memory_total": (Fact(1, name), Fact(2, name))}),
        links=(Link(name, "x", name, 2e9, 1e9, name),),
        sources=(name,),
        unread=(name,),
        limits=(NamedLimit(name, Limit.unknown("B/s", name)),),
    )
    results = (
        *(
            experiment(
                name,
                name,
                {name: name, "k": k},
                [figure(name, 1e9 * k, Limit(2e9, "B/s", name, Basis.PHYSICAL), point={name: name}, work=name)],
            )
            for k in (1, 2, 3)
        ),
        experiment(name, name, {name: "y"}, outcome=Outcome.failed(Stage.RUN, name, name)),
    )
    seen, places = seen_and_places(results)
    seen = {place: {**entry, "command": [name], "notes": {name: name}} for place, entry in seen.items()}
    places = {place: RecordPlace(f"records/{name}", 1) for place in places}
    return Trial(
        machine,
        results,
        findings(machine, results, seen),
        (NotMeasured(name, name, name),),
        {"env1": {"name": name, name: name}},
        places,
        seen,
        name,
    )
