"""Whether this process runs in a container, and of which runtime; the limits that control groups set for it.

Two kinds of evidence. A separation is how the kernel isolates a container: its own namespaces, a root file system of
layers or from a folder, a control group that a runtime made. A mark is what a runtime leaves for programs: a file, a
variable. A mark alone shows nothing: images become disks of virtual machines with /.dockerenv in them, and a job
inherits the variables of the shell that submitted it. A weak separation alone shows nothing either: nodes without disks
have layered roots, and services have namespaces.

Of the limits of control groups (v1 and v2), the lowest between the root and the group of the process counts. Formats:
Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max, cpuset.cpus.effective) and cgroup-v1/memory.rst,
scheduler/sched-bwc.rst (cpu.cfs_quota_us).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers import procfs
from seatrial.machine.survey import FactBook
from seatrial.model.machine.machine import Sign

_UNLIMITED_BYTES = 1 << 60  # version 1 writes LONG_MAX rounded down to a page for "no limit"


def add_cgroup_limits(files: FileTree, book: FactBook, unread: list[str]) -> None:
    """Add the CPU, CPU set and memory limits of this process, each with the file that sets it."""
    try:
        membership = procfs.read_cgroup_membership(files.text("/proc/self/cgroup") or "")
        mounts = procfs.read_cgroup_mounts(files.text("/proc/self/mountinfo") or "")
    except ParseError as error:
        unread.append(f"control group limits: {error.message}")
        return
    cpus: list[tuple[float, str]] = []
    memory: list[tuple[int, str]] = []
    for mount in mounts:
        for folder in procfs.own_groups(mount, membership, "cpu"):
            quota = procfs.cpu_quota(files.text, folder, mount.controllers is None)
            cpus += [quota] if quota else []
        for folder in procfs.own_groups(mount, membership, "memory"):
            file = f"{folder}/{'memory.max' if mount.controllers is None else 'memory.limit_in_bytes'}"
            limit = files.integer(file)  # "max" is not a number: no limit
            if limit is not None and 0 < limit < _UNLIMITED_BYTES:
                memory.append((limit, file))
        _add_cpuset(files, mount, membership, book)
    if cpus:
        book.say("cgroup_cpu_limit", *min(cpus), "1")
    if memory:
        book.say("cgroup_memory_limit", *min(memory), "B")


def _add_cpuset(files: FileTree, mount: procfs.CgroupMount, membership: Mapping[str, str], book: FactBook) -> None:
    """Add the effective CPU set of the innermost group with one; it already respects the groups above."""
    names = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
    for folder, name in product(reversed(procfs.own_groups(mount, membership, "cpuset")), names):
        word = files.word(f"{folder}/{name}")
        if word is not None:
            book.say("cgroup_cpus", word, f"{folder}/{name}")
            return


_INITIAL = {"pid": 4026531836, "user": 4026531837, "cgroup": 4026531835}
"""Namespace -> the inode of the kernel's first one (include/linux/proc_ns.h). Services have their own mount, network,
IPC and UTS namespaces, so those separate nothing."""

_ALL_USERS = ("0", "0", "4294967295")  # /proc/self/uid_map of the first user namespace.

_LAYERED = ("overlay", "aufs", "fuse.fuse-overlayfs", "squashfs", "fuse.squashfuse", "fuse.squashfuse_ll")
_IN_MEMORY = ("tmpfs", "ramfs", "rootfs")
_SUBVOLUMES = ("btrfs", "bcachefs")
"""File systems whose root may be a folder on any system: a subvolume, a snapshot. So may that of an OSTree system."""

_HOST_PIDS = frozenset({"apptainer", "charliecloud", "shifter"})
"""Runtimes that see the processes of the host by default; others make a pid namespace."""

_FILES = (
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
    ("/.singularity.d", "apptainer"),
    ("/run/secrets/kubernetes.io", "kubernetes"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ("/run/host/container-manager", ""),
    ("/run/systemd/container", ""),
    ("/dev/.lxc-boot-id", "lxc"),
    ("/dev/lxd/sock", "lxc"),
)
"""Path -> runtime; "" if the file names it."""

_VARIABLES = (
    ("CH_RUNNING", "charliecloud"),
    ("APPTAINER_CONTAINER", "apptainer"),
    ("SINGULARITY_CONTAINER", "apptainer"),
    ("SHIFTER_RUNTIME", "shifter"),
    ("KUBERNETES_SERVICE_HOST", "kubernetes"),
    ("container", ""),
)

_GROUPS = (
    (re.compile(r"/kubepods[./]|/kubepods$|kubepods-"), "kubernetes"),
    (re.compile(r"/docker[-/][0-9a-f]{12,}"), "docker"),
    (re.compile(r"/libpod-[0-9a-f]{12,}|/libpod_parent/"), "podman"),
    (re.compile(r"/lxc(\.payload)?[./]"), "lxc"),
    (re.compile(r"/cri-containerd-|/containerd/"), "containerd"),
    (re.compile(r"/crio-[0-9a-f]{12,}"), "cri-o"),
    (re.compile(r"/machine\.slice/(systemd-nspawn@|machine-)"), "systemd-nspawn"),
)
"""Paths of control groups that runtimes make."""

_MOUNTED = (
    (re.compile(r"/docker/(containers|overlay2|aufs|btrfs|volumes)/"), "docker"),
    (re.compile(r"/containers/storage/"), "podman"),
    (re.compile(r"/overlay-containers/"), "podman"),
    (re.compile(r"/kubelet/pods/"), "kubernetes"),
    (re.compile(r"/containerd/io\.containerd"), "containerd"),
    (re.compile(r"/(singularity|apptainer)/mnt/session"), "apptainer"),
)
"""Paths of the host in the mounts of a container: its layers, and files that the runtime puts over those of the
image."""

_ALIASES = {"singularity": "apptainer", "oci": "", "incus": "lxc", "lxc-libvirt": "lxc"}


class _Evidence(Struct):
    """What was found, as (runtime or "" if unknown, what shows it). `sees_host`: process 2 is the kernel's."""

    strong: list[tuple[str, str]]
    weak: list[tuple[str, str]]
    marks: list[tuple[str, str]]
    sees_host: bool = False

    @property
    def is_enough(self) -> bool:
        """Whether it shows a container: one sure separation, two weak ones, or a weak one and a mark that fits."""
        fitting = [name for name, _ in self.marks if not self.sees_host or name in _HOST_PIDS]
        return bool(self.strong) or len(self.weak) > 1 or bool(self.weak and fitting)


def find_containers(files: FileTree, environment: Mapping[str, str]) -> tuple[Sign, ...]:
    """The container runtimes around this process, the most specific first, each with all its evidence; "other" if none
    names itself. Empty: none, or not enough evidence."""
    found = _Evidence([], [], list(_marks(files, environment)))
    mounts = procfs.read_mounts(files.text("/proc/self/mountinfo") or "")
    release = files.word("/proc/sys/kernel/osrelease") or ""
    if re.search(r"microsoft|wsl", release, re.IGNORECASE):  # each distribution shares the kernel of one machine
        found.strong.append(("wsl", f"/proc/sys/kernel/osrelease ({release})"))
    _see_namespaces(files, found)
    _see_root(files, mounts, found)
    for path in ("/proc/self/cgroup", "/proc/1/cgroup"):
        for line in (files.text(path) or "").splitlines():
            _, _, group = line.partition(":")[2].partition(":")
            _see_group(group, path, found)
    for mount in mounts:  # at the root of the mounted hierarchy
        if mount.kind in ("cgroup", "cgroup2"):
            _see_group(mount.root, "/proc/self/mountinfo", found)
    if not found.is_enough:
        return ()
    return _signs((*found.strong, *found.weak, *found.marks))


def _signs(evidence: Sequence[tuple[str, str]]) -> tuple[Sign, ...]:
    """One sign for each runtime; what names none is evidence for the first."""
    names = list(dict.fromkeys(name for name, _ in evidence if name)) or ["other"]
    if len(names) > 1 and "containerd" in names:  # it is below Docker and Kubernetes
        names.remove("containerd")
    texts: dict[str, list[str]] = {name: [] for name in names}
    for name, text in evidence:
        at = texts.get(name, texts[names[0]])
        if text not in at:
            at.append(text)
    return tuple(Sign(name, "; ".join(texts[name])) for name in names)


def _marks(files: FileTree, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for path, name in _FILES:
        if files.exists(path):
            yield name or _runtime(files.word(path) or ""), path
    for key, name in _VARIABLES:
        if environment.get(key):
            yield name or _runtime(environment[key]), f"environment variable {key}"


def _runtime(word: str) -> str:
    """A runtime as it names itself; "" for a text that is not a name."""
    name = word.strip().lower()
    return _ALIASES.get(name, name) if re.fullmatch(r"[a-z][a-z0-9_.-]{1,30}", name) else ""


def _see_namespaces(files: FileTree, found: _Evidence) -> None:
    second = files.word("/proc/2/comm")
    pid = _namespace(files, "pid")
    found.sees_host = second == "kthreadd" or pid == _INITIAL["pid"]
    if pid is not None and not found.sees_host:
        found.strong.append(("", f"/proc/self/ns/pid (pid:[{pid}], not the kernel's first namespace)"))
    elif not found.sees_host and files.exists("/proc/1"):
        if second is not None:
            found.strong.append(("", f"/proc/2/comm ({second}; outside containers kthreadd is process 2)"))
        elif not files.exists("/proc/2"):
            found.weak.append(("", "/proc/2 (missing: no kernel threads are visible)"))
    if (user := _namespace(files, "user")) is not None:
        if user != _INITIAL["user"]:
            found.weak.append(("", f"/proc/self/ns/user (user:[{user}])"))
    elif (users := (files.text("/proc/self/uid_map") or "").split()) and tuple(users) != _ALL_USERS:
        found.weak.append(("", "/proc/self/uid_map (not all users)"))
    if (group := _namespace(files, "cgroup")) not in (None, _INITIAL["cgroup"]):
        found.weak.append(("", f"/proc/self/ns/cgroup (cgroup:[{group}])"))


def _namespace(files: FileTree, kind: str) -> int | None:
    match = re.fullmatch(rf"{kind}:\[([0-9]{{1,20}})\]", files.target(f"/proc/self/ns/{kind}") or "")
    return None if match is None else int(match[1])


def _see_root(files: FileTree, mounts: Sequence[procfs.MountLine], found: _Evidence) -> None:
    """The root file system, and files that a runtime mounts over those of the image."""
    source = "/proc/self/mountinfo"
    root = next((mount for mount in reversed(mounts) if mount.point == "/"), None)
    if root is not None:
        name = next((name for pattern, name in _MOUNTED if pattern.search(f"{root.options} {root.root}")), "")
        is_folder = root.root != "/" and root.kind not in _SUBVOLUMES and not root.root.startswith("/ostree/")
        in_memory = root.kind in _IN_MEMORY and files.exists("/.singularity.d")
        text = f"{source} (root file system of type {root.kind}" + (f", folder {root.root})" if is_folder else ")")
        if name:
            found.strong.append((name, text))
        elif is_folder or in_memory or root.kind in _LAYERED:
            found.weak.append(("", text))
    for mount in mounts:
        name = next((name for pattern, name in _MOUNTED if mount.point != "/" and pattern.search(mount.root)), "")
        if name and mount.point.startswith("/etc/"):
            found.strong.append((name, f"{source} ({mount.point} from the host's {name})"))
        if mount.kind == "fuse.lxcfs" and mount.point.startswith("/proc/"):
            found.strong.append(("lxc", f"{source} ({mount.point} by lxcfs)"))


def _see_group(group: str, source: str, found: _Evidence) -> None:
    """A control group named by a runtime."""
    name = next((name for pattern, name in _GROUPS if pattern.search(group)), None)
    if name is not None and not any(known == name and source in text for known, text in found.strong):
        found.strong.append((name, f"{source} (control group {group[:120]})"))
