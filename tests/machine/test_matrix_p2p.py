"""`nvidia-smi topo -p2p`: what a matrix is about stands in the command above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_p2p, read_nvidia_smi_topo
from seatrial.model.machine.machine import DeviceKind

DATA = Path(__file__).resolve().parents[1] / "data" / "machine" / "matrices"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"


def _shared(name: str) -> bytes:
    if not (SHARED / name).exists():
        pytest.skip(f"needs {SHARED / name}, which is not part of the repository")
    return (SHARED / name).read_bytes()


def _statuses(data: bytes, pick: int | None = None) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.a, one.b, one.read, one.write) for one in read_nvidia_smi_p2p(data, pick).p2p]


def test_two_real_machines_in_one_file() -> None:
    data = _shared("smi-topo-p2p_h100_OK_and_L4_CNS_stas00.txt")
    with pytest.raises(UsageError) as caught:
        read_nvidia_smi_p2p(data)
    assert "line 2 and line 26" in str(caught.value)
    pairs = [(f"GPU{a}", f"GPU{b}", "OK", None) for a in range(8) for b in range(a + 1, 8)]
    assert _statuses(data, 1) == pairs
    assert _statuses(data, 2) == [("GPU0", "GPU1", "CNS", None)]


def test_a_real_matrix_without_its_command_is_about_reading() -> None:
    data = _shared("smi-topo-p2p_5090_GNS_club3090-1229.txt")
    assert _statuses(data) == [("GPU0", "GPU1", "GNS", None)]
    survey = read_nvidia_smi_p2p(data)
    assert survey.source == "nvidia-smi topo -p2p"
    assert [(part.kind, part.name, part.index, part.is_label) for part in survey.named_parts] == [
        (DeviceKind.GPU, "GPU0", 0, True),
        (DeviceKind.GPU, "GPU1", 1, True),
    ]
    assert survey.named_parts[0].facts.text("vendor_id") == "10de"
    assert survey.paths == ()


def test_reading_and_writing_are_two_matrices_and_nvlink_is_none() -> None:
    data = (DATA / "p2p-read-write-nvlink.txt").read_bytes()
    with pytest.raises(UsageError) as caught:
        read_nvidia_smi_p2p(data)
    assert "line 2 and line 7" in str(caught.value)
    assert _statuses(data, 1) == [
        ("GPU0", "GPU1", "OK", None),
        ("GPU0", "GPU3", "CNS", None),
        ("GPU1", "GPU3", "DR", None),
    ]
    assert _statuses(data, 2) == [
        ("GPU0", "GPU1", None, "OK"),
        ("GPU0", "GPU3", None, "TNS"),
        ("GPU1", "GPU3", None, "U"),
    ]
    with pytest.raises(UsageError, match="no matrix 3"):
        read_nvidia_smi_p2p(data, 3)
    with pytest.raises(ParseError):
        read_nvidia_smi_topo(data)


MATRIX = " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n"


@pytest.mark.parametrize(
    ("command", "read", "write"),
    [
        ("$ nvidia-smi topo -p2p r", "OK", None),
        ("$ nvidia-smi topo -p2p w", None, "OK"),
        ("$ nvidia-smi topo -p2p rw", "OK", "OK"),
        ("[root@quay ~]# nvidia-smi  topo -i 0,1 --p2pstatus w", None, "OK"),
        ("$ nvidia-smi topo -p2p w\nSome words.\n```", None, "OK"),
        ("$ nvidia-smi topo -p2p n\n(lost)\n$ nvidia-smi topo -p2p r", "OK", None),
        ("$ nvidia-smi topo -p2p", "OK", None),
        ("", "OK", None),
    ],
)
def test_the_command_determines_what_a_matrix_is_about(command: str, read: str | None, write: str | None) -> None:
    for prefix in ("", "# ", "> "):
        data = "".join(f"{prefix}{line}\n" for line in f"{command}\n{MATRIX}".splitlines()).encode()
        assert _statuses(data) == [("GPU0", "GPU1", read, write)]


@pytest.mark.parametrize("capability", ["n", "a", "p", "rn", "q"])
def test_a_matrix_about_something_else_is_refused(capability: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_nvidia_smi_p2p(f"$ nvidia-smi topo -p2p {capability}\n{MATRIX}".encode())
    assert "line 2" in str(caught.value)
    assert f"-p2p {capability}" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (" GPU1\tOK\tX", " GPU1\tNS\tX", 3),
        (" GPU1\tOK\tX", " GPU1\tOK\tOK", 3),
        (" GPU0\tX\tOK", " GPU0\tX\tOKX", 2),
        (" GPU0\tX\tOK", " GPU0\tX\tPHB", 2),
        (" GPU0\tX\tOK", " GPU0\tX\tOK\tOK", 2),
        (" GPU0\tX\tOK", " GPU0\tX\tOK\t0-3", 2),
        (" GPU0\tX\tOK", " GPU0\tXOK", 2),
        (" GPU1\tOK\tX\t\n", "", 2),
        (" GPU1\tOK\tX\t\n", "\nLegend:\n", 3),
    ],
)
def test_damage_is_refused_at_its_line(old: str, new: str, line: int) -> None:
    text = MATRIX.replace(old, new)
    assert text != MATRIX
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_p2p(text.encode())
    assert caught.value.line == line
    assert caught.value.text == text.splitlines()[line - 1]


def test_a_topology_matrix_in_the_same_file_is_accepted() -> None:
    topology = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-3\nGPU1\tSYS\t X \t4-7\n"
    for text in (topology + MATRIX, MATRIX + "\n" + topology):
        assert _statuses(text.encode()) == [("GPU0", "GPU1", "OK", None)]
        assert [path.path_class for path in read_nvidia_smi_topo(text.encode()).paths] == ["SYS"]


def test_a_single_gpu_has_no_pairs() -> None:
    single = "$ nvidia-smi topo -p2p r\n \tGPU0\n GPU0\tX\n"
    assert _statuses(single.encode()) == []
    topology = "\tGPU0\tCPU Affinity\nGPU0\t X \t0-3\n"
    assert len(read_nvidia_smi_topo((topology + single).encode()).named_parts) == 1
