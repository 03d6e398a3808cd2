"""What a host does to a virtual machine while it runs: memory that a balloon takes back, CPU time given to others."""

from __future__ import annotations

from seatrial.machine.files import FileTree
from seatrial.machine.readers.kernel_stat import read_steal_share
from seatrial.machine.survey import FactBook

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
