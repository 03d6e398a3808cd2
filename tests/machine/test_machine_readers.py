"""The small readers: good input, damaged input, and any input at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine.machine_trees import CPUINFO_ARM, cpuinfo_x86

from seatrial.errors import ParseError
from seatrial.machine.readers.memory_locators import SlotPosition, read_places
from seatrial.machine.readers.procfs import (
    CgroupMount,
    cgroup_folders,
    read_cgroup_membership,
    read_cgroup_mounts,
    read_command_line,
    read_cpuinfo,
    read_meminfo,
    read_os_release,
    read_process_status,
    vector_isa,
)
from seatrial.machine.readers.scalars import (
    read_choice,
    read_cpu_list,
    read_cpu_mask,
    read_link_speed,
    read_size,
    write_cpu_list,
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3", (0, 1, 2, 3)), ("0,2,4\n", (0, 2, 4)), ("", ()), ("0-0,2-2", (0, 2)), ("0-9:2/5", (0, 1, 5, 6))],
)
def test_cpu_lists(text: str, numbers: tuple[int, ...]) -> None:
    assert read_cpu_list(text) == numbers


@pytest.mark.parametrize("text", ["3-1", "a", "0-", "0-4000000", "1;2", "0-9:9/5"])
def test_damaged_cpu_lists_are_refused(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_cpu_list(text)
    assert caught.value.text == text


@given(st.frozensets(st.integers(0, 9000), max_size=40))
def test_cpu_lists_go_there_and_back(numbers: frozenset[int]) -> None:
    assert frozenset(read_cpu_list(write_cpu_list(numbers))) == numbers


@given(st.frozensets(st.integers(0, 300), max_size=40))
def test_cpu_masks(numbers: frozenset[int]) -> None:
    words = [sum(1 << bit for bit in range(32) if word * 32 + bit in numbers) for word in range(10)]
    text = ",".join(f"0x{word:08x}" for word in reversed(words))
    assert read_cpu_mask(text) == numbers


def test_cpu_masks_of_hwloc() -> None:
    assert read_cpu_mask("0xf...f") == frozenset()
    assert read_cpu_mask("0x1,,0x3") == {0, 1, 64}


def test_sizes_choices_and_speeds() -> None:
    assert [read_size(text) for text in ("48K", "1024K", "16M", "512")] == [49152, 1 << 20, 16 << 20, 512]
    assert read_choice("always [madvise] never\n") == "madvise"
    assert read_choice("none\n") == "none"
    assert [read_link_speed(t) for t in ("16.0 GT/s PCIe", "2.5 GT/s", "Unknown", "Unknown speed")] == [
        16,
        2.5,
        None,
        None,
    ]
    for text in ("always madvise never", "[a] [b]", ""):
        with pytest.raises(ParseError):
            read_choice(text)


def test_cpuinfo_of_x86() -> None:
    records = read_cpuinfo(cpuinfo_x86(2, flags="fpu sse2 fma avx2 hypervisor nonsense"))
    assert [record.number for record in records] == [0, 1]
    first = records[0]
    assert (first.vendor, first.family, first.model, first.stepping) == ("GenuineIntel", 6, 143, 8)
    assert first.flags == {"fpu", "sse2", "fma", "avx2", "hypervisor", "nonsense"}
    assert vector_isa(first.flags) == "sse2 fma avx2"
    assert first.is_virtual
    assert first.clock_Hz == 2e9


def test_cpuinfo_of_arm() -> None:
    first = read_cpuinfo(CPUINFO_ARM)[0]
    assert (first.vendor, first.implementer, first.part, first.family) == ("Arm", 0x41, 0xD4F, None)
    assert vector_isa(first.flags) == "asimd sve sve2 bf16 i8mm"


@pytest.mark.parametrize(
    ("text", "line"), [("processor\t: 0\nrubbish\n", 2), ("processor : x\n", 1), ("model : 3\n", 1)]
)
def test_damaged_cpuinfo_names_its_line(text: str, line: int) -> None:
    with pytest.raises(ParseError) as caught:
        read_cpuinfo(text)
    assert caught.value.line == line


def test_meminfo() -> None:
    text = "MemTotal:       24684092 kB\nHugePages_Total:       0\nNode 0 MemFree: 3 kB\nActive(anon): 1 kB\n"
    assert read_meminfo(text)["MemTotal"] == 24684092 * 1024
    with pytest.raises(ParseError) as caught:
        read_meminfo("MemTotal:  1 kB\nMemFree: lots\n")
    assert caught.value.line == 2


def test_the_command_line_keeps_no_secrets() -> None:
    text = "root=UUID=12 password=x isolcpus=2-3 intel_pstate=disable nohz-full=1 quiet -- idle=poll token=y"
    assert read_command_line(text) == "isolcpus=2-3 intel_pstate=disable nohz-full=1"
    assert read_command_line("quiet splash") is None


def test_control_groups_of_both_versions() -> None:
    assert read_cgroup_membership("4:memory:/a/b\n1:cpu,cpuacct:/\n0::/x.slice\n") == {
        "memory": "/a/b", "cpu": "/", "cpuacct": "/", "": "/x.slice",
    }  # fmt: skip
    text = (
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
        "22 27 0:21 / /proc rw - proc proc rw\n"
        r"41 31 0:38 /docker/ab /sys/fs/cg\040roup rw - cgroup2 cgroup2 rw" + "\n"
    )
    first, second = read_cgroup_mounts(text)
    assert first.controllers == frozenset({"rw", "memory"})
    assert second == CgroupMount("/sys/fs/cg roup", "/docker/ab", None)


def test_cgroup_folders_lead_from_the_mount_to_the_group() -> None:
    whole = CgroupMount("/sys/fs/cgroup", "/", None)
    assert cgroup_folders(whole, "/a/b") == ("/sys/fs/cgroup", "/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b")
    part = CgroupMount("/sys/fs/cgroup", "/docker/ab", None)
    assert cgroup_folders(part, "/docker/ab/x") == ("/sys/fs/cgroup", "/sys/fs/cgroup/x")
    assert cgroup_folders(part, "/docker/abc") == ("/sys/fs/cgroup",)
    assert cgroup_folders(whole, "/../other") == ("/sys/fs/cgroup",)


def test_process_status_and_os_release() -> None:
    status = read_process_status("Name:\tx\nUid:\t1000\t0\t0\t0\nCpus_allowed_list:\t0-1,4\n")
    assert (status.effective_user, status.allowed_cpus) == (0, (0, 1, 4))
    assert read_os_release("# c\nNAME=\"A B\"\nID=debian\nX='y'\n") == {"NAME": "A B", "ID": "debian", "X": "y"}


@pytest.mark.parametrize(
    ("locator", "bank", "place"),
    [
        ("DIMM 0", "P0 CHANNEL A", SlotPosition(0, "A")),
        ("P1-DIMMA1", "P0_Node0_Channel1_Dimm0", SlotPosition(1, "A")),
        ("ChannelA-DIMM0", "BANK 0", SlotPosition(None, "CHANNELA")),
        ("CPU2_DIMM_C1", "NODE 2", SlotPosition(2, "C")),
        ("PROC 1 DIMM 3", "Not Specified", SlotPosition(1, None)),
        ("DIMM 3", "CPU 2", SlotPosition(2, None)),
        ("A7", "", SlotPosition(1, None)),  # Dell: the letter is the processor
    ],
)
def test_places_are_read_only_from_names_that_name_them(locator: str, bank: str, place: SlotPosition) -> None:
    assert read_places([(locator, bank, True)]) == (place,)


_READERS: list[Callable[[str], object]] = [
    read_choice,
    read_cpu_list,
    read_cpu_mask,
    read_size,
    read_link_speed,
    read_cpuinfo,
    read_meminfo,
    read_command_line,
    read_cgroup_membership,
    read_cgroup_mounts,
    read_os_release,
    read_process_status,
    lambda text: read_places([(text, text, True)]),
]


@given(st.one_of(st.text(max_size=200), st.text(alphabet="0123456789-,:/ \t\n[]kBxabcdf", max_size=120)))
def test_any_text_gives_a_value_or_a_parse_error(text: str) -> None:
    for reader in _READERS:
        try:
            reader(text)
        except ParseError as error:
            assert error.tool


@given(st.integers(0, 2000), st.integers(0, 2000), st.text(max_size=5))
def test_cut_and_glued_cpuinfo(start: int, end: int, glue: str) -> None:
    text = cpuinfo_x86(3) + CPUINFO_ARM
    try:
        read_cpuinfo(text[:start] + glue + text[end:])
    except ParseError as error:
        assert error.tool == "cpuinfo"
