"""The kind of system: product, firmware, operating system, hypervisor, container.

Serial numbers and UUIDs are beside these files and are never read.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.os_release import read_os_release
from seatrial.machine.survey import FactBook

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

_CONTAINER_MARKS = (
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
    ("/.singularity.d", "apptainer"),
    ("/run/secrets/kubernetes.io", "kubernetes"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
)
_CONTAINER_VARIABLES = {
    "APPTAINER_CONTAINER": "apptainer", "SINGULARITY_CONTAINER": "apptainer", "KUBERNETES_SERVICE_HOST": "kubernetes",
}  # fmt: skip


def add_platform(files: FileTree, book: FactBook, environment: Mapping[str, str], *, virtual_cpu: bool | None) -> None:
    """Add product, firmware, operating system, hypervisor and container.

    `virtual_cpu` is CPUID's hypervisor bit, None if the architecture has none (Arm).
    """
    _add_dmi(files, book)
    _add_os(files, book)
    _add_hypervisor(files, book, virtual_cpu)
    _add_container(files, book, environment)


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
    # A bare-metal instance of a cloud has the cloud's product name but no hypervisor.
    if from_dmi and (virtual_cpu or (virtual_cpu is None and "metal" not in product)):
        book.say("hypervisor", from_dmi, f"{_DMI}/product_name")
    book.say("hypervisor", files.word("/sys/hypervisor/type"), "/sys/hypervisor/type")
    clocks = (files.word(_CLOCKSOURCES) or "").split()
    named = (_HYPERVISOR_BY_CLOCK[clock] for clock in clocks if clock in _HYPERVISOR_BY_CLOCK)
    book.say("hypervisor", next(named, None), _CLOCKSOURCES)
    if virtual_cpu and book.facts().best("hypervisor") is None:
        book.say("hypervisor", "present, not named", "/proc/cpuinfo (flag hypervisor)")


def _add_container(files: FileTree, book: FactBook, environment: Mapping[str, str]) -> None:
    marks = [(name, path) for path, name in _CONTAINER_MARKS if files.exists(path)]
    marks += [(name, f"environment variable {key}") for key, name in _CONTAINER_VARIABLES.items() if key in environment]
    marks += [(word, "/run/systemd/container") for word in [files.word("/run/systemd/container")] if word]
    # One fact: a pod in Docker has the marks of both, which is no contradiction.
    names = dict.fromkeys(name for name, _ in marks)
    sources = dict.fromkeys(source for _, source in marks)
    book.say("container", ", ".join(names), ", ".join(sources))
