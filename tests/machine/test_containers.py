"""Container or not, from file trees as runtimes make them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from machine.machine_trees import Tree, cpuinfo_x86, two_sockets
from published_schemas import check

from seatrial.machine.files import FileTree
from seatrial.machine.live import discover_live
from seatrial.machine.sysfs.containers import find_containers
from seatrial.model.machine.document import machine_document, machine_from_document
from seatrial.model.machine.machine import Sign

EXT4 = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"
CGROUP2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
ID = "9f2b" * 16
HOST = {"pid": 4026531836, "user": 4026531837, "cgroup": 4026531835, "mnt": 4026531841}
OWN = {"pid": 4026532198, "user": 4026531837, "cgroup": 4026532201, "mnt": 4026532195}
DOCKER_LAYERS = (
    f"700 600 0:55 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/AB:/var/lib/docker/overlay2/l/CD,"
    f"upperdir=/var/lib/docker/overlay2/{ID}/diff"
)
OVERLAY = "7 6 0:55 / / rw - overlay overlay rw"
DOCKER_FILES = f"/var/lib/docker/containers/{ID}"
POD_HOSTS = "9 7 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw"
Case = tuple[dict[str, str], dict[str, int], Mapping[str, str]]


def mountinfo(*lines: str) -> str:
    return "\n".join((*lines, "22 27 0:21 / /proc rw - proc proc rw"))


HOST_FILES = {"proc/1/comm": "systemd", "proc/2/comm": "kthreadd", "proc/1/cgroup": "0::/init.scope"}
INIT = {"proc/1/comm": "bash"}

NONE: dict[str, Case] = {
    "a plain server": ({**HOST_FILES, "proc/self/mountinfo": mountinfo(EXT4)}, HOST, {}),
    "a virtual machine of an image with /.dockerenv": (
        {".dockerenv": "", **HOST_FILES, "proc/1/cgroup": "0::/", "proc/self/mountinfo": mountinfo(EXT4)}, HOST, {},
    ),
    "such a machine without a list of namespaces": (
        {".dockerenv": "", **HOST_FILES, "proc/self/mountinfo": mountinfo(EXT4)}, {}, {},
    ),
    "a tree with nothing but the file": ({".dockerenv": ""}, {}, {}),
    "a node without disks, of an image with /.dockerenv": (
        {".dockerenv": "", **HOST_FILES, "proc/self/mountinfo": mountinfo("27 1 0:2 / / rw - overlay overlay rw")},
        HOST, {},
    ),
    "a node whose root is in memory": (
        {**HOST_FILES, "proc/self/mountinfo": mountinfo("27 1 0:2 / / rw - tmpfs rootfs rw")}, HOST, {},
    ),
    "a job submitted from a container": (
        {**HOST_FILES, "proc/self/mountinfo": mountinfo(EXT4)}, HOST,
        {"APPTAINER_CONTAINER": "/x.sif", "container": "podman", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    ),
    "a host that runs Docker and a kubelet": (
        {**HOST_FILES, "proc/self/cgroup": "0::/user.slice/user-0.slice/session-3.scope",
         "proc/self/mountinfo": mountinfo(
             EXT4, "90 27 0:55 / /var/lib/docker/overlay2/ab/merged rw - overlay overlay rw,lowerdir=/var/lib/docker/x",
             "91 27 0:56 / /var/lib/kubelet/pods/1/volumes/a rw - tmpfs tmpfs rw")},
        HOST, {},
    ),
    "a service of systemd in namespaces": (
        {**HOST_FILES, "proc/self/cgroup": "0::/system.slice/containerd.service",
         "proc/self/mountinfo": mountinfo(EXT4)},
        {**HOST, "mnt": 4026532777, "uts": 4026532778, "ipc": 4026532779}, {},
    ),
    "a btrfs subvolume": (
        {**HOST_FILES, "proc/self/mountinfo": mountinfo("27 1 0:2 /@/.snapshots/1/snapshot / rw - btrfs /dev/sda2 rw")},
        HOST, {},
    ),
    "an OSTree system": (
        {**HOST_FILES,
         "proc/self/mountinfo": mountinfo("27 1 8:4 /ostree/deploy/x/deploy/ab.0 / rw - xfs /dev/sda rw")},
        HOST, {},
    ),
    "hidden processes (hidepid=2)": ({"proc/self/mountinfo": mountinfo(EXT4)}, HOST, {}),
    "a user's own user namespace": (
        {**HOST_FILES, "proc/self/mountinfo": mountinfo(EXT4)}, {**HOST, "user": 4026532400}, {},
    ),
}  # fmt: skip

CONTAINERS: dict[str, tuple[Case, str]] = {
    "docker, cgroup v1": (
        ({".dockerenv": "", **INIT, "proc/1/cgroup": f"12:cpuset:/docker/{ID}",
          "proc/self/cgroup": f"12:cpuset:/docker/{ID}",
          "proc/self/mountinfo": mountinfo(DOCKER_LAYERS,
              f"710 700 8:1 {DOCKER_FILES}/hosts /etc/hosts rw - ext4 /dev/sda1 rw")},
         {**OWN, "cgroup": HOST["cgroup"]}, {}), "docker",
    ),
    "docker, cgroup v2": (
        ({".dockerenv": "", **INIT, "proc/1/cgroup": "0::/", "proc/self/mountinfo": mountinfo(DOCKER_LAYERS, CGROUP2)},
         OWN, {}), "docker",
    ),
    "docker with the pids of the host": (
        ({".dockerenv": "", **HOST_FILES, "proc/self/mountinfo": mountinfo(
            DOCKER_LAYERS, f"710 700 8:1 {DOCKER_FILES}/hostname /etc/hostname rw - ext4 /dev/sda1 rw")},
         {**OWN, "pid": HOST["pid"]}, {}), "docker",
    ),
    "docker on a virtual machine of which no namespace is listed": (
        ({".dockerenv": "", **INIT, "proc/self/mountinfo": mountinfo("7 6 0:55 / / rw - overlay overlay rw")}, {}, {}),
        "docker",
    ),
    "podman as root": (
        ({"run/.containerenv": "engine=podman", **INIT, "proc/1/cgroup": f"0::/machine.slice/libpod-{ID}.scope",
          "proc/self/mountinfo": mountinfo(f"{OVERLAY},lowerdir=/var/lib/containers/storage/overlay/l/X")},
         OWN, {"container": "podman"}), "podman",
    ),
    "podman as a user": (
        ({"run/.containerenv": "", **INIT, "proc/1/cgroup": "0::/", "proc/self/mountinfo": mountinfo(
            "7 6 0:55 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw")},
         {**OWN, "user": 4026532190}, {"container": "oci"}), "podman",
    ),
    "kubernetes, cgroup v1": (
        ({"run/secrets/kubernetes.io/serviceaccount/token": "x", **INIT,
          "proc/1/cgroup": f"4:memory:/kubepods/burstable/pod1/{ID}", "proc/self/mountinfo": mountinfo(
              f"{OVERLAY},lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/x", POD_HOSTS)},
         OWN, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}), "kubernetes",
    ),
    "kubernetes, cgroup v2": (
        ({**INIT, "proc/1/cgroup": "0::/", "proc/self/mountinfo": mountinfo(OVERLAY, POD_HOSTS)},
         OWN, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}), "kubernetes",
    ),
    "lxc": (
        ({"proc/1/comm": "systemd", "proc/2/comm": "systemd-journal", "run/systemd/container": "lxc",
          "proc/1/cgroup": "0::/lxc.payload.n1/init.scope", "proc/self/mountinfo": mountinfo(
              "7 6 0:55 / / rw - zfs tank/n1 rw", "8 7 0:60 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw")},
         {**OWN, "user": 4026532190}, {}), "lxc",
    ),
    "systemd-nspawn": (
        ({"run/host/container-manager": "systemd-nspawn", "run/systemd/container": "systemd-nspawn", **INIT,
          "proc/1/cgroup": "0::/payload",
          "proc/self/mountinfo": mountinfo("7 6 8:1 /srv/root / rw - ext4 /dev/sda1 rw")},
         {**OWN, "cgroup": HOST["cgroup"]}, {"container": "systemd-nspawn"}), "systemd-nspawn",
    ),
    "apptainer, setuid, an overlay over the image": (
        ({".singularity.d/runscript": "", **HOST_FILES, "proc/self/mountinfo": mountinfo(
            "7 6 0:55 / / ro - overlay overlay ro,lowerdir=/usr/local/var/apptainer/mnt/session/overlay-lowerdir")},
         HOST, {"APPTAINER_CONTAINER": "/home/a/x.sif"}), "apptainer",
    ),
    "singularity, a folder in a user namespace": (
        ({".singularity.d/runscript": "", **HOST_FILES,
          "proc/self/mountinfo": mountinfo("7 6 0:55 / / ro - tmpfs tmpfs ro")},
         {**HOST, "user": 4026532190}, {"SINGULARITY_CONTAINER": "/x"}), "apptainer",
    ),
    "charliecloud, a folder": (
        ({**HOST_FILES, "proc/self/mountinfo": mountinfo("7 6 8:1 /home/a/img / ro - ext4 /dev/sda1 ro")},
         {**HOST, "user": 4026532190}, {"CH_RUNNING": "Weird Al Yankovic"}), "charliecloud",
    ),
    "charliecloud, squashfs": (
        ({**HOST_FILES, "proc/self/mountinfo": mountinfo("7 6 0:55 / / ro - fuse.squashfuse x.sqfs ro")},
         {**HOST, "user": 4026532190}, {"CH_RUNNING": "1"}), "charliecloud",
    ),
    "WSL 2": (
        ({"proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2", "proc/1/comm": "init",
          "proc/self/mountinfo": mountinfo("7 6 8:32 / / rw - ext4 /dev/sdc rw")}, OWN, {}), "wsl",
    ),
    "WSL 1": (
        ({"proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft", "proc/1/comm": "init"}, {}, {}), "wsl",
    ),
    "bubblewrap": (
        ({**INIT, "proc/self/mountinfo": mountinfo("7 6 8:1 /home/a/root / rw - ext4 /dev/sda1 rw")},
         {**OWN, "user": 4026532190}, {}), "other",
    ),
}  # fmt: skip


def signs(root: Path, case: Case) -> tuple[Sign, ...]:
    files, namespaces, environment = case
    tree = Tree(root)
    for path, text in files.items():
        tree.write(path, text)
    folder = root / "proc/self/ns"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, inode in namespaces.items():
        (folder / kind).symlink_to(f"{kind}:[{inode}]")
    return find_containers(FileTree(root), environment)


@pytest.mark.parametrize("case", sorted(NONE))
def test_marks_and_namespaces_that_are_no_container(tmp_path: Path, case: str) -> None:
    assert signs(tmp_path, NONE[case]) == ()


@pytest.mark.parametrize("case", sorted(CONTAINERS))
def test_a_container_is_named_with_its_evidence(tmp_path: Path, case: str) -> None:
    given, name = CONTAINERS[case]
    found = signs(tmp_path, given)
    assert found and found[0].kind == name
    assert "/proc/" in " ".join(sign.evidence for sign in found), "more than a file that an image may hold"
    pieces = found[0].evidence.split("; ")
    assert len(set(pieces)) == len(pieces) and (len(pieces) > 1 or case.startswith("WSL"))


def test_a_container_inside_another_names_both(tmp_path: Path) -> None:
    files, namespaces, environment = CONTAINERS["docker, cgroup v2"][0]
    inside = {**files, "proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2"}
    assert {sign.kind for sign in signs(tmp_path, (inside, namespaces, environment))} == {"docker", "wsl"}


@pytest.mark.parametrize("text", ["\x1b[31mdocker", "a b", "x" * 4000, "../../etc", ""])
def test_a_name_that_is_none_is_not_taken(tmp_path: Path, text: str) -> None:
    case = ({**INIT, "run/systemd/container": text}, OWN, {"container": text})
    assert [sign.kind for sign in signs(tmp_path, case)] == ["other"]


def test_the_platform_of_a_machine(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("proc/cpuinfo", cpuinfo_x86(8, flags="fpu sse2 hypervisor"))
    tree.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc acpi_pm")
    tree.write("sys/firmware/acpi/tables/DSDT", b"DSDT\0\0\0\0\2\0FIRECKFCVMDSDT")
    tree.write(".dockerenv", "")
    machine = discover_live(tmp_path)
    assert [sign.kind for sign in machine.platform.virtualization] == ["kvm", "firecracker"]
    assert machine.platform.container == () and "container" not in machine.facts
    document = machine_document(machine)
    check(document, "machine-1")
    assert machine_from_document(document) == machine
    older = {key: value for key, value in document.items() if key != "platform"}
    assert machine_from_document(older).platform.virtualization == ()


def test_the_hypervisor_of_another_tool_is_one_of_the_platform(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("sys/hypervisor/type", "xen")
    (sign,) = discover_live(tmp_path).platform.virtualization
    assert sign == Sign("xen", "/sys/hypervisor/type")
