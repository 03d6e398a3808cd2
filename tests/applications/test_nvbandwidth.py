"""The output of nvbandwidth, text and JSON, whole and damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from applications.table_damage import changes, cuts, figures_in, is_part_of, losses, readable, sample_file

from seatrial.applications.nvbandwidth import read_nvbandwidth
from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedFile

TEXT = """nvbandwidth Version: v0.10.0
Built from Git version: v0.10.0

CUDA Runtime Version: 13.2 (13020)
CUDA Driver Version (API): 13.2 (13020)
Driver Version: 595.71.05

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    395.08
 1    394.12       N/A

SUM device_to_device_memcpy_read_ce 789.20
COEFFICIENT_OF_VARIATION device_to_device_memcpy_read_ce 0.00

Running device_to_device_bidirectional_memcpy_read_ce.
memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)
           0         1
 0       N/A    185.00
 1    186.00       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_read1 371.00

memcpy CE GPU(row) <-> GPU(column) Read2 bandwidth (GB/s)
           0         1
 0       N/A    184.00
 1    183.00       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_read2 367.00

memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)
           0         1
 0       N/A    369.00
 1    369.00       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_total 738.00

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0    772.58    780.11

SUM host_device_latency_sm 1552.69

NOTE: The reported results may not reflect the full capabilities of the platform.
"""


def json_document() -> dict[str, Any]:
    return {
        "nvbandwidth": {
            "CUDA Runtime Version": 12050,
            "Driver Version": "555.42.06",
            "GPU Device list": ["0: NVIDIA H100 80GB HBM3: (0000000a:00)"],
            "git_version": "v0.5",
            "version": "v0.5",
            "testcases": [
                {
                    "name": "host_to_device_memcpy_ce",
                    "status": "Passed",
                    "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
                    "bandwidth_matrix": [["55.17", "54.0213"]],
                    "sum": 109.1912871,
                },
                {"name": "host_to_all_memcpy_ce", "status": "Waived"},
                {
                    "name": "device_to_device_memcpy_read_ce",
                    "status": "Passed",
                    "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
                    "bandwidth_matrix": [["N/A", 340.55], ["339.87", None]],
                    "sum": 680.42,
                },
                {
                    "name": "device_to_device_bidirectional_memcpy_write_ce",
                    "status": "Passed",
                    "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)",
                    "bandwidth_matrix": [
                        *(["N/A", "185"], ["186", "N/A"]),
                        *(["N/A", "184"], ["183", "N/A"]),
                        *(["N/A", "369"], ["369", "N/A"]),
                    ],
                    "sum": 738.0,
                },
                {
                    "name": "device_local_copy",
                    "status": "Passed",
                    "bandwidth_description": "memory latency GPU(row) (ns)",
                    "bandwidth_matrix": [["612.5", "611"]],
                    "sum": 1223.5,
                },
            ],
        }
    }


def _read(text: str) -> ImportedFile:
    return read_nvbandwidth(text.encode())


def _values(file: ImportedFile) -> dict[tuple[object, ...], float]:
    """(test, figure, row, column) -> value."""
    found = {}
    for (_, parameters, figure, point), (value,) in figures_in(file).items():
        at = dict(point)
        found[dict(parameters)["test"], figure, at["row"], at["column"]] = value
    return found


def test_it_is_found_by_its_kind() -> None:
    assert reader_of("nvbandwidth").parse is read_nvbandwidth


def test_a_real_file() -> None:
    file = read_nvbandwidth(sample_file("nvbandwidth_results_superbench.txt"))
    assert (file.version, file.failed, len(file.experiments)) == ("0.6", "", 15)
    values = _values(file)
    assert values["host_to_device_memcpy_ce", "bandwidth", 1, 2] == 312.11e9
    assert values["device_to_host_memcpy_ce", "bandwidth", 0, 1] == 312.11e9
    assert values["host_to_all_bidirectional_memcpy_sm", "bandwidth", 0, 0] == 247.56e9
    assert values["host_device_latency_sm", "latency", 0, 0] == 772.58e-9
    assert len(values) == 6 + 2 + 13


def test_pairs_that_were_not_measured_are_absent_and_both_ways_are_three_tests() -> None:
    values = _values(_read(TEXT))
    assert values["device_to_device_memcpy_read_ce", "bandwidth", 0, 1] == 395.08e9
    assert ("device_to_device_memcpy_read_ce", "bandwidth", 0, 0) not in values
    assert values["device_to_device_bidirectional_memcpy_read_ce_read2", "bandwidth", 1, 0] == 183e9
    assert values["device_to_device_bidirectional_memcpy_read_ce_total", "bandwidth", 0, 1] == 369e9
    assert len(values) == 10


@pytest.mark.parametrize("indent", [None, 3])
def test_json(indent: int | None) -> None:
    file = _read(json.dumps(json_document(), indent=indent))
    assert (file.version, file.failed) == ("0.5", "")
    values = _values(file)
    assert values["host_to_device_memcpy_ce", "bandwidth", 0, 1] == 54.0213e9
    assert values["device_to_device_memcpy_read_ce", "bandwidth", 0, 1] == 340.55e9
    assert values["device_to_device_memcpy_read_ce", "bandwidth", 1, 0] == 339.87e9
    assert values["device_to_device_bidirectional_memcpy_write_ce_write2", "bandwidth", 1, 0] == 183e9
    assert values["device_to_device_bidirectional_memcpy_write_ce_total", "bandwidth", 1, 0] == 369e9
    assert values["device_local_copy", "latency", 0, 0] == 612.5e-9
    assert len(values) == 2 + 2 + 6 + 2


def test_an_error_of_the_tool_fails() -> None:
    document = json_document()
    document["nvbandwidth"]["testcases"][1] = {"name": "x", "status": "Error", "error": "out of memory"}
    assert _read(json.dumps(document)).failed == "x: Error out of memory"
    text = TEXT.replace("NOTE:", "Error: Invalid value when checking the pattern at 0x7f00\nNOTE:")
    assert "Invalid value" in _read(text).failed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT + TEXT, "already"),
        (TEXT + TEXT.replace("v0.10.0", "v0.9.0"), "another release"),
        (TEXT.replace("395.08", "359.08"), "add up"),
        (TEXT.replace(" 789.20", " 798.20"), "add up"),
        (TEXT.replace(" 1    394.12       N/A\n", ""), "add up"),
        (TEXT.replace("395.08", "395,08"), "not a number"),
        (TEXT.replace("395.08", "   inf"), "not a number"),
        (TEXT.replace("SUM host_device_latency_sm 1552.69\n", ""), "no sum"),
        (TEXT.replace("SUM device_to_device_memcpy_read_ce 789.20\n", ""), "no sum"),
        (TEXT.replace(" 1    394.12       N/A\n", " 0    394.12       N/A\n"), "occurs twice"),
        (TEXT.replace(" 1    394.12       N/A\n", " 1    394.12\n"), "a row of 2 columns"),
        (TEXT.split("memcpy")[0], "no matrix"),
        ("", "empty"),
        ("\0", "binary"),
        ('{"nvbandwidth": {"testcases": []}}', "no list"),
        ('{"nvbandwidth": {"testcases": [{"name": "a", "status": "Passed"}]}}', "no matrix"),
        ('{"nvbandwidth": {"testcases": [{"name": "a", "status": "Waived"}]}}', "no test"),
        ('{"other": 1}', "no object"),
        ("[" * 1000, "no matrix"),
        ('{"nvbandwidth": ' + '{"a":' * 100_000, "deep"),
    ],
)
def test_what_is_damaged_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        _read(text)


@pytest.mark.parametrize(
    "cell", ["nan", "1e999", "-55.17", True, {"a": 1}, [1], "55.17 ", "5517", "0", 0], ids=lambda cell: repr(cell)
)
def test_json_with_a_cell_that_cannot_be_is_refused(cell: object) -> None:
    document = json_document()
    document["nvbandwidth"]["testcases"][0]["bandwidth_matrix"][0][0] = cell
    with pytest.raises(ParseError):
        _read(json.dumps(document))


@pytest.mark.parametrize("text", [None, TEXT, json.dumps(json_document(), indent=1)], ids=["real", "text", "json"])
def test_no_cut_or_lost_stretch_gives_another_number(text: str | None) -> None:
    data = sample_file("nvbandwidth_results_superbench.txt") if text is None else text.encode()
    whole = figures_in(read_nvbandwidth(data))
    for damaged in [*cuts(data), *losses(data, seed=13)]:
        found = readable(read_nvbandwidth, damaged)
        assert found is None or is_part_of(found, whole), damaged[-120:]


@pytest.mark.parametrize("text", [TEXT, json.dumps(json_document())], ids=["text", "json"])
def test_no_change_ends_in_anything_but_figures_or_a_refusal(text: str) -> None:
    for damaged in changes(text.encode(), seed=14):
        readable(read_nvbandwidth, damaged)


@pytest.mark.parametrize("row", [" 0       N/A    395.08\n", " 1    394.12       N/A\n"])
def test_a_row_that_vanished_is_noticed_although_the_sum_is_right(row: str) -> None:
    unmeasured = TEXT.replace(row, row.replace(row.split()[1], "N/A").replace(row.split()[2], "N/A"))
    total = 789.20 - max(float(cell) for cell in row.split()[1:] if cell != "N/A")
    unmeasured = unmeasured.replace("read_ce 789.20", f"read_ce {total:.2f}")
    assert _read(unmeasured).experiments
    left = "\n".join(line for line in unmeasured.split("\n") if line.split()[1:] != ["N/A", "N/A"])
    with pytest.raises(ParseError, match="rows are missing"):
        _read(left)


def test_no_cut_between_tests_is_silent() -> None:
    data = sample_file("nvbandwidth_results_superbench.txt")
    whole = read_nvbandwidth(data)
    assert not any(experiment.remarks for experiment in whole.experiments)
    lines = data.decode().split("\n")
    for end in range(1, len(lines), 5):
        text = "\n".join(lines[:end]) + "\n"
        found = readable(read_nvbandwidth, text.encode())
        assert found in (None, figures_in(whole)) or all(e.remarks for e in _read(text).experiments)


def test_latency_between_devices_is_read() -> None:
    matrix = """
Running device_to_device_latency_sm.
Device to Device Latency SM GPU(row) <-> GPU(column) (ns)
           0         1
 0       N/A    826.42
 1    825.83       N/A

SUM device_to_device_latency_sm 1652.25
"""
    (experiment,) = read_nvbandwidth(f"nvbandwidth Version: v0.8\n{matrix}".encode()).experiments
    assert experiment.parameters["test"] == "device_to_device_latency_sm"
    assert sorted(sample.elapsed_s for sample in experiment.samples) == [825.83e-9, 826.42e-9]
