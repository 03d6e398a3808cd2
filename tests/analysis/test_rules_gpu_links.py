"""Direct links between GPUs that are missing, and boards whose pairs differ by design."""

from __future__ import annotations

from itertools import combinations

import pytest
from analysis.made_up_nodes import gpu, matrix
from conftest import SHARED_DATA

from seatrial.analysis.rules import findings
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_topo
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine, Path

MISREAD = SHARED_DATA / "topology-misread"

V100_CUBE = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 1, (2, 6): 2, (3, 7): 2,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 1,
}  # fmt: skip
"""DGX-1 with V100: six links of each GPU. No GPU reaches all others."""


def gpus(number: int) -> tuple[Device, ...]:
    return tuple(gpu(f"GPU{k}") for k in range(number))


def board(number: int, classes: dict[tuple[int, int], str], other: str = "NODE") -> Machine:
    named = {(f"GPU{a}", f"GPU{b}"): text for (a, b), text in classes.items()}
    devices = gpus(number)
    return Machine("m", devices, paths=matrix([device.id for device in devices], named, other))


def full(number: int, text: str, *, off: set[int] = frozenset(), others: str = "NODE") -> dict[tuple[int, int], str]:
    return {p: others if off & set(p) else text for p in combinations(range(number), 2)}


def cube(less: dict[tuple[int, int], int] | None = None, keep: int = 8, name: str = "NV") -> Machine:
    counts = V100_CUBE | (less or {})
    links = {p: f"{name}{n}" for p, n in counts.items() if n and max(p) < keep}
    return board(keep, links, "SYS")


def found(machine: Machine) -> Finding | None:
    several = [finding for finding in findings(machine, ()) if finding.rule == "gpu-link-missing"]
    assert len(several) <= 1
    return several[0] if several else None


def groups(text: str, *members: set[int], number: int = 8) -> Machine:
    return board(number, {p: text for group in members for p in combinations(sorted(group), 2)})


FAULTS = {
    "one of eight off": (board(8, full(8, "NV18", off={2})), "GPU2", "no NVLink"),
    "two of eight off": (board(8, full(8, "NV18", off={2, 5})), "GPU2, GPU5", "no NVLink"),
    "half of the board off": (board(8, full(8, "NV18", off={4, 5, 6, 7})), "GPU4 to GPU7", "no NVLink"),
    "three of eight A100 off": (board(8, full(8, "NV12", off={0, 1, 2})), "GPU0 to GPU2", "no NVLink"),
    "one of sixteen off (DGX-2)": (board(16, full(16, "NV6", off={15})), "GPU15", "no NVLink"),
    "one of four off (GB200)": (board(4, full(4, "NV18", off={3})), "GPU3", "no NVLink"),
    "one of four off (mesh)": (board(4, full(4, "NV4", off={1})), "GPU1", "no NVLink"),
    "one of eight off (XGMI)": (board(8, full(8, "XGMI", off={6})), "GPU6", "no XGMI link"),
    "one link of a GPU": (board(8, full(8, "NV18") | {(k, 7): "NV17" for k in range(7)}), "GPU7", "17 NVLinks"),
    "NV12 among NV18": (
        board(8, full(8, "NV18") | {p: "NV12" for p in combinations(range(8), 2) if {1, 6} & set(p)}),
        "GPU1, GPU6",
        "12 NVLinks each",
    ),
    "one pair of a switched board": (board(8, full(8, "NV18") | {(2, 3): "NV16"}), "GPU2 and GPU3", "16 NVLinks"),
    "one pair without": (board(8, full(8, "NV18") | {(0, 7): "SYS"}), "GPU0 and GPU7", "no NVLink"),
    "one pair of a mesh": (board(4, full(4, "NV4") | {(1, 2): "NV3"}), "GPU1 and GPU2", "3 NVLinks"),
    "one pair of a mesh without": (board(4, full(4, "NV4") | {(1, 2): "PHB"}), "GPU1 and GPU2", "no NVLink"),
    "one pair without (XGMI)": (board(8, full(8, "XGMI") | {(3, 4): "PCI"}), "GPU3 and GPU4", "no XGMI link"),
    "one link of a cube mesh": (cube({(0, 3): 1}), "GPU0 and GPU3", "1 NVLink "),
    "one pair of a cube mesh": (cube({(0, 4): 0}), "GPU0 and GPU4", "no NVLink"),
    "a GPU of a cube mesh off": (
        cube({pair: 0 for pair in V100_CUBE if 5 in pair}), "GPU5", "no NVLink",
    ),
    "half of a GPU's links in a cube mesh": (cube({(0, 4): 0, (0, 3): 0}), "GPU0, GPU3, GPU4", "2 to 4 NVLinks"),
    "a ring of eight, broken": (
        board(8, {(k, k + 1): "XGMI" for k in range(7)}, "PCI"), "GPU0 and GPU7", "no XGMI link",
    ),
}  # fmt: skip

NO_FAULTS = {
    "eight with switches": board(8, full(8, "NV18")),
    "four fully meshed": board(4, full(4, "NV4")),
    "four of an H100 board": board(4, full(4, "NV6")),
    "bridges of two": groups("NV4", {0, 1}, {2, 3}, {4, 5}, {6, 7}),
    "one bridge of two among four": groups("NV12", {0, 1}, number=4),
    "one bridge of two among eight": groups("NV18", {2, 3}),
    "bridges of four": groups("NV6", {0, 1, 2, 3}, {4, 5, 6, 7}),
    "hives of four": groups("XGMI", {0, 1, 2, 3}, {4, 5, 6, 7}),
    "three per socket (POWER9)": groups("NV2", {0, 1, 2}, {3, 4, 5}, number=6),
    "a hybrid cube mesh": cube(),
    "a hybrid cube mesh of P100": board(8, dict.fromkeys(V100_CUBE, "NV1"), "SOC"),
    "two linked": board(2, {(0, 1): "NV2"}),
    "none linked": board(8, {}),
    "a ring of four": board(4, {(0, 1): "XGMI", (1, 2): "XGMI", (2, 3): "XGMI", (0, 3): "XGMI"}, "PCI"),
    "unknown pairs": Machine(
        "m",
        gpus(4),
        paths=(*matrix(["GPU0", "GPU1", "GPU2"], {}, "NV18"), *(Path(f"GPU{k}", "GPU3", None) for k in range(3))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(FAULTS))
def test_a_missing_link_is_an_error_that_names_it(case: str) -> None:
    machine, who, what = FAULTS[case]
    finding = found(machine)
    assert finding is not None and finding.severity is Severity.ERROR
    assert finding.observation.startswith(f"{who} ha") and what in f"{finding.observation.partition(';')[0]} "
    assert "do not show the cause" in finding.diagnosis and "normal" not in finding.diagnosis
    assert ("nvidia-smi nvlink -s" if "XGMI" not in finding.observation else "rocm-smi --showtopo") in finding.remedy
    assert all(other.rule != "gpu-links-uneven" for other in findings(machine, ()))


@pytest.mark.parametrize("case", sorted(NO_FAULTS))
def test_boards_that_differ_by_design_are_no_fault(case: str) -> None:
    assert found(NO_FAULTS[case]) is None


@pytest.mark.parametrize("keep", range(2, 8))
@pytest.mark.parametrize("is_v100", [True, False])
def test_hidden_gpus_of_a_cube_mesh_are_no_error(keep: int, is_v100: bool) -> None:
    """A batch system shows a job only its own GPUs: the links to the others seem to be missing."""
    warnings = 0
    for members in combinations(range(8), keep):
        place = {gpu: k for k, gpu in enumerate(members)}
        links = {
            (place[a], place[b]): f"NV{count if is_v100 else 1}"
            for (a, b), count in V100_CUBE.items()
            if {a, b} <= place.keys()
        }
        finding = found(board(keep, links, "SYS"))
        assert finding is None or finding.severity is Severity.WARNING, members
        warnings += finding is not None
    assert warnings < 16


def test_what_may_be_intended_is_a_warning() -> None:
    parts = found(groups("NV18", {0, 1, 2, 3}, {4, 5, 6, 7}))
    assert parts is not None and parts.severity is Severity.WARNING
    assert "2 groups without NVLinks between them: GPU0 to GPU3; GPU4 to GPU7" in parts.observation
    assert "partitions" in parts.diagnosis
    bridges = found(groups("NV4", {0, 1}, {2, 3}, {4, 5}))
    assert bridges is not None and bridges.severity is Severity.WARNING
    assert bridges.devices == ("GPU6", "GPU7") and "never installed" in bridges.diagnosis
    display = found(board(5, full(5, "NV4", off={3})))  # DGX Station A100: four GPUs and one for the display
    assert display is not None and display.severity is Severity.WARNING and "display card" in display.diagnosis


def test_a_gpu_of_another_product_is_not_compared() -> None:
    names = ["NVIDIA A100-SXM4-80GB"] * 4 + ["NVIDIA T1000"]
    devices = tuple(gpu(f"GPU{k}", model_name=name) for k, name in enumerate(names))
    paths = matrix([d.id for d in devices], {(f"GPU{a}", f"GPU{b}"): "NV4" for a, b in combinations(range(4), 2)})
    assert found(Machine("m", devices, paths=paths)) is None
    same = tuple(gpu(f"GPU{k}", model_name=names[0]) for k in range(5))
    assert found(Machine("m", same, paths=paths)) is not None


def test_switches_that_are_listed_need_no_numbers() -> None:
    devices = (*gpus(4), *(Device(f"nvs{k}", DeviceKind.SWITCH, f"nvs{k}") for k in range(2)))
    links = tuple(Link(f"GPU{k}", f"nvs{s}", "nvlink", None, None, "x") for k in range(3) for s in range(2))
    names = [d.id for d in devices if d.kind is DeviceKind.GPU]
    classes = {(f"GPU{a}", f"GPU{b}"): "NV" for a, b in combinations(range(3), 2)}
    finding = found(Machine("m", devices, links=links, paths=matrix(names, classes, "PIX")))
    assert finding is not None and finding.severity is Severity.ERROR and finding.devices == ("GPU3",)
    assert "1 " not in finding.observation.partition(".")[0], "the number of links is unknown"


def test_a_list_of_links_is_complete() -> None:
    """NCCL lists links, and no class for the other pairs."""
    links = tuple(Link(f"gpu-{a}", f"gpu-{b}", "xgmi", None, None, "x", count=1) for a, b in combinations(range(7), 2))
    paths = tuple(Path(f"gpu-{k}", "gpu-7", None) for k in range(7))
    finding = found(Machine("m", tuple(gpu(f"gpu-{k}") for k in range(8)), links=links, paths=paths))
    assert finding is not None and finding.devices == ("gpu-7",) and finding.severity is Severity.ERROR


def test_what_to_check_names_the_gpus_and_the_fabric() -> None:
    finding = found(board(8, full(8, "NV18", off={2})))
    assert finding is not None
    assert finding.observation == (
        "GPU2 has no NVLink; GPU0, GPU1, GPU3 to GPU7 have 18 NVLinks each. 7 of 28 GPU pairs have none."
    )
    for word in ("fabric manager", "partition", "MIG"):
        assert word in finding.diagnosis
    for command in ("nvidia-smi nvlink -s -i 2", "nvidia-smi -q -i 2", "systemctl status nvidia-fabricmanager"):
        assert command in finding.remedy


def test_a_hundred_gpus_are_judged_at_once() -> None:
    finding = found(board(128, full(128, "NV18", off={77})))
    assert finding is not None and finding.devices == ("GPU77",) and len(finding.evidence) < 2000


@pytest.mark.skipif(not MISREAD.is_dir(), reason="the third-party samples (shared/data/topology-misread) are not here")
def test_a_real_board_with_a_gpu_off() -> None:
    machine = assemble([read_nvidia_smi_topo((MISREAD / "smi-topo_b200_gpu2_off_nvlink.txt").read_bytes())])
    finding = found(machine)
    assert finding is not None and finding.severity is Severity.ERROR and finding.devices == ("GPU2",)
    whole = assemble([read_nvidia_smi_topo((MISREAD / "smi-topo_gb200_gpunuma_sglang11208.txt").read_bytes())])
    assert found(whole) is None
