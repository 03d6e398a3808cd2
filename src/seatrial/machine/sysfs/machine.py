"""All of sysfs and procfs as one `Survey`."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.machine.files import FileTree
from seatrial.machine.readers.procfs import read_process_status
from seatrial.machine.survey import FactBook, Survey
from seatrial.machine.sysfs.containers import add_cgroup_limits
from seatrial.machine.sysfs.cpus import add_frequency_settings, add_idle_states, survey_cpus
from seatrial.machine.sysfs.devices import survey_network, survey_storage
from seatrial.machine.sysfs.memory import add_memory, survey_edac, survey_numa
from seatrial.machine.sysfs.pci import survey_gpu_drivers, survey_pci
from seatrial.machine.sysfs.platform import add_guest, add_platform, add_settings
from seatrial.model.machine.machine import DeviceKind


def survey_sysfs(files: FileTree, environment: Mapping[str, str]) -> Survey:
    """Read everything below `files`; `environment` is that of this process, to detect containers."""
    book = FactBook()
    unread: list[str] = []
    cpus = survey_cpus(files)
    unread += cpus.unread
    online = frozenset(cpu for part in cpus.parts if part.kind is DeviceKind.PU for cpu in part.cpus)
    nodes, unread_nodes = survey_numa(files, online)
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
