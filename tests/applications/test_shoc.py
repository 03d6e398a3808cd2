"""The output of SHOC's programs, whole and damaged."""

from __future__ import annotations

import pytest
from applications.table_damage import changes, cuts, figures_in, losses, readable, sample_file

from seatrial.applications.readers import reader_of
from seatrial.applications.shoc import read_shoc
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedFile

HEADER = "test\tatts\tunits\tmedian\tmean\tstddev\tmin\tmax\ttrial0\ttrial1\ttrial2\t\n"
TABLE = (
    "Chose device: name='Tesla V100-SXM2-16GB' index=0 id=0x55\n"
    "Running benchmark.\nTest Passed\n"
    + HEADER
    + "DownloadSpeed\t     1kB\tGB/sec\t0.2\t0.2\t0.1\t0.1\t0.3\t0.1\t0.2\t0.3\t\n"
    + "DownloadTime\t     1kB\tms\t0.005\t0.005\t0.001\t0.004\t0.006\t0.004\t0.005\t0.006\t\n"
    + "Sort\t1 MB\tMB/s\t2000\t2000\t10\t1990\t2010\t1990\t2000\t2010\t\n"
    + "Visited\t1k\tN\t7\t7\t0\t7\t7\t7\t7\t7\t\n"
    + "Missing(*)\t1k\ts\t2\t2\t0\t2\t2\tN/A\t2\t2\t\n"
    + "\nNote: Any results marked with (*) had missing values.\n"
)

NOTE = "Note: Any results marked with (*) had missing values.\n"

DRIVER = """Running benchmark MaxFlops
    result for maxspflops:                14110.2000 GFLOPS
    result for maxdpflops:                 7053.0000 GFLOPS
Running benchmark QueueDelay
    result for qdelay:                     NoResult
"""


def _read(text: str) -> ImportedFile:
    return read_shoc(text.encode())


def _values(file: ImportedFile) -> dict[tuple[object, object], tuple[float, ...]]:
    """(test, figure) -> samples."""
    return {(dict(key[3])["test"], key[2]): values for key, values in figures_in(file).items()}


def test_it_is_found_by_its_kind() -> None:
    assert reader_of("shoc").parse is read_shoc


def test_reduction_of_a_real_file() -> None:
    file = read_shoc(sample_file("shoc_reduction_pocl.txt"))
    (experiment,) = file.experiments
    assert experiment.parameters == {"program": "Reduction", "device": "pthread-skylake-avx512-AMD EPYC"}
    assert not file.failed and not experiment.failed
    values = _values(file)
    assert values["Reduction", "bandwidth"][0] == 1.29628e9 and len(values["Reduction", "bandwidth"]) == 10
    assert values["Reduction_Parity", "parity"][9] == 0.261711
    assert len(values) == 6


def test_maxflops_of_a_real_file_is_in_flop_per_second() -> None:
    file = read_shoc(sample_file("shoc_maxflops_pocl_impossible.txt"))
    assert file.experiments[0].parameters["program"] == "MaxFlops"
    values = _values(file)
    assert values["Mul2-SP", "flops"][8] == 1601.24e9  # ten times what the machine can: the importer's to judge
    figure = benchmark_named("imported.shoc").figure("flops")
    assert figure.unit == "flop/s" and figure.limit is not None
    assert len(values) == 42


def test_units_names_with_spaces_and_missing_values() -> None:
    file = _read(TABLE)
    (experiment,) = file.experiments
    assert experiment.parameters == {"program": "DownloadSpeed", "device": "Tesla V100-SXM2-16GB"}
    values = _values(file)
    assert values["DownloadSpeed", "bandwidth"] == (0.1e9, 0.2e9, 0.3e9)
    assert values["DownloadTime", "time"] == (4e-6, 5e-6, 6e-6)
    assert values["Sort", "bandwidth"] == (1.99e9, 2.0e9, 2.01e9)
    assert values["Missing", "time"] == (2.0, 2.0)
    assert experiment.remarks == ("no figure of Visited (N): the unit is unknown, or no trial has a number",)


def test_a_summary_without_trials_gives_its_median() -> None:
    text = "test\tatts\tunits\tmedian\tmean\tstddev\tmin\tmax\t\nTriad\tBlock\tGB/s\t4\t5\t1\t3\t9\t\n\nNote: x\n"
    file = _read(text)
    assert _values(file) == {("Triad", "bandwidth"): (4e9,)}
    assert "median" in str(file.experiments[0].notes["sample"])


def test_the_drivers_summary() -> None:
    file = _read(DRIVER)
    assert _values(file) == {("maxspflops", "flops"): (14110.2e9,), ("maxdpflops", "flops"): (7053e9,)}


@pytest.mark.parametrize("line", ["Test Failed", "ERROR: Sort FAILED!", "Correctness check failed", "3 mismatches"])
def test_what_the_program_calls_wrong_fails(line: str) -> None:
    assert line in _read(TABLE.replace("Test Passed", line)).failed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TABLE + TABLE, "already"),
        (TABLE.replace("1990\t2000\t2010\t\n", "1990\t2000\t\n"), "mean|median|max"),
        (TABLE.replace("\t1990\t2000\t2010\t\n", "\t1990\t2050\t2010\t\n"), "mean|median|max"),
        (TABLE.replace("0.1\t0.2\t0.3\t\n", "0.1\t0.2\t0.33\t\n"), "mean|max"),
        (TABLE.replace("0.1\t0.2\t0.3\t\n", "0.1\t0.2\tinf\t\n"), "not a number"),
        (TABLE.replace("0.1\t0.2\t0.3\t\n", "0.1\t0.2\tnan\t\n"), "not a number"),
        (TABLE.replace("0.1\t0.2\t0.3\t\n", "0.1\t0.2\t3.40282e+38\t\n"), "FLT_MAX"),
        (TABLE.replace("0.1\t0.2\t0.3\t\n", "0.1\t0.2\t0,3\t\n"), "not a number"),
        (TABLE.replace("0.1\t0.2\t0.3\t\n", "0.1\t0.2\t-0.3\t\n"), "not a number"),
        (TABLE.replace("GB/sec\t0.2\t0.2\t0.1\t0.1\t0.3\t0.1\t0.2\t0.3", "GB/sec" + "\t1e30" * 8), "impossible"),
        (TABLE.replace("\ttrial1", ""), "header"),
        (TABLE.split("Download")[0] + "\n" + NOTE, "no row"),
        (DRIVER.splitlines()[1], "may have been cut off"),
        (HEADER + "a\tb\tGB/s\t\n", "3 cells"),
        (TABLE.replace("7\t7\t7\t\n", "7\t7\t7\n"), "cut off"),
        ("", "empty"),
        ("\0", "binary"),
    ],
)
def test_what_is_damaged_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        _read(text)


def test_no_cut_or_lost_stretch_gives_another_number() -> None:
    data = sample_file("shoc_reduction_pocl.txt")
    whole = {key[2:]: values for key, values in figures_in(read_shoc(data)).items()}
    for damaged in cuts(data):
        found = readable(read_shoc, damaged)
        assert found is None or all(whole[key[2:]] == values for key, values in found.items()), damaged[-120:]
    for damaged in losses(data, seed=16):  # which row a name is of, nothing in the row can tell
        found = readable(read_shoc, damaged)
        assert found is None or set(found.values()) <= set(whole.values()), damaged[-120:]


def test_no_change_ends_in_anything_but_figures_or_a_refusal() -> None:
    for damaged in changes((TABLE + DRIVER).encode(), seed=17):
        readable(read_shoc, damaged)


def test_an_announced_check_counts_by_its_verdict() -> None:
    announced = "Performing Correctness Check (can take several minutes)"
    assert not _read(TABLE.replace("Test Passed", announced + "\nTest Passed")).failed
    assert "Test Failed" in _read(TABLE.replace("Test Passed", announced + "\nTest Failed")).failed
    assert "announces a check" in _read(TABLE.replace("Test Passed", announced)).failed
    assert "announces a check" in _read(TABLE.replace("Test Passed", f"{announced}\nTest Passed\n{announced}")).failed


def test_a_table_without_its_closing_note_was_cut() -> None:
    with pytest.raises(ParseError, match="the table was cut off"):
        _read(TABLE.replace(NOTE, ""))
    lines = TABLE.split("\n")
    whole = figures_in(_read(TABLE))
    for end in range(len(lines)):
        found = readable(read_shoc, "\n".join(lines[:end]).encode() + b"\n")
        assert found is None or found == whole
