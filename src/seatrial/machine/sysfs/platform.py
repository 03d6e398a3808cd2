"""The kind of system, kernel settings that affect performance, and what a host does to a virtual machine.

Serial numbers and UUIDs are beside these files and are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.command_line import read_command_line
from seatrial.machine.readers.kernel_stat import read_steal_share
from seatrial.machine.readers.os_release import read_os_release
from seatrial.machine.readers.process_status import read_process_status
from seatrial.machine.survey import FactBook
from seatrial.machine.sysfs.containers import find_containers
from seatrial.model.machine.identity import QEMU_TCG, TCG_MODEL
from seatrial.model.machine.machine import Platform, Sign

_DMI = "/sys/class/dmi/id"
_CLOCKSOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

_HYPERVISOR_BY_DMI = (
    ("kvm", "kvm"),
    ("qemu", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("xen", "xen"),
    ("hvm domu", "xen"),
    ("virtual machine", "hyperv"),
    ("google compute engine", "kvm"),
    ("amazon ec2", "kvm"),
    ("alibaba cloud ecs", "kvm"),
    ("openstack", "kvm"),
    ("parallels", "parallels"),
    ("bhyve", "bhyve"),
)
"""Text in the DMI vendor or product -> hypervisor, as in systemd-detect-virt (src/basic/virt.c)."""

_HYPERVISOR_BY_CLOCK = {
    "kvm-clock": "kvm", "xen": "xen", "hyperv_clocksource_tsc_page": "hyperv", "vmware-clock": "vmware",
}  # fmt: skip

_ACPI = "/sys/firmware/acpi/tables"
_VIRTUALIZATION_BY_ACPI = {
    "FIRECK": "firecracker", "CLOUDH": "cloud-hypervisor", "BOCHS": "qemu", "VBOX": "virtualbox",
}  # fmt: skip
"""OEM id in an ACPI table's header -> the program that made the virtual machine. Only root can read the tables, so this
is no part of `hypervisor`, which identifies a machine."""


def add_platform(
    files: FileTree, book: FactBook, environment: Mapping[str, str], *, virtual_cpu: bool | None
) -> Platform:
    """Add product, firmware, operating system, hypervisor and container. Returns what is known beside these facts: the
    evidence for containers, and the program of a virtual machine.

    `virtual_cpu` is CPUID's hypervisor bit, None if the architecture has none (Arm).
    """
    _add_dmi(files, book)
    _add_os(files, book)
    _add_hypervisor(files, book, virtual_cpu)
    containers = find_containers(files, environment)
    # One fact: a pod in Docker has the marks of both, which is no contradiction.
    book.say("container", ", ".join(sign.kind for sign in containers), "; ".join(sign.evidence for sign in containers))
    return Platform(tuple(_acpi(files)), containers)


def _add_dmi(files: FileTree, book: FactBook) -> None:
    def joined(*names: str) -> str | None:
        words = [word for name in names if (word := files.word(f"{_DMI}/{name}")) and "O.E.M." not in word]
        return " ".join(words) or None

    book.say("product", joined("sys_vendor", "product_name"), f"{_DMI}/product_name")
    book.say("product", (files.word("/proc/device-tree/model") or "").strip("\0"), "/proc/device-tree/model")
    book.say("board", joined("board_vendor", "board_name"), f"{_DMI}/board_name")
    for name in ("bios_vendor", "bios_version", "bios_date", "bios_release"):
        book.say(name, files.word(f"{_DMI}/{name}"), f"{_DMI}/{name}")


def _add_os(files: FileTree, book: FactBook) -> None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = files.text(path)
        if text is None:
            continue
        try:
            fields = read_os_release(text)
        except ParseError:
            continue
        book.say("os", fields.get("PRETTY_NAME") or fields.get("NAME"), path)
        return


def _add_hypervisor(files: FileTree, book: FactBook, virtual_cpu: bool | None) -> None:
    product = (book.facts().text("product") or "").lower()
    from_dmi = next((name for mark, name in _HYPERVISOR_BY_DMI if mark in product), None)
    if TCG_MODEL in (files.text("/proc/cpuinfo") or ""):  # DMI does not tell
        book.say("hypervisor", QEMU_TCG, "/proc/cpuinfo (model name)")
        return
    # A bare-metal instance of a cloud has the cloud's product name but no hypervisor.
    if from_dmi and (virtual_cpu or (virtual_cpu is None and "metal" not in product)):
        book.say("hypervisor", from_dmi, f"{_DMI}/product_name")
    book.say("hypervisor", files.word("/sys/hypervisor/type"), "/sys/hypervisor/type")
    clocks = (files.word(_CLOCKSOURCES) or "").split()
    named = (_HYPERVISOR_BY_CLOCK[clock] for clock in clocks if clock in _HYPERVISOR_BY_CLOCK)
    book.say("hypervisor", next(named, None), _CLOCKSOURCES)
    if virtual_cpu and book.facts().best("hypervisor") is None:
        book.say("hypervisor", "present, not named", "/proc/cpuinfo (flag hypervisor)")


def _acpi(files: FileTree) -> Iterator[Sign]:
    """The program that made the ACPI tables of a virtual machine (header: ACPI specification, table 5.4)."""
    for table in ("DSDT", "FACP", "APIC"):
        header = files.data(f"{_ACPI}/{table}")
        maker = (header or b"")[10:16].decode("ascii", "replace").strip(" \0")
        if maker in _VIRTUALIZATION_BY_ACPI:
            yield Sign(_VIRTUALIZATION_BY_ACPI[maker], f"{_ACPI}/{table} (OEM id {maker})")
            return


_VIRTIO = "/sys/bus/virtio/devices"
_VIRTIO_BALLOON = 5
"""Device number of the memory balloon (Virtual I/O Device specification 1.2, section 5)."""

_DRIVERS = (
    ("/sys/bus/vmbus/drivers/hv_balloon", "Hyper-V"),
    ("/sys/module/vmw_balloon", "VMware"),
    ("/sys/devices/system/xen_memory/xen_memory0", "Xen"),
)


def add_guest(files: FileTree, book: FactBook) -> None:
    """Add the memory balloon (by whom) and the share of CPU time that others got since the system started.

    Facts that change while the machine is the same, or say nothing of its speed: they are no part of its identity.
    """
    for name in files.names(_VIRTIO):
        if files.integer(f"{_VIRTIO}/{name}/device") == _VIRTIO_BALLOON and files.exists(f"{_VIRTIO}/{name}/driver"):
            book.say("balloon", "virtio", f"{_VIRTIO}/{name}")
            break
    for path, name in _DRIVERS:
        if files.exists(path):
            book.say("balloon", name, path)
    share = read_steal_share(files.text("/proc/stat") or "")
    book.say("steal_share", share, "/proc/stat (since the system started)", "1", volatile=True)


_CPU_ROOT = "/sys/devices/system/cpu"
_CLOCK = "/sys/devices/system/clocksource/clocksource0"


def add_settings(files: FileTree, book: FactBook) -> None:
    """Add the kernel version and settings."""
    book.say("kernel", files.word("/proc/sys/kernel/osrelease"), "/proc/sys/kernel/osrelease")
    book.say("architecture", files.word("/proc/sys/kernel/arch"), "/proc/sys/kernel/arch")
    book.say("kernel_build", files.word("/proc/sys/kernel/version"), "/proc/sys/kernel/version")
    book.say("kernel_parameters", read_command_line(files.text("/proc/cmdline") or ""), "/proc/cmdline")
    book.say("mitigations", _mitigations(files), f"{_CPU_ROOT}/vulnerabilities")
    book.say("clocksource", files.word(f"{_CLOCK}/current_clocksource"), f"{_CLOCK}/current_clocksource")
    active = files.integer(f"{_CPU_ROOT}/smt/active")
    book.say("smt_active", None if active is None else active == 1, f"{_CPU_ROOT}/smt/active")
    book.say("smt_control", files.word(f"{_CPU_ROOT}/smt/control"), f"{_CPU_ROOT}/smt/control")
    for name, file in (
        ("numa_balancing", "kernel/numa_balancing"),
        ("perf_event_paranoid", "kernel/perf_event_paranoid"),
        ("zone_reclaim_mode", "vm/zone_reclaim_mode"),
        ("swappiness", "vm/swappiness"),
    ):
        book.say(name, files.integer(f"/proc/sys/{file}"), f"/proc/sys/{file}")
    for name, file in (("isolated_cpus", "isolated"), ("nohz_full_cpus", "nohz_full"), ("offline_cpus", "offline")):
        word = files.word(f"{_CPU_ROOT}/{file}")
        book.say(name, None if word == "(null)" else word, f"{_CPU_ROOT}/{file}")
    idle = f"{_CPU_ROOT}/cpuidle/current_driver"
    book.say("idle_driver", files.word(idle), idle)
    load = (files.text("/proc/loadavg") or "").split(" ")[0]
    with suppress(ValueError):  # empty if /proc/loadavg is hidden
        book.say("load", float(load), "/proc/loadavg", "1", volatile=True)
    user = read_process_status(files.text("/proc/self/status") or "").effective_user
    if user is not None:
        book.say("privileges", "root" if user == 0 else "user", "/proc/self/status")


def _mitigations(files: FileTree) -> str | None:
    """The vulnerabilities and mitigations of the CPU as one text: the first clause of each relevant file.

    Format: Linux, Documentation/ABI/testing/sysfs-devices-system-cpu, "vulnerabilities".
    """
    folder = f"{_CPU_ROOT}/vulnerabilities"
    states = {name: files.word(f"{folder}/{name}") for name in files.names(folder)}
    clauses = [
        f"{name}: {state.split(';')[0].strip()}"
        for name, state in states.items()
        if state is not None and state.startswith(("Vulnerable", "Mitigation", "KVM", "Processor vulnerable"))
    ]
    if clauses:
        return "; ".join(clauses)
    return "not affected" if any(states.values()) else None
