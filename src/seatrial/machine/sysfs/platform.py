"""The kind of system: product, firmware, operating system, hypervisor, container.

Serial numbers and UUIDs are beside these files and are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.os_release import read_os_release
from seatrial.machine.survey import FactBook
from seatrial.machine.sysfs.containers import find_containers
from seatrial.model.emulation import QEMU_TCG, TCG_MODEL
from seatrial.model.platform import Platform, Sign

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
