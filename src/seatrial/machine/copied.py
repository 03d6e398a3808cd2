"""The machine of a node that has no Python: `native/launch/copy_facts.cpp` copies the files, which are read here."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath

from seatrial.errors import UsageError
from seatrial.machine.live import discover_live
from seatrial.model.machine.machine import Machine
from seatrial.processes.own_folder import temporary_folder

_CPU, _NODE = "/sys/devices/system/cpu", "/sys/devices/system/node/node*"
_PCI, _BLOCK = "/sys/bus/pci/devices/*", "/sys/class/block/*"
_NET, _RDMA = "/sys/class/net/*", "/sys/class/infiniband/*"


def _below(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


PATTERNS = (
    *("/.dockerenv", "/.singularity.d", "/run/.containerenv", "/run/host/container-manager", "/run/systemd/container"),
    *("/dev/.lxc-boot-id", "/dev/lxd/sock", "/run/secrets/kubernetes.io", "/etc/os-release"),
    *_below("/proc", "1/cgroup", "2/comm", "cmdline", "cpuinfo", "meminfo", "loadavg", "stat", "zoneinfo"),
    *_below("/proc", "device-tree/model", "driver/nvidia/version", "driver/nvidia/gpus/*/information"),
    *_below("/proc/self", "cgroup", "mountinfo", "ns/*", "smaps", "status", "uid_map"),
    *_below("/proc/sys/kernel", "arch", "hostname", "numa_balancing", "osrelease", "perf_event_paranoid", "version"),
    *_below("/proc/sys/vm", "swappiness", "zone_reclaim_mode", "overcommit_memory"),
    *_below(_CPU, "online", "offline", "isolated", "nohz_full", "smt/*", "vulnerabilities/*", "cpufreq/boost"),
    *_below(_CPU, "intel_pstate/no_turbo", "cpuidle/current_*"),
    *_below(f"{_CPU}/cpu[0-9]*", "cpu_capacity", "microcode/version", "cpufreq", "cpufreq/*freq*"),
    *_below(f"{_CPU}/cpu[0-9]*/cpufreq", "energy_performance_preference", "scaling_driver", "scaling_governor"),
    *_below(f"{_CPU}/cpu[0-9]*/cpuidle/state*", "name", "latency", "disable"),
    *_below(f"{_CPU}/cpu[0-9]*/topology", "*_list", "*_id"),
    *_below(
        f"{_CPU}/cpu[0-9]*/cache/index*", "coherency_line_size", "level", "shared_cpu_list", "size", "type", "ways_*"
    ),
    *_below(_NODE, "cpulist", "distance", "meminfo", "access*/initiators/*", "memory_side_cache/*/size"),
    *_below("/sys/devices/system", "clocksource/clocksource0/*_clocksource", "memory/block_size_bytes"),
    *_below("/sys/devices/system", "memory/memory*/state", "edac/mc/mc*/dimm*/*"),
    *_below(
        "/sys/class/dmi/id", "bios_*", "board_name", "board_vendor", "product_name", "product_version", "sys_vendor"
    ),
    *_below("/sys/firmware", "acpi/tables/DSDT", "acpi/tables/FACP", "dmi/tables/DMI", "dmi/tables/smbios_entry_point"),
    *_below("/sys/kernel/mm", "hugepages/*/*_hugepages", "transparent_hugepage/*"),
    "/sys/hypervisor/type",
    *(_PCI, *_below(_PCI, "class", "config", "device", "vendor", "revision", "subsystem_device", "subsystem_vendor")),
    *_below(_PCI, "*_link_speed", "*_link_width", "local_cpulist", "numa_node", "driver", "iommu_group"),
    *_below(_PCI, "iommu_group/type", "mem_info_vram_total", "product_name", "sriov_*", "physfn"),
    *("/sys/bus/virtio/devices/*", "/sys/bus/virtio/devices/*/device", "/sys/bus/virtio/devices/*/driver"),
    *("/sys/bus/vmbus/drivers/hv_balloon", "/sys/module/vmw_balloon", "/sys/devices/system/xen_memory/xen_memory0"),
    "/sys/bus/pci/drivers/amdgpu/*",
    *(_BLOCK, *_below(_BLOCK, "hidden", "partition", "size", "device", "device/model", "queue/rotational")),
    *_below(_BLOCK, "queue/logical_block_size", "queue/scheduler", "queue/write_cache"),
    *("/sys/class/nvme/*", *_below("/sys/class/nvme/*", "*model*", "firmware_rev", "nvme*", "transport")),
    *(_NET, *_below(_NET, "device", "device/driver", "duplex", "mtu", "operstate", "speed", "type")),
    *(_RDMA, *_below(_RDMA, "device", "device/driver", "node_type", "board_id", "fw_ver", "hca_type", "ports/*")),
    *_below(f"{_RDMA}/ports/*", "rate", "state", "phys_state", "link_layer"),
)
"""What `machine/` reads, as patterns of glob(7)."""

_MOST_B = 256 << 20


def discover_copied(archive: bytes) -> Machine:
    """The machine whose files are in this archive. What only a process or a tool of the node could say is missing.
    Raises UsageError for a damaged archive."""
    with temporary_folder("facts") as folder:
        root = folder.resolve()
        try:
            _unpack(archive, root)
        except (tarfile.TarError, OSError, ValueError) as error:
            raise UsageError(f"the facts of a node cannot be read: {error}", "measure again") from error
        return discover_live(root)


def cpu_words(cpuinfo: str) -> str:
    """What tells kinds of nodes apart before anything is measured; the script of a job makes the same text."""
    lines = cpuinfo.splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    count = sum(line.startswith("processor") for line in lines)
    return f"{next(models, '')}, {count} CPUs"


def copied_cpu_words(archive: bytes) -> str:
    """The same of a node, from its archive; "" if it is damaged."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            file = tar.extractfile("proc/cpuinfo")
            return "" if file is None else cpu_words(file.read().decode("utf-8", "replace"))
    except (tarfile.TarError, KeyError, OSError):
        return ""


def _unpack(archive: bytes, root: Path) -> None:
    """Files, folders and links below `root`. A link that leaves it, and what would be written through a link, is left
    out: the archive may come from somebody else."""
    links: set[PurePosixPath] = set()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        if sum(member.size for member in tar) > _MOST_B:
            raise ValueError(f"more than {_MOST_B} bytes")
        for member in tar:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or any(parent in links for parent in (name, *name.parents)):
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if member.isdir():
                path.mkdir(exist_ok=True)
            elif member.issym() and _stays(name, member.linkname):
                path.symlink_to(member.linkname)
                links.add(name)
            elif member.isreg() and (file := tar.extractfile(member)) is not None and not path.exists():
                path.write_bytes(file.read())


def _stays(name: PurePosixPath, target: str) -> bool:
    """Whether a relative link stays below the root, however its folders are."""
    depth = len(name.parts) - 1
    for part in target.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
        if depth < 0:
            return False
    return not target.startswith("/")
