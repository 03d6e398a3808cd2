"""Geometry of the drawing: nothing overlaps, text stays in its box, everything is drawn once, over many machines."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from report.drawing_machines import MACHINES, Builder

from seatrial.machine.assemble import assemble
from seatrial.machine.readers.nccl_xml import read_nccl_xml
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_topo
from seatrial.machine.readers.rocm_smi_topo import read_rocm_smi_topo
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.report.drawing.build import build_scene
from seatrial.report.drawing.geometry import Box, Drawing
from seatrial.report.drawing.layout import WIDEST, lay_out
from seatrial.report.drawing.scene import Scene

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"
SHOWN = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.SWITCH, DeviceKind.NVME, DeviceKind.BLOCK)
NEAR = 0.05


def random_machine(seed: int) -> Machine:
    """Sockets, nodes and trees of any shape, some with links between GPUs."""
    rng = random.Random(seed)
    build = Builder(f"random-{seed}")
    gpus: list[str] = []

    def grow(at: str, depth: int) -> None:
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            rate = rng.choice((3.9e9, 15.75e9, 31.5e9))
            roll = rng.random()
            if roll < 0.35 and depth < 6:
                grow(build.bridge(at, rate, pci_name="PEX " * rng.randint(1, 9)), depth + 1)
            elif roll < 0.5 and depth < 4:
                for port in build.switch(at, rng.randint(1, 5), rate):
                    grow(port, depth + 3)
            else:
                kind = rng.choice((*SHOWN, DeviceKind.GPU))
                low, measured = rng.choice((None, None, rate / 4)), rng.choice((None, None, rate * 0.8))
                made = build.device(kind, at, "Accelerator " * rng.randint(0, 4), rate=rate, trained=low,
                                    measured=measured, size=rng.choice((10**9, 10**12)))  # fmt: skip
                if kind is DeviceKind.GPU:
                    gpus.append(made)

    number = 0
    for package in range(rng.choice((1, 2, 2, 3, 4))):
        at = build.package(package, "Some(R) Processor " * rng.randint(1, 5))
        for _ in range(rng.choice((1, 1, 2, 4))):
            node = build.node(number, at, rng.randint(1, 4), l3=(32,) * rng.randint(0, 2))
            number += 1
            for _ in range(rng.choice((0, 1, 1, 2))):
                grow(build.host(node), 0)
    if rng.random() < 0.5:
        for a, b in combinations(gpus[:12], 2):
            if rng.random() < 0.5:
                build.nvlink(a, b, rng.randint(1, 4))
    return build.machine()


ALL = [*MACHINES, *(f"random-{seed}" for seed in range(24))]


@cache
def machine(name: str) -> Machine:
    return MACHINES[name]() if name in MACHINES else random_machine(int(name.removeprefix("random-")))


@cache
def scene(name: str) -> Scene:
    return build_scene(machine(name))


@cache
def picture(name: str) -> Drawing:
    return lay_out(scene(name))


def overlap(a: Box, b: Box) -> bool:
    return (
        a.x < b.right - NEAR and b.x < a.right - NEAR and a.y < b.bottom - NEAR and b.y < a.bottom - NEAR
    )  # fmt: skip


def around(boxes: list[Box], number: int) -> set[int]:
    """The boxes that hold a box."""
    found: set[int] = set()
    at = boxes[number].inside
    while at is not None:
        found.add(at)
        at = boxes[at].inside
    return found


@pytest.mark.parametrize("name", ALL)
def test_boxes_overlap_only_where_one_holds_the_other(name: str) -> None:
    boxes = picture(name).boxes
    for first, second in combinations(range(len(boxes)), 2):
        a, b = boxes[first], boxes[second]
        if first in around(boxes, second):
            assert a.x <= b.x and b.right <= a.right + NEAR and a.y <= b.y and b.bottom <= a.bottom + NEAR, (a, b)
        else:
            assert not overlap(a, b), (a, b)


@pytest.mark.parametrize("name", ALL)
def test_text_stays_in_its_box_and_no_two_texts_overlap(name: str) -> None:
    drawn = picture(name)
    for box in drawn.boxes:
        for text in box.texts:
            left, top, right, bottom = text.extent
            assert box.x <= left and right <= box.right + NEAR, (box, text)
            assert box.y <= top + NEAR and bottom <= box.bottom + NEAR, (box, text)
    texts = [text for box in drawn.boxes for text in box.texts] + drawn.labels
    for a, b in combinations([text.extent for text in texts], 2):
        assert not (a[0] < b[2] - NEAR and b[0] < a[2] - NEAR and a[1] < b[3] - NEAR and b[1] < a[3] - NEAR), (a, b)


@pytest.mark.parametrize("name", ALL)
def test_labels_lie_on_no_box_and_all_lies_in_the_picture(name: str) -> None:
    drawn = picture(name)
    assert drawn.width <= WIDEST
    for text in drawn.labels:
        left, top, right, bottom = text.extent
        assert left >= 0 and right <= drawn.width and top >= 0 and bottom <= drawn.height, text
        for box in drawn.boxes:
            assert not (left < box.right and box.x < right and top < box.bottom and box.y < bottom), (text, box)
    for box in drawn.boxes:
        assert box.x >= 0 and box.right <= drawn.width and box.y >= 0 and box.bottom <= drawn.height, box
    for stroke in drawn.strokes:
        assert all(0 <= x <= drawn.width and 0 <= y <= drawn.height for x, y in stroke.points), stroke


@pytest.mark.parametrize("name", ALL)
def test_lines_run_beside_boxes_not_through_them(name: str) -> None:
    drawn = picture(name)
    boxes = [box for box in drawn.boxes if not box.is_frame]
    for stroke in drawn.strokes:
        if stroke.path:
            continue
        for (x1, y1), (x2, y2) in zip(stroke.points, stroke.points[1:], strict=False):
            for box in boxes:
                inside_x = max(min(x1, x2), box.x + 1) < min(max(x1, x2), box.right - 1) or (
                    x1 == x2 and box.x + 1 < x1 < box.right - 1
                )
                inside_y = max(min(y1, y2), box.y + 1) < min(max(y1, y2), box.bottom - 1) or (
                    y1 == y2 and box.y + 1 < y1 < box.bottom - 1
                )
                assert not (inside_x and inside_y), (stroke, box)


def curve(path: str) -> list[tuple[float, float]]:
    """Points along the cubic curve `M x y C x y x y x y`."""
    numbers = [float(word) for word in re.findall(r"-?[0-9.]+", path)]
    ends = list(zip(numbers[::2], numbers[1::2], strict=True))
    assert len(ends) == 4, path
    points = []
    for step in range(41):
        t = step / 40
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        points.append((sum(w * x for w, (x, _) in zip(weights, ends, strict=True)),
                       sum(w * y for w, (_, y) in zip(weights, ends, strict=True))))  # fmt: skip
    return points


@pytest.mark.parametrize("name", ALL)
def test_arcs_lie_in_the_picture_and_above_the_legend(name: str) -> None:
    drawn = picture(name)
    legend = [text.extent[1] for text in drawn.labels if text.text.endswith(" between GPUs") and not text.bold]
    for stroke in drawn.strokes:
        if not stroke.path:
            continue
        assert legend, "arcs are links between GPUs, which the legend explains"
        for x, y in curve(stroke.path):
            assert 0 <= x <= drawn.width and y + stroke.width / 2 <= min(drawn.height, *legend), stroke


@pytest.mark.parametrize("name", ALL)
def test_everything_is_drawn_once(name: str) -> None:
    drawn = Counter(device for box in picture(name).boxes for device in box.devices)
    for device in machine(name).devices:
        if device.kind in SHOWN:
            at_most = 2 if device.kind is DeviceKind.SWITCH else 1  # the bank, and a card where nothing else is there
            assert 1 <= drawn[device.id] <= at_most, device.id


@pytest.mark.parametrize("name", ALL)
def test_no_rate_is_cut_off(name: str) -> None:
    boxes: dict[tuple[str, ...], str] = {}
    for box in picture(name).boxes:
        if box.kind != "bank":
            boxes[box.devices] = " ".join(text.text for text in box.texts)
    for card in scene(name).cards():
        for text in filter(None, (card.rate.text, *card.rate.also)):
            assert text in boxes[card.devices], (card.devices, text)


@pytest.mark.parametrize("name", ["thousand", "deep"])
def test_a_crowd_collapses(name: str) -> None:
    assert len(picture(name).boxes) < 60
    assert picture(name).height < 1500


@pytest.mark.parametrize("name", ["eight_with_adapters", "sixteen_with_switches", "inferred_switches", "matrix_only"])
def test_each_gpu_is_joined_to_the_bank(name: str) -> None:
    drawn = picture(name)
    banks = [box for box in drawn.boxes if box.kind == "bank"]
    assert len(banks) == 1
    gpus = [box for box in drawn.boxes if box.kind == "gpu"]
    ends = [stroke for stroke in drawn.strokes if stroke.kind == "peer" and stroke.points[-1][1] == banks[0].y]
    assert len(ends) == len(gpus) == sum(d.kind is DeviceKind.GPU for d in machine(name).devices)
    for box in gpus:
        touches = [s for s in ends if s.points[0] in ((box.middle, box.bottom), (box.right, box.y + box.height / 2))]
        assert len(touches) == 1, box.devices
    assert all(banks[0].x <= stroke.points[-1][0] <= banks[0].right for stroke in ends)


@pytest.mark.parametrize(("name", "has_bar"), [("cpu_server", False), ("four_packages", True)])
def test_the_links_of_more_than_two_sockets_are_a_bar(name: str, has_bar: bool) -> None:
    assert build_scene(machine(name)).between is not None
    assert any(box.kind == "bar" for box in picture(name).boxes) is has_bar


def test_a_small_machine_is_small() -> None:
    assert picture("virtual_machine").width <= 430 and picture("virtual_machine").height < 340


def test_arcs_without_a_label_lie_in_the_picture_and_above_the_legend() -> None:
    """A matrix of AMD's tool tells no numbers of links: nothing but the arcs themselves reaches below the boxes."""
    matrix = "\n".join(
        [
            "GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7",
            *(f"GPU{a} " + " ".join("0" if a == b else "XGMI" for b in range(8)) for a in range(8)),
        ]
    )
    text = f"=== Link Type between two GPUs ===\n       {matrix}\n=== End of ROCm SMI Log ===\n"
    drawn = lay_out(build_scene(assemble([read_rocm_smi_topo(text.encode())])))
    arcs = [stroke for stroke in drawn.strokes if stroke.path]
    assert len(arcs) == 28
    # A cubic curve whose two control points lie at one depth has its vertex at three quarters of it.
    lowest = 0.0
    for arc in arcs:
        floor, bend = float(arc.path.split("C")[0].split()[1]), float(arc.path.split("C")[1].split()[1])
        lowest = max(lowest, floor + 0.75 * (bend - floor))
    legend = [label for label in drawn.labels if label.text == "XGMI between GPUs"]
    assert lowest < drawn.height and legend and legend[0].extent[1] > lowest


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the third-party samples (shared/data/topology) are not here")
@pytest.mark.parametrize("name", ["smi-topo_v100_dgx1_4xmlx5.txt", "smi-topo_a100_hgx_10nic_legend_litgpt.txt"])
def test_real_matrices_are_drawn_whole(name: str) -> None:
    real = assemble([read_nvidia_smi_topo((SAMPLES / name).read_bytes())])
    drawn = lay_out(build_scene(real))
    labels = Counter(device for box in drawn.boxes for device in box.devices)
    assert all(labels[device.id] == 1 for device in real.devices if device.kind in SHOWN)
    assert drawn.width <= WIDEST


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the third-party samples (shared/data/topology) are not here")
def test_a_real_tree_has_a_box_for_each_switch() -> None:
    real = assemble([read_nccl_xml((SAMPLES / "nccl_azure_ndv4-topo.xml.txt").read_bytes())])
    drawn = lay_out(build_scene(real))
    assert sum(box.kind == "hub" and box.texts[0].text == "PCIe switch" for box in drawn.boxes) == 4
    assert sum(box.kind == "gpu" for box in drawn.boxes) == 8
