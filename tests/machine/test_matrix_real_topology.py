"""`nvidia-smi topo -m` of real machines, read exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_topo
from seatrial.machine.readers.scalars import read_cpu_list, write_cpu_list
from seatrial.machine.survey import NamedPart, Survey
from seatrial.model.machine.machine import DeviceKind

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"

Places = dict[str, tuple[str | None, int | None]]


def _shared(name: str) -> bytes:
    if not (SHARED / name).exists():
        pytest.skip(f"needs {SHARED / name}, which is not part of the repository")
    return (SHARED / name).read_bytes()


def _part(survey: Survey, name: str) -> NamedPart:
    return next(part for part in survey.named_parts if part.name == name)


def _classes(survey: Survey) -> dict[tuple[str, str], str]:
    return {(path.a, path.b): f"{path.path_class}{path.links or ''}" for path in survey.paths}


def _places(survey: Survey) -> Places:
    return {
        part.name: (None if part.cpus is None else write_cpu_list(part.cpus), part.numa) for part in survey.named_parts
    }


def _gpus(first: int, last: int, cpus: str | None, numa: int | None) -> Places:
    shown = None if cpus is None else write_cpu_list(read_cpu_list(cpus))
    return {f"GPU{number}": (shown, numa) for number in range(first, last + 1)}


def _nics(*names: str) -> Places:
    return dict.fromkeys(names, (None, None))


_ALL_NV12 = {(f"GPU{a}", f"GPU{b}"): "NV12" for a in range(8) for b in range(a + 1, 8)}
_ALL_NV18 = dict.fromkeys(_ALL_NV12, "NV18")
_EVEN = "0,2,4,6,8,10,12,14,16,18,20,22,24,26"
_ODD = "1,3,5,7,9,11,13,15,17,19,21,23,25,27"
_DGX1_NICS = ("mlx5_0", "mlx5_2", "mlx5_1", "mlx5_3")

REAL: list[tuple[str, int | None, dict[tuple[str, str], str], Places]] = [
    (
        "smi-topo_2gpu_NV1_litgpt.txt",
        None,
        {("GPU0", "GPU1"): "NV1"},
        _gpus(0, 1, "0-15", 0),
    ),
    (
        "smi-topo_2gpu_NV2_and_PHB_numaNA_stas00.txt",
        1,
        {("GPU0", "GPU1"): "NV2"},
        _gpus(0, 1, "0-23", None),
    ),
    (
        "smi-topo_2gpu_NV2_and_PHB_numaNA_stas00.txt",
        2,
        {("GPU0", "GPU1"): "PHB"},
        _gpus(0, 1, "0-11", None),
    ),
    (
        "smi-topo_4gpu_PHB_SOC_mlx4_tf-gdr.txt",
        None,
        {
            ("GPU0", "GPU1"): "PHB", ("GPU0", "GPU2"): "SYS", ("GPU0", "GPU3"): "SYS", ("GPU0", "mlx4_0"): "SYS",
            ("GPU1", "GPU2"): "SYS", ("GPU1", "GPU3"): "SYS", ("GPU1", "mlx4_0"): "SYS",
            ("GPU2", "GPU3"): "PHB", ("GPU2", "mlx4_0"): "PHB", ("GPU3", "mlx4_0"): "PHB",
        },
        _gpus(0, 1, "0-5", None) | _gpus(2, 3, "6-11", None) | _nics("mlx4_0"),
    ),
    (
        "smi-topo_4gpu_PHB_nonvlink_litgpt.txt",
        None,
        {("GPU0", "GPU1"): "PHB", ("GPU2", "GPU3"): "PHB"},
        _gpus(0, 3, "0-47", 0),
    ),
    (
        "smi-topo_a100_and_h100_8x_reformatted_stas00.txt",
        1,
        _ALL_NV12,
        _gpus(0, 3, "0-23", 0) | _gpus(4, 7, "24-47", 1),
    ),
    (
        "smi-topo_a100_and_h100_8x_reformatted_stas00.txt",
        2,
        _ALL_NV18,
        _gpus(0, 3, "0-51", 0) | _gpus(4, 7, "52-103", 1),
    ),
    (
        "smi-topo_a100_cgroup_partial-affinity_NODE-PIX-PHB.txt",
        None,
        {("GPU0", "GPU3"): "NV4", ("GPU2", "NIC1"): "NODE", ("NIC0", "NIC1"): "PIX", ("NIC1", "NIC2"): "PHB"},
        _gpus(0, 1, "0", 0) | _gpus(2, 3, None, 1) | _nics("NIC0", "NIC1", "NIC2"),
    ),
    (
        "smi-topo_a100_hgx_10nic_legend_litgpt.txt",
        None,
        _ALL_NV12
        | {
            ("GPU0", "NIC2"): "PXB", ("GPU0", "NIC0"): "SYS", ("GPU2", "NIC0"): "PXB", ("GPU7", "NIC5"): "PXB",
            ("GPU4", "NIC9"): "PXB", ("NIC0", "NIC1"): "PIX", ("NIC2", "NIC3"): "PXB", ("NIC6", "NIC7"): "PIX",
        },
        _gpus(0, 3, "0-63,128-191", 0)
        | _gpus(4, 7, "64-127,192-254", 1)
        | _nics(*(f"NIC{number}" for number in range(10))),
    ),
    (
        "smi-topo_a100_polaris_header-no-leading-tab.txt",
        None,
        {("GPU0", "GPU3"): "NV4", ("GPU1", "mlx5_1"): "PHB", ("GPU3", "mlx5_0"): "PHB", ("mlx5_0", "mlx5_1"): "SYS"},
        _gpus(0, 0, "24-31,56-63", 3)
        | _gpus(1, 1, "16-23,48-55", 2)
        | _gpus(2, 2, "8-15,40-47", 1)
        | _gpus(3, 3, "0-7,32-39", 0)
        | _nics("mlx5_0", "mlx5_1"),
    ),
    (
        "smi-topo_a100pcie_della_and_power9_traverse.txt",
        1,
        {
            ("GPU0", "GPU1"): "SYS", ("GPU0", "mlx5_0"): "NODE", ("GPU0", "mlx5_1"): "SYS",
            ("GPU1", "mlx5_0"): "SYS", ("GPU1", "mlx5_1"): "NODE", ("mlx5_0", "mlx5_1"): "SYS",
        },
        _gpus(0, 0, "0-63", 0) | _gpus(1, 1, "64-127", 1) | _nics("mlx5_0", "mlx5_1"),
    ),
    (
        "smi-topo_a100pcie_della_and_power9_traverse.txt",
        2,
        {("GPU0", "GPU1"): "NV3", ("GPU1", "GPU2"): "SYS", ("GPU3", "mlx5_2"): "NODE", ("mlx5_2", "mlx5_3"): "PIX"},
        _gpus(0, 1, "0-63", 0) | _gpus(2, 3, "64-127", 8) | _nics("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"),
    ),
    (
        "smi-topo_dgx1-p100_jammed-header_SOC.txt",
        None,
        {
            ("GPU0", "GPU4"): "NV1", ("GPU0", "GPU5"): "SYS", ("GPU0", "mlx5_0"): "PIX", ("GPU0", "mlx5_1"): "PHB",
            ("GPU4", "mlx5_2"): "PIX", ("mlx5_0", "mlx5_1"): "PHB", ("mlx5_2", "mlx5_1"): "SYS",
        },
        _gpus(0, 7, "1", None) | _nics(*_DGX1_NICS),
    ),
    (
        "smi-topo_h100_8x_HT-split-affinity_stas00.txt",
        None,
        _ALL_NV18,
        _gpus(0, 3, "0-51,104-155", 0) | _gpus(4, 7, "52-103,156-207", 1),
    ),
    (
        "smi-topo_h100_hgx_8nic_legend_offset_sglang-env.txt",
        None,
        _ALL_NV18
        | {(f"GPU{number}", f"NIC{number}"): "PIX" for number in range(8)}
        | {("GPU0", "NIC1"): "NODE", ("GPU0", "NIC4"): "SYS", ("NIC0", "NIC3"): "NODE", ("NIC3", "NIC4"): "SYS"},
        _gpus(0, 3, "0-47,96-143", 0)
        | _gpus(4, 7, "48-95,144-191", 1)
        | _nics(*(f"NIC{number}" for number in range(8))),
    ),
    (
        "smi-topo_k80_2boards_mlx4_microway.txt",
        None,
        {("GPU0", "GPU1"): "PIX", ("GPU0", "GPU2"): "PHB", ("GPU2", "GPU3"): "PIX", ("GPU3", "mlx4_0"): "PHB"},
        _gpus(0, 3, "0-11", None) | _nics("mlx4_0"),
    ),
    (
        "smi-topo_p100pcie_comet_mlx4_SOC.txt",
        None,
        {("GPU0", "GPU1"): "PIX", ("GPU1", "GPU2"): "SYS", ("GPU1", "mlx4_0"): "PHB", ("GPU2", "mlx4_0"): "SYS"},
        _gpus(0, 1, _EVEN, None) | _gpus(2, 3, _ODD, None) | _nics("mlx4_0"),
    ),
    (
        "smi-topo_rtx4090_8x_2nic_go-gpuallocator-17.txt",
        None,
        {("GPU0", "GPU7"): "SYS", ("GPU6", "NIC0"): "PHB", ("GPU6", "NIC1"): "PHB", ("NIC0", "NIC1"): "PIX"},
        _gpus(0, 3, "0-55,112-167", 0) | _gpus(4, 7, "56-111,168-223", 1) | _nics("NIC0", "NIC1"),
    ),
    ("smi-topo_single_MISSING-affinity_wsl_sglang-env.txt", None, {}, _gpus(0, 0, None, None)),
    ("smi-topo_single_gb10.txt", None, {}, _gpus(0, 0, "0-19", 0)),
    (
        "smi-topo_v100_8x_NIC0_numa_NODE.txt",
        None,
        {("GPU0", "GPU3"): "NV2", ("GPU1", "GPU5"): "NV2", ("GPU3", "GPU7"): "NV1", ("GPU0", "NIC0"): "NODE",
         ("GPU4", "NIC0"): "SYS"},
        _gpus(0, 3, "0-19,40-59", 0) | _gpus(4, 7, "20-39,60-79", 1) | _nics("NIC0"),
    ),
    (
        "smi-topo_v100_dgx1_4xmlx5.txt",
        None,
        {
            ("GPU0", "mlx5_0"): "PIX", ("GPU0", "mlx5_2"): "SYS", ("GPU0", "mlx5_1"): "PHB", ("GPU2", "mlx5_1"): "PIX",
            ("GPU6", "mlx5_3"): "PIX", ("GPU6", "GPU7"): "NV2", ("mlx5_2", "mlx5_3"): "PHB",
        },
        _gpus(0, 3, "0-19,40-59", None) | _gpus(4, 7, "20-39,60-79", None) | _nics(*_DGX1_NICS),
    ),
    (
        "lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt",
        None,
        {
            ("GPU0", "GPU1"): "PHB", ("GPU0", "NIC0"): "NODE", ("GPU0", "NIC1"): "NODE",
            ("GPU1", "NIC0"): "NODE", ("GPU1", "NIC1"): "NODE", ("NIC0", "NIC1"): "PIX",
        },
        _gpus(0, 1, "0-23", 0) | _nics("NIC0", "NIC1"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pick", "classes", "places"), REAL, ids=[f"{case[0]}#{case[1]}" for case in REAL])
def test_real_machines(name: str, pick: int | None, classes: dict[tuple[str, str], str], places: Places) -> None:
    survey = read_nvidia_smi_topo(_shared(name), pick)
    labels = list(places)
    assert [part.name for part in survey.named_parts] == labels
    pairs = [(a, b) for number, a in enumerate(labels) for b in labels[number + 1 :]]
    assert [(path.a, path.b) for path in survey.paths] == pairs, "each pair once, in the header's order"
    read = _classes(survey)
    assert {pair: read[pair] for pair in classes} == classes
    assert _places(survey) == places
    assert survey.unread == ()
    assert survey.p2p == survey.peer_links == ()


@pytest.mark.parametrize(
    ("name", "pick", "first", "labels"),
    [
        ("smi-topo_v100_dgx1_4xmlx5.txt", None, 2, 12),
        ("smi-topo_dgx1-p100_jammed-header_SOC.txt", None, 2, 12),
        ("smi-topo_a100_hgx_10nic_legend_litgpt.txt", None, 2, 18),
        ("smi-topo_v100_8x_NIC0_numa_NODE.txt", None, 2, 9),
        ("smi-topo_p100pcie_comet_mlx4_SOC.txt", None, 4, 5),
        ("smi-topo_a100pcie_della_and_power9_traverse.txt", 2, 40, 8),
    ],
)
def test_every_cell_of_real_machines(name: str, pick: int | None, first: int, labels: int) -> None:
    data = _shared(name)
    rows = [line.split("\t") for line in data.decode().splitlines()[first - 1 : first - 1 + labels]]
    names = [part.name for part in read_nvidia_smi_topo(data, pick).named_parts]
    classes = _classes(read_nvidia_smi_topo(data, pick))
    seen = 0
    for row in rows:
        for label, cell in zip(names, row[1:], strict=False):
            if label != row[0]:
                pair = (row[0], label) if (row[0], label) in classes else (label, row[0])
                assert classes[pair] == cell.strip().replace("SOC", "SYS")
                seen += 1
    assert seen == labels * (labels - 1)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("smi-topo_2gpu_NV2_and_PHB_numaNA_stas00.txt", ("line 1", "line 8")),
        ("smi-topo_a100_and_h100_8x_reformatted_stas00.txt", ("line 2", "line 17")),
        ("smi-topo_a100pcie_della_and_power9_traverse.txt", ("line 5", "line 39")),
    ],
)
def test_two_matrices_are_refused_with_both_lines(name: str, lines: tuple[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        read_nvidia_smi_topo(_shared(name))
    assert not isinstance(caught.value, ParseError)
    assert all(line in str(caught.value) for line in lines)
    with pytest.raises(UsageError, match="no matrix 3"):
        read_nvidia_smi_topo(_shared(name), 3)


def test_names_of_adapters_come_from_the_legend() -> None:
    survey = read_nvidia_smi_topo(_shared("smi-topo_h100_hgx_8nic_legend_offset_sglang-env.txt"))
    assert [part.aliases for part in survey.named_parts if part.kind is DeviceKind.NIC] == [
        (f"mlx5_{number}",) for number in range(1, 9)
    ]
    survey = read_nvidia_smi_topo(_shared("smi-topo_a100_hgx_10nic_legend_litgpt.txt"))
    assert _part(survey, "NIC9").aliases == ("mlx5_9",)


def test_other_tools_dumps_hold_no_matrix() -> None:
    for name in ("smi-topo-p2p_h100_OK_and_L4_CNS_stas00.txt", "rocm-smi_showtopotype_8gpu_xgmi_litgpt.txt"):
        with pytest.raises(ParseError, match="no matrix"):
            read_nvidia_smi_topo(_shared(name))
