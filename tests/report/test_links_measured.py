"""Measured links as text, and the heat map of copies between GPUs next to the drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from analysis.made_up_copies import p2p, transfer
from report.drawing_machines import Builder, eight_with_adapters, two_gpus

from seatrial.analysis.device_copies import PeerRates, peer_rates, with_measured
from seatrial.model.machine.machine import DeviceKind, Link, Machine
from seatrial.report.drawing import machine_svg
from seatrial.report.text.machine import machine_text
from seatrial.report.text.terminal import PLAIN

SVG = "{http://www.w3.org/2000/svg}"
NEAR, FAR = 240e9, 18e9


def addresses(machine: Machine) -> list[str]:
    return [device.pci for device in machine.of_kind(DeviceKind.GPU) if device.pci]


def measured(machine: Machine) -> tuple[Machine, tuple[PeerRates, ...]]:
    """The machine with copies to and from the host, and between GPUs: fast within each half."""
    half = len(addresses(machine)) // 2 or 1
    copies, seen = transfer(addresses(machine), lambda k: 24e9, lambda k: 12e9)
    pairs, more = p2p(addresses(machine), lambda a, b: 2e12 if a == b else NEAR if a // half == b // half else FAR)
    results, seen = [copies, pairs], {**seen, **more}
    return with_measured(machine, results, seen), peer_rates(machine, results, seen)


def test_capable_trained_and_measured_rates_share_a_line() -> None:
    machine, peers = measured(two_gpus())
    text = machine_text(machine, peers=peers)
    (line,) = (line for line in text.splitlines() if "gpu-1 (pcie, upstream)" in line)
    assert line.split()[3:] == ["31.5", "GB/s", "4.00", "GB/s", "24.0", "GB/s", "76", "%", "discovered"]
    assert "Links measured" not in machine_text(two_gpus())


def test_nccl_files_are_asserted_and_switches_of_a_gpu_share_a_line() -> None:
    machine, _ = measured(eight_with_adapters())
    machine = replace(machine, links=tuple(replace(link, source="NCCL topology XML") for link in machine.links))
    lines = machine_text(machine).splitlines()
    (switches,) = (line for line in lines if "switches" in line and "nvlink" in line)
    assert "gpu-0 - switches .. gpu-7 - switches (nvlink x 18)" in switches
    assert "240 GB/s" in switches and "53 %" in switches and switches.endswith("asserted")


def test_the_matrix_has_a_row_for_each_gpu_and_fits_the_screen() -> None:
    machine, peers = measured(eight_with_adapters())
    lines = machine_text(machine, peers=peers).splitlines()
    start = lines.index("Copies between GPUs: bandwidth, in GB/s, from row to column")
    assert lines[start + 1].split() == [f"gpu-{k}" for k in range(8)]
    assert lines[start + 2].split() == ["gpu-0", "2000", "240", "240", "240", "18.0", "18.0", "18.0", "18.0"]
    assert max(map(len, lines)) <= PLAIN.width


def test_the_map_is_next_to_the_drawing_with_its_names_and_numbers() -> None:
    machine, peers = measured(eight_with_adapters())
    drawing = machine_svg(machine, peers)
    root = ET.fromstring(drawing)
    assert "Svg(" not in drawing, "the map is its text, not its description as an object"
    _, inner = root.iter(f"{SVG}svg")
    texts = [text.text for text in inner.iter(f"{SVG}text")]
    assert texts.count("gpu-3") == 2 and texts.count("240") == 2 * 4 * 3 + 1 and texts.count("18.0") == 2 * 16 + 1
    assert "2000" not in texts, "within one GPU is another scale"
    said = root.findtext(f"{SVG}desc") or ""
    assert "18 to 240 GB/s, lowest from gpu-0 to gpu-4" in said
    plain = ET.fromstring(machine_svg(machine))
    assert float(root.get("width", 0)) > float(plain.get("width", 0)) and len(list(plain.iter(f"{SVG}svg"))) == 1
    assert "measured 240 GB/s from one GPU to another, 53 % of that" in machine_svg(machine)


def test_copies_through_the_host_are_on_the_map_if_there_are_no_others() -> None:
    machine, peers = measured(eight_with_adapters())
    staged = tuple(replace(rates, is_direct=False) for rates in peers)
    assert len(list(ET.fromstring(machine_svg(machine, staged)).iter(f"{SVG}svg"))) == 2


def test_a_map_that_does_not_fit_beside_the_drawing_is_below_it() -> None:
    build = Builder("wide")
    for number in range(8):
        node = build.node(number, None, 4)
        for _ in range(2):
            build.device(DeviceKind.GPU, build.bridge(build.host(node)), "GPU")
    machine, peers = measured(build.machine())
    root, plain = (ET.fromstring(machine_svg(machine, some)) for some in (peers, ()))
    grown = [float(root.get(side, 0)) - float(plain.get(side, 0)) for side in ("width", "height")]
    assert max(grown) > 300 and float(root.get("width", 0)) <= 1900


def test_one_pair_makes_a_map_and_a_single_gpu_makes_none() -> None:
    machine, peers = measured(two_gpus())
    assert "Copies between GPUs" in machine_svg(machine, peers)
    alone = [replace(rates, values={(0, 0): rates.values[0, 0]}) for rates in peers]
    assert machine_svg(machine, alone) == machine_svg(machine)


@pytest.mark.parametrize("name", ['"><script>alert(1)</script>', "W" * 300, "\x1b[2J]]>"])
def test_external_names_are_escaped(name: str) -> None:
    machine, peers = measured(two_gpus())
    hostile = [replace(r, devices=tuple(replace(d, id=f"{name}{d.number}") for d in r.devices)) for r in peers]
    text = machine_svg(machine, hostile)
    ET.fromstring(text)
    assert "<script" not in text and "\x1b" not in text
    shown = machine_text(replace(machine, links=(Link(name, "b", "pcie", 1e9, 1e9, name, 5e8),)), peers=hostile)
    assert "\x1b" not in shown
