"""What is planted beside a program: spinners on CPUs, and control groups with a quota."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from causes.case import Skip

_SPINNER = """\
import os
parent = os.getppid()
while os.getppid() == parent:  # ends with the script, however that ends
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def spinners(cpus: Sequence[int]) -> Iterator[None]:
    """A process on each of these CPUs that never sleeps."""
    started = [
        subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", _SPINNER], start_new_session=True)
        for cpu in cpus
    ]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def _spinning(cpu: int, program: str, *times_s: float) -> Iterator[None]:
    """A Python program on this CPU, which is given these times and is ended."""
    words = ["taskset", "-c", str(cpu), sys.executable, "-c", program, *map(str, times_s)]
    process = subprocess.Popen(words, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def passing_spinner(cpu: int, begin_s: float, end_s: float) -> contextlib.AbstractContextManager[None]:
    """A process on this CPU that spins between two times from now on, and sleeps before."""
    spin = "import sys, time\nbegin, end = map(float, sys.argv[1:])\nstart = time.monotonic()\ntime.sleep(begin)\n"
    spin += "while time.monotonic() < start + end: pass"
    return _spinning(cpu, spin, begin_s, end_s)


def recurring_spinner(cpu: int, busy_s: float, every_s: float) -> contextlib.AbstractContextManager[None]:
    """A process on this CPU that spins for a part of each period, and sleeps for the rest."""
    spin = "import sys, time\nbusy, every = map(float, sys.argv[1:])\nat = time.monotonic()\n"
    spin += "while True:\n at += every\n time.sleep(max(0, at - busy - time.monotonic()))\n"
    spin += " while time.monotonic() < at: pass"
    return _spinning(cpu, spin, busy_s, every_s)


@contextlib.contextmanager
def quota(cpus: float) -> Iterator[list[str]]:
    """A control group with a CPU quota; gives the words that start a command in it. Raises Skip without the right to
    make one."""
    with _group("cpu") as (group, is_v1):
        if is_v1:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text(f"{round(cpus * 100_000)}")
        else:
            (group / "cpu.max").write_text(f"{round(cpus * 100_000)} 100000")
        yield _words(group)


@contextlib.contextmanager
def io_limit(bytes_per_s: float, folder: Path) -> Iterator[list[str]]:
    """A control group that limits reading and writing the device of a folder; gives the words that start a command in
    it. Raises Skip without the right to make one, or without a device."""
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    with _group("blkio") as (group, is_v1):
        try:
            if is_v1:
                for name in ("read_bps_device", "write_bps_device"):
                    (group / f"blkio.throttle.{name}").write_text(f"{device} {bytes_per_s:.0f}")
            else:
                (group / "io.max").write_text(f"{device} rbps={bytes_per_s:.0f} wbps={bytes_per_s:.0f}")
        except OSError as error:
            raise Skip(f"no limit on device {device}: {error.strerror}") from error
        yield _words(group)


@contextlib.contextmanager
def _group(controller: str) -> Iterator[tuple[Path, bool]]:
    """A new control group, and whether it is of version 1, where each controller has a hierarchy."""
    is_v1 = Path("/sys/fs/cgroup", controller).is_dir()
    group = Path("/sys/fs/cgroup", controller if is_v1 else "", f"seatrial-diagnosis-{controller}-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no control group can be made: {error.strerror}") from error
    try:
        yield group, is_v1
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _words(group: Path) -> list[str]:
    """What starts a command in a control group."""
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]


@contextlib.contextmanager
def mounted(command: Sequence[str], point: Path) -> Iterator[Path]:
    """A file system that a command mounts on `point`. Raises Skip if that fails."""
    point.mkdir(exist_ok=True)
    try:
        done = subprocess.run([*command, str(point)], capture_output=True, check=False)
    except OSError as error:
        raise Skip(f"{command[0]} is missing") from error
    if done.returncode != 0:
        raise Skip(f"{command[0]}: {done.stderr.decode(errors='replace').strip()[:200]}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=False)
