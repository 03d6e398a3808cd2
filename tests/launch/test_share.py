"""Ranks of a node that share one container, whichever of them comes or ends first. As Open MPI's launcher would, the
tests start `share` once for each rank."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from seatrial.errors import Exit
from seatrial.launch.mpi import shared
from seatrial.model.benchmark.program import parse_record
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import Inside, Mount
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import PROGRAM, STATUS, write_root
from seatrial.places.rank_helpers import holder, inside_probe, rank_helpers

pytestmark = pytest.mark.real

RUNTIME = RUNTIMES["charliecloud"]
MOUNTED = Path("/mnt")


@pytest.fixture
def name() -> str:
    return f"seatrial-test-{secrets.token_hex(8)}"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    if RUNTIME.path() is None:
        pytest.skip(f"needs {RUNTIME.package}")
    root = tmp_path / "root"
    root.mkdir()
    assert write_root(root)
    return root


def rank(name: str, image: Path, program: Sequence[str], holding: Path | None = None) -> list[str]:
    held = holder() if holding is None else holding
    prefix = RUNTIME.prefix(
        Inside(
            Image(str(image), ImageKind.FOLDER if image.suffix == "" else ImageKind.SQUASHFS, ""),
            (Mount(held.parent, MOUNTED),),
        )
    )
    return [*shared(rank_helpers(), name, RUNTIME.join_option, str(MOUNTED / held.name), prefix), *program]


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    variables = {**os.environ, **RUNTIME.variables()}
    return subprocess.Popen(
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(command: Sequence[str]) -> tuple[int, str, str]:
    process = start(command)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def is_held(name: str) -> bool:
    """Whether a process holds the container of this name."""
    return any(line.endswith(f"@{name}") for line in Path("/proc/net/unix").read_text().splitlines())


def wait_until_free(name: str) -> None:
    while is_held(name):
        time.sleep(0.01)


def test_a_rank_may_end_before_the_next_one_comes(name: str, image: Path) -> None:
    """ch-run's own way of joining has "join: no PID" for the next one."""
    for _ in range(3):
        assert finished(rank(name, image, [PROGRAM])) == (STATUS, "", "")
    wait_until_free(name)


def test_ranks_that_come_and_go_at_once(name: str, image: Path) -> None:
    ranks = [start(rank(name, image, [PROGRAM])) for _ in range(24)]
    assert [(one.communicate(timeout=60), one.returncode) for one in ranks] == [(("", ""), STATUS)] * len(ranks)
    wait_until_free(name)


def test_ranks_share_namespaces(name: str, image: Path) -> None:
    """For as long as one of them runs: here the first one, which waits for the end of its input."""
    shutil.copy(inside_probe(), image / "bin" / "inside")
    shutil.copy(holder(), image / "bin" / "hold")
    first = start(rank(name, image, ["/bin/hold"]))
    assert first.stdout is not None and first.stdin is not None
    pid = int.from_bytes(os.read(first.stdout.fileno(), 4), sys.byteorder)
    assert pid == first.pid, "a rank is still the process that its launcher has started"
    notes = [parse_record(finished(rank(name, image, ["/bin/inside"]))[1].encode()).notes for _ in range(2)]
    for kind in ("user", "mnt"):
        shared_one = str(Path(f"/proc/{pid}/ns/{kind}").readlink())
        assert [note["namespaces"][kind] for note in notes] == [shared_one] * 2
        assert shared_one != str(Path(f"/proc/self/ns/{kind}").readlink())
    assert first.poll() is None and is_held(name)
    first.communicate(timeout=60)
    wait_until_free(name)


def test_the_file_system_of_an_image_stays_until_the_last_rank_ends(name: str, image: Path, tmp_path: Path) -> None:
    """A process serves the files of a squashfs image. It is ch-run's own, and ends with the program that it started."""
    if shutil.which("mksquashfs") is None:
        pytest.skip("needs squashfs-tools")
    shutil.copy(holder(), image / "bin" / "hold")
    squashed = tmp_path / "root.sqfs"
    subprocess.run(["mksquashfs", str(image), str(squashed), "-quiet", "-no-progress"], check=True)
    assert finished(rank(name, squashed, [PROGRAM])) == (STATUS, "", "")
    second = start(rank(name, squashed, ["/bin/hold"]))
    assert second.stdout is not None
    os.read(second.stdout.fileno(), 4)
    assert finished(rank(name, squashed, [PROGRAM])) == (STATUS, "", "")
    assert second.poll() is None
    second.communicate(timeout=60)
    wait_until_free(name)


def test_a_runtime_that_fails_says_why(name: str, image: Path) -> None:
    status, output, errors = finished(rank(name, image / "nowhere", [PROGRAM]))
    assert (status, output) == (Exit.LAUNCHER, "")
    assert "ch-run" in errors and "nowhere" in errors
    assert "no container for the ranks of this node was started" in errors
    wait_until_free(name)


def test_an_image_that_cannot_hold_a_container(name: str, image: Path, tmp_path: Path) -> None:
    status, _, errors = finished(rank(name, image, [PROGRAM], holding=tmp_path / "missing"))
    assert status == Exit.LAUNCHER and "can't execve" in errors
    wait_until_free(name)


def test_the_name_of_another_user(name: str, image: Path) -> None:
    """A process of another user that sits on the name could give ranks any container."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to run as another user")
    listener = socket.socket(socket.AF_UNIX)
    os.seteuid(65534)
    try:
        listener.bind(f"\0{name}")
        listener.listen()
    finally:
        os.seteuid(0)
    with listener:
        process = start(rank(name, image, [PROGRAM]))
        connection, _ = listener.accept()
        with connection:
            connection.sendall((1).to_bytes(4, "little"))
            _, errors = process.communicate(timeout=60)
    assert process.returncode == Exit.LAUNCHER and f"another user has the name {name}" in errors
