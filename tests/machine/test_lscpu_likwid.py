"""lscpu and likwid-topology: what they state of processors, what they do not, and this machine as hwloc sees it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from shared_samples import TOPOLOGY

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import READERS
from seatrial.machine.live import survey_live
from seatrial.model.machine.machine import DeviceKind, Machine

OWN = Path(__file__).resolve().parents[1] / "data" / "machine"
SUMMARY = (OWN / "lscpu" / "two-sockets-smt.txt").read_text()
TABLE = (OWN / "lscpu" / "table.txt").read_text()
LIKWID = (OWN / "likwid" / "two-sockets-smt.txt").read_text()


def machine(kind: str, text: str, pick: int | None = None) -> Machine:
    return assemble([READERS[kind](text.encode(), pick)])


def counts(found: Machine) -> tuple[int, ...]:
    kinds = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CORE, DeviceKind.PU)
    return tuple(len(found.of_kind(kind)) for kind in kinds)


def cpus(found: Machine, kind: DeviceKind) -> list[tuple[str, str | None]]:
    """(name of a cache, its CPUs) of each part of a kind, in their order."""
    return sorted((device.id.rstrip("0123456789"), device.facts.text("cpus")) for device in found.of_kind(kind))


def test_a_summary_says_what_it_does_not_state() -> None:
    found = machine("lscpu", SUMMARY)
    assert counts(found) == (2, 2, 0, 16)
    assert [device.facts.text("cpus") for device in found.of_kind(DeviceKind.NUMA)] == ["0-3,8-11", "4-7,12-15"]
    assert any("which CPUs share a core" in sentence for sentence in found.unread)
    assert any("which CPUs are in which socket" in sentence for sentence in found.unread)
    assert found.facts.best("smt_active") is not None and found.facts.text("smt_active") == "True"
    package = found.of_kind(DeviceKind.PACKAGE)[0]
    assert package.facts.text("microarchitecture") and "avx512f" in (package.facts.text("isa") or "")
    (size,) = {device.facts.integer("size") for device in found.of_kind(DeviceKind.CACHE)}
    assert size == 22 << 20  # the others cannot be placed


def test_sockets_that_NUMA_nodes_do_not_show_have_no_CPUs() -> None:
    text = SUMMARY.replace("NUMA node(s):                    2", "NUMA node(s):                    1")
    text = text.replace("0-3,8-11\nNUMA node1 CPU(s):               4-7,12-15", "0-15")
    found = machine("lscpu", text)
    assert counts(found) == (2, 1, 0, 16)
    assert all(found.package_of(cpu) is None for cpu in range(16))


def test_summary_and_table_together_state_all() -> None:
    found, likwid = machine("lscpu", SUMMARY + TABLE), machine("likwid-topology", LIKWID)
    assert counts(found) == counts(likwid) == (2, 2, 8, 16) and found.unread == likwid.unread == ()
    for kind in (DeviceKind.NUMA, DeviceKind.CORE):
        assert cpus(found, kind) == cpus(likwid, kind)
    both = [one for one in cpus(found, DeviceKind.CACHE) if not one[0].startswith("l1i")]
    assert both == cpus(likwid, DeviceKind.CACHE)
    sizes = [
        {(d.id.rstrip("0123456789"), d.facts.integer("size")) for d in m.of_kind(DeviceKind.CACHE) if "l1i" not in d.id}
        for m in (found, likwid)
    ]
    assert sizes[0] == sizes[1] == {("l1d-", 32 << 10), ("l2-", 1 << 20), ("l3-", 22 << 20)}
    assert found.named_limit("cpu.fp64") is not None


def test_the_table_alone_and_as_p() -> None:
    rows = ["# The following is the parsable format", "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3"]
    rows += [f"{n},{n % 8},{n % 8 // 4},{n % 8 // 4},,{n % 8},{n % 8},{n % 8},{n % 8 // 4}" for n in range(16)]
    by_p = machine("lscpu", "\n".join(rows) + "\n")
    by_e = machine("lscpu", TABLE)
    assert counts(by_p) == counts(by_e) == (2, 2, 8, 16)
    assert cpus(by_p, DeviceKind.CACHE) == cpus(by_e, DeviceKind.CACHE)


@pytest.mark.parametrize(
    ("stated", "each"),
    [("32K", None), ("2.6 MiB (56 instances)", 48 << 10), ("84 MiB (2 instances)", 42 << 20), ("64 KiB", None)],
)
def test_the_size_of_a_cache(stated: str, each: int | None) -> None:
    """Of 56 caches that are together 2.6 MiB, rounded, each has 48 KiB; of those without their number none is known."""
    number = 56 if "56" in stated else 2
    text = f"Architecture: x86_64\nCPU(s): {number}\nThread(s) per core: 1\nSocket(s): 1\nL1d cache: {stated}\n"
    found = machine("lscpu", text).of_kind(DeviceKind.CACHE)
    assert {cache.facts.integer("size") for cache in found} == ({each} if each else set())


def test_a_clock_that_may_be_without_boost_makes_no_limit() -> None:
    text = (SUMMARY + TABLE).replace("CPU max MHz", "Frequency boost:                 enabled\nCPU max MHz")
    found = machine("lscpu", text)
    limit = found.named_limit("cpu.fp64")
    assert limit is not None and limit.value is None and any("boost" in sentence for sentence in found.unread)


def test_cores_of_several_types() -> None:
    """lscpu repeats the fields of a type of cores: none of those that differ is taken."""
    text = (
        "Architecture: aarch64\nCPU(s): 4\nVendor ID: ARM\n"
        "Model name: Cortex-A55\nThread(s) per core: 1\nSocket(s): 1\n"
        "Model name: Cortex-A76\nThread(s) per core: 1\nSocket(s): 1\n"
    )
    found = machine("lscpu", text)
    assert counts(found) == (1, 0, 4, 4) and found.of_kind(DeviceKind.PACKAGE)[0].facts.text("model_name") is None


@pytest.mark.parametrize(
    ("kind", "old", "new", "why"),
    [
        ("lscpu", "NUMA node1 CPU(s):               4-7,12-15\n", "", "1 of 2 NUMA nodes"),
        ("lscpu", "4-7,12-15", "0-3", "of another node"),
        ("lscpu", "On-line CPU(s) list:             0-15", "On-line CPU(s) list:  0-31", "32 CPUs on line of 16"),
        ("lscpu", "0-15", "0-1-5", "not a list"),
        ("likwid-topology", "3               0             3", "2               0             3", "a second time"),
        ("likwid-topology", "Socket 1:", "Sucket 1:", "the list of socket 1 is missing"),
        ("likwid-topology", "( 3 11 )", "( 3 21 )", "with hardware threads that the table does not have"),
        ("likwid-topology", "Threads per core:\t2", "Threads per core:\t1", "a core with 2 hardware threads"),
        ("likwid-topology", "Domain:\t\t\t1", "Domain:\t\t\tx", "a NUMA domain without its number"),
        ("likwid-topology", "NUMA domains:\t\t2", "NUMA domains:\t\t4", "2 of 4 NUMA domains"),
    ],
)  # fmt: skip
def test_damage_is_refused(kind: str, old: str, new: str, why: str) -> None:
    text = SUMMARY if kind == "lscpu" else LIKWID
    assert old in text
    with pytest.raises(ParseError, match=why):
        machine(kind, text.replace(old, new, 1))


@pytest.mark.parametrize("kind", ["lscpu", "likwid-topology"])
def test_two_outputs_need_a_choice(kind: str) -> None:
    text = SUMMARY if kind == "lscpu" else LIKWID
    other = text.replace("0-3,8-11", "0-2").replace("6142", "6148")
    with pytest.raises(UsageError, match="2 dumps"):
        machine(kind, text + other)
    found = machine(kind, text + other, 2)
    assert "6148" in (found.of_kind(DeviceKind.PACKAGE)[0].name)


def test_a_recorded_output() -> None:
    path = TOPOLOGY / "lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt"
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    found = assemble([READERS["lscpu"](path.read_bytes(), None)])
    assert counts(found) == (1, 1, 24, 24)
    l3 = [cache for cache in found.of_kind(DeviceKind.CACHE) if cache.id.startswith("l3")]
    assert [cache.facts.integer("size") for cache in l3] == [32 << 20] * 4
    assert any("instruction sets" in sentence for sentence in found.unread)  # the flags are wrapped


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("lscpu", ("lscpu",)), ("lscpu", ("lscpu", "-J")), ("lscpu", ("lscpu", "-e")), ("lscpu", ("lscpu", "-p")),
        ("likwid-topology", ("likwid-topology",)), ("likwid-topology", ("likwid-topology", "-c")),
    ],
)  # fmt: skip
def test_this_machine_as_hwloc_sees_it(kind: str, command: tuple[str, ...]) -> None:
    if shutil.which(command[0]) is None or shutil.which("lstopo-no-graphics") is None:
        pytest.skip(f"{command[0]} or lstopo is not installed")
    done = subprocess.run(command, capture_output=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    found = assemble([READERS[kind](done.stdout, None)])
    hwloc = assemble([survey for survey in survey_live() if survey.source.startswith("hwloc")])
    if counts(found)[2] == 0:
        pytest.skip("with several threads on a core, the summary of lscpu does not state the cores")
    assert counts(found) == counts(hwloc)
    caches = {device.facts.text("cpus"): device for device in hwloc.of_kind(DeviceKind.CACHE) if "l1" not in device.id}
    for cache in (device for device in found.of_kind(DeviceKind.CACHE) if "l1" not in device.id):
        assert cache.facts.text("cpus") in caches
        size = cache.facts.integer("size")
        assert size is None or size in {one.facts.integer("size") for one in hwloc.of_kind(DeviceKind.CACHE)}
    for theirs, ours in zip(hwloc.of_kind(DeviceKind.PACKAGE), found.of_kind(DeviceKind.PACKAGE), strict=True):
        name = ours.facts.text("model_name")
        assert name is None or (theirs.facts.text("model_name") or name).strip() == name
