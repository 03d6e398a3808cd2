"""What the kernel reports during a repeat, by real records of /dev/kmsg where root may write them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SHARED_DATA

from seatrial.probes import around as probe
from seatrial.probes.around import KernelLog, kernel_log

LINES = (
    "mce: [Hardware Error]: Machine check events logged",
    "pcieport 0000:16:01.0: AER: Corrected error message received from 0000:18:00.0",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
    "CPU3: Core temperature is above threshold, cpu clock is throttled",
    "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0",
    "Out of memory: Killed process 4242 (app)",
)
OTHERS = ("eth0: link becomes ready", "usb 1-1: new device", "systemd[1]: Started a service", "IPv6: ADDRCONF")


def written(*lines: str) -> None:
    with Path("/dev/kmsg").open("w") as log:
        for line in lines:
            log.write(f"seatrial test: {line}\n")
            log.flush()


def test_records_during_a_repeat_are_named() -> None:
    if os.geteuid() != 0 or not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("needs root and /dev/kmsg")
    written("NVRM: Xid (PCI:0000:01:00): 13, before")
    with kernel_log() as log:
        for line in (*LINES, *OTHERS, LINES[0]):
            written(line)
        found = [event for event in log.events() if "seatrial test" in event]
        assert found == [f"seatrial test: {line}" for line in LINES]
        assert not [event for event in log.events() if "seatrial test" in event]


def test_every_record_of_GPUs_and_switches_is_an_event() -> None:
    path = SHARED_DATA / "collectives" / "dmesg-xid-sxid.txt"
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    records = [line.encode() for line in path.read_text().splitlines() if not line.startswith("#")]
    read, write = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read.setblocking(False)
    for number, record in enumerate(records):
        write.send(b"4,%d,1,-;%b\n" % (number, record))
    with read, write:
        assert len(KernelLog(read.fileno()).events()) == len(set(records))


def test_a_log_that_cannot_be_read_is_not_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe, "_DEVICE", str(tmp_path / "missing"))
    with kernel_log() as log:
        assert log.events() == []


def test_a_flood_is_bounded() -> None:
    read, write = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # one record per read, as /dev/kmsg
    read.setblocking(False)
    for number in range(30):
        write.send(f"4,{number},1,-;NVRM: Xid {number} {'x' * 500}\n SUBSYSTEM=pci\n".encode())
    with read, write:
        found = KernelLog(read.fileno()).events()
    assert len(found) == 20 and all(len(event) == 300 and "SUBSYSTEM" not in event for event in found)


STUDY = """
study: xid
question: Is an Xid named?
benchmarks:
  command: {argv: [sh, -c, 'echo "NVRM: Xid (PCI:0000:3b:00): 79" > /dev/kmsg']}
repeat: {max: 6, budget: 20s}
"""


@pytest.mark.real
@pytest.mark.lab
def test_the_results_name_it_with_its_repeats(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("needs root and /dev/kmsg")
    (tmp_path / "s.yaml").write_text(STUDY)
    command = [sys.executable, "-m", "seatrial", "run", "s.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    named = re.findall(r"the kernel reported during repeats? ([\d, ]+): NVRM: Xid \(PCI:0000:3b:00\): 79", done.stdout)
    repeats = {int(number) for numbers in named for number in numbers.split(",")}
    assert repeats == set(range(6)), done.stdout  # in several lines if the kernel reported other things meanwhile
    lines = [
        line for path in (tmp_path / "seatrial-results/records").iterdir() for line in path.read_text().splitlines()
    ]
    assert all("NVRM: Xid (PCI:0000:3b:00): 79" in json.dumps(json.loads(line)) for line in lines)
