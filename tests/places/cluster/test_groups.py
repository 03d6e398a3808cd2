"""Control groups in a folder that stands for the kernel's: which files are written, for both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.places.cluster.groups import GroupsError, make_group, make_groups, plan_groups


def mountinfo(*mounts: tuple[Path, str]) -> str:
    """`mounts`: the folder, and the controllers of version 1; "" for version 2."""
    lines = []
    for number, (folder, controllers) in enumerate(mounts):
        kind = f"cgroup cgroup rw,{controllers}" if controllers else "cgroup2 cgroup2 rw"
        lines.append(f"{30 + number} 1 0:{number} / {folder} rw - {kind}\n")
    return "".join(lines)


def test_version_2_passes_on_only_what_was_not_passed_on(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
    groups = plan_groups("x", mountinfo((tmp_path, "")))
    assert (groups.is_v2, groups.enabled, groups.tops) == (True, ("cpuset",), (tmp_path / "x",))
    make_groups(groups)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpuset"


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("cpuset", "cpu,cpuacct", "memory")}
    for folder in folders.values():
        folder.mkdir()
    text = mountinfo((tmp_path, ""), *((folder, name) for name, folder in folders.items()))
    groups = plan_groups("x", text)  # version 2 is mounted as well, without controllers
    assert groups.tops == tuple(folder / "x" for folder in folders.values()) and not groups.is_v2


def test_a_missing_controller_is_named(tmp_path: Path) -> None:
    with pytest.raises(GroupsError, match="memory is not mounted"):
        plan_groups("x", mountinfo((tmp_path / "a", "cpuset"), (tmp_path / "b", "cpu")))


def test_limits_are_written_in_the_units_of_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpuset cpu memory\n")
    groups = plan_groups("x", mountinfo((tmp_path, "")))
    make_groups(groups)
    for name, value in (("cpuset.cpus", "0-3"), ("cpuset.mems", "0")):
        (groups.tops[0] / name).write_text(value)

    class Kernel(type(tmp_path)):
        """A folder that has its files from the start."""

        def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            super().mkdir(mode, parents, exist_ok)
            for name in ("cpuset.cpus", "cpuset.mems", "cpu.max", "memory.max"):
                (self / name).write_text("")

    kernel = type(groups)((Kernel(groups.tops[0]),), True)
    make_group(kernel, "n1", (0, 1, 3), 0.8, 4 << 30)
    own = groups.tops[0] / "n1"
    assert [(own / name).read_text() for name in ("cpuset.cpus", "cpu.max", "memory.max")] == [
        "0-1,3", "240000 100000", str(4 << 30),
    ]  # fmt: skip
