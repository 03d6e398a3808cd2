"""Listings and trees of lspci behind labels and broken at a terminal's width: read as they were, or refused."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine.lspci_damage import damage
from machine.lspci_machines import random_machine, render_tree, render_vv
from machine.pasted_text import BREAKS, LABELS, folded, labelled

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.lspci_tree import read_lspci_tree
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.survey import PciPart, SurveyLinkRate

SEEDS = st.integers(min_value=0, max_value=1 << 32)
WIDTHS = st.sampled_from((80, 100, 132))


def vv(text: str) -> dict[str, PciPart]:
    return {part.address: part for part in read_lspci_vv(text.encode()).pci_parts}


def tree(text: str) -> dict[str, PciPart]:
    return {part.address: part for part in read_lspci_tree(text.encode()).pci_parts}


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_labels_before_every_line(label: Callable[[int], str]) -> None:
    machine = random_machine(7)
    assert vv(labelled(render_vv(machine), label)) == vv(render_vv(machine))
    assert tree(labelled(render_tree(machine), label)) == tree(render_tree(machine))


def test_quotes_of_a_web_page() -> None:
    machine = random_machine(7)
    assert vv(labelled(render_vv(machine), lambda _: "&gt; ")) == vv(render_vv(machine))
    assert tree(labelled(render_tree(machine), lambda _: "&gt; ")) == tree(render_tree(machine))


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
@given(seed=SEEDS, width=WIDTHS)
def test_broken_lines_are_joined_or_refused(broken: Callable[[str, int], str], seed: int, width: int) -> None:
    machine = random_machine(seed)
    for read, text in ((vv, render_vv(machine, numbers=True)), (tree, render_tree(machine, numbers=True))):
        try:
            got = read(broken(text, width))
        except ParseError:
            continue
        whole = read(text)
        assert set(got) == set(whole)
        for address, part in got.items():
            told = whole[address]
            assert (part.parent, part.class_id) == (told.parent, told.class_id)
            assert part.capable in (told.capable, None)
            assert part.trained in (told.trained, None)
            assert part.numa in (told.numa, None)


def test_a_listing_of_many_functions_is_joined() -> None:
    name = "Mellanox Technologies A Name That Is Rather Long" + " and Longer" * 4
    block = (
        f":00.0 Ethernet controller: {name} (rev 01)\n"
        "\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+\n"
        "\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n"
        "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L0s <512ns, L1 <4us\n"
        "\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x16\n\t\t\tTrErr- Train- SlotClk+\n\n"
    )
    text = "".join(f"{bus:02x}{block}" for bus in range(4))
    for width in (80, 100):
        for broken in BREAKS.values():
            assert broken(text, width) != text
            parts = vv(broken(text, width))
            assert [(part.capable, part.trained) for part in parts.values() if part.class_id] == [
                (SurveyLinkRate(16.0, 16), SurveyLinkRate(8.0, 16))
            ] * 4


@settings(max_examples=200)
@given(SEEDS, WIDTHS)
def test_damaged_broken_listings_are_refused_or_right(seed: int, width: int) -> None:
    draw = random.Random(seed)
    machine = random_machine(seed)
    truth = {function.address: (function, parent) for function, parent in machine.functions()}
    how, text = damage(draw, folded(render_vv(machine, numbers=True), width))
    try:
        parts = vv(text)
    except UsageError:
        return
    for part in (part for part in parts.values() if part.class_id):
        function, parent = truth[part.address]
        assert part.parent in (parent, None)
        rates = [SurveyLinkRate(float(r[0]), r[1]) if r else None for r in (function.capable, function.trained)]
        assert part.capable in (rates[0], None)
        # A port's cut "x1" of x16 goes unnoticed: lspci does not say "(downgraded)" of ports.
        if not (function.port in ("Root Port", "Downstream Port") and how in ("truncate", "cut", "paste")):
            assert part.trained in (rates[1], None)


@settings(max_examples=200)
@given(SEEDS, WIDTHS)
def test_damaged_broken_trees_are_refused_or_right(seed: int, width: int) -> None:
    machine = random_machine(seed)
    _, text = damage(random.Random(seed), folded(render_tree(machine, numbers=True), width))
    try:
        parts = tree(text)
    except UsageError:
        return
    truth = machine.parents()
    assert all(part.parent == truth[part.address] for part in parts.values() if part.class_id)


def test_the_line_that_a_file_ends_in_is_known_where_nodes_are_mixed() -> None:
    machine = random_machine(7)
    text = "".join(f"a1: {line}\na2: {line}\n" for line in render_tree(machine).splitlines())[:-1]
    first, second = (read_lspci_tree(text.encode(), pick) for pick in (1, 2))
    assert not any("ends within line" in sentence for sentence in first.unread)
    assert any(f"ends within line {len(text.splitlines())}" in sentence for sentence in second.unread)
