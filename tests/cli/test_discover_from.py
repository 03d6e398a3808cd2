"""`--from`: dumps of other tools as one machine, wrong input as one clear message."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from cli.test_contract import answer, seatrial

MATRIX = """\
	GPU0	GPU1	NIC0	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	 X 	NV4	PIX	0-3	0		N/A
GPU1	NV4	 X 	SYS	4-7	1		N/A
NIC0	PIX	SYS	 X

Legend:

  X    = Self

NIC Legend:

  NIC0: mlx5_1
"""
OTHER = "	GPU0	GPU1\nGPU0	 X 	SYS\nGPU1	SYS	 X \n"
TREE = """\
-[0000:00]-+-00.0  Intel Corporation Device 09a2
           +-01.0-[01]----00.0  NVIDIA Corporation GA100 [A100 SXM4 80GB]
           \\-02.0-[02]----00.0  NVIDIA Corporation GA100 [A100 SXM4 80GB]
"""
PERMISSION = "$ nvidia-smi topo -p2p r\n	GPU0	GPU1\n GPU0	X	OK\n GPU1	OK	X\n"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    (tmp_path / "topo").write_text(MATRIX)
    (tmp_path / "two").write_text(f"first\n\n{MATRIX}\nand then\n\n{OTHER}")
    (tmp_path / "tree").write_text(TREE)
    (tmp_path / "p2p").write_text(PERMISSION)
    (tmp_path / "broken").write_text(MATRIX.replace("GPU1	NV4	 X 	SYS", "GPU1	NV4	 X 	SIS"))
    (tmp_path / "topo#2").write_text(OTHER)
    return tmp_path


def discover(cwd: Path, *sources: str, command: str = "discover") -> dict:
    options = [word for source in sources for word in ("--from", source)]
    done = seatrial_here(command, *options, "--format", "json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return answer(done, "machine-1" if command == "discover" else "check-1")


def test_a_matrix_is_a_machine(dumps: Path) -> None:
    document = discover(dumps, "nvidia-smi-topo=topo")
    assert [(d["id"], d["kind"], d["aliases"]) for d in document["devices"]] == [
        ("GPU0", "gpu", []),
        ("GPU1", "gpu", []),
        ("NIC0", "nic", ["mlx5_1"]),
    ]
    assert document["paths"] == [
        {"a": "GPU0", "b": "GPU1", "class": "NV", "links": 4},
        {"a": "GPU0", "b": "NIC0", "class": "PIX", "links": None},
        {"a": "GPU1", "b": "NIC0", "class": "SYS", "links": None},
    ]
    assert document["affinity"] == [
        {"device": "GPU0", "cpus": [0, 1, 2, 3], "numa": 0},
        {"device": "GPU1", "cpus": [4, 5, 6, 7], "numa": 1},
        {"device": "NIC0", "cpus": None, "numa": None},
    ]
    assert document["allowed_cpus"] == [] and "kernel" not in document["facts"]  # nothing of this machine


def test_several_dumps_describe_one_machine_in_any_order(dumps: Path) -> None:
    sources = ["nvidia-smi-topo=topo", "lspci-tree=tree", "nvidia-smi-p2p=p2p"]
    document = discover(dumps, *sources)
    assert document == discover(dumps, *reversed(sources))
    gpus = {d["id"]: d["pci"] for d in document["devices"] if d["kind"] == "gpu"}
    assert gpus == {"GPU0": "0000:01:00.0", "GPU1": "0000:02:00.0"}
    assert document["p2p"] == [{"a": "GPU0", "b": "GPU1", "read": "OK", "write": None}]


def test_live_adds_this_machine(dumps: Path) -> None:
    done = seatrial_here("discover", "--live", "--from", "nvidia-smi-topo=topo", "--format", "json", cwd=dumps)
    document = answer(done, "machine-1")
    assert {"pu", "gpu"} <= {d["kind"] for d in document["devices"]} and "kernel" in document["facts"]


def test_the_nth_of_several_is_picked(dumps: Path) -> None:
    assert len(discover(dumps, "nvidia-smi-topo=two#1")["devices"]) == 3
    assert len(discover(dumps, "nvidia-smi-topo=two#2")["devices"]) == 2


def test_an_existing_file_with_a_hash_in_its_name_is_read(dumps: Path) -> None:
    assert len(discover(dumps, "nvidia-smi-topo=topo#2")["devices"]) == 2


def test_standard_input(dumps: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "discover", "--from", "nvidia-smi-topo=-"],
        input=MATRIX, capture_output=True, text=True, cwd=dumps, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "NV4" in done.stdout


WRONG = [
    (
        "nvidia-smi-topo=broken",
        ["nvidia-smi-topo", "broken", "line 3", "GPU1	NV4	 X 	SIS	4-7	1		N/A"],
    ),
    ("nvidia-smi-topo=two", ["line 3", "line 18", "#1"]),
    ("nvidia-smi-topo=two#3", ["line 3", "3"]),
    ("nvidia-smi-topo=two#0", ["0"]),
    ("nvidia-smi-topo=absent", ["absent", "No such file"]),
    ("nvidia-smi-topo=.", ["'.'", "directory"]),
    ("nvidia-smi-topo", ["KIND=FILE", "nvidia-smi-topo"]),
    ("nvidia-smi-topo=", ["KIND=FILE"]),
    ("nvidia-topo=topo", ["nvidia-smi-topo"]),
    ("hwloc-xml=topo", ["hwloc-xml", "topo"]),
    ("dmidecode=topo", ["dmidecode", "topo"]),
    ("lspci-vv=topo", ["lspci-vv", "topo"]),
    ("lspci-tree=topo", ["lspci-tree", "topo"]),
    ("nccl-xml=topo", ["nccl-xml", "topo"]),
    ("rocm-smi-topo=topo", ["rocm-smi-topo", "topo"]),
    ("amd-smi=topo", ["amd-smi", "topo"]),
    ("nvidia-smi-p2p=topo", ["nvidia-smi-p2p", "topo"]),
    ("nvidia-smi-topo=/dev/null", ["nvidia-smi-topo", "/dev/null"]),
]


@pytest.mark.parametrize("command", ["discover", "check"])
@pytest.mark.parametrize(("source", "words"), WRONG)
def test_wrong_input_is_one_message_and_exit_2(dumps: Path, source: str, words: Sequence[str], command: str) -> None:
    before = sorted(dumps.iterdir())
    done = seatrial_here(command, "--from", source, "--format", "json", cwd=dumps)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert all(word in done.stderr for word in words) and "Traceback" not in done.stderr, done.stderr
    assert sorted(dumps.iterdir()) == before


def test_an_endless_file_ends(dumps: Path) -> None:
    done = seatrial("discover", "--from", "lspci-vv=/dev/zero", cwd=dumps)
    assert done.returncode == 2 and "larger than" in done.stderr


def test_a_drawing_is_xml_and_is_written_whole(dumps: Path) -> None:
    done = seatrial_here("discover", "--from", "nvidia-smi-topo=topo", "--format", "svg", "-o", "node.svg", cwd=dumps)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert ET.parse(dumps / "node.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_check_lists_bindings(dumps: Path) -> None:
    document = discover(dumps, "nvidia-smi-topo=topo", command="check")
    bindings = {entry["device"]: entry for entry in document["bindings"]}
    assert bindings["GPU1"]["cpus"] == [4, 5, 6, 7] and bindings["GPU1"]["numa"] == 1
    assert "1" in bindings["GPU1"]["numactl"] and bindings["NIC0"]["numactl"] is None


@pytest.mark.parametrize(("fail_on", "status"), [("error", 0), ("warning", 1)])
def test_findings_can_fail_a_script(dumps: Path, fail_on: str, status: int) -> None:
    (dumps / "denied").write_text(PERMISSION.replace("OK", "CNS"))
    sources = ["--from", "nvidia-smi-topo=topo", "--from", "nvidia-smi-p2p=denied"]
    done = seatrial_here("check", *sources, "--fail-on", fail_on, cwd=dumps)
    assert done.returncode == status, done.stdout + done.stderr
    assert "CNS" in done.stdout


def test_findings_alone_do_not_fail(dumps: Path) -> None:
    assert seatrial_here("check", "--from", "nvidia-smi-topo=topo", cwd=dumps).returncode == 0
    assert seatrial_here("check", "--from", "nvidia-smi-topo=topo", "--fail-on", "info", cwd=dumps).returncode == 2


def test_a_dump_cannot_send_control_codes_to_the_terminal(dumps: Path) -> None:
    (dumps / "hostile").write_bytes(TREE.replace("GA100", "GA\x1b]0;owned\x07100").encode())
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "discover", "--from", "lspci-tree=hostile"],
        cwd=dumps, capture_output=True, env={**os.environ, "TERM": "xterm"}, check=False,
    )  # fmt: skip
    assert b"\x1b]" not in done.stdout + done.stderr
