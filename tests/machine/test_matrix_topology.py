"""`nvidia-smi topo -m`: what is taken, what is left out, and what is refused at which line."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine.matrix_dumps import said

from seatrial.errors import ParseError
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_p2p, read_nvidia_smi_topo
from seatrial.machine.survey import NamedPart, Survey
from seatrial.model.machine.fact import FactKind
from seatrial.model.machine.machine import DeviceKind

DATA = Path(__file__).resolve().parents[1] / "data" / "machine" / "matrices"


def _part(survey: Survey, name: str) -> NamedPart:
    return next(part for part in survey.named_parts if part.name == name)


def _classes(survey: Survey) -> dict[tuple[str, str], str]:
    return {(path.a, path.b): f"{path.path_class}{path.links or ''}" for path in survey.paths}


def test_the_facts_of_a_part() -> None:
    survey = read_nvidia_smi_topo((DATA / "topo-two-sockets.txt").read_bytes())
    assert survey.source == "nvidia-smi topo -m"
    gpu, nic = _part(survey, "GPU3"), _part(survey, "NIC1")
    assert (gpu.kind, gpu.index, gpu.is_label, gpu.numa) == (DeviceKind.GPU, 3, True, 8)
    assert gpu.cpus == frozenset([*range(16, 32), *range(48, 64)])
    vendor = gpu.facts.best("vendor_id")
    assert vendor is not None
    assert (vendor.value, vendor.source, vendor.kind) == ("10de", "nvidia-smi lists NVIDIA GPUs", FactKind.DISCOVERED)
    assert "gpu_numa" not in gpu.facts
    assert (nic.kind, nic.index, nic.is_label, nic.aliases) == (DeviceKind.NIC, None, True, ("mlx5_bond_0",))
    assert not nic.facts
    assert _classes(survey)["GPU2", "GPU3"] == "NV4"
    assert _classes(survey)["GPU1", "NIC0"] == "PXB"


def test_a_gpu_that_is_a_numa_node_itself() -> None:
    survey = read_nvidia_smi_topo((DATA / "topo-own-memory.txt").read_bytes())
    assert [_part(survey, name).facts.integer("gpu_numa") for name in ("GPU0", "GPU1", "rocep1s0f0")] == [4, 12, None]
    assert _classes(survey) == {
        ("GPU0", "GPU1"): "C2C", ("GPU0", "rocep1s0f0"): "NODE", ("GPU1", "rocep1s0f0"): "SYS",
    }  # fmt: skip


GOOD = """\
\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tPIX\t0-15\t0
GPU1\tNV4\t X \tSYS\t16-31\t1
mlx5_0\tPIX\tSYS\t X \t\t
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("GPU0\t X \tNV4\tPIX", "GPU0\t X \tNV4PIX", 2, "NV4PIX"),
        ("GPU1\tNV4\t X \tSYS", "GPU1\tNV3\t X \tSYS", 3, "GPU1 to GPU0 is NV3"),
        ("mlx5_0\tPIX\tSYS", "mlx5_0\tPIX\tPIX", 4, "mlx5_0 to GPU1 is PIX"),
        ("GPU0\t X \tNV4", "GPU0\t X \tNV0", 2, "NV0"),
        ("GPU0\t X \tNV4", "GPU0\t X \tNV400", 2, "NV400"),
        ("GPU0\t X \tNV4", "GPU0\tNV4\t X ", 2, "against itself"),
        ("GPU0\t X \tNV4", "GPU0\t X \tX", 2, "not a known class"),
        ("GPU1\tNV4\t X \tSYS\t16-31\t1\n", "", 3, "expected the row of GPU1"),
        ("mlx5_0\tPIX\tSYS\t X \t\t\n", "mlx5_0\tPIX\tSYS", 4, "2 cells for 3"),
        ("mlx5_0\tPIX\tSYS\t X \t\t\n", "GPU0\t X \tNV4\tPIX\t0-15\t0\n", 4, "second row of GPU0"),
        ("mlx5_0\tPIX", "mlx5_1\tPIX", 4, "no column mlx5_1"),
        ("\tmlx5_0\tCPU", "\tCPU", 1, "2 labels, but there are 3 complete rows"),
        ("GPU0\tGPU1\tmlx5_0\tCPU", "GPU0\tGPU0\tmlx5_0\tCPU", 1, "twice"),
        ("NUMA Affinity", "CPU Affinity", 1, "column occurs twice in the header"),
        ("\t0-15\t0", "\t0-15\t0\t0", 2, "3 cells after the classes"),
        ("\t0-15\t0", "\t0-15", 2, "1 cells after the classes for 2 columns"),
        ("\t16-31\t1", "\t1", 3, "different number of cells than that of GPU0"),
        ("\t0-15\t0", "\t15-0\t0", 2, "not ascending"),
        ("\t0-15\t0", "\t0-9999\t0", 2, "Linux"),
        ("\t0-15\t0", "\tPHB\t0", 2, "neither CPUs"),
    ],
)
def test_the_first_wrong_line_is_named_and_shown(old: str, new: str, line: int, why: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(text.encode())
    assert caught.value.line == line
    assert caught.value.text == text.splitlines()[line - 1]
    assert caught.value.tool == "nvidia-smi-topo"
    assert why in caught.value.why


def test_empty_cells_at_the_end_of_rows_are_none() -> None:
    text = GOOD.replace("\t0-15\t0\n", "\t0-15\t0\t\n").replace("\t16-31\t1\n", "\t16-31\t1\t\n")
    assert said(read_nvidia_smi_topo(text.encode())) == said(read_nvidia_smi_topo(GOOD.encode()))


def test_a_row_that_is_missing_in_a_shuffled_matrix_is_missed_at_its_end() -> None:
    head, first, second, third = GOOD.splitlines(keepends=True)
    read = read_nvidia_smi_topo("".join([head, third, second, first]).encode())
    assert said(read) == said(read_nvidia_smi_topo(GOOD.encode())), "the order of rows does not matter"
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo("".join([head, third, first, "\n"]).encode())
    assert caught.value.line == 4
    assert "no row of GPU1" in caught.value.why


def test_prefixed_lines_are_shown_unchanged() -> None:
    text = "".join(f"# {line}\n" for line in GOOD.replace("GPU1\tNV4", "GPU1\tNV3").splitlines())
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(text.encode())
    assert caught.value.text == "# GPU1\tNV3\t X \tSYS\t16-31\t1"


@pytest.mark.parametrize(
    ("header", "rows", "why"),
    [
        ("GPU0GPU1", ("GPU0 X PIX", "GPU1 PIX X"), None),
        ("GPU1 GPU10", ("GPU10 X PIX", "GPU1 PIX X"), "X in the column of GPU1"),
        ("GPU1GPU10", ("GPU1 X PIX", "GPU10 PIX X"), None),
        ("GPU0aab", ("GPU0 X PIX SYS", "a PIX X PHB", "ab SYS PHB X"), None),
        ("GPU0aba", ("GPU0 X PIX PIX SYS", "a PIX X PIX PHB", "ab PIX PIX X PHB", "b SYS PHB PHB X"), "header"),
        ("GPU0GPU1GPU2", ("GPU0 X PIX", "GPU1 PIX X"), "header"),
        ("GPU0GPU", ("GPU0 X PIX", "GPU1 PIX X"), "header"),
    ],
)
def test_glued_headers(header: str, rows: tuple[str, ...], why: str | None) -> None:
    data = "\n".join([f"{header}\tCPU Affinity", *rows, ""]).encode()
    if why is None:
        assert [part.name for part in read_nvidia_smi_topo(data).named_parts] == [row.split()[0] for row in rows]
    else:
        with pytest.raises(ParseError, match=why):
            read_nvidia_smi_topo(data)


@pytest.mark.parametrize("order", [("a", "aa"), ("aa", "a")])
def test_a_glued_header_with_two_readings_is_refused(order: tuple[str, str]) -> None:
    rows = ("GPU0 X PIX PIX", f"{order[0]} PIX X PIX", f"{order[1]} PIX PIX X")
    with pytest.raises(ParseError):
        read_nvidia_smi_topo("\n".join(["GPU0aaa\tCPU Affinity", *rows, ""]).encode())


def test_underlining_that_lost_its_escape_character() -> None:
    head, *rows = GOOD.splitlines()
    text = "\n".join([f"[4m{head.strip()}[0m", *rows, ""])
    assert said(read_nvidia_smi_topo(text.encode())) == said(read_nvidia_smi_topo(GOOD.encode()))


EXPANDED = """\
        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV4     0       0               N/A
GPU1    NV4      X              1               N/A
"""
ALIGNED = """\
      GPU0  GPU1  CPU Affinity  NUMA Affinity  GPU NUMA ID
GPU0   X    NV4   0-15          0              N/A
GPU1  NV4    X                  1              N/A
"""


@pytest.mark.parametrize("text", [EXPANDED, ALIGNED])
def test_an_empty_cell_is_seen_where_full_rows_prove_the_layout(text: str) -> None:
    parts = read_nvidia_smi_topo(text.encode()).named_parts
    assert [(part.cpus is None, part.numa) for part in parts] == [(False, 0), (True, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(" ".join(line.split()) for line in EXPANDED.splitlines()) + "\n",
        EXPANDED.replace("X              1               N/A", "X      1               N/A"),
        ALIGNED.replace("GPU1  NV4    X                  1 ", "GPU1  NV4    X    1               "),
        ALIGNED.replace("GPU0   X    NV4   0-15          0 ", "GPU0   X    NV4                 0 "),
    ],
)
def test_an_ambiguous_affinity_is_ignored(text: str) -> None:
    survey = read_nvidia_smi_topo(text.encode())
    part = _part(survey, "GPU1")
    assert (part.cpus, part.numa) == (None, None)
    assert any("GPU1" in sentence for sentence in survey.unread)
    assert len(survey.paths) == 1


@pytest.mark.parametrize(
    ("old", "new"), [("\t0-15\t0", "\t0-20\t0"), ("\t0-15\t0", "\t0-150\t0"), ("\t16-31\t1", "\t16-31\t0")]
)
def test_contradicting_affinities_are_reported(old: str, new: str) -> None:
    assert read_nvidia_smi_topo(GOOD.encode()).unread == ()
    (sentence,) = read_nvidia_smi_topo(GOOD.replace(old, new).encode()).unread
    assert "line 3" in sentence
    assert "contradict each other" in sentence


def test_a_layout_that_can_be_read_in_two_ways_is_left_out() -> None:
    text = """\
        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV4     0-23,48-71      0               N/A
GPU1    NV4      X              1               N/A
"""
    part = _part(read_nvidia_smi_topo(text.encode()), "GPU1")
    assert (part.cpus, part.numa) == (None, None), "a terminal's tab stops say node 1, the header's columns say CPU 1"


def test_with_a_missing_tab_a_single_number_is_ignored() -> None:
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0\t\tN/A\n"
    part = _part(read_nvidia_smi_topo(text.encode()), "GPU0")
    assert (part.cpus, part.numa) == (None, None)


def test_too_many_cells_are_refused_without_tabs_too() -> None:
    with pytest.raises(ParseError, match="3 cells after the classes for 2 columns"):
        read_nvidia_smi_topo(b"GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-15 0 0\n")


def test_blank_lines_between_rows_do_no_harm() -> None:
    assert said(read_nvidia_smi_topo(GOOD.replace("\n", "\n\n").encode())) == said(read_nvidia_smi_topo(GOOD.encode()))


def test_several_numa_nodes_are_none() -> None:
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\tX\t0-31\t0-1\n"
    part = _part(read_nvidia_smi_topo(text.encode()), "GPU0")
    assert (part.cpus, part.numa) == (frozenset(range(32)), None)
    swapped = _part(read_nvidia_smi_topo(b"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\tX\t0\t0-31\n"), "GPU0")
    assert (swapped.cpus, swapped.numa) == (None, None)


@pytest.mark.parametrize(
    ("last", "is_whole"),
    [
        ("GPU1\tPIX\tX\t16-31\t0", True),
        ("GPU1\tPIX\tX\t16-31\tN/A", True),
        ("GPU1\tPIX\tX\t0-15\t1", True),
        ("GPU1\tPIX\tX\t16-31\t1", False),
        ("GPU1\tPIX\tX\t16-31\t", False),
        ("GPU1\tPIX\tX\t16-3", False),
        ("GPU1\tPIX\tX\t16-31\tN/", False),
        ("GPU1\tPIX\tX", False),
    ],
)
def test_a_last_row_without_a_line_break_is_read_only_when_surely_whole(last: str, is_whole: bool) -> None:
    data = f"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tPIX\t0-15\t1\n{last}".encode()
    if is_whole:
        assert len(read_nvidia_smi_topo(data).named_parts) == 2
    else:
        with pytest.raises(ParseError) as caught:
            read_nvidia_smi_topo(data)
        assert caught.value.line == 3


LEGEND = "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_10\n"


@pytest.mark.parametrize(
    ("legend", "aliases"),
    [
        (LEGEND, ["mlx5_0", "mlx5_1", "mlx5_10"]),
        (LEGEND[:-2], ["mlx5_0", "mlx5_1", None]),
        (LEGEND[:-3], ["mlx5_0", "mlx5_1", None]),
        (LEGEND[: LEGEND.index("NIC2")], ["mlx5_0", "mlx5_1", None]),
        (LEGEND[: LEGEND.index("NIC2") - 3], ["mlx5_0", None, None]),
        (LEGEND.replace("mlx5_10\n", "mlx5_2"), ["mlx5_0", "mlx5_1", "mlx5_2"]),
        (LEGEND.replace("mlx5_10\n", "mlx5_3"), ["mlx5_0", "mlx5_1", None]),
        (LEGEND.replace("  NIC2: mlx5_10\n", "")[:-1], ["mlx5_0", None, None]),
        ("", [None, None, None]),
    ],
)
def test_a_name_that_may_be_cut_off_is_no_alias(legend: str, aliases: list[str | None]) -> None:
    rows = ["NIC0\tNIC1\tNIC2\tGPU0\tCPU Affinity", "NIC0\tX\tPIX\tPIX\tSYS", "NIC1\tPIX\tX\tPIX\tSYS"]
    rows += ["NIC2\tPIX\tPIX\tX\tSYS", "GPU0\tSYS\tSYS\tSYS\tX\t0-3"]
    survey = read_nvidia_smi_topo(("\n".join(rows) + "\n" + legend).encode())
    assert [part.aliases for part in survey.named_parts[:3]] == [(name,) if name else () for name in aliases]
    assert bool(survey.unread) == (bool(legend) and None in aliases)


def test_a_legend_belongs_to_the_matrix_above_it() -> None:
    matrix = "GPU0\tNIC0\tCPU Affinity\nGPU0\tX\tPIX\t0-3\nNIC0\tPIX\tX\n\n"
    data = (matrix + matrix + "NIC Legend:\n\n  NIC0: mlx5_4\n").encode()
    assert [_part(read_nvidia_smi_topo(data, pick), "NIC0").aliases for pick in (1, 2)] == [(), ("mlx5_4",)]


@pytest.mark.parametrize("second", ["NIC1: mlx5_0", "NIC0: mlx5_1", "NIC1: NIC0"])
def test_a_legend_that_contradicts_itself_is_refused(second: str) -> None:
    rows = ["GPU0\tNIC0\tNIC1\tCPU Affinity", "GPU0\tX\tPIX\tPIX\t0-3", "NIC0\tPIX\tX\tPIX", "NIC1\tPIX\tPIX\tX"]
    data = ("\n".join(rows) + f"\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  {second}\n").encode()
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(data)
    assert (caught.value.line, caught.value.text) == (9, f"  {second}")


def test_prose_that_names_gpus_is_no_matrix() -> None:
    prose = "GPU0 GPU1\nGPU0 and GPU1 are near.\nGPU0\nGPU1 X-rayed\nGPU0 CPU Affinity is what counts\n\n"
    prose += "GPU0 CPU Affinity\nis 0-15.\n\n"
    after = "GPU0 is the best.\n"
    survey = read_nvidia_smi_topo((prose + GOOD + after).encode())
    assert len(survey.named_parts) == 3


def test_labels_of_any_length_are_bounded() -> None:
    name = "m" * 200
    rows = f"\tGPU0\t{name}\tCPU Affinity\nGPU0\tX\tSYS\t0\n{name}\tSYS\tX\n"
    assert [part.name for part in read_nvidia_smi_topo(rows.encode()).named_parts] == ["GPU0", name]
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(rows.replace(name, "m" * 5000).encode())
    assert caught.value.line == 1
    many = [f"GPU{number}" for number in range(300)]
    body = [f"{a}\t" + "\t".join("X" if a == b else "SYS" for b in many) for a in many]
    with pytest.raises(ParseError, match="more than 256 labels"):
        read_nvidia_smi_topo("\n".join(["\t" + "\t".join(many), *body, ""]).encode())


@pytest.mark.parametrize("data", [b"", b"\n\n", b"GPU0", b"no matrix here", b"\xff\xfe\x00\xd8", b"\x00\x01"])
def test_files_without_a_matrix(data: bytes) -> None:
    with pytest.raises(ParseError):
        read_nvidia_smi_topo(data)


def test_a_matrix_written_by_a_windows_shell() -> None:
    data = GOOD.replace("\n", "\r\n").encode("utf-16")
    assert said(read_nvidia_smi_topo(data)) == said(read_nvidia_smi_topo(GOOD.encode()))


def test_a_header_alone_is_a_matrix_that_is_cut_off() -> None:
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(b"$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\n")
    assert caught.value.line == 2
    with pytest.raises(ParseError) as caught:
        read_nvidia_smi_topo(b"\tGPU0\tGPU1\n\n")
    assert caught.value.line == 2


def test_rows_of_gpus_alone_leave_the_paths_between_adapters_unknown() -> None:
    rows = GOOD.splitlines(keepends=True)
    header = rows[0].replace("mlx5_0", "mlx5_0\tmlx5_1")
    of_gpus = [row.replace("PIX", "PIX\tNODE").replace("SYS\t", "SYS\tSYS\t", 1) for row in rows[1:3]]
    survey = read_nvidia_smi_topo("".join([header, *of_gpus]).encode())
    classes = _classes(survey)
    assert classes["GPU0", "GPU1"] == "NV4" and classes["mlx5_0", "mlx5_1"] == "None"
    assert classes["GPU0", "mlx5_0"] == "PIX" and "no rows of mlx5_0, mlx5_1" in survey.unread[0]
    with pytest.raises(ParseError, match="cut off"):  # the last row may not be whole
        read_nvidia_smi_topo("".join([header, *of_gpus]).rstrip().encode())
    with pytest.raises(ParseError, match="cut off"):
        read_nvidia_smi_topo("".join([header, of_gpus[0]]).encode())


ROWS = "GPU0\t X \tNV4\tSYS\t0-15\nGPU1\tNV4\t X \tSYS\t0-15\nGPU2\tSYS\tSYS\t X \t16-31\n"


def test_rows_of_all_labels_give_the_header_that_was_not_pasted() -> None:
    survey = read_nvidia_smi_topo(ROWS.encode())
    assert _classes(survey) == {("GPU0", "GPU1"): "NV4", ("GPU0", "GPU2"): "SYS", ("GPU1", "GPU2"): "SYS"}
    assert "CPUs and NUMA nodes are left out" in survey.unread[0] and _part(survey, "GPU0").cpus is None
    assert read_nvidia_smi_p2p(ROWS.replace("NV4", "OK").replace("SYS", "NS").encode()).p2p[0].read == "OK"
    rows = ROWS.splitlines(keepends=True)
    for some in (rows[:2], rows[1:], [*rows, rows[0]], [rows[0], rows[1].replace("NV4", "NV2"), rows[2]]):
        with pytest.raises(ParseError):
            read_nvidia_smi_topo("".join(some).encode())
