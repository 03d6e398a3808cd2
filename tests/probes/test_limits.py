"""Control groups, pressure and file systems, from made-up files in the kernel's formats."""

from __future__ import annotations

from pathlib import Path

from seatrial.probes.system import file_system_of, limits_between, pressure_between, read_limits, read_pressure


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {
    "proc/self/cgroup": "0::/job/step\n",
    "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/job/cpu.max": "50000 100000\n",
    "sys/fs/cgroup/job/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 200000\n",
    "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
    "sys/fs/cgroup/job/step/io.max": "8:16 rbps=max wbps=1048576 riops=max wiops=120\n",
    "sys/fs/cgroup/job/step/io.stat": "8:16 rbytes=1 wbytes=4096 rios=1 wios=2 dbytes=0 dios=0\n",
}
V1 = {
    "proc/self/cgroup": "3:blkio:/job\n2:cpu,cpuacct:/job\n",
    "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "31 23 0:27 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "30000\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu/job/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 200000000\n",
    "sys/fs/cgroup/blkio/job/blkio.throttle.write_bps_device": "8:0 1000\n",
    "sys/fs/cgroup/blkio/job/blkio.throttle.io_service_bytes_recursive": "8:0 Read 1\n8:0 Write 500\nTotal 501\n",
}


def test_version_2(tmp_path):
    before = read_limits(tree(tmp_path, V2))
    later = {
        "sys/fs/cgroup/job/cpu.stat": "nr_periods 30\nnr_throttled 14\nthrottled_usec 900000\n",
        "sys/fs/cgroup/job/step/io.stat": "8:16 rbytes=1 wbytes=1052672 rios=1 wios=12\n",
    }
    seen = limits_between(before, read_limits(tree(tmp_path, later)))
    quota = seen["quota"]
    assert (quota["cpus"], quota["periods"], quota["throttled_periods"]) == (0.5, 20, 10)
    assert abs(quota["throttled_s"] - 0.7) < 1e-9 and quota["file"].endswith("job/cpu.max")
    limits = {(one["direction"], one["unit"]): (one["limit"], one["moved"]) for one in seen["io_limits"]}
    assert limits == {("write", "B/s"): (1048576.0, 1048576), ("write", "op/s"): (120.0, 10)}


def test_version_1(tmp_path):
    before = read_limits(tree(tmp_path, V1))
    counters = "sys/fs/cgroup/blkio/job/blkio.throttle.io_service_bytes_recursive"
    seen = limits_between(before, read_limits(tree(tmp_path, {counters: "8:0 Write 2500\n"})))
    assert seen["quota"]["cpus"] == 0.3 and seen["quota"]["throttled_s"] == 0.0
    assert [(one["device"], one["limit"], one["moved"]) for one in seen["io_limits"]] == [("8:0", 1000.0, 2000)]


def test_nothing_is_limited(tmp_path):
    files = {name: text for name, text in V2.items() if "proc" in name}
    limits = read_limits(tree(tmp_path, files))
    assert limits_between(limits, limits) == {}
    assert limits_between(read_limits(tmp_path / "absent"), read_limits(tmp_path / "absent")) == {}


def test_pressure(tmp_path):
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    (tmp_path / "io").write_text(text.format(1_000_000))
    before = read_pressure(tmp_path)
    (tmp_path / "io").write_text(text.format(3_500_000))
    assert pressure_between(before, read_pressure(tmp_path)) == {"io_some_s": 2.5, "io_full_s": 0.0}
    assert read_pressure(tmp_path / "absent") == {}


def test_the_file_system_of_a_path_is_that_of_the_longest_mount_point(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "23 22 0:50 / /data rw,relatime - nfs4 server:/export rw,vers=4.2,noac\n"
        "24 22 8:2 / /data/fast\\040one rw,sync - ext4 /dev/sdb rw,sync\n"
    )
    assert file_system_of("/data/x", mounts) == {"type": "nfs4", "mount_point": "/data", "options": ["noac"]}
    fast = file_system_of("/data/fast one/x", mounts)
    assert fast == {"type": "ext4", "mount_point": "/data/fast one", "options": ["sync"]}
    root = file_system_of("/database", mounts)
    assert root is not None and root["mount_point"] == "/"
    assert file_system_of("/x", tmp_path / "absent") is None
