"""Matrices as terminals, logs, web pages and documentation hand them on: read as they were, or refused, never wrong."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from machine.matrix_dumps import (
    COLUMNS,
    Look,
    Made,
    is_right,
    random_p2p,
    random_topology,
    said,
    show,
    table,
    truth,
)
from machine.pasted_text import BREAKS, LABELS, folded, labelled

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import read_lines
from seatrial.machine.readers.matrix_lines import read_matrix_lines
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_p2p, read_nvidia_smi_topo
from seatrial.machine.readers.rocm_smi_topo import read_rocm_smi_topo

PAIR = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\tPXB\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\t32-63,96-127\t1\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \t\t\t\t\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_1\n"
)


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_labels_before_each_line_are_skipped(label: Callable[[int], str]) -> None:
    whole = said(read_nvidia_smi_topo(PAIR.encode()))
    assert whole.places["NIC0", "alias"] == "mlx5_1"
    assert whole.places["GPU1", "cpus"] == frozenset((*range(32, 64), *range(96, 128)))
    assert said(read_nvidia_smi_topo(labelled(PAIR, label).encode())) == whole


def test_lines_of_two_nodes_that_are_mixed_are_two_matrices() -> None:
    other = PAIR.replace("NV12", "NV4").splitlines()
    mixed = "".join(f"a1: {x}\na2: {y}\n" for x, y in zip(PAIR.splitlines(), other, strict=True)).encode()
    with pytest.raises(UsageError, match="line 1 and line 2"):
        read_nvidia_smi_topo(mixed)
    links = [read_nvidia_smi_topo(mixed, pick).paths[0].links for pick in (1, 2)]
    assert links == [12, 4]


def test_a_damaged_line_is_shown_with_its_label() -> None:
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(labelled(PAIR.replace("SYS\t32", "SY\t32"), LABELS["pdsh"]).encode())
    assert (caught.value.line, caught.value.text[:13]) == (3, "node01: GPU1\t")


@pytest.mark.parametrize(
    "text",
    [
        "NIC0: mlx5_0\nNIC1: mlx5_1\nNIC2: mlx5_2\n",
        "Size: 16 GB\nSpeed: 3200 MT/s\nSize: 16 GB\nSpeed: 3200 MT/s\n",
        "Capabilities: [40] a\nCapabilities: [50] b\nCapabilities: [60] c\n",
        "a: one\na: two\n",
        "0000:41:00.0 x\n0000:41:00.1 y\n0000:42:00.0 z\n",
    ],
)
def test_lines_that_only_look_labelled_stay(text: str) -> None:
    assert [line.text for line in read_lines(text.encode(), "x")] == text.splitlines()


@pytest.mark.parametrize("escape", ["\x1b", "", "\ufffd", "^[", "\\033", "\\x1b", "\\u001b", "\u241b"])
def test_an_underlined_header_without_its_escape_characters(escape: str) -> None:
    head, rest = PAIR.split("\n", 1)
    text = f"{escape}[4m{head.strip()}{escape}[0m\n{rest}"
    assert said(read_nvidia_smi_topo(text.encode())) == said(read_nvidia_smi_topo(PAIR.encode()))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.expandtabs().replace(" ", "\u00a0"),
        lambda text: text.expandtabs().replace(" ", "&nbsp;"),
        lambda text: re.sub("^", "&gt; ", text, flags=re.MULTILINE),
        lambda text: re.sub("\t", "\t\u200b", text),
    ],
)
def test_signs_of_web_pages(change: Callable[[str], str]) -> None:
    whole = said(read_nvidia_smi_topo(PAIR.encode()))
    assert is_right(said(read_nvidia_smi_topo(change(PAIR).encode())), whole, whole=False)


def test_a_markdown_table_with_the_affinities_first() -> None:
    text = (
        "Our node:\n\n| CPU Affinity | NUMA Affinity |  | GPU0 | GPU1 | `mlx5_0` |\n|---|:--:|---|---|---|---|\n"
        "| 24-31 | 3 | **GPU0** | X | NV4 | SYS |\n| 16-23 | 2 | GPU1 | NV4 | X | PHB |\n"
        "|  |  | mlx5_0 | SYS | PHB | X |\n\nand so on.\n"
    )
    survey = read_nvidia_smi_topo(text.encode())
    assert [(path.a, path.b, path.path_class, path.links) for path in survey.paths] == [
        ("GPU0", "GPU1", "NV", 4), ("GPU0", "mlx5_0", "SYS", None), ("GPU1", "mlx5_0", "PHB", None),
    ]  # fmt: skip
    assert [part.numa for part in survey.named_parts] == [3, 2, None]
    assert survey.named_parts[0].cpus == frozenset(range(24, 32))


def test_a_damaged_markdown_table_is_refused_at_its_line() -> None:
    text = "| | GPU0 | GPU1 |\n|--|--|--|\n| GPU0 | X | NV4 |\n| GPU1 | NV2 | X |\n"
    with pytest.raises(ParseError, match="GPU1 to GPU0 is NV2") as caught:
        read_nvidia_smi_topo(text.encode())
    assert caught.value.line == 4


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
@given(seed=st.integers(0, 2**32), width=st.sampled_from((60, 80, 100, 120, 132, 160)))
def test_broken_lines_are_joined_or_refused(broken: Callable[[str, int], str], seed: int, width: int) -> None:
    made = random_topology(random.Random(seed))
    text = "\n".join(table(made, Look(), random.Random(0))) + "\n"
    try:
        got = said(read_nvidia_smi_topo(broken(text, width).encode()))
    except ParseError:
        return
    assert is_right(got, truth(made), whole=False)


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
@pytest.mark.parametrize("width", [80, 100, 132])
def test_broken_lines_of_eight_gpus_are_joined(broken: Callable[[str, int], str], width: int) -> None:
    labels = [f"GPU{n}" for n in range(8)] + [f"NIC{n}" for n in range(10)]
    cells = {(a, b): "NV18" if "GPU" in a and "GPU" in b else "NODE" for a in labels for b in labels}
    tails = {f"GPU{n}": (f"{n // 4 * 56}-{n // 4 * 56 + 55}", str(n // 4), "N/A") for n in range(8)}
    made = Made(labels, cells, COLUMNS, tails)
    text = show(made, Look(), random.Random(0)).decode()
    assert is_right(said(read_nvidia_smi_topo(broken(text, width).encode())), truth(made), whole=True)


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
@given(seed=st.integers(0, 2**32), width=st.sampled_from((40, 60, 80)))
def test_broken_lines_of_peer_access(broken: Callable[[str, int], str], seed: int, width: int) -> None:
    made = random_p2p(random.Random(seed))
    try:
        got = said(read_nvidia_smi_p2p(broken(show(made, Look(), random.Random(0)).decode(), width).encode()))
    except ParseError:
        return
    assert is_right(got, truth(made), whole=True)


@given(seed=st.integers(0, 2**32), width=st.sampled_from((80, 100, 132)), lost=st.integers(0, 200))
@example(1446568513, 80, 9)  # the end of the first CPU affinity
@example(802670740, 132, 11)
def test_a_piece_that_is_lost_is_never_made_up(seed: int, width: int, lost: int) -> None:
    made = random_topology(random.Random(seed))
    lines = folded("\n".join(table(made, Look(), random.Random(0))), width).split("\n")
    del lines[lost % len(lines)]
    try:
        got = said(read_nvidia_smi_topo(("\n".join(lines) + "\n").encode()))
    except ParseError:
        return
    assert is_right(got, truth(made), whole=False)


def test_a_number_at_a_break_that_may_be_two_is_not_read() -> None:
    # 0-31 and 0, or 0-310? Nothing here proves the width.
    text = (
        "        GPU0    GPU1    CPU Affinity\nNUMA Affinity\n"
        "GPU0     X      PHB     0-31\n0\nGPU1    PHB      X      0-31\n0\n"
    )
    with pytest.raises(ParseError):
        read_nvidia_smi_topo(text.encode())


def test_a_broken_row_that_the_file_ends_in_may_be_cut() -> None:
    labels = [f"GPU{number}" for number in range(8)]
    text = "\t" + "\t".join([*labels, "CPU Affinity"]) + "\n"
    text += "".join("\t".join([a, *("X" if a == b else "PHB" for b in labels), f"1{a[3]}0-1{a[3]}9\n"]) for a in labels)
    assert [part.cpus is None for part in read_nvidia_smi_topo(folded(text, 74).encode()).named_parts] == [False] * 8
    with pytest.raises(ParseError, match="may be cut off"):
        read_nvidia_smi_topo(folded(text, 74)[:-1].encode())


def test_many_headers_are_parsed_quickly() -> None:
    text = "GPU0 GPU1 CPU\nAffinity\nGPU0 X NV1\n" * 4000
    assert len(read_matrix_lines(text.encode(), "x")) == 12000


def test_link_types_whose_ends_are_but_spaces() -> None:
    labels = [f"GPU{n}" for n in range(8)]
    rows = ["       " + "".join(label.ljust(13) for label in labels)]
    rows += [f"{a:7}" + "".join(("0" if a == b else "XGMI").ljust(13) for b in labels) for a in labels]
    text = "==== Link Type between two GPUs ====\n" + "\n".join(rows) + "\n"
    for broken in BREAKS.values():
        survey = read_rocm_smi_topo(broken(text, 100).encode())
        assert [path.path_class for path in survey.paths] == ["XGMI"] * 28


def test_nodes_of_gpus_without_brackets() -> None:
    text = (
        "==== Link Type between two GPUs ====\n       GPU0   GPU1\nGPU0   0      XGMI\nGPU1   XGMI   0\n"
        "==== Numa Nodes ====\nGPU 0          : (Topology) Numa Node: 0\nGPU 1          : (Topology) Numa Node: 1\n"
    )
    assert [part.numa for part in read_rocm_smi_topo(text.encode()).named_parts] == [0, 1]
