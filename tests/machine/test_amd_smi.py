"""`amd-smi` topology and static, as text and as JSON. The samples were written for the tests, after public outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.amd_smi import read_amd_smi
from seatrial.machine.survey import PciPart, PeerLink, Survey
from seatrial.model.machine.machine import DeviceKind, PeerAccess
from seatrial.model.machine.machine import Path as PathOf

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "machine" / "amd-smi"
TOPOLOGY = (SAMPLES / "amd-smi-topology.txt").read_text()
STATIC = (SAMPLES / "amd-smi-static.txt").read_text()
BDFS = ("0000:11:00.0", "0000:2f:00.0", "0000:46:00.0")

TYPES = {(0, 1): ("XGMI", 1, "ENABLED", "50000-100000"), (0, 2): ("PCIE", 3, "DISABLED", "N/A")}
TYPES[1, 2] = ("PCIE", 2, "DISABLED", "N/A")


def _cell(a: int, b: int) -> tuple[str, int, str, str]:
    return ("SELF", 0, "ENABLED", "N/A") if a == b else TYPES[min(a, b), max(a, b)]


def _new_json() -> list[dict[str, Any]]:
    keys = ("link_type", "num_hops", "link_status", "bandwidth")
    return [
        {
            "gpu": a,
            "bdf": BDFS[a],
            "links": [
                {"gpu": b, "bdf": BDFS[b], "weight": 0, **dict(zip(keys, _cell(a, b), strict=True))} for b in range(3)
            ],
        }
        for a in range(3)
    ]


def _old_json() -> list[dict[str, Any]]:
    keys = ("link_type", "hops", "link_accessibility", "numa_bandwidth")
    return [
        {"gpu": a, **{key: {f"gpu_{b}": _cell(a, b)[place] for b in range(3)} for place, key in enumerate(keys)}}
        for a in range(3)
    ]


def _static_json() -> dict[str, Any]:
    gpu = {
        "asic": {"market_name": "AMD Instinct MI210", "vendor_id": "0x1002", "device_id": "0x740f", "serial": "SECRET"},
        "bus": {"bdf": BDFS[0], "max_pcie_width": 16, "max_pcie_speed": {"value": 16, "unit": "GT/s"}},
        "driver": {"name": "amdgpu", "version": "6.12.12"},
        "numa": {"node": 0, "affinity": 0, "cpu_affinity": {"cpu_list_0": {"cpu_cores_affinity": "0-15,32-47"}}},
        "vram": {
            "type": "HBM",
            "size": {"value": 65520, "unit": "MB"},
            "max_bandwidth": {"value": 1638, "unit": "GB/s"},
        },
        "cache_info": [{"cache": 0}],
    }  # fmt: skip
    return {"gpu_data": [{"gpu": 0, **gpu}]}


def _read(text: str, pick: int | None = None) -> Survey:
    return read_amd_smi(text.encode(), pick)


def _check_topology(survey: Survey, names: tuple[str, ...]) -> None:
    a, b, c = names
    assert survey.paths == (PathOf(a, b, "XGMI", 2), PathOf(a, c, "SYS"), PathOf(b, c, "PCI"))
    assert survey.p2p == (PeerAccess(a, b, "OK", "OK"), PeerAccess(a, c, "NS", "NS"), PeerAccess(b, c, "NS", "NS"))
    assert survey.peer_links == (PeerLink(a, b, "xgmi", 2, 100e9, source="amd-smi topology"),)


def test_a_topology_as_text() -> None:
    survey = _read(TOPOLOGY)
    _check_topology(survey, BDFS)
    assert [part.pci for part in survey.named_parts] == list(BDFS), "the labels of this matrix are addresses"
    machine = assemble([survey])
    assert len(machine.of_kind(DeviceKind.GPU)) == 3


@pytest.mark.parametrize(
    "records", [_new_json(), {"gpu_data": _new_json()}, _old_json()], ids=["new", "wrapped", "old"]
)
def test_a_topology_as_json(records: Any) -> None:
    survey = _read("$ amd-smi topology --json\n" + json.dumps(records, indent=4) + "\n$ \n")
    _check_topology(survey, ("GPU0", "GPU1", "GPU2"))
    assert [part.index for part in survey.named_parts] == [0, 1, 2]


def test_links_in_any_order() -> None:
    records = _new_json()
    for record in records:
        record["links"].reverse()
    _check_topology(_read(json.dumps(records[::-1])), ("GPU0", "GPU1", "GPU2"))


@pytest.mark.parametrize("text", [STATIC, json.dumps(_static_json(), indent=1)], ids=["text", "json"])
def test_what_static_says_about_a_gpu(text: str) -> None:
    survey = _read(text)
    first, function = survey.named_parts[0], survey.pci_parts[0]
    assert (first.name, first.pci, first.numa, first.index) == ("GPU0", BDFS[0], 0, 0)
    assert first.cpus == frozenset((*range(16), *range(32, 48)))
    assert first.facts.text("model_name") == "AMD Instinct MI210"
    assert first.facts.integer("memory_total") == 65520 << 20
    assert first.facts.number("memory_bandwidth") == 1638e9
    assert (function.facts.text("vendor_id"), function.facts.text("device_id")) == ("1002", "740f")
    assert function.capable is not None
    assert (function.capable.GTps, function.capable.lanes) == (16.0, 16)
    assert "SECRET" not in repr(survey)


def test_an_unknown_node_is_no_node() -> None:
    second = _read(STATIC).named_parts[1]
    assert (second.numa, second.cpus, second.facts.number("memory_bandwidth")) == (None, None, None)


@pytest.mark.parametrize("order", [1, -1])
def test_topology_and_static_describe_one_machine(order: int) -> None:
    survey = _read("\n".join((TOPOLOGY, STATIC)[::order]))
    _check_topology(survey, ("GPU0", "GPU1", BDFS[2]))
    machine = assemble([survey, Survey("lspci", pci_parts=(PciPart(BDFS[0], "0380"),))])
    assert [gpu.pci for gpu in machine.of_kind(DeviceKind.GPU)] == list(BDFS)


def test_two_runs_are_picked() -> None:
    with pytest.raises(UsageError, match="2 dumps"):
        _read(TOPOLOGY + TOPOLOGY)
    _check_topology(_read(TOPOLOGY + TOPOLOGY, 2), BDFS)


def test_one_xgmi_link_count_only_where_the_rates_divide() -> None:
    odd = _read(TOPOLOGY.replace("50000-100000", "50000-120000"))
    assert odd.paths[0] == PathOf(BDFS[0], BDFS[1], "XGMI", None)


def _change(text: str, find: str, put: str) -> str:
    assert find in text
    return text.replace(find, put, 1)


def _without(records: list[dict[str, Any]]) -> str:
    del records[1]["links"][2]
    return json.dumps(records)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_change(TOPOLOGY, "0000:2f:00.0 XGMI         SELF         PCIE\n", ""), "cut off: no row of 0000:2f:00.0"),
        (TOPOLOGY[: TOPOLOGY.index("NUMA BW TABLE") + 20], "cut off"),
        (_change(TOPOLOGY, "XGMI         SELF", "PCIE         SELF"), "is PCIE"),
        (_change(TOPOLOGY, "XGMI         PCIE", "XGMI         PCEI"), "PCEI is not a value"),
        (_change(TOPOLOGY, "SELF         XGMI         PCIE", "SELF         XGMI"), "2 cells for 3 columns"),
        (_change(TOPOLOGY, "SELF         XGMI", "XGMI         XGMI"), "is XGMI"),
        (_change(STATIC, "SIZE: 65520 MB", "SIZE: 65520 Mb"), "known unit"),
        (_change(STATIC, "BDF: 0000:2f:00.0", "BDF: 0000:11:00.0"), "already GPU 0"),
        (_change(STATIC, "NODE: 0", "NODE: zero"), "not a NUMA node"),
        (STATIC[: STATIC.rindex("    VRAM:")], "GPU 1 has no VRAM"),
        (STATIC.rstrip("\n"), "without a line break"),
        (json.dumps(_new_json(), indent=1)[:-40], "cut off"),
        (_without(_new_json()), "does not have the"),
        (_change(json.dumps(_new_json()), '"bdf": "0000:46:00.0", "links"', '"links"'), "no PCI address"),
        ('[{"gpu":' * 100_000, "nested too deeply"),
        ('[{"gpu": NaN}]', "a number that JSON does not have"),
        ("", "no output of amd-smi"),
        ("GPU utilisation: 3\n", "no output of amd-smi"),
    ],
)  # fmt: skip
def test_damage_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        _read(text)
    assert why in str(caught.value)
    assert caught.value.tool == "amd-smi"


@pytest.mark.parametrize(
    "text", [TOPOLOGY, STATIC, json.dumps(_new_json(), indent=1)], ids=["topology", "static", "json"]
)
def test_a_cut_anywhere_gives_no_other_machine(text: str) -> None:
    """What a shorter file still states is what the whole file states."""
    whole = _read(text)
    by_name = {part.name: part for part in whole.named_parts}
    for end in range(0, len(text.rstrip()), 23):
        try:
            survey = _read(text[:end])
        except UsageError:
            continue
        assert set(survey.paths) <= {*whole.paths, *(PathOf(p.a, p.b, c) for p in whole.paths for c in ("XGMI", "PCI"))}
        assert set(survey.p2p) <= set(whole.p2p)
        for part in survey.named_parts:
            known = by_name[part.name]
            assert part.pci in (None, known.pci)
            assert part.numa in (None, known.numa)


def test_many_gpus_are_read_in_linear_time_and_too_many_refused() -> None:
    labels = [f"{k // 256:04x}:{k % 256:02x}:00.0" for k in range(257)]
    for count, is_read in ((128, True), (257, False)):
        rows = [f"{a} " + " ".join("SELF" if a == b else "XGMI" for b in labels[:count]) for a in labels[:count]]
        text = "LINK TYPE TABLE:\n  " + " ".join(labels[:count]) + "\n" + "\n".join(rows) + "\n"
        if is_read:
            assert len(_read(text).paths) == count * (count - 1) // 2
        else:
            with pytest.raises(ParseError, match="more than 256"):
                _read(text)
