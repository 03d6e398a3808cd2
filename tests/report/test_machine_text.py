"""A machine on one screen of text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from machine.machine_trees import Tree, two_sockets
from report.terminals import COLOURED

from seatrial.machine.live import discover_live
from seatrial.model.machine.machine import Machine
from seatrial.report.text.machine import machine_text


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return two_sockets(tmp_path)


@pytest.fixture
def machine(tree: Tree) -> Machine:
    return discover_live(tree.root)


def test_identical_cores_share_a_line(machine: Machine) -> None:
    text = machine_text(machine)
    assert "2 cores x 2 threads; L1d 48 KiB, L1i 32 KiB, L2 2 MiB each; CPUs 0-1,4-5" in text
    assert "Sapphire Rapids" in text
    assert text.startswith("node17: 2 packages, 4 cores, 8 hardware threads")


def test_units_are_binary_for_memory_and_decimal_for_rates(machine: Machine) -> None:
    text = machine_text(machine)
    assert "L3 105 MiB" in text
    assert "link 7.88 GB/s trained of 31.5 GB/s capable, x8 at 8 GT/s" in text
    assert "25.0 GB/s" in text


def test_missing_facts_are_listed(machine: Machine) -> None:
    text = machine_text(machine)
    assert "Could not be read" in text
    assert "/sys/firmware/dmi is missing" in text
    assert "Sources disagree" not in text


def test_disagreements_name_each_source(tree: Tree) -> None:
    tree.write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1000000 kB")
    text = machine_text(discover_live(tree.root))
    assert "Sources disagree\n  memory_total\n" in text
    assert "/proc/meminfo (MemTotal)" in text


def test_colour_only_when_asked(machine: Machine) -> None:
    assert "\x1b" not in machine_text(machine)
    coloured = machine_text(machine, style=COLOURED)
    assert "\x1b[1mTopology\x1b[0m" in coloured
    assert "\x1b[33mlink 7.88 GB/s trained" in coloured or "\x1b[33m" in coloured


def test_names_from_firmware_cannot_control_the_terminal(tree: Tree) -> None:
    tree.write("sys/class/dmi/id/product_name", "Evil\x1b[2J\x07")
    assert "\x1b" not in machine_text(replace(discover_live(tree.root), name="a\x1b[31mb"))


def test_an_empty_machine_has_text() -> None:
    assert machine_text(Machine("nothing")).startswith("nothing:")


def test_lines_end_without_spaces_and_fit(machine: Machine) -> None:
    for line in machine_text(machine).splitlines():
        assert line == line.rstrip()
        assert len(line) <= 140
