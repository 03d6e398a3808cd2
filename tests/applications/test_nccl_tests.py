"""The output of nccl-tests and rccl-tests, of all generations, whole and damaged."""

from __future__ import annotations

import pytest
from applications.table_damage import changes, cuts, figures_in, is_part_of, losses, readable, sample_file

from seatrial.applications.nccl_tests import _operation, read_nccl_tests
from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedFile

NEWER = """# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703
# Collective test starting: {op}_perf
# nThread 1 nGpus 4 minBytes 1024 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid    855 on      node1 device  0 [0000:a4:00] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid    856 on      node1 device  1 [0000:a9:00] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid    855 on      node2 device  0 [0000:a4:00] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid    856 on      node2 device  1 [0000:a9:00] NVIDIA A100-SXM4-80GB
node1:855:855 [0] NCCL INFO Bootstrap : Using eth0:172.17.0.2<0>
NCCL version 2.27.3+cuda12.9
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    20.00    0.05    0.08      {w}    20.50    0.05    0.07      0
     1048576        262144     float     sum      -1    50.00   20.97   31.46      0    51.00   20.56   30.84      0
    67108864      16777216     float     sum      -1   500.00  134.22  201.33      0   501.00  133.95  200.92    N/A
node1:855:855 [0] NCCL INFO comm 0x5634cae893b0 rank 0 nranks 4 cudaDev 0 busId 100000 - Destroy COMPLETE
# Out of bounds values : {bounds}
# Avg bus bandwidth    : 77.4500
#
# Collective test concluded: {op}_perf
#
"""

BROADCAST_OF_OLD = """$ mpirun -np 2 ./build/broadcast_perf -b 1M -e 4M -f 2
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 10 iters: 100 validation: 0
#
# Using devices
#   Rank  0 Pid  14926 on v100-gpu-1 device  0 [0x00] Tesla V100-PCIE-16GB
#   Rank  1 Pid   9210 on v100-gpu-5 device  0 [0x00] Tesla V100-PCIE-16GB
#
#                                                     out-of-place                       in-place
#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float       0    500.0    2.10    2.10  0e+00    500.0    2.10    2.10  2e-07
     2097152        524288   float       0   1000.0    2.10    2.10  0e+00   1000.0    2.10    2.10  0e+00
     4194304       1048576   float       0   2000.0    2.10    2.10  0e+00   2000.0    2.10    2.10  0e+00
# Out of bounds values : 0 OK
"""

ONE_WAY_ONLY = """#       size         count    type   redop     time   algbw   busbw  error
     1048576        262144   float     sum    100.0   10.49   15.73  0e+00
     2097152        524288   float     sum    200.0   10.49   15.73  0e+00
     4194304       1048576   float     sum    400.0   10.49   15.73  0e+00
"""


def _newer(op: str = "all_reduce", wrong: str = "0", bounds: str = "0 OK") -> str:
    return NEWER.format(op=op, w=wrong, bounds=bounds)


def _read(text: str) -> ImportedFile:
    return read_nccl_tests(text.encode())


def _values(file: ImportedFile, figure: str, *, in_place: bool) -> dict[object, tuple[float, ...]]:
    points = {key: dict(key[3]) for key in figures_in(file)}
    return {
        points[key]["size_B"]: values
        for key, values in figures_in(file).items()
        if key[2] == figure and points[key]["in_place"] is in_place
    }


def test_it_is_found_by_its_kind() -> None:
    assert reader_of("nccl-tests").parse is read_nccl_tests


def test_a_real_file_with_lines_of_the_library_in_its_table() -> None:
    file = read_nccl_tests(sample_file("nccl_allreduce_superbench.txt"))
    (experiment,) = file.experiments
    assert experiment.benchmark == "imported.nccl-tests" and not experiment.failed and not file.failed
    assert experiment.parameters == {
        "device": "8 x A100-SXM4-40GB",
        "op": "all_reduce",  # nothing in the file names it: the factor 2(n-1)/n of the bus bandwidth does
        "datatype": "float",
        "redop": "sum",
        "root": "none",
        "ranks": 8,
        "nodes": 1,
    }
    size = 8589934592
    assert _values(file, "time", in_place=False)[size] == (63896e-6,)
    assert _values(file, "algbw", in_place=False)[size] == (134.44e9,)
    assert _values(file, "busbw", in_place=False)[size] == (235.26e9,)
    assert _values(file, "busbw", in_place=True)[size] == (235.03e9,)
    assert _values(file, "time", in_place=True)[0] == (34.05e-6, 33.50e-6)  # sizes 1 and 2 hold no element
    assert 4 not in _values(file, "busbw", in_place=True)  # 0.00 GB/s is absent, not zero


def test_newer_releases_name_the_operation_and_the_library() -> None:
    file = _read(_newer())
    (experiment,) = file.experiments
    assert (file.tool, file.version, file.host) == ("nccl-tests", "2.17.1", "node1")
    assert file.libraries == ("NCCL 2.27.3+cuda12.9",)
    assert experiment.parameters["op"] == "all_reduce" and experiment.parameters["nodes"] == 2
    assert _values(file, "busbw", in_place=False)[67108864] == (201.33e9,)
    assert experiment.notes["is_whole"] is True


@pytest.mark.parametrize(("wrong", "bounds"), [("3", "0 OK"), ("0", "3 FAILED"), ("3", "3 FAILED")])
def test_wrong_elements_fail(wrong: str, bounds: str) -> None:
    (experiment,) = _read(_newer(wrong=wrong, bounds=bounds)).experiments
    assert "3" in experiment.failed


def test_older_releases_have_no_redop_and_a_deviation_for_errors() -> None:
    (experiment,) = _read(BROADCAST_OF_OLD).experiments
    assert experiment.parameters == {
        "device": "2 x Tesla V100-PCIE-16GB",
        "op": "broadcast",
        "datatype": "float",
        "redop": "none",
        "root": "0",
        "ranks": 2,
        "nodes": 2,
    }
    assert not experiment.failed


@pytest.mark.parametrize(
    ("factor", "redop", "root", "operation"),
    [
        (1.5, "sum", "none", "all_reduce"),
        (0.75, "sum", "none", "reduce_scatter"),
        (1.0, "sum", "0", "reduce"),
        (1.0, "none", "0", "broadcast"),
        (0.75, "none", "0", "unknown"),  # gather and scatter
        (0.75, "none", "none", "unknown"),  # all_gather and alltoall
        (1.0, "none", "none", "sendrecv"),
    ],
)
def test_the_bus_bandwidth_of_four_ranks_determines_the_operation(
    factor: float, redop: str, root: str, operation: str
) -> None:
    """Bus bandwidth over bandwidth is 2 (n - 1) / n, (n - 1) / n or 1, as nccl-tests' PERFORMANCE.md derives."""
    assert _operation(factor, 4, redop, root, has_redop=True) == operation


def test_an_ambiguous_operation_is_unknown() -> None:
    (experiment,) = _read(ONE_WAY_ONLY).experiments
    assert experiment.parameters["op"] == "unknown" and "ranks" not in experiment.parameters
    assert len(experiment.samples) == 9


def test_a_build_log_that_names_all_programs_names_none() -> None:
    text = "Linking all_gather_perf\nLinking alltoall_perf\n" + _newer().replace("# Collective test", "# The test")
    (experiment,) = _read(text.replace("all_reduce_perf", "it")).experiments
    assert experiment.parameters["op"] == "all_reduce"


def test_several_programs_in_one_file() -> None:
    file = _read(_newer() + BROADCAST_OF_OLD)
    assert [e.parameters["op"] for e in file.experiments] == ["all_reduce", "broadcast"]


def test_datatypes_of_one_table_are_experiments_of_their_own() -> None:
    file = _read(_newer().replace("     1048576        262144     float", "     1048576        524288      half"))
    assert [e.parameters["datatype"] for e in file.experiments] == ["float", "half"]


def test_a_number_wider_than_its_column_pushes_the_rest_of_its_row() -> None:
    lines = _newer().splitlines()
    lines[-6:-6] = [
        "  8589934592    2147483648     float     sum      -1  8000.00  1073.74  1610.61      0"
        "  8000.00  1073.74  1610.61      0"
    ]
    assert _values(_read("\n".join(lines) + "\n"), "busbw", in_place=True)[8589934592] == (1610.61e9,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_newer() + _newer(), "already"),
        (_newer().replace(" 50.00   20.97", " 50.00   29.07"), "is not 1048576 B in 50.00 us"),
        (_newer().replace(" 50.00   20.97", " 55.00   20.97"), "is not 1048576 B"),
        (_newer().replace("31.46", "34.16"), "does not fit"),
        (_newer(op="reduce_scatter"), "do not fit reduce_scatter"),
        (_newer().replace("#  Rank  1 Group", "#  Rank  0 Group"), "rank 0 occurs twice"),
        (_newer().replace("20.97", " 20,9"), "not a number"),
        (_newer().replace("20.97", "  nan"), "not a number"),
        (_newer().replace(" 20.97", "-20.97"), "not a number"),
        (_newer().replace("30.84      0\n", "30.84      0"), "columns"),
        (_newer().replace("#wrong\n", "#wrong  cpu\n"), "unknown column"),
        (_newer().replace("(us)  (GB/s)  (GB/s)  ", "(us)  (MB/s)  (MB/s)  "), "unit"),
        (_newer().replace("time   algbw   busbw", "algbw   time   busbw"), "header is damaged"),
        (_newer().replace("time   algbw   busbw #wrong\n", "algbw   busbw #wrong\n"), "header is damaged"),
        ("\n".join(_newer().splitlines()[:14]) + "\n", "no row"),
        (_newer().split("#  Rank")[0], "no row"),
        ("hello\n", "no header"),
        ("", "empty"),
        ("\0", "binary"),
    ],
)
def test_what_is_damaged_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        _read(text)


def _cycles(*sizes: int) -> str:
    rows = (f"{n:12} {n // 4:13} float sum {n / 1e4:8.2f} 10.00 15.00 0e+00\n" for n in sizes)
    return ONE_WAY_ONLY.splitlines(keepends=True)[0] + "".join(rows)


def test_a_table_may_repeat_all_its_sizes_and_no_part_of_them() -> None:
    one = (1 << 20, 2 << 20, 4 << 20)
    assert len(_read(_cycles(*one, *one, *one[:2])).experiments[0].samples) == 3 * 8
    for mixed in ((*one, *one[1:]), (*one[:2], *one), (*one, one[0], *one), (one[0], one[2], one[1])):
        with pytest.raises(ParseError, match="rows are mixed or repeated"):
            _read(_cycles(*mixed))


def test_two_outputs_run_together_are_refused() -> None:
    both = [line for pair in zip(_newer().splitlines(), _newer().splitlines(), strict=True) for line in pair]
    with pytest.raises(ParseError):
        _read("\n".join(both))


@pytest.mark.parametrize("text", [None, _newer()], ids=["real", "newer"])
def test_no_cut_or_lost_stretch_gives_another_number(text: str | None) -> None:
    data = sample_file("nccl_allreduce_superbench.txt") if text is None else text.encode()
    whole = figures_in(read_nccl_tests(data))
    for damaged in [*cuts(data), *losses(data, seed=10)]:
        found = readable(read_nccl_tests, damaged)
        assert found is None or is_part_of(found, whole), damaged[-120:]


def test_no_change_ends_in_anything_but_figures_or_a_refusal() -> None:
    for damaged in changes((_newer() + BROADCAST_OF_OLD).encode(), seed=11):
        readable(read_nccl_tests, damaged)


def test_a_table_without_its_end_is_refused() -> None:
    data = sample_file("nccl_allreduce_superbench.txt")
    whole = figures_in(read_nccl_tests(data))
    lines = data.decode().split("\n")
    for end in range(len(lines)):
        found = readable(read_nccl_tests, "\n".join(lines[:end]).encode() + b"\n")
        assert found is None or found == whole, lines[end - 1]
    (pasted,) = _read(ONE_WAY_ONLY).experiments
    assert any("Out of bounds" in remark for remark in pasted.remarks)


def test_rows_that_vanished_and_rates_of_zero_are_reported() -> None:
    (whole,) = read_nccl_tests(sample_file("nccl_allreduce_superbench.txt")).experiments
    assert [remark.partition(" is 0 ")[0] for remark in whole.remarks] == ["bandwidth: algbw", "bandwidth: busbw"]
    (broadcast,) = _read(BROADCAST_OF_OLD).experiments
    assert not broadcast.remarks
    row = BROADCAST_OF_OLD.splitlines()[11]
    assert row.split()[0] == "2097152"
    (fewer,) = _read(BROADCAST_OF_OLD.replace(row + "\n", "")).experiments
    assert any("1048576 to 4194304 B" in remark for remark in fewer.remarks)
    reduced = BROADCAST_OF_OLD.replace("maxBytes 4194304", "maxBytes 8388608")
    assert _read(reduced).experiments[0].remarks
    assert (
        not _read(reduced.replace("# Using", "# Reducing maxBytes to 4194304 due to memory limitation\n# Using"))
        .experiments[0]
        .remarks
    )


def test_an_average_that_the_rows_do_not_have_is_a_caution() -> None:
    assert not any("average" in remark for remark in _read(_newer()).experiments[0].remarks)
    first = _read(_newer().replace("77.4500", "79.4500")).experiments[0].remarks[0]
    assert first.startswith("the text states an average busbw of 79.45 GB/s, but its rows have 77.45: ")
    lost = "".join(line for line in _newer().splitlines(keepends=True) if "1048576        262144" not in line)
    assert any("its rows have 100.6" in remark for remark in _read(lost).experiments[0].remarks)


@pytest.mark.parametrize("mark", ["...", "[...]", "\N{HORIZONTAL ELLIPSIS}"])
def test_rows_that_somebody_left_out_are_a_caution(mark: str) -> None:
    lines = _newer().splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if line.startswith("     1048576"))
    file = _read("".join([*lines[:at], f"     {mark}\n", *lines[at + 1 :]]))
    assert f"line {at + 1}: rows are left out here" in file.experiments[0].remarks
    assert len(_values(file, "time", in_place=False)) == 2


def test_a_header_that_was_edited_does_not_misalign_the_rows() -> None:
    edited = ONE_WAY_ONLY.replace("#       size         count", "#     size         count")
    more = f"{edited}    1073741824     268435456   float     sum   1000.0  1073.7  1610.6  0e+00\n"
    assert len(_values(_read(more), "time", in_place=False)) == 4
