"""`rocm-smi --showtopo` and --showtopotype."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.rocm_smi_topo import read_rocm_smi_topo
from seatrial.machine.survey import Survey
from seatrial.model.machine.machine import DeviceKind

DATA = Path(__file__).resolve().parents[1] / "data" / "machine" / "matrices"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"
REAL = "rocm-smi_showtopotype_8gpu_xgmi_litgpt.txt"


def _classes(survey: Survey) -> dict[tuple[str, str], str | None]:
    return {(path.a, path.b): path.path_class for path in survey.paths}


def _whole() -> str:
    return (DATA / "rocm-showtopo.txt").read_text()


def test_a_real_machine() -> None:
    if not (SHARED / REAL).exists():
        pytest.skip(f"needs {SHARED / REAL}, which is not part of the repository")
    survey = read_rocm_smi_topo((SHARED / REAL).read_bytes())
    assert _classes(survey) == {(f"GPU{a}", f"GPU{b}"): "XGMI" for a in range(8) for b in range(a + 1, 8)}
    assert all(path.links is None for path in survey.paths)
    part = survey.named_parts[7]
    assert (part.kind, part.name, part.index, part.numa, part.is_label) == (DeviceKind.GPU, "GPU7", 7, None, True)
    assert part.facts.text("vendor_id") == "1002"


def test_three_sections_are_one_dump() -> None:
    survey = read_rocm_smi_topo(_whole().encode())
    assert survey.source == "rocm-smi --showtopo"
    assert _classes(survey) == {("GPU0", "GPU1"): "XGMI", ("GPU0", "GPU2"): "PCI", ("GPU1", "GPU2"): None}
    assert [part.numa for part in survey.named_parts] == [0, 0, None]
    assert any("GPU2" in sentence for sentence in survey.unread), "its node and its affinity are two nodes"


def test_two_runs_need_a_pick() -> None:
    other = _whole().replace("XGMI", "PCIE")
    with pytest.raises(UsageError) as caught:
        read_rocm_smi_topo((_whole() + other).encode())
    assert "line 4 and line 33" in str(caught.value)
    assert _classes(read_rocm_smi_topo((_whole() + other).encode(), 2))["GPU0", "GPU1"] == "PCI"


def test_a_run_without_link_types_and_one_with_them() -> None:
    text = _whole()
    start, end = text.index("====", 5), text.index("====", text.index("Link Type") - 60)
    weights = text[:end] + "=== End of ROCm SMI Log ===\n"
    assert start < end
    assert _classes(read_rocm_smi_topo((weights + text).encode()))["GPU0", "GPU1"] == "XGMI"
    other_gpus = weights.replace("GPU2", "GPU6")
    types = "\n".join(text.splitlines()[15:20]) + "\n"
    for run in (text, types):
        assert _classes(read_rocm_smi_topo((other_gpus + run).encode()))["GPU0", "GPU1"] == "XGMI"
    with pytest.raises(ParseError) as caught:
        read_rocm_smi_topo(weights.encode())
    assert caught.value.line == 4
    assert "weight, hops, but no link type" in caught.value.why


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("GPU1   XGMI ", "GPU1   PCIE ", 19, "GPU1 to GPU0 is PCIE"),
        ("GPU0   0            XGMI ", "GPU0   XGMI         XGMI ", 18, "itself"),
        ("GPU0   0            XGMI ", "GPU0   0            XGNI ", 18, "XGNI"),
        ("GPU0   0            XGMI         PCIE", "GPU0   0            XGMI", 18, "2 cells"),
        ("GPU0   0            XGMI         PCIE", "GPU0   0            XGMI         PCIE         PCIE", 18, "4 cells"),
        ("GPU1   XGMI         0            XXXX         \n", "", 19, "row of GPU1"),
        ("GPU2   PCIE         XXXX         0            \n", "", 20, "cut off"),
        ("GPU1   15           0 ", "GPU1   1x           0 ", 7, "1x"),
        ("GPU2   40           40           0            \n", "", 8, "cut off"),
        ("Numa Node: 1", "Numa Node: one", 27, "not a NUMA node"),
        ("GPU[2]\t\t: (Topology) Numa Node: 1", "GPU[3]\t\t: (Topology) Numa Node: 1", 27, "GPU3"),
        ("GPU[1]\t\t: (Topology) Numa Node: 0", "GPU[0]\t\t: (Topology) Numa Node: 1", 25, "another node"),
    ],
)
def test_damage_is_refused_at_its_line(old: str, new: str, line: int, why: str) -> None:
    text = _whole().replace(old, new, 1)
    assert text != _whole()
    with pytest.raises(ParseError) as caught:
        read_rocm_smi_topo(text.encode())
    assert caught.value.line == line
    assert caught.value.text == text.splitlines()[line - 1]
    assert why in caught.value.why


def test_sections_of_other_gpus_are_refused() -> None:
    lines = _whole().splitlines()
    weights = [line.replace("GPU2", "GPU4") for line in lines[4:8]]
    with pytest.raises(ParseError, match="different GPUs"):
        read_rocm_smi_topo("\n".join([*lines[:4], *weights, *lines[8:], ""]).encode())


@given(st.integers(0, 2**40))
@settings(deadline=None, max_examples=300)
def test_a_dump_that_is_cut_or_stripped_of_bytes_gives_no_wrong_machine(seed: int) -> None:
    rng = Random(seed)
    data = _whole().encode()
    whole = read_rocm_smi_topo(data)
    at, n = rng.randrange(len(data)), rng.choice((1, 8, 80, len(data)))
    damaged = rng.choice((data[:at], data[at:], data[:at] + data[at + n :]))
    try:
        survey = read_rocm_smi_topo(damaged)
    except UsageError:
        return
    assert _classes(survey) == _classes(whole)
    for part, other in zip(survey.named_parts, whole.named_parts, strict=True):
        is_contradicted = other.numa is None  # one of its two contradicting lines may be lost
        assert part.numa in (other.numa, None) or is_contradicted


def test_two_matrices_of_link_types_are_two_dumps_without_a_banner_too() -> None:
    section = "\n".join(_whole().splitlines()[15:20]) + "\n"
    assert "Link Type" in section
    data = (section + section.replace("XGMI", "PCIE")).encode()
    with pytest.raises(UsageError, match="line 1 and line 6"):
        read_rocm_smi_topo(data)
    assert [_classes(read_rocm_smi_topo(data, pick))["GPU0", "GPU1"] for pick in (1, 2)] == ["XGMI", "PCI"]


@pytest.mark.parametrize(("node", "end", "numa"), [("1", "\n", 1), ("1", "", None), ("0", "", 0), ("-1", "\n", None)])
def test_a_node_that_may_be_cut_off_is_left_out(node: str, end: str, numa: int | None) -> None:
    section = "\n".join(_whole().splitlines()[15:20])
    survey = read_rocm_smi_topo(f"{section}\nGPU[2]\t\t: (Topology) Numa Node: {node}{end}".encode())
    assert [part.numa for part in survey.named_parts] == [None, None, numa]
