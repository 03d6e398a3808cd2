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

_SPINNER = "while True: pass"


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
def quota(cpus: float) -> Iterator[list[str]]:
    """A control group with a CPU quota; gives the words that start a command in it. Raises Skip without the right to
    make one."""
    is_v1 = Path("/sys/fs/cgroup/cpu").is_dir()
    group = Path("/sys/fs/cgroup", "cpu" if is_v1 else "", f"seatrial-diagnosis-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no control group can be made: {error.strerror}") from error
    try:
        if is_v1:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text(f"{round(cpus * 100_000)}")
        else:
            (group / "cpu.max").write_text(f"{round(cpus * 100_000)} 100000")
        yield ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()
