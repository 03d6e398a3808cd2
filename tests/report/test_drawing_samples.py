"""Drawings of all real machines, and of large ones: nothing overlaps, nothing leaves its box, nothing is cut."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import pytest
from report import test_drawing_layout as layout
from report.drawing_machines import Builder
from shared_samples import DUMPS, TOPOLOGY

from seatrial.errors import SeatrialError
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import Dump, survey_dumps
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_topo
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.report.drawing.build import build_scene
from seatrial.report.drawing.geometry import Drawing
from seatrial.report.drawing.layout import lay_out
from seatrial.report.drawing.scene import DrawnPlace
from seatrial.report.text.machine import machine_text

MISREAD = TOPOLOGY.parent / "topology-misread"
SAMPLES = sorted(
    {(kind, f"topology/{name}") for kind, names in DUMPS.items() for name in names}
    | {
        ("hwloc-xml", "topology-misread/hwloc_64intel64-heteromem.xml"),
        ("hwloc-xml", "topology-misread/hwloc_cxlmem+dax.v3.xml"),
        ("hwloc-xml", "topology-misread/hwloc_fakepcilocalities.xml"),
        ("hwloc-xml", "topology-misread/hwloc_gh200.xml"),
        ("dmidecode", "topology-misread/dmi_PRIMERGY-RX2450-M2_6F7BBA6E51B5.txt"),
        ("dmidecode", "topology-misread/dmi_SYS-511E-WR_757BDADF0B5C.txt"),
        ("dmidecode", "topology-misread/dmi_grace_megarac.txt"),
        ("lspci-tree", "topology-misread/lspci-tree_qemu-2numa-switch-2nvme.txt"),
        ("lspci-vv", "topology-misread/lspci-vv_qemu-2numa-switch-2nvme.txt"),
        ("nvidia-smi-topo", "topology-misread/smi-topo_6gpu_ansi.txt"),
        ("nvidia-smi-topo", "topology-misread/smi-topo_b200_gpu2_off_nvlink.txt"),
        ("nvidia-smi-topo", "topology-misread/smi-topo_gb200_gpunuma_sglang11208.txt"),
        ("rocm-smi-topo", "topology-misread/rocm-smi_showtopo_4_pcie_3hops.txt"),
    }
)
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
CHECKS = (
    layout.test_boxes_overlap_only_where_one_holds_the_other,
    layout.test_text_stays_in_its_box_and_no_two_texts_overlap,
    layout.test_labels_lie_on_no_box_and_all_lies_in_the_picture,
    layout.test_lines_run_beside_boxes_not_through_them,
    layout.test_arcs_lie_in_the_picture_and_above_the_legend,
    layout.test_no_rate_is_cut_off,
)


def matrix(gpus: int, nics: int, *, link: str = "SYS", off: frozenset[int] = frozenset()) -> Machine:
    """A machine of which a matrix is known: each adapter is PIX to the GPUs that divide evenly onto it, eight sockets
    at most."""
    names = [f"GPU{k}" for k in range(gpus)] + [f"NIC{k}" for k in range(nics)]
    each = -(-gpus // max(1, nics))
    switch = {name: int(name[3:]) // each if name.startswith("GPU") else int(name[3:]) for name in names}
    sockets = min(8, max(1, gpus // 8))
    node = {name: switch[name] * sockets // max(1, max(switch.values()) + 1) for name in names}
    rows = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity"]
    for a in names:
        cells = []
        for b in names:
            is_linked = a[:3] == b[:3] == "GPU" and not off & {int(a[3:]), int(b[3:])}
            near = "PIX" if switch[a] == switch[b] else "NODE" if node[a] == node[b] else "SYS"
            cells.append("X" if a == b else link if is_linked and link != "SYS" else near)
        cpus = f"{16 * node[a]}-{16 * node[a] + 15}\t{node[a]}" if a.startswith("GPU") else ""
        rows.append("\t".join([a, *cells, cpus]))
    return assemble([read_nvidia_smi_topo("\n".join(rows).encode())])


BIG = {
    "64 GPUs, 32 adapters": lambda: matrix(64, 32),
    "64 GPUs, 32 adapters, NVLink": lambda: matrix(64, 32, link="NV18"),
    "64 GPUs, one of them off": lambda: matrix(64, 0, link="NV18", off=frozenset({17})),
    "16 GPUs in a mesh, two off": lambda: matrix(16, 16, link="NV1", off=frozenset({3, 4})),
    "8 GPUs, one in the middle of a column off": lambda: matrix(8, 0, link="NV18", off=frozenset({1})),
    "8 GPUs, 8 adapters, one GPU off": lambda: matrix(8, 8, link="NV18", off=frozenset({2})),
    "72 GPUs": lambda: matrix(72, 0, link="NV18"),
    "100 adapters": lambda: matrix(1, 100),
}


@cache
def sample(kind: str, path: str) -> Machine:
    file = TOPOLOGY.parent / path
    if not file.exists():
        pytest.skip(f"needs {file}, which is not part of the repository")
    data = file.read_bytes()
    try:
        return assemble(survey_dumps([Dump(kind, path, data)]))
    except SeatrialError:  # several dumps in one file
        return assemble(survey_dumps([Dump(kind, path, data, 1)]))


def whole(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Drawing:
    """The picture, after all checks of layouts."""
    picture = lay_out(build_scene(machine))
    monkeypatch.setattr(layout, "picture", lambda _: picture)
    monkeypatch.setattr(layout, "machine", lambda _: machine)
    for each in CHECKS:
        each("x")
    texts = [text for box in picture.boxes for text in box.texts] + picture.labels
    assert not any(ELLIPSIS in text.text for text in texts)
    ids = [device for box in picture.boxes if box.kind in ("gpu", "nic") for device in box.devices]
    shown = [device.id for device in machine.devices if device.kind in (DeviceKind.GPU, DeviceKind.NIC)]
    rest = [device for box in picture.boxes if box.kind == "rest" for device in box.devices]
    assert set(ids) <= set(shown) <= {*ids, *rest} and len(ids) == len(set(ids))
    return picture


@pytest.mark.parametrize(("kind", "path"), SAMPLES)
def test_a_real_machine_is_drawn_whole(monkeypatch: pytest.MonkeyPatch, kind: str, path: str) -> None:
    machine = sample(kind, path)
    whole(monkeypatch, machine)
    beside_in_boxes(machine)


@pytest.mark.parametrize("name", sorted(BIG))
def test_a_large_machine_is_drawn_whole(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine = BIG[name]()
    picture = whole(monkeypatch, machine)
    beside_in_boxes(machine)
    for stroke in picture.strokes:
        if stroke.kind == "peer" and " off" in name:
            off = {box.devices for box in picture.boxes if any(text.text == "no NVLink" for text in box.texts)}
            assert off and not any(f"{device} to " in stroke.hint for devices in off for device in devices)


def boxes_of(place: DrawnPlace) -> list[set[str]]:
    """The devices in each switch box of a place and below."""
    found = []
    for hub in place.hubs:
        if hub.place is not None:
            found.append({device for card in hub.place.all_cards() for device in card.devices})
            found += boxes_of(hub.place)
    return found


def beside_in_boxes(machine: Machine) -> None:
    """An adapter that is PIX to a GPU is in one switch box with it, and no farther device is in the innermost."""
    classes = {frozenset((path.a, path.b)): path.path_class for path in machine.paths}
    kinds = {device.id: device.kind for device in machine.devices}
    boxes = [box for place in build_scene(machine).places() for box in boxes_of(place)]
    for path in machine.paths:
        if path.path_class == "PIX" and {kinds[path.a], kinds[path.b]} == {DeviceKind.GPU, DeviceKind.NIC}:
            around = [box for box in boxes if {path.a, path.b} <= box]
            assert around, f"{path.a} and {path.b} are behind one switch"
            innermost = min(around, key=len)
            far = [pair for pair in combinations(sorted(innermost), 2)
                   if classes.get(frozenset(pair)) in ("PXB", "PHB", "NODE", "SYS")]  # fmt: skip
            assert not far, (path, far)


@pytest.mark.parametrize(("gpus", "nics"), [*product((1, 2, 8, 16), (1, 2, 8))])
def test_adapters_are_beside_their_gpus(gpus: int, nics: int) -> None:
    beside_in_boxes(matrix(gpus, nics))
    beside_in_boxes(matrix(gpus, nics, link="NV18"))


def test_one_link_has_one_rate() -> None:
    """A port describes the link below it again, with a capability of its own: neither text nor drawing repeats it."""
    build = Builder("m")
    host = build.host(build.node(0, build.package(0, "CPU"), 2))
    port = build.bridge(host, None)
    build.link(host, port, 31.5e9, 0.25e9)
    build.device(DeviceKind.GPU, port, "Card", rate=0.25e9)
    machine = build.machine()
    (card,) = build_scene(machine).cards()
    assert card.rate.text == "250 MB/s" and not card.rate.is_low
    assert "31.5" not in machine_text(machine) and "250 MB/s" in machine_text(machine)


def test_the_link_of_a_device_without_a_parent_is_drawn() -> None:
    devices = (Device("gpu-0", DeviceKind.GPU, "Card"), Device("gpu-1", DeviceKind.GPU, "Card"))
    links = tuple(Link("host", device.id, "pcie", 31.5e9, 4e9, "lspci -vv") for device in devices)
    machine = Machine("m", devices, links=links)
    assert [card.rate.text for card in build_scene(machine).cards()] == ["trained 4.00 of 31.5 GB/s"] * 2
    assert "link 4.00 GB/s trained of 31.5 GB/s capable" in machine_text(machine)
