"""The matrix of GPUs and adapters on a terminal."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from report.drawing_machines import MACHINES, eight_with_adapters, matrix_only, sixteen_with_switches, xgmi_mesh
from report.terminals import COLOURED

from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine, Path
from seatrial.report.text.machine import machine_text
from seatrial.report.text.path_matrix import matrix_text
from seatrial.report.text.terminal import PLAIN

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def blocks(text: str) -> list[list[str]]:
    """The blocks of the matrix, without the legend."""
    return [block.splitlines() for block in text.split("\n\n")[:-1]]


def read_back(text: str) -> dict[tuple[str, str], str]:
    """(row, column) -> cell, by the place where a column's heading starts."""
    found: dict[tuple[str, str], str] = {}
    for lines in blocks(text):
        starts = [(match.start(), match[0]) for match in re.finditer(r"\S+", lines[0])]
        for line in lines[1:]:
            row = line.split()[0]
            for start, name in starts:
                assert line[start - 1] == " " and line[start] != " ", (line, name)
                found[row, name] = line[start:].split()[0]
    return found


def test_every_cell_is_below_its_label() -> None:
    machine = matrix_only()
    cells = read_back(matrix_text(machine))
    for path in machine.paths:
        expected = f"{path.path_class}{path.links or ''}"
        assert cells[path.a, path.b] == cells[path.b, path.a] == expected
    assert cells["GPU3", "GPU3"] == "X"
    assert cells["GPU5", "CPUs"] == "64-127" and cells["GPU5", "NUMA"] == "1"


def test_a_wide_matrix_continues_below() -> None:
    machine = sixteen_with_switches()
    text = matrix_text(machine)
    assert len(blocks(text)) == 2
    assert all(len(line) <= PLAIN.width and line == line.rstrip() for line in text.splitlines())
    cells = read_back(text)
    assert len([1 for a, b in cells if a.startswith("gpu") and b.startswith("gpu")]) == 16 * 16


def test_the_legend_has_the_classes_that_occur_and_no_others() -> None:
    legend = matrix_text(matrix_only()).split("\n\n")[-1]
    told = [line.split()[0] for line in legend.splitlines()]
    assert told == ["X", "NV#", "PIX", "NODE", "SYS", "NIC0"]
    assert "NIC0 is mlx5_0" in legend
    assert "XGMI#" in matrix_text(xgmi_mesh())


def test_an_unknown_class_is_a_question_mark() -> None:
    machine = matrix_only()
    paths = tuple(replace(p, path_class=None, links=None) if p.a == "GPU0" else p for p in machine.paths)
    text = matrix_text(replace(machine, paths=paths[:-1]))
    cells = read_back(text)
    assert cells["GPU0", "GPU1"] == cells["NIC3", "GPU0"] == "?"
    assert cells["NIC2", "NIC3"] == "?", "a pair that is missing altogether"
    assert "?     unknown" in text


def test_empty_columns_are_left_out() -> None:
    text = matrix_text(eight_with_adapters())
    assert "CPUs" not in text and "NUMA" not in text.split("\n\n")[0]
    machine = replace(matrix_only(), affinity=(Affinity("GPU0", None, None), Affinity("GPU1", (1, 3), None)))
    assert read_back(matrix_text(machine))["GPU0", "CPUs"] == "?"


def test_no_class_no_matrix() -> None:
    assert matrix_text(Machine("nothing")) == ""
    gpus = tuple(Device(f"gpu-{n}", DeviceKind.GPU, "") for n in range(2))
    assert matrix_text(Machine("two", gpus, paths=(Path("gpu-0", "gpu-1", None),))) == ""


def test_too_many_devices_are_counted_and_not_drawn() -> None:
    gpus = tuple(Device(f"gpu-{n}", DeviceKind.GPU, "") for n in range(100))
    paths = tuple(Path(f"gpu-{a}", f"gpu-{b}", "SYS") for a in range(100) for b in range(a + 1, 100))
    text = matrix_text(Machine("many", gpus, paths=paths))
    assert text == "100 GPUs and adapters: `--format json` has the classes of their 4950 pairs"


def test_colours_change_nothing_but_colours() -> None:
    for name in ("matrix_only", "xgmi_mesh", "sixteen_with_switches"):
        machine = MACHINES[name]()
        plain, coloured = matrix_text(machine), matrix_text(machine, COLOURED)
        assert "\x1b" not in plain
        assert ANSI.sub("", coloured) == plain
        assert coloured != plain


def test_names_cannot_control_the_terminal() -> None:
    names = ("gpu\x1b[2J\n0", "é" * 300)
    machine = Machine(
        "evil",
        tuple(Device(name, DeviceKind.NIC, name, aliases=("\x07bell",)) for name in names),
        paths=(Path(*names, "P\x1b]0;x\x07IX"),),
    )
    text = matrix_text(machine)
    assert "\x1b" not in text and "\x07" not in text
    assert len(text.split("\n\n")[0].splitlines()) == 3


def test_the_screen_of_the_machine_has_the_matrix() -> None:
    machine = matrix_only()
    shown = machine_text(machine)
    assert shown.startswith("matrix-8: 8 GPUs, 4 adapters")
    assert "GPUs and adapters\n" + matrix_text(machine) in shown
    assert "GPUs and adapters" not in machine_text(MACHINES["virtual_machine"]())


@pytest.mark.parametrize("seed", range(30))
def test_any_matrix_is_aligned(seed: int) -> None:
    rng = random.Random(seed)
    number = rng.randint(1, 20)
    devices = [
        Device(f"{rng.choice(('GPU', 'gpu-', 'mlx5_'))}{n}", rng.choice((DeviceKind.GPU, DeviceKind.NIC)), "")
        for n in range(number)
    ]
    classes = ["NV", "XGMI", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS", "PCI", None]
    paths = tuple(
        Path(a.id, b.id, kind, rng.choice((None, 1, 12, 18)) if kind == "NV" else None)
        for n, a in enumerate(devices)
        for b in devices[n + 1 :]
        for kind in [rng.choice(classes)]
    )
    cpus = tuple(sorted(rng.sample(range(64), 12)))
    affinity = tuple(Affinity(d.id, rng.choice((None, cpus)), rng.choice((None, 0, 7))) for d in devices)
    text = matrix_text(Machine("any", tuple(devices), paths=paths, affinity=affinity))
    if not any(path.path_class for path in paths):
        assert text == ""
        return
    cells = read_back(text)
    for path in paths:
        expected = "?" if path.path_class is None else f"{path.path_class}{path.links or ''}"
        assert cells[path.a, path.b] == expected
    assert all(len(line) <= PLAIN.width for line in text.splitlines())
