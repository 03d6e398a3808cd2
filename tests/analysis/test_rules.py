"""Every rule: what it fires on, what it does not fire on, and silence where facts are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.sound_findings import unsound
from analysis.test_rules_collectives import CASES as COLLECTIVES
from analysis.test_rules_copies import CASES as COPIES
from analysis.test_rules_devices import CASES as DEVICES
from analysis.test_rules_expectation import limit, made, result
from analysis.test_rules_gpu_state import CASES as GPU_STATES
from analysis.test_rules_input_pipelines import CASES as PIPELINES
from analysis.test_rules_numa import CASES as NODES
from analysis.test_rules_pcie import CASES as SETTINGS
from analysis.test_rules_power import CASES as POWER
from analysis.test_rules_siblings import CASES as SIBLINGS
from analysis.test_rules_siblings import OF_RESULTS
from analysis.test_rules_training import CASES as TRAINING
from diagnosis.test_disturbance import CASES as DISTURBED
from machine.dmi_dumps import Server, Slot
from made_up import made_up_machine

from seatrial.analysis.rules import findings, rules
from seatrial.analysis.rules.finding import Case, again
from seatrial.analysis.rules.limits import _WHAT_TO_DO
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.model.benchmark.benchmark import Attainable
from seatrial.model.machine.fact import Aim, Fact, Facts, Finding, Severity
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import (
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    Platform,
    Population,
    Sign,
    SocketMemory,
)
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.model.spelling import show_percent

GiB = 1 << 30


def facts(**values) -> Facts:
    return Facts({name: (Fact(value, "the test"),) for name, value in values.items()})


def said(name: str, *values) -> Facts:
    return Facts({name: tuple(Fact(value, f"source {number}") for number, value in enumerate(values, start=1))})


def cpus(number: int, cores: int | None = None, **pu_facts) -> tuple[Device, ...]:
    cores = cores or number
    return (
        *(Device(f"core-{k}", DeviceKind.CORE, "core") for k in range(cores)),
        *(
            Device(f"pu-{k}", DeviceKind.PU, "CPU", f"core-{k % cores}", facts=facts(os_index=k, **pu_facts))
            for k in range(number)
        ),
    )


def l3(mebibytes: int) -> Device:
    return Device(f"l3-{mebibytes}", DeviceKind.CACHE, "L3", facts=facts(level=3, size=mebibytes << 20))


def package(**values) -> Device:
    return Device("package-0", DeviceKind.PACKAGE, "CPU", facts=facts(**values))


def machine(*devices: Device, general: Facts | None = None, **more) -> Machine:
    return Machine("m", devices, general or Facts(), **more)


def sockets(*populated: int, configured=4800.0, rated=4800.0, verdict=Population.BALANCED) -> Machine:
    filled = tuple(SocketMemory(12, number, number, number * 32 * GiB, configured, rated) for number in populated)
    return machine(memory=Memory(verdict, "as the test has it", Limit(1e11, "B/s", "", Basis.PHYSICAL), filled))


def linked(capable, trained, measured=None) -> Machine:
    gpu = Device("gpu-0", DeviceKind.GPU, "GPU")
    return machine(gpu, links=(Link("pci-0", "gpu-0", "PCIe", capable, trained, "sysfs", measured),))


NUMA = tuple(Device(f"numa-{k}", DeviceKind.NUMA, "node", numa=k) for k in range(2))

# rule: (a case on which it fires, cases on which it does not)
HBM_AND_DRAM = (
    Device("numa-0", DeviceKind.NUMA, "node", numa=0, facts=facts(memory_total=64 * GiB, memory_kind="DRAM")),
    Device("numa-1", DeviceKind.NUMA, "node", numa=1, facts=facts(memory_total=16 * GiB, memory_kind="HBM")),
)
CACHED = Device(
    "numa-0", DeviceKind.NUMA, "node", numa=0,
    facts=facts(memory_total=64 * GiB, memory_side_cache=16 * GiB, memory_side_cache_ways=1),
)  # fmt: skip

MACHINES = {
    "memory-flat-mode": (machine(*HBM_AND_DRAM), [machine(HBM_AND_DRAM[0]), machine(HBM_AND_DRAM[1]), machine(*NUMA)]),
    "memory-side-cache": (machine(CACHED), [machine(*HBM_AND_DRAM), machine(*NUMA)]),
    "governor-not-performance": (
        machine(*cpus(2, governor="schedutil")),
        [machine(*cpus(2, governor="performance")), machine(*cpus(2))],
    ),
    "boost-off": (machine(package(), general=facts(boost=False)), [machine(package(), general=facts(boost=True))]),
    "clock-limited": (
        machine(*cpus(2, allowed_max_frequency=2.5e9, max_frequency=3.5e9)),
        [
            machine(*cpus(2, allowed_max_frequency=3.5e9, max_frequency=3.5e9)),
            machine(*cpus(2, max_frequency=3.5e9)),
            machine(*cpus(2, allowed_max_frequency=2.5e9)),
            machine(*cpus(2, allowed_max_frequency=2.5e9, max_frequency=3.5e9), general=facts(boost=False)),
        ],
    ),
    "smt-on": (
        machine(*cpus(4, 2), general=facts(smt_active=True)),
        [machine(*cpus(2), general=facts(smt_active=True)), machine(*cpus(4, 2), general=facts(smt_active=False))],
    ),
    "huge-pages-never": (
        machine(general=facts(thp_enabled="never")),
        [machine(general=facts(thp_enabled="madvise")), machine(general=facts(thp_enabled="always"))],
    ),
    "numa-balancing-on": (
        machine(*NUMA, general=facts(numa_balancing=1)),
        [machine(*NUMA, general=facts(numa_balancing=0)), machine(NUMA[0], general=facts(numa_balancing=1))],
    ),
    "zone-reclaim-on": (
        machine(*NUMA, general=facts(zone_reclaim_mode=1)),
        [machine(*NUMA, general=facts(zone_reclaim_mode=0)), machine(NUMA[0], general=facts(zone_reclaim_mode=1))],
    ),
    "clock-source-not-tsc": (
        machine(package(vendor="GenuineIntel"), general=facts(clocksource="hpet")),
        [
            machine(package(vendor="AuthenticAMD"), general=facts(clocksource="tsc")),
            machine(package(vendor="ARM"), general=facts(clocksource="arch_sys_counter")),
            machine(package(), general=facts(clocksource="hpet")),
        ],
    ),
    "cpu-vulnerable": (
        machine(general=facts(mitigations="spec_store_bypass: Vulnerable; spectre_v2: Mitigation: Retpolines")),
        [
            machine(general=facts(mitigations="not affected")),
            machine(
                general=facts(mitigations="spectre_v1: Mitigation: barriers; mds: Mitigation: Clear; SMT vulnerable")
            ),
        ],
    ),
    "memory-unbalanced": (
        sockets(12, 8, verdict=Population.UNBALANCED),
        [sockets(12, 12), sockets(12, 12, verdict=Population.UNKNOWN)],
    ),
    "memory-below-rating": (sockets(12, configured=4400.0), [sockets(12), sockets(12, rated=None)]),
    "memory-sockets-differ": (
        sockets(12, 8, verdict=Population.UNKNOWN),
        [
            sockets(12, 12),
            sockets(12, 8, verdict=Population.UNBALANCED),  # says it already
            replace(sockets(12, 8, verdict=Population.UNKNOWN), facts=facts(hypervisor="kvm")),
        ],
    ),
    "memory-modules-unknown": (
        machine(general=facts(memory_total=GiB)),
        [sockets(12), machine(general=facts(kernel="6.1"))],
    ),
    "memory-sizes-disagree": (
        machine(general=said("memory_total", 23 * GiB, 24 * GiB, 8 * GiB)),
        [
            machine(general=said("memory_total", 24 * GiB)),
            machine(general=said("memory_total", 24 * GiB, int(23.1 * GiB))),  # what the kernel reserves
        ],
    ),
    "memory-not-managed": (
        machine(general=facts(memory_total=3 * GiB, memory_online=24 * GiB)),
        [
            machine(general=facts(memory_total=23 * GiB, memory_online=24 * GiB)),
            machine(general=facts(memory_total=3 * GiB)),
        ],
    ),
    "link-below-capability": (
        linked(63e9, 31.5e9),
        [linked(63e9, 63e9), linked(None, 31e9), linked(63e9, None), linked(63e9, 31.5e9, measured=55e9)],
    ),
    "cpu-quota": (
        machine(*cpus(4), general=facts(cgroup_cpu_limit=1.5)),
        [machine(*cpus(4), general=facts(cgroup_cpu_limit=4.0)), machine(general=facts(cgroup_cpu_limit=1.5))],
    ),
    "memory-limit": (
        machine(general=facts(cgroup_memory_limit=8 * GiB, memory_total=24 * GiB)),
        [
            machine(general=facts(cgroup_memory_limit=24 * GiB, memory_total=24 * GiB)),
            machine(general=facts(cgroup_memory_limit=8 * GiB)),
        ],
    ),
    "few-cpus-allowed": (
        machine(*cpus(4), allowed_cpus=(0, 1)),
        [machine(*cpus(4), allowed_cpus=(0, 1, 2, 3)), machine(*cpus(4))],
    ),
    "virtual-machine": (machine(general=facts(hypervisor="kvm")), [machine(general=facts(hypervisor="none"))]),
    "emulated-processors": (
        machine(general=facts(hypervisor="qemu (tcg)")),
        [machine(general=facts(hypervisor="kvm"))],
    ),
    "container": (
        replace(machine(*cpus(2)), platform=Platform((), (Sign("docker", "a layered root"), Sign("other", "a root")))),
        [machine(*cpus(2))],
    ),
    "topology-hidden": (
        machine(*cpus(4), l3(480), general=facts(hypervisor="kvm")),
        [
            machine(*cpus(4), l3(32), general=facts(hypervisor="kvm")),
            machine(*cpus(4), l3(480)),
            machine(*cpus(1), l3(32), general=facts(hypervisor="kvm")),
        ],
    ),
}


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (
            (*(replace(package(), id=f"package-{k}") for k in range(4)), *cpus(4)),
            "is its own package, no caches",
        ),
        ((package(), *cpus(2), l3(32), l3(32)), "each core has its own L3 cache"),
        ((package(), *cpus(2)), "no caches are shown"),
    ],
)
def test_what_a_guest_shows_of_processors_that_no_machine_has(devices, words):
    found = findings(machine(*devices, general=facts(hypervisor="kvm")), [])
    assert any(one.rule == "topology-hidden" and words in one.observation for one in found)


def test_a_virtual_machine_says_how_its_devices_reach_it_and_what_its_host_takes():
    devices = [
        Device(name, DeviceKind.NIC, name, facts=facts(attachment=word))
        for name, word in (("nic-eth0", "paravirtual"), ("mlx5_0", "virtual function"), ("nic-eth1", "paravirtual"))
    ]
    general = facts(hypervisor="kvm", balloon="virtio", steal_share=0.034)
    (found,) = (one for one in findings(machine(*devices, general=general), []) if one.rule == "virtual-machine")
    assert "Paravirtual: nic-eth0, nic-eth1. Virtual function: mlx5_0." in found.observation
    assert "balloon" in found.diagnosis and "3.4 % of the CPU time" in found.diagnosis
    assert "steal_share = 0.034" in found.evidence


def two_levels_figure(low=1.0, high=1.5):
    values = [low, high] * 5
    base = made(high, None)
    repeats = tuple(type(base.repeats[0])(k, k, float(k), value * (1 + k * 1e-4)) for k, value in enumerate(values))
    return type(base)("f", {}, "s", base.better, "", (low + high) / 2, (low, high), low, high, 10, None, repeats)


RESULTS = {
    "experiment-invalid": (
        [result(outcome=Outcome.invalid("sum", "3 differ"))],
        [[result(outcome=Outcome.skipped("x"))]],
    ),
    "experiment-failed": (
        [result(outcome=Outcome.failed(Stage.BUILD, "no compiler"))],
        [[result(outcome=Outcome.unsupported("x", "y"))], [result(made(0.9, limit(1.0)))]],
    ),
    "experiment-timed-out": ([result(outcome=Outcome.timed_out(20.0))], [[]]),
    "below-physical-limit": (
        [result(made(0.6, limit(1.0)))],
        [
            [result(made(0.8, limit(1.0)))],
            [result(made(0.1, limit(1.0, Basis.MEASURED)))],
            [result(made(0.1, limit(None, Basis.UNKNOWN)))],
            [result(made(0.1, None))],
            [result(made(0.1, limit(1.0)), threads=1), result(made(0.9, limit(1.0)), threads=2)],
        ],
    ),
    "above-expected": (
        [result(made(1.1, limit(1.0, Basis.MEASURED)))],
        [[result(made(1.01, limit(1.0, Basis.MEASURED)))], [result(made(1.1, limit(1.0)))]],
    ),
    **PIPELINES,
    "repeats-spread": ([result(made(1.0, None, width=0.3))], [[result(made(1.0, None, width=0.05))]]),
    "repeats-in-two-levels": ([result(two_levels_figure())], [[result(two_levels_figure(1.0, 1.02))]]),
}


def rules_of(given: Machine, results=(), seen=None) -> list[str]:
    return [finding.rule for finding in findings(given, results, seen)]


@pytest.mark.parametrize("rule", MACHINES)
def test_a_rule_about_the_machine_fires_and_does_not(rule):
    fires, silent = MACHINES[rule]
    assert rules_of(fires).count(rule) == 1
    for given in silent:
        assert rule not in rules_of(given), given


@pytest.mark.parametrize("rule", RESULTS)
def test_a_rule_about_results_fires_and_does_not(rule):
    fires, silent = RESULTS[rule]
    assert rules_of(Machine("m"), fires).count(rule) == 1
    for given in silent:
        assert rule not in rules_of(Machine("m"), given)


OF_MACHINES = (MACHINES, DEVICES, GPU_STATES, NODES, SETTINGS, SIBLINGS)


def link_case(*entries):
    names = ("port", "counter", "kind", "grew_by")
    links = [dict(zip(names, entry, strict=True)) for entry in entries]
    return Case(Machine("m"), (), {("e", 0): {"links": links}, ("e", 1): {"links": links}})


OF_LINKS = {
    "link-errors": link_case(("mlx5_0 port 1", "symbol_error", "error", 4)),
    "link-congestion": link_case(
        ("mlx5_0 port 1", "port_xmit_wait", "congestion", 9), ("eth0", "rx_dropped", "discard", 1)
    ),
}


OF_TCP = {"packets-lost": link_case(("TCP", "TcpRetransSegs", "retry", 200))}


def clock_case(clock_s, error_s=0.01):
    seen = {"host": "n2", "folder": {"clock_s": clock_s, "clock_error_s": error_s}}
    return Case(Machine("m"), (), {("e", 0): seen, ("e", 1): {"host": "n1", "folder": {"write_s": 1e-3}}})


OF_CLOCKS = {"clock-off": clock_case(-3.01)}


def test_a_clock_that_is_off_is_a_finding_with_offset_and_error():
    (finding,) = (finding for each in rules() for finding in each(OF_CLOCKS["clock-off"]))
    assert "of n2 3.01 s behind (± 10 ms)" in finding.observation.replace("10.0 ms", "10 ms")
    for sound in (clock_case(0.05), clock_case(0.5, 0.5)):
        assert not [finding for each in rules() for finding in each(sound)]


@pytest.mark.parametrize("rule", OF_LINKS)
def test_counters_of_links_that_grew_are_findings(rule):
    (finding,) = (finding for each in rules() for finding in each(OF_LINKS[rule]))
    assert (finding.rule, finding.devices) == (rule, ("mlx5_0 port 1",))
    assert {"link-errors": "+8 (symbols that arrived damaged)", "link-congestion": "+18"}[rule] in finding.observation


_OBSERVED = {**POWER, **TRAINING, **COLLECTIVES}


@pytest.mark.parametrize("rule", _OBSERVED)
def test_what_was_seen_beside_repeats_is_a_finding(rule):
    fires, silent = _OBSERVED[rule]
    (finding,) = (finding for each in rules() for finding in each(fires))
    assert finding.rule == rule
    for text in (finding.observation, finding.diagnosis, finding.remedy, finding.evidence):
        assert text.strip() == text and text
    for case in silent:
        assert not [finding for each in rules() for finding in each(case)]


def test_counters_of_links_that_are_unknown_are_no_finding():
    given = link_case(("eth0", "symbol_error", "error", None), ("eth0", "from a later version", "error", 3))
    assert [finding for each in rules() for finding in each(given)] == []


def everything():
    for several in OF_MACHINES:
        for rule, (fires, _) in several.items():
            yield next(finding for finding in findings(fires, ()) if finding.rule == rule)
    for rule, (fires, _) in RESULTS.items():
        yield next(finding for finding in findings(Machine("m"), fires) if finding.rule == rule)


def test_every_rule_is_tested():
    cases = [Case(fires) for fires, _ in (cases for several in OF_MACHINES for cases in several.values())]
    cases += [Case(Machine("m"), tuple(fires)) for fires, _ in RESULTS.values()]
    cases += [*COPIES.values(), *OF_RESULTS.values(), *DISTURBED.values(), *OF_LINKS.values(), *OF_TCP.values()]
    cases += OF_CLOCKS.values()
    cases += [fires for fires, _ in _OBSERVED.values()]
    for rule in rules():
        assert any(list(rule(case)) for case in cases), rule
    names = {finding.rule for case in cases for rule in rules() for finding in rule(case)}
    of_machines = {rule for several in OF_MACHINES for rule in several}
    expected = {*of_machines, *RESULTS, *COPIES, *OF_RESULTS, *DISTURBED, *OF_LINKS, *OF_TCP, *OF_CLOCKS, *_OBSERVED}
    assert names == expected, "a rule speaks under a name that has no case"


@pytest.mark.parametrize(
    ("rule", "given"), [(rule, fires) for several in OF_MACHINES for rule, (fires, _) in several.items()]
)
def test_no_remedy_asks_for_what_is_so_and_no_two_findings_are_opposed(rule, given):
    assert unsound(given) == []


def test_a_remedy_that_asks_for_what_is_so_would_be_noticed(monkeypatch):
    given = machine(general=facts(numa_balancing=0, kernel_parameters="iommu=pt"))
    wrong = Finding("r", Severity.INFO, (), "o", "d", "Boot with `iommu=pt`", "e", 0.5, (Aim("numa_balancing", 0),))
    other = replace(wrong, loss=None, remedy="r", aims=(Aim("numa_balancing", 1), Aim("unknown", 1)))
    monkeypatch.setattr("analysis.sound_findings.findings", lambda *_: (wrong, other))
    assert [sentence.partition(": ")[2] for sentence in unsound(given)] == [
        " numa_balancing is 0 already",
        "changes  unknown, which is unknown",
        "the kernel runs with iommu=pt already",
        "",
        "a note that costs 50%",
    ]


@pytest.mark.parametrize("finding", list(everything()), ids=lambda finding: finding.rule)
def test_every_finding_says_what_was_seen_what_it_means_what_to_do_and_how_we_know(finding):
    for text in (finding.observation, finding.diagnosis, finding.remedy, finding.evidence):
        assert text.strip() == text and text
        assert "None" not in text and "e+" not in text and "nan" not in text
    assert finding.observation.endswith(".") and finding.diagnosis.endswith(".")
    assert finding.loss is None or 0 < finding.loss <= 1


def test_nothing_known_means_nothing_found():
    assert findings(Machine("m"), ()) == ()


def test_known_losses_come_first_then_severity():
    given = machine(
        *cpus(4, governor="powersave"),
        general=facts(cgroup_cpu_limit=1.0, memory_total=GiB, thp_enabled="never"),
        links=(Link("a", "b", "PCIe", 2.0, 1.0, "x"),),
    )
    found = findings(given, [result(outcome=Outcome.timed_out(1.0))])
    assert [finding.loss for finding in found if finding.loss is not None] == [1.0, 0.75, 0.5]
    assert [finding.loss is None for finding in found] == sorted(finding.loss is None for finding in found)
    severities = [finding.severity for finding in found if finding.loss is None]
    assert severities == [Severity.WARNING, Severity.WARNING, Severity.INFO]


def test_memory_sources_are_all_named_with_their_values():
    given = machine(general=said("memory_total", 24 * GiB, 8 * GiB, 24 * GiB))
    (text,) = [f.observation for f in findings(given, ()) if f.rule == "memory-sizes-disagree"]
    assert "24 GiB by source 1 and by source 3" in text and "8 GiB by source 2" in text


def rated(finding_rule: str, given: Machine, results=()):
    (finding,) = [finding for finding in findings(given, results) if finding.rule == finding_rule]
    return finding


def test_a_module_that_the_kernel_does_not_have_is_an_error():
    modules = tuple(Device(f"memory-{k}", DeviceKind.MEMORY, "DIMM", facts=facts(size=32 * GiB)) for k in range(12))
    one_less = machine(*modules, general=said("memory_total", 347 * GiB, 352 * GiB, 384 * GiB))
    found = rated("memory-sizes-disagree", one_less)
    assert found.severity is Severity.ERROR and "32 GiB more than any other source" in found.diagnosis
    half = machine(*modules, general=said("memory_total", 8 * GiB, 384 * GiB, 380 * GiB))
    assert rated("memory-sizes-disagree", half).severity is Severity.WARNING
    guest = replace(one_less, facts=Facts({**one_less.facts.by_name, **facts(hypervisor="kvm").by_name}))
    assert rated("memory-sizes-disagree", guest).severity is Severity.WARNING


def test_two_modules_on_each_channel_may_run_slower():
    load = SocketMemory(6, 6, 12, 12 * 32 * GiB, 2400.0, 3200.0)
    model = "AMD EPYC 7763 64-Core Processor"
    processor = Device("package-0", DeviceKind.PACKAGE, model, facts=facts(model_name=model))
    two_each = machine(processor, memory=Memory(Population.BALANCED, "x", sockets=(load,)))
    found = rated("memory-below-rating", two_each)
    assert found.severity is Severity.INFO and found.loss is None and "two modules" in found.diagnosis
    assert "same share" not in found.diagnosis, "a normal speed costs nothing that could be had"
    one_each = machine(processor, memory=Memory(Population.BALANCED, "x", sockets=(replace(load, dimms=6),)))
    found = rated("memory-below-rating", one_each)
    assert found.severity is Severity.WARNING and found.loss == pytest.approx(0.25)
    assert "two modules" not in found.diagnosis, "each channel has one"


@pytest.mark.parametrize(
    ("model", "configured", "loss"),
    [
        ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", 2933.0, None),
        ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", 2400.0, 1 - 2400 / 2933),
        ("Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz", 2400.0, None),
        ("Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz", 2133.0, 1 - 2133 / 2400),
        ("AMD EPYC 9654 96-Core Processor", 2933.0, 1 - 2933 / 3200),
    ],
)
def test_modules_that_are_faster_than_their_processor_lose_nothing(model, configured, loss):
    processor = Device("package-0", DeviceKind.PACKAGE, model, facts=facts(model_name=model))
    load = SocketMemory(6, 6, 6, 6 * 32 * GiB, configured, 3200.0)
    given = machine(processor, memory=Memory(Population.BALANCED, "x", sockets=(load,)))
    found = [finding for finding in findings(given, ()) if finding.rule == "memory-below-rating"]
    assert [(finding.severity, finding.loss) for finding in found] == (
        [] if loss is None else [(Severity.WARNING, pytest.approx(loss))]
    )


def test_an_unknown_processor_may_be_what_limits_the_memory():
    load = SocketMemory(6, 6, 6, 6 * 32 * GiB, 2933.0, 3200.0)
    given = machine(package(model_name="some CPU"), memory=Memory(Population.BALANCED, "x", sockets=(load,)))
    found = rated("memory-below-rating", given)
    assert found.severity is Severity.INFO and found.loss is None
    assert "highest memory speed of the processor is unknown" in found.diagnosis


@pytest.mark.parametrize(
    ("processor", "highest", "lower"),
    [
        ("Intel(R) Xeon(R) Silver 4410Y", "4000 MT/s", "3600 MT/s"),  # as Supermicro's SYS-511E-WR
        ("INTEL(R) XEON(R) GOLD 6430", "4400 MT/s", "4000 MT/s"),
        ("Intel(R) Xeon(R) Gold 5416S", "4400 MT/s", "4000 MT/s"),
    ],
)
def test_a_dump_whose_memory_runs_as_fast_as_the_processor_allows(processor, highest, lower):
    """Modules of 5600 MT/s, with processors that support less."""
    identification = ("Intel(R) Corporation", "Type 0, Family 6, Model 143, Stepping 8", processor)

    def rules(configured: str) -> set[str]:
        slots = [Slot(f"P1-DIMM{c}1", "32 GB", speed="5600 MT/s", configured=configured) for c in "ABCDEFGH"]
        dump = Server("Supermicro|SYS-511E-WR", [identification], slots).data()
        return {finding.rule for finding in findings(assemble([read_dmidecode(dump)]), ())}

    assert "memory-below-rating" not in rules(highest)
    assert "memory-below-rating" in rules(lower)


def test_listed_modules_are_not_asked_for_again():
    module = Device("memory-0", DeviceKind.MEMORY, "DIMM 1", facts=facts(size=32 * GiB))
    why = "the slot names do not state their sockets"
    given = machine(module, general=facts(memory_total=32 * GiB), memory=Memory(why=why))
    found = rated("memory-modules-unknown", given)
    assert found.observation == f"Of 1 memory module, the channels are unknown: {why}."
    assert "dmidecode" not in found.remedy and "manual" in found.remedy


@pytest.mark.parametrize(
    ("populated", "asks"),
    [
        ((8, 12), "Fill the empty channels (socket 0: 4 of 12)"),
        ((12, 12), "replace those that differ"),
    ],
)
def test_only_empty_channels_are_to_be_filled(populated, asks):
    found = rated("memory-unbalanced", sockets(*populated, verdict=Population.UNBALANCED))
    assert asks in found.remedy and ("Fill" in found.remedy) == (min(populated) < 12)


def test_modules_that_differ_are_looked_at_one_by_one():
    modules = [
        Device(f"memory-{k}", DeviceKind.MEMORY, "DIMM", facts=facts(configured_MTps=speed, rated_MTps=3200.0))
        for k, speed in enumerate((3200.0, 2666.0))
    ]
    load = SocketMemory(None, None, 2, 64 * GiB, None, 3200.0)
    given = machine(*modules, memory=Memory(Population.UNKNOWN, "x", sockets=(load,)))
    found = rated("memory-below-rating", given)
    assert found.devices == ("memory-1",) and found.loss == pytest.approx(1 - 2666 / 3200)


def test_a_measured_triad_stands_beside_the_verdict_on_memory():
    given = sockets(6, 6, verdict=Population.NEAR_BALANCED)
    triad = replace(made(70e9, None, name="triad"), unit="B/s")
    with_triad = rated("memory-unbalanced", given, [result(triad, benchmark="memory.stream")])
    assert "memory.stream triad measured 70.0 GB/s" in with_triad.observation
    without = rated("memory-unbalanced", given)
    assert "measured" not in without.observation and "`seatrial run memory.stream`" in without.remedy
    assert without.loss == pytest.approx(0.5) and "empty channels" in without.diagnosis


def test_figures_under_one_limit_make_one_finding():
    figures = [made(share, limit(1.0), name=name) for name, share in (("copy", 0.5), ("add", 0.6), ("triad", 0.9))]
    (finding,) = findings(Machine("m"), [result(*figures)])
    assert "b copy reaches" in finding.observation and "add (60 %)" in finding.observation
    assert "triad" not in finding.observation and finding.loss == pytest.approx(0.5)


def test_a_low_figure_of_plain_stores_is_judged_by_its_attainable_share():
    why = "plain stores: at most 75 % of it can be counted"
    (finding,) = findings(Machine("m"), [result(made(0.45e9, limit(1e9), attainable=Attainable(0.75, why)))])
    assert f"45 % of its physical limit of 1.00 GB/s ({why})." in finding.observation
    assert "Expected: 562 MB/s or better" in finding.diagnosis and "of the attainable share" in finding.diagnosis
    assert finding.loss == pytest.approx(1 - 0.6)


def test_a_low_figure_that_is_unsteady_says_so():
    low = replace(made(0.2e9, limit(1e9)), ci95=(0.1e9, 0.9e9))
    finding = next(f for f in findings(Machine("m"), [result(low)]) if f.rule == "below-physical-limit")
    assert finding.observation.endswith("; it is unsteady: its interval is as wide as 400 % of its median.")


def test_a_remedy_makes_the_same_experiment_again():
    two_cores = made_up_machine(cores=2, channels=2)
    point = {"threads": 1, "nontemporal": True, "huge_pages": True, "array_B": 128 << 20}
    low = result(made(1e9, limit(50e9)), benchmark="memory.stream", **point)
    remedy = next(f.remedy for f in findings(two_cores, [low]) if f.rule == "below-physical-limit")
    assert remedy.endswith("`seatrial run memory.stream --set threads=1 --set nontemporal=true --again`")
    assert again(two_cores, result(benchmark="memory.stream", **{**point, "threads": 2, "nontemporal": False})) == (
        "seatrial run memory.stream --again"
    )
    other_size = result(benchmark="memory.stream", **{**point, "array_B": 1 << 30})
    assert "--set array_B=1GiB" in again(two_cores, other_size)
    assert again(two_cores, result(benchmark="no.such", name="a; `rm -rf /`")) == (
        "seatrial run no.such --set 'name=a; `rm -rf /`' --again"
    )
    program = result(benchmark="command", argv=("./solver", "a b"))
    assert again(two_cores, program) == "seatrial run command --again -- ./solver 'a b'"
    assert again(two_cores, result(benchmark="no.such", argv=("./solver",))) == "seatrial run STUDY.yaml --again"


@pytest.mark.parametrize("stage", Stage)
def test_what_to_do_follows_the_stage_and_not_the_words_of_the_reason(stage):
    (finding,) = findings(Machine("m"), [result(outcome=Outcome.failed(stage, "build: was its name"))])
    assert finding.remedy.startswith(_WHAT_TO_DO[stage])
    (other,) = findings(Machine("m"), [result(outcome=Outcome(State.FAILED, "build: said who?"))])
    assert other.remedy.startswith("Run it again alone:")


def test_a_limit_that_nobody_confirmed_makes_no_defect_and_may_be_exceeded():
    doubtful = replace(limit(1.0), confirmed=False)
    assert rules_of(Machine("m"), [result(made(0.3, doubtful))]) == []
    (finding,) = findings(Machine("m"), [result(made(1.3, doubtful))])
    assert finding.rule == "above-expected" and "130 % of an unconfirmed limit" in finding.observation


def test_findings_spell_numbers_as_the_page_does():
    (finding,) = findings(Machine("m"), [result(made(1.1, limit(1.0, Basis.MEASURED)), made(1.0996, None))])
    assert f"{show_percent(1.1)} of a measured ceiling" in finding.observation
    assert show_percent(0.998) == "99.8 %"


def test_experiments_that_failed_for_the_same_reason_are_one_finding():
    failed = Outcome.failed(Stage.BUILD, "no compiler", "g++: not found")
    found = findings(Machine("m"), [result(outcome=failed, k=1), result(outcome=failed, k=2)])
    assert len(found) == 1 and "1 other experiment" in found[0].observation
    assert "k=1" in found[0].evidence and "k=2" in found[0].evidence and "g++: not found" in found[0].evidence


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        ({"load_1m": 0.3, "steal_share": 0.2}, "gave 20 %"),
        ({"load_1m": 9.0, "steal_share": 0.0}, "Other programs ran: the load was up to 9.0 on 2 CPUs"),
        ({"load_1m": 0.3, "steal_share": 0.0}, "The cause is unknown: neither missing CPUs nor steal explains it"),
        (
            {"load_1m": 9.0, "cpu_window_s": 0.5, "steal_s": 0.01, "steal_share": 0.02, "others_s": 0.2},
            "Other processes used 40 % of the time of the measured CPUs",
        ),
        (
            {"load_1m": 9.0, "cpu_window_s": 0.5, "steal_s": 0.3, "steal_share": 0.6, "others_s": 0.2},
            "The hypervisor gave 60 % of the CPU time",
        ),
        (  # one tick of the kernel's clock in repeats of 4 ms
            {"load_1m": 0.3, "cpu_window_s": 0.004, "steal_s": 0.01, "steal_share": 1.0, "others_s": 0.0},
            "The cause is unknown: neither missing CPUs nor steal explains it",
        ),
        ({"load_1m": None, "steal_share": None}, "too imprecise for comparisons."),
    ],
)
def test_what_the_probes_saw_is_evidence_for_a_wide_spread(seen, cause):
    wide = result(made(1.0, None, width=0.3))
    beside = {(wide.id, repeat.repeat): seen for repeat in wide.figures[0].repeats}
    (finding,) = findings(machine(*cpus(2)), [wide], beside)
    assert cause in finding.diagnosis


def test_a_boost_that_is_off_costs_the_clocks_apart():
    clocks = {"base_frequency": 2.5e9, "max_frequency": 4.0e9, "frequency_driver": "intel_pstate"}
    (finding,) = findings(machine(package(), *cpus(2, **clocks), general=facts(boost=False)), ())
    assert finding.loss == pytest.approx(1 - 2.5 / 4.0)
    assert "2.50 GHz instead of up to 4.00 GHz" in finding.observation and "no_turbo" in finding.remedy


def test_a_quota_is_held_against_the_cpus_that_may_be_used():
    given = machine(*cpus(8), general=facts(cgroup_cpu_limit=2.0), allowed_cpus=(0, 1))
    assert "cpu-quota" not in rules_of(given)


def test_an_intel_driver_with_powersave_is_told_apart():
    (finding,) = findings(machine(*cpus(2, governor="powersave", frequency_driver="intel_pstate")), ())
    assert "still reaches its boost clock" in finding.diagnosis


def test_a_clock_of_a_hypervisor_is_only_worth_a_note():
    (finding,) = findings(machine(package(vendor="GenuineIntel"), general=facts(clocksource="kvm-clock")), ())
    assert finding.severity is Severity.INFO


def shared_core_diagnosis(hypervisor: str, low: float, high: float, unit: str, cpus: int) -> str:
    split = replace(two_levels_figure(low, high), unit=unit)
    measured = result(split)
    seen = {(measured.id, repeat.repeat): {"affinity": [[cpu] for cpu in range(cpus)]} for repeat in split.repeats}
    (finding,) = [
        f
        for f in findings(machine(general=facts(hypervisor=hypervisor)), [measured], seen)
        if f.rule == "repeats-in-two-levels"
    ]
    return finding.diagnosis


def test_half_the_arithmetic_rate_on_several_cpus_of_a_guest_points_at_one_core_for_two():
    assert "on one core" in shared_core_diagnosis("kvm", 1.0, 2.0, "flop/s", 2)
    assert "on one core" not in shared_core_diagnosis("none", 1.0, 2.0, "flop/s", 2)
    assert "on one core" not in shared_core_diagnosis("kvm", 1.0, 3.0, "flop/s", 2)
    assert "on one core" not in shared_core_diagnosis("kvm", 1.0, 2.0, "B/s", 2)
    assert "on one core" not in shared_core_diagnosis("kvm", 1.0, 2.0, "flop/s", 1)


def test_segments_of_tcp_that_were_lost_are_a_finding_and_those_sent_needlessly_are_not():
    names = ("host", "port", "counter", "kind", "grew_by")

    def given(lost):
        counters = {"TcpRetransSegs": 16 + lost, "TcpExtTCPDSACKRecvSegs": 16, "TcpExtTCPTimeouts": 2}
        entries = [(node, "TCP", name, "retry", by) for node in ("n1", "n2") for name, by in counters.items()]
        gaps = [("n3", "TCP", "TcpExtTCPOFOQueue", "retry", 3 * lost)] if lost else []
        return {"links": [dict(zip(names, entry, strict=True)) for entry in (*entries, *gaps)]}

    clean = Case(Machine("m"), (), {("e", n): given(0) for n in range(3)})
    assert not [finding for each in rules() for finding in each(clean)]
    lossy = Case(Machine("m"), (), {("e", 0): given(170)})
    (finding,) = (finding for each in rules() for finding in each(lossy))
    assert (finding.rule, finding.severity.value) == ("packets-lost", "warning")
    assert "340 segments of TCP were lost" in finding.observation and "TCP of n3 510" in finding.observation
    assert "4 times" in finding.diagnosis
