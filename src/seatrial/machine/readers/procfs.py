"""Files of /proc, and /etc/os-release, each by a function of its text.

* cmdline: the parameters that affect performance (Linux, Documentation/admin-guide/kernel-parameters.txt); the others
  may contain passwords and addresses.
* self/cgroup and self/mountinfo: the control group folders of this process (cgroups(7), proc_pid_mountinfo(5)).
* cpuinfo: a record for each CPU of x86, Arm, POWER and similar architectures, which write their own keys (Linux,
  arch/x86/kernel/cpu/proc.c and arch/arm64/kernel/cpuinfo.c).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping

from seatrial.errors import ParseError
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.model.frozen import Frozen

_ALLOWED = """
    mitigations spectre_v2 spectre_v1 nospectre_v1 nospectre_v2 spec_store_bypass_disable l1tf mds tsx tsx_async_abort
    retbleed nopti pti nosmt noibrs noibpb gather_data_sampling spec_rstack_overflow srbds mmio_stale_data
    isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity idle nohlt processor.max_cstate intel_idle.max_cstate
    intel_pstate amd_pstate amd_prefcore cpufreq.off cpufreq.default_governor cpuidle.off cpuidle_haltpoll.force
    transparent_hugepage hugepages hugepagesz default_hugepagesz hugetlb_cma numa numa_balancing mem memmap maxcpus
    nr_cpus possible_cpus nosmp noapic iommu intel_iommu amd_iommu iommu.passthrough iommu.strict pci pcie_aspm
    pcie_aspm.policy tsc clocksource hpet nmi_watchdog nowatchdog nosoftlockup skew_tick preempt audit
    selinux init_on_alloc init_on_free page_poison slub_debug slab_nomerge randomize_kstack_offset kpti swiotlb
    crashkernel efi_fake_mem memory_hotplug.memmap_on_memory cgroup_disable cgroup_enable cgroup_no_v1 psi swapaccount
    systemd.unified_cgroup_hierarchy zswap.enabled split_lock_detect split_lock_mitigate clearcpuid noxsave nox2apic
    x2apic_phys kvm-intel.nested kvm_amd.nested nested_pvm deferred_init sched_vcpu_pack haltpoll.guest_halt_poll_ns
    threadirqs workqueue.power_efficient rcutree.kthread_prio skew_tick nosched_autogroup noautogroup
    """


def read_command_line(text: str) -> str | None:
    """The allowed parameters in their order, separated by spaces; None if there are none. Never fails.

    Words after "--" belong to init and are not read.
    """
    kept: list[str] = []
    for word in text.split():
        if word == "--":
            break
        if word.partition("=")[0].replace("-", "_") in _NORMAL:  # the kernel accepts - for _ in parameter names
            kept.append(word)
    return " ".join(kept) or None


_NORMAL = frozenset(name.replace("-", "_") for name in _ALLOWED.split())


class MountLine(Frozen):
    """A mount: the folder of its file system that is mounted (`root`), where, the file system's type, its source and
    options."""

    root: str
    point: str
    kind: str
    source: str
    options: str


def read_mounts(text: str) -> tuple[MountLine, ...]:
    """The mounts, in order; lines of another form are skipped."""
    mounts: list[MountLine] = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ", 2)
        if separator and len(fields) >= 6 and len(rest) == 3:
            mounts.append(MountLine(unescape(fields[3]), unescape(fields[4]), rest[0], unescape(rest[1]), rest[2]))
    return tuple(mounts)


def unescape(path: str) -> str:
    """Decode a path of mountinfo: space, tab, newline and backslash are written as three octal digits."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), path)


class CgroupMount(Frozen):
    """A mounted cgroup hierarchy: mount point, root within the hierarchy, version 1 controllers (None for version
    2)."""

    mount_point: str
    root: str
    controllers: frozenset[str] | None


def read_cgroup_membership(text: str) -> Mapping[str, str]:
    """Controller -> path of this process in its hierarchy; the key of version 2 is "". Raises ParseError."""
    paths: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line:
            continue
        fields = line.split(":", 2)
        if len(fields) != 3 or not fields[0].isdecimal() or not fields[2].startswith("/"):
            raise ParseError("cgroup", number, line)
        for controller in fields[1].split(","):
            paths[controller] = fields[2]
    return paths


def read_cgroup_mounts(text: str) -> tuple[CgroupMount, ...]:
    """The cgroup hierarchies of a mountinfo file. Raises ParseError if a cgroup line is damaged."""
    mounts: list[CgroupMount] = []
    for number, line in enumerate(text.splitlines(), start=1):
        before, separator, after = line.partition(" - ")
        kind, *rest = after.split(" ") if separator else [""]
        if kind not in ("cgroup", "cgroup2"):
            continue
        fields = before.split(" ")
        if len(fields) < 6 or len(rest) < 2 or not fields[3].startswith("/") or not fields[4].startswith("/"):
            raise ParseError("mountinfo", number, line)
        controllers = frozenset(rest[-1].split(",")) if kind == "cgroup" else None
        mounts.append(CgroupMount(unescape(fields[4]), unescape(fields[3]), controllers))
    return tuple(mounts)


def cgroup_folders(mount: CgroupMount, path: str) -> tuple[str, ...]:
    """The folders from the mount point down to the process's own group: each may set a limit, the lowest applies.

    In a container the mount shows only the part of the hierarchy below `mount.root`, and a path that begins with "/.."
    (seen from another cgroup namespace) cannot be followed: then only the mount point can be read.
    """
    root = mount.root.rstrip("/")
    relative = path[len(root) :] if path == root or path.startswith(f"{root}/") else "/"
    parts = [part for part in relative.split("/") if part]
    if ".." in parts:
        parts = []
    return tuple("/".join([mount.mount_point.rstrip("/"), *parts[:depth]]) for depth in range(len(parts) + 1))


def own_groups(mount: CgroupMount, membership: Mapping[str, str], *controllers: str) -> tuple[str, ...]:
    """The folders of this process's groups, if the hierarchy has one of these controllers."""
    names = [""] if mount.controllers is None else [name for name in controllers if name in mount.controllers]
    return tuple(folder for name in names if name in membership for folder in cgroup_folders(mount, membership[name]))


def cpu_quota(read: Callable[[str], str | None], folder: str, is_v2: bool) -> tuple[float, str] | None:
    """The CPUs that the quota of a group allows, and its file; None without one. `read` gives the text of a file."""
    file = f"{folder}/{'cpu.max' if is_v2 else 'cpu.cfs_quota_us'}"
    words = (read(file) or "").split()
    if not is_v2:
        words += (read(f"{folder}/cpu.cfs_period_us") or "").split()
    if len(words) != 2 or not all(word.isdecimal() and int(word) > 0 for word in words):
        return None
    return int(words[0]) / int(words[1]), file


_STEAL = 7  # The eighth number of a line `cpu`; guest time, which follows, is contained in the first two.


def read_steal_share(text: str) -> float | None:
    """The share of all CPU time since the start that the hypervisor gave to others; None if the kernel does not say.

    Idle time counts too, so it is a lower bound of what a busy program lost.
    """
    line = next((line for line in text.splitlines() if line.startswith("cpu ")), "")
    fields = line.split()[1:]
    if len(fields) <= _STEAL or not all(field.isdecimal() and len(field) <= 20 for field in fields):
        return None
    times = [int(field) for field in fields[: _STEAL + 1]]
    total = sum(times)
    return times[_STEAL] / total if total else None


_SIZE_LINE = re.compile(r"(?:Node +\d+ +)?([A-Za-z0-9_()]+): +(\d{1,15})(?: +(kB))?\s*\Z", re.ASCII)


def read_meminfo(text: str) -> dict[str, int]:
    """Name -> bytes; page counts (no unit) stay counts. Raises ParseError for the first line of another form."""
    values: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _SIZE_LINE.match(line)
        if match is None:
            raise ParseError("meminfo", number, line)
        values[match[1]] = int(match[2]) * (1024 if match[3] else 1)  # "kB" means KiB here
    return values


_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)


def read_os_release(text: str) -> dict[str, str]:
    """Field -> value. Raises ParseError for a line that is neither an assignment nor a comment."""
    fields: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.match(line.strip())
        if match is None:
            raise ParseError("os-release", number, line)
        try:
            fields[match[1]] = " ".join(shlex.split(match[2]))
        except ValueError as error:
            raise ParseError("os-release", number, line, "an unclosed quote") from error
    return fields


class ProcessStatus(Frozen):
    """Effective user id, and the CPUs of the affinity mask (already restricted by the cpuset); None is unknown."""

    effective_user: int | None
    allowed_cpus: tuple[int, ...] | None


def read_process_status(text: str) -> ProcessStatus:
    """Parse the lines `Uid` and `Cpus_allowed_list`; ignores all others. Never fails."""
    user: int | None = None
    cpus: tuple[int, ...] | None = None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == "Uid":
            words = value.split()
            user = int(words[1]) if len(words) == 4 and words[1].isascii() and words[1].isdecimal() else None
        elif key == "Cpus_allowed_list":
            try:
                cpus = read_cpu_list(value)
            except ParseError:
                cpus = None
    return ProcessStatus(user, cpus)


_PRESENT = re.compile(r"^ +present +(\d{1,15})$", re.MULTILINE | re.ASCII)


def read_present_pages(text: str) -> int | None:
    """The pages of all zones, with those that the kernel has not initialised yet; None if no zone states them."""
    numbers = [int(number) for number in _PRESENT.findall(text)]
    return sum(numbers) or None


_VECTOR_ISA = (
    *("sse2", "sse4_2", "avx", "f16c", "fma", "fma4", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"),
    *("avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "sme", "bf16", "i8mm", "altivec", "vsx"),
)
"""Features that affect the width and rate of arithmetic, in display order."""

_ARM_IMPLEMENTERS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA",
    0x51: "Qualcomm", 0x61: "Apple", 0x6D: "Microsoft", 0xC0: "Ampere",
}  # fmt: skip
"""Main ID Register, implementer codes as util-linux 2.40 (sys-utils/lscpu-arm.c) lists them."""


class CpuRecord(Frozen):
    """One CPU as the kernel reports it. None is unknown; `implementer` and `part` are for Arm."""

    number: int
    vendor: str | None = None
    model_name: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    microcode: str | None = None
    implementer: int | None = None
    part: int | None = None
    flags: frozenset[str] = frozenset()
    clock_Hz: float | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether the CPU reports a hypervisor (CPUID.1:ECX[31]; x86 only)."""
        return "hypervisor" in self.flags


def vector_isa(flags: Collection[str]) -> str:
    """The vector features of a CPU, separated by spaces; the complete list of flags would fill a screen."""
    return " ".join(feature for feature in _VECTOR_ISA if feature in flags)


def read_cpuinfo(text: str) -> tuple[CpuRecord, ...]:
    """The CPUs in order. Raises ParseError for a line without a colon, an invalid number, or a file without CPUs."""
    blocks: list[dict[str, str]] = []
    common: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise ParseError("cpuinfo", number, line, "a line without a colon")
        key, value = key.strip(), value.strip()
        # Old Arm kernels write "Processor : ARMv7 ..." once at the top; a CPU begins with "processor : <number>".
        if key == "processor":
            if not (value.isascii() and value.isdecimal() and len(value) <= 6):
                raise ParseError("cpuinfo", number, line, "a CPU without a number")
            blocks.append({})
        (blocks[-1] if blocks else common)[key] = value
    if not blocks:
        raise ParseError("cpuinfo", 1 if text else None, text[:80], "no CPUs")
    return tuple(_record(common | block) for block in blocks)


def _record(block: dict[str, str]) -> CpuRecord:
    implementer = _integer(block.get("CPU implementer"))
    vendor = block.get("vendor_id")
    if vendor is None and implementer is not None:
        vendor = _ARM_IMPLEMENTERS.get(implementer, f"0x{implementer:02x}")
    return CpuRecord(
        number=int(block["processor"]),
        vendor=vendor or None,
        model_name=block.get("model name") or block.get("cpu") or None,
        family=_integer(block.get("cpu family")),
        model=_integer(block.get("model")),
        stepping=_integer(block.get("stepping")),
        microcode=block.get("microcode") or None,
        implementer=implementer,
        part=_integer(block.get("CPU part")),
        flags=frozenset((block.get("flags") or block.get("Features") or "").split()),
        clock_Hz=_megahertz(block.get("cpu MHz") or block.get("clock")),
    )


def _integer(text: str | None) -> int | None:
    """A number; None for "unknown" (old steppings) and any other text."""
    if not text or len(text) > 20:
        return None
    try:
        return int(text, 0)
    except ValueError:
        return None


def _megahertz(text: str | None) -> float | None:
    try:
        value = float((text or "").removesuffix("MHz"))
    except ValueError:
        return None
    return value * 1e6 if 0 < value < 1e6 else None
