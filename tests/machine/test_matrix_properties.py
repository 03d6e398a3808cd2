"""Random matrices, printed in every way and damaged in every way: the right machine or a refusal, never a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine.matrix_dumps import (
    Look,
    Made,
    is_right,
    random_look,
    random_p2p,
    random_topology,
    said,
    show,
    truth,
)

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_p2p, read_nvidia_smi_topo
from seatrial.machine.survey import Survey

seeds = st.integers(0, 2**48)
relaxed = settings(deadline=None, max_examples=200)


def _read(data: bytes, made: Made) -> Survey:
    return read_nvidia_smi_p2p(data) if made.is_p2p else read_nvidia_smi_topo(data)


def _made(rng: Random) -> Made:
    return random_p2p(rng) if rng.random() < 0.25 else random_topology(rng)


@given(seeds)
@relaxed
def test_a_matrix_is_read_however_it_is_printed(seed: int) -> None:
    rng = Random(seed)
    made, look = _made(rng), random_look(rng)
    survey = _read(show(made, look, rng), made)
    has_empty = any("" in tail for tail in made.tails.values())
    want = truth(made)
    if not look.legend:
        want.places.update({(label, "alias"): None for label in made.labels})
    assert is_right(said(survey), want, whole=look.keeps_empty_cells or not has_empty)


@given(seeds)
@example(41_291_462_304_059)  # cut in "0-31", behind the 0
@example(1968)  # only the rows are left, the first from "U0" on
@relaxed
def test_a_dump_that_is_cut_anywhere_gives_no_wrong_machine(seed: int) -> None:
    rng = Random(seed)
    made, look = _made(rng), random_look(rng)
    data = show(made, look, rng)
    at = rng.randrange(len(data) + 1)
    _assert_right_or_refused(data[:at] if rng.random() < 0.7 else data[at:], made)


def _assert_right_or_refused(data: bytes, made: Made) -> None:
    try:
        survey = _read(data, made)
    except UsageError:
        return
    assert is_right(said(survey), truth(made), whole=False), data.decode()


Damage = Callable[[list[list[str]], Random], None]


def _drop_cell(cells: list[list[str]], rng: Random) -> None:
    row = rng.choice(cells[1:])
    row.pop(rng.randrange(len(row)))


def _repeat_cell(cells: list[list[str]], rng: Random) -> None:
    row = rng.choice(cells[1:])
    at = rng.randrange(len(row))
    row.insert(at, row[at])


def _glue_cells(cells: list[list[str]], rng: Random) -> None:
    row = rng.choice(cells[1:])
    at = rng.randrange(len(row) - 1)
    row[at : at + 2] = [row[at].rstrip() + row[at + 1].lstrip()]


def _swap_cells(cells: list[list[str]], rng: Random) -> None:
    row = rng.choice(cells[1:])
    n = min(len(row), len(cells))
    a, b = rng.randrange(n), rng.randrange(n)
    row[a], row[b] = row[b], row[a]


def _drop_row(cells: list[list[str]], rng: Random) -> None:
    cells.pop(rng.randrange(len(cells)))


def _repeat_row(cells: list[list[str]], rng: Random) -> None:
    at = rng.randrange(len(cells))
    cells.insert(rng.randrange(len(cells) + 1), list(cells[at]))


def _change_class(cells: list[list[str]], rng: Random) -> None:
    at = rng.randrange(1, len(cells))
    row = cells[at]
    row[rng.randrange(1, len(cells))] = rng.choice(("PIX", "SYS", "NV2", "NV0", "NV99", "OK", "", "X", "GPU0", "PI"))


def _change_label(cells: list[list[str]], rng: Random) -> None:
    row = rng.choice(cells)
    at = 0 if row is not cells[0] else rng.randrange(len(row))
    row[at] = rng.choice(("GPU0", "GPU77", "mlx5_0", "", "GPU", "X", "NIC1"))


@pytest.mark.parametrize(
    "damage",
    [_drop_cell, _repeat_cell, _glue_cells, _swap_cells, _drop_row, _repeat_row, _change_class, _change_label],
)
@given(seeds)
@relaxed
def test_a_damaged_matrix_gives_no_wrong_machine(damage: Damage, seed: int) -> None:
    rng = Random(seed)
    made = random_p2p(rng) if rng.random() < 0.25 else random_topology(rng, 6, 4)
    lines = show(made, Look(legend=False), rng).decode().splitlines()
    cells = [line.split("\t") for line in lines]
    damage(cells, rng)
    has_empty = any("" in tail for tail in made.tails.values())  # without tabs, two cells "1" for one leave no trace
    joint = "\t" if has_empty else rng.choice(("\t", "   "))
    data = "".join(joint.join(row) + "\n" for row in cells).encode()
    want = truth(made)
    want.places.update({(label, "alias"): None for label in made.labels})
    try:
        survey = _read(data, made)
    except UsageError:
        return
    assert is_right(said(survey), want, whole=False), data.decode()


@given(seeds)
@relaxed
def test_two_dumps_in_one_file_are_separated(seed: int) -> None:
    rng = Random(seed)
    first = _made(rng)
    second = random_p2p(rng) if first.is_p2p else random_topology(rng)
    looks = [random_look(rng), random_look(rng)]
    data = show(first, looks[0], rng) + show(second, looks[1], rng)
    read = read_nvidia_smi_p2p if first.is_p2p else read_nvidia_smi_topo
    with pytest.raises(UsageError) as caught:
        read(data)
    assert not isinstance(caught.value, ParseError)
    assert "line" in caught.value.message
    for pick, made in ((1, first), (2, second)):
        assert is_right(said(read(data, pick)), truth(made), whole=False)
    with pytest.raises(UsageError):
        read(data, 3)


@given(seeds)
@relaxed
def test_a_matrix_of_another_kind_is_none_of_ours(seed: int) -> None:
    rng = Random(seed)
    topology, p2p = random_topology(rng), random_p2p(rng)
    texts = [show(topology, random_look(rng), rng), show(p2p, random_look(rng), rng)]
    rng.shuffle(texts)
    data = b"\n".join(texts)
    assert is_right(said(read_nvidia_smi_topo(data)), truth(topology), whole=False)
    assert is_right(said(read_nvidia_smi_p2p(data)), truth(p2p), whole=False)
