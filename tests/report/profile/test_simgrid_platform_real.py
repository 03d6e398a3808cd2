"""The platform under SimGrid itself: a replayed ping-pong takes the times it was made of, a replayed stream too."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from seatrial.report.profile.trace_export import HOST_FILE, PLATFORM_FILE, host_file, platform_xml, replay_command

pytestmark = pytest.mark.real

# One-way times and bandwidths of two ranks on one host: with the step of a library's own eager limit at 4 KiB, and a
# cache that is too small for the largest.
ONE_WAY_S = {
    **{1: 3.75e-7, 8: 3.88e-7, 64: 4.57e-7, 512: 7.13e-7, 2048: 8.52e-7, 4096: 2.746e-6, 16384: 3.066e-6},
    **{65536: 3.818e-6, 262144: 6.974e-6, 1048576: 2.64e-5, 4194304: 1.513e-4},
}
BANDWIDTH_BPS = {
    **{1: 8e6, 8: 7e7, 64: 4.2e8, 512: 1.4e9, 2048: 4e9, 4096: 2.1e9, 16384: 7.8e9},
    **{65536: 2.2e10, 262144: 4e10, 1048576: 4.1e10, 4194304: 2.8e10},
}
TURNS, WINDOW = 200, 64


def replayed_s(folder: Path, zero: list[str], one: list[str]) -> float:
    if shutil.which("smpirun") is None:
        pytest.skip("needs smpirun of SimGrid (apt install libsimgrid-dev)")
    (folder / PLATFORM_FILE).write_text(platform_xml(ONE_WAY_S, BANDWIDTH_BPS, 2))
    (folder / HOST_FILE).write_text(host_file(2))
    (folder / "trace.txt").write_text("zero.txt\none.txt\n")
    for rank, (name, lines) in enumerate((("zero", zero), ("one", one))):
        whole = ["init", *lines, "finalize"]
        (folder / f"{name}.txt").write_text("".join(f"{rank} {line}\n" for line in whole))
    ended = subprocess.run(replay_command(2), cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr[-2000:]
    found = re.search(r"Simulation time ([0-9.]+)", ended.stderr)
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize("size", ONE_WAY_S)
def test_a_ping_pong_takes_the_measured_time(size: int, tmp_path: Path) -> None:
    zero = [f"send 1 1 {size}", f"recv 1 2 {size}"] * TURNS
    one = [f"recv 0 1 {size}", f"send 0 2 {size}"] * TURNS
    one_way_s = replayed_s(tmp_path, zero, one) / (2 * TURNS)
    assert one_way_s == pytest.approx(ONE_WAY_S[size], rel=0.02, abs=3e-9), "smpirun prints microseconds"


@pytest.mark.parametrize("size", ONE_WAY_S)
def test_a_stream_takes_the_measured_time(size: int, tmp_path: Path) -> None:
    zero = ([f"isend 1 1 {size}"] * WINDOW + ["wait 0 1 1"] * WINDOW + ["recv 1 2 4"]) * 20
    one = ([f"irecv 0 1 {size}"] * WINDOW + ["wait 0 1 1"] * WINDOW + ["send 0 2 4"]) * 20
    bandwidth_Bps = size * WINDOW * 20 / replayed_s(tmp_path, zero, one)
    assert bandwidth_Bps == pytest.approx(BANDWIDTH_BPS[size], rel=0.15), "a window ends with a reply"
