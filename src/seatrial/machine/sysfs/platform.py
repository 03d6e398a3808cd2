"""The kind of system, kernel settings that affect performance, and what a host does to a virtual machine.

Serial numbers and UUIDs are beside these files and are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.procfs import read_command_line, read_os_release, read_process_status, read_steal_share
from seatrial.machine.readers.smbios import hypervisor_of
from seatrial.machine.survey import FactBook, Survey
from seatrial.machine.sysfs.containers import add_cgroup_limits, find_containers
from seatrial.machine.sysfs.cpus import CPU_ROOT, add_frequency_settings, add_idle_states, survey_cpus
from seatrial.machine.sysfs.devices import survey_gpu_drivers, survey_network, survey_pci, survey_storage
from seatrial.machine.sysfs.memory import add_memory, survey_edac, survey_numa
from seatrial.model.machine.identity import QEMU_TCG, TCG_MODEL
from seatrial.model.machine.machine import DeviceKind, Platform, Sign

_DMI = "/sys/class/dmi/id"
_CLOCK = "/sys/devices/system/clocksource/clocksource0"

_HYPERVISOR_BY_CLOCK = {
    "kvm-clock": "kvm", "xen": "xen", "hyperv_clocksource_tsc_page": "hyperv", "vmware-clock": "vmware",
}  # fmt: skip

_ACPI = "/sys/firmware/acpi/tables"
_VIRTUALIZATION_BY_ACPI = {
    "FIRECK": "firecracker", "CLOUDH": "cloud-hypervisor", "BOCHS": "qemu", "VBOX": "virtualbox",
}  # fmt: skip
"""OEM id in an ACPI table's header -> the program that made the virtual machine. Only root can read the tables, so this
is not part of `hypervisor`, which identifies a machine."""


def add_platform(
    files: FileTree, book: FactBook, environment: Mapping[str, str], *, virtual_cpu: bool | None
) -> Platform:
    """Add product, firmware, operating system, hypervisor and container. Returns what is known beside these facts: the
    evidence for containers, and the program of a virtual machine.

    `virtual_cpu` is CPUID's hypervisor bit, None if the architecture has none (Arm).
    """
    _add_dmi(files, book)
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        fields: Mapping[str, str] = {}
        with suppress(ParseError):
            fields = read_os_release(files.text(path) or "")
        if fields:
            book.say("os", fields.get("PRETTY_NAME") or fields.get("NAME"), path)
            break
    _add_hypervisor(files, book, virtual_cpu)
    containers = find_containers(files, environment)
    # One fact: a pod in Docker has the marks of both, which is not a contradiction.
    book.say("container", ", ".join(sign.kind for sign in containers), "; ".join(sign.evidence for sign in containers))
    return Platform(tuple(_acpi(files)), containers)


def _add_dmi(files: FileTree, book: FactBook) -> None:
    def joined(*names: str) -> str | None:
        words = [word for name in names if (word := files.word(f"{_DMI}/{name}")) and "O.E.M." not in word]
        return " ".join(words) or None

    book.say("product", joined("sys_vendor", "product_name"), f"{_DMI}/product_name")
    book.say("product", (files.word("/proc/device-tree/model") or "").strip("\0"), "/proc/device-tree/model")
    book.say("board", joined("board_vendor", "board_name"), f"{_DMI}/board_name")
    files.say_words(book, _DMI, **{name: name for name in ("bios_vendor", "bios_version", "bios_date", "bios_release")})


def _add_hypervisor(files: FileTree, book: FactBook, virtual_cpu: bool | None) -> None:
    from_dmi = hypervisor_of(book.facts().text("product") or "", virtual_cpu=virtual_cpu)
    if TCG_MODEL in (files.text("/proc/cpuinfo") or ""):  # DMI does not tell
        book.say("hypervisor", QEMU_TCG, "/proc/cpuinfo (model name)")
        return
    if from_dmi:
        book.say("hypervisor", from_dmi, f"{_DMI}/product_name")
    files.say_words(book, "/sys/hypervisor", hypervisor="type")
    clocks = f"{_CLOCK}/available_clocksource"
    named = (_HYPERVISOR_BY_CLOCK.get(clock) for clock in (files.word(clocks) or "").split())
    book.say("hypervisor", next(filter(None, named), None), clocks)
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
_VIRTIO_BALLOON = 5  # Device number of the memory balloon (Virtual I/O Device specification 1.2, section 5).

_DRIVERS = (
    ("/sys/bus/vmbus/drivers/hv_balloon", "Hyper-V"),
    ("/sys/module/vmw_balloon", "VMware"),
    ("/sys/devices/system/xen_memory/xen_memory0", "Xen"),
)


def add_guest(files: FileTree, book: FactBook) -> None:
    """Add the memory balloon (by whom) and the share of CPU time that others got since the system started.

    Facts that change while the machine is the same, or say nothing of its speed: they do not identify it.
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


def add_settings(files: FileTree, book: FactBook) -> None:
    """Add the kernel version and settings."""
    kernel = "/proc/sys/kernel"
    files.say_words(book, kernel, kernel="osrelease", architecture="arch", kernel_build="version")
    book.say("kernel_parameters", read_command_line(files.text("/proc/cmdline") or ""), "/proc/cmdline")
    book.say("mitigations", _mitigations(files), f"{CPU_ROOT}/vulnerabilities")
    files.say_words(book, _CLOCK, clocksource="current_clocksource")
    active = files.integer(f"{CPU_ROOT}/smt/active")
    book.say("smt_active", None if active is None else active == 1, f"{CPU_ROOT}/smt/active")
    files.say_words(book, f"{CPU_ROOT}/smt", smt_control="control")
    files.say_integers(book, kernel, numa_balancing="numa_balancing", perf_event_paranoid="perf_event_paranoid")
    files.say_integers(book, "/proc/sys/vm", zone_reclaim_mode="zone_reclaim_mode", swappiness="swappiness")
    for name, file in (("isolated_cpus", "isolated"), ("nohz_full_cpus", "nohz_full"), ("offline_cpus", "offline")):
        word = files.word(f"{CPU_ROOT}/{file}")
        book.say(name, None if word == "(null)" else word, f"{CPU_ROOT}/{file}")
    files.say_words(book, f"{CPU_ROOT}/cpuidle", idle_driver="current_driver")
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
    folder = f"{CPU_ROOT}/vulnerabilities"
    states = {name: files.word(f"{folder}/{name}") for name in files.names(folder)}
    clauses = [
        f"{name}: {state.split(';')[0].strip()}"
        for name, state in states.items()
        if state is not None and state.startswith(("Vulnerable", "Mitigation", "KVM", "Processor vulnerable"))
    ]
    if clauses:
        return "; ".join(clauses)
    return "not affected" if any(states.values()) else None


def survey_sysfs(files: FileTree, environment: Mapping[str, str]) -> Survey:
    """Read everything below `files`; `environment` is that of this process, to detect containers."""
    book = FactBook()
    unread: list[str] = []
    cpus = survey_cpus(files)
    unread += cpus.unread
    online = frozenset(cpu for part in cpus.parts if part.kind is DeviceKind.PU for cpu in part.cpus)
    nodes, unread_nodes = survey_numa(files, online, cpus.records.values())
    unread += unread_nodes
    parts = (*cpus.parts, *nodes)
    x86 = [record for record in cpus.records.values() if record.family is not None]
    platform = add_platform(
        files, book, environment, virtual_cpu=any(record.is_virtual for record in x86) if x86 else None
    )
    if "hypervisor" in book.facts() or platform.virtualization:
        add_guest(files, book)
    add_settings(files, book)
    add_memory(files, parts, book, unread)
    add_frequency_settings(files, parts, book)
    add_idle_states(files, parts, book)
    add_cgroup_limits(files, book, unread)
    modules = survey_edac(files, book)
    status = read_process_status(files.text("/proc/self/status") or "")
    return Survey(
        source="sysfs and procfs",
        name=files.word("/proc/sys/kernel/hostname"),
        facts=book.facts(),
        cpu_parts=parts,
        pci_parts=survey_pci(files),
        named_parts=(*survey_network(files), *survey_storage(files), *survey_gpu_drivers(files)),
        modules=modules,
        allowed_cpus=status.allowed_cpus or (),
        unread=tuple(unread),
        platform=platform,
    )
