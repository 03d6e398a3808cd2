"""The output of OSU micro-benchmarks, of all releases, whole and damaged."""

from __future__ import annotations

import pytest
from applications.table_damage import changes, cuts, figures_in, is_part_of, losses, readable, sample_file, values_of

from seatrial.applications.osu import read_osu
from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

LATENCY_5 = """
# OSU MPI Latency Test v5.6.2
# Size          Latency (us)
0                       1.62
1                       1.68
8                       1.70
1024                    2.51
"""

ALLREDUCE_6 = """
# OSU MPI Allreduce Latency Test v6.1
# Size       Avg Latency(us)
4                       3.11
8                       3.25
16                      3.40
"""

BOTH_WAYS = """
# OSU MPI Bi-Directional Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1048576             21324.21
4194304             20111.02
"""

NON_BLOCKING = """
# OSU MPI Non-blocking Allreduce Latency Test v5.9
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
4                       6.57              3.30              3.20              0.00
8                       6.60              3.31              3.22             25.50
16                      6.63              3.32              3.21            100.00
"""

MULTIPLE = """
# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 4 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
1                       9.36        9356892.44
4                      36.10        9025000.10
4194304             47002.15          11206.19
"""

DEVICES = """
# OSU MPI-CUDA Latency Test v7.3
# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation    P50 Tail Lat(us)    P90 Tail Lat(us)    P99 Tail Lat(us)
1                      11.10              Pass               10.90               12.00               15.31
2                      11.13              Pass               10.95               12.10               15.40
4                      11.16              {verdict}               10.97               12.20               15.50
"""

ONE_SIDED = """
# OSU MPI_Put Latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       1.41
2                       1.43
4                       1.44
"""


def _read(text: str):
    return read_osu(text.encode())


def test_it_is_found_by_its_kind() -> None:
    assert reader_of("osu").parse is read_osu


def test_latency_of_a_real_file() -> None:
    file = read_osu(sample_file("osu_latency_openmpi_run1.txt"))
    assert (file.tool, file.version, file.failed) == ("OSU micro-benchmarks", "7.4", "")
    (experiment,) = file.experiments
    assert (experiment.benchmark, experiment.parameters) == (
        "mpi.latency",
        {"ranks": 2, "buffers": "host", "datatype": "MPI_CHAR"},
    )
    one_way = values_of(file, "one_way")
    assert one_way[1] == 0.39e-6 and one_way[8192] == 11.21e-6 and one_way[1048576] == 260.35e-6
    assert len(one_way) == 21


def test_bandwidth_of_a_real_file_is_in_millions_of_bytes() -> None:
    file = read_osu(sample_file("osu_bw_openmpi_run1.txt"))
    bandwidth = values_of(file, "bandwidth")
    assert file.experiments[0].benchmark == "mpi.bandwidth"
    assert bandwidth[1] == 5.22e6 and bandwidth[4194304] == 12317.98e6 and len(bandwidth) == 23
    assert "window" not in file.experiments[0].parameters  # osu_bw does not print it


def test_allreduce_of_a_real_file_goes_on_behind_the_lines_of_its_buffers() -> None:
    file = read_osu(sample_file("osu_allreduce_openmpi_run1.txt"))
    mean, slowest = values_of(file, "time_mean"), values_of(file, "time_max")
    assert file.experiments[0].benchmark == "mpi.allreduce"
    assert mean[8192] == 4.79e-6 and slowest[8192] == 5.22e-6
    assert mean[65536] == 17.43e-6 and slowest[65536] == 17.44e-6
    assert len(mean) == len(slowest) == 14


def test_barrier_of_a_real_file_is_no_benchmark_of_ours() -> None:
    file = read_osu(sample_file("osu_barrier_openmpi_run1.txt"))
    (experiment,) = file.experiments
    assert experiment.benchmark == "imported.osu"
    assert experiment.parameters == {"program": "MPI Barrier Latency", "buffers": "host"}
    assert values_of(file, "time") == {None: 0.18e-6}


def test_older_releases() -> None:
    assert values_of(_read(LATENCY_5), "one_way")[0] == 1.62e-6
    assert _read(LATENCY_5).experiments[0].parameters == {"ranks": 2, "buffers": "host", "datatype": "MPI_CHAR"}
    untold = _read(LATENCY_5.replace("v5.6.2", "v7.0")).experiments[0]
    assert untold.parameters["datatype"] == "unknown"
    file = _read(ALLREDUCE_6)
    assert values_of(file, "time_mean") == {4: 3.11e-6, 8: 3.25e-6, 16: 3.40e-6}
    assert values_of(file, "time_max") == {}  # not printed: absent, not zero
    assert file.experiments[0].parameters["datatype"] == "MPI_FLOAT"


def test_both_directions_at_once_are_a_benchmark_of_ours() -> None:
    (experiment,) = _read(BOTH_WAYS).experiments
    assert experiment.benchmark == "mpi.bidirectional" and experiment.parameters["datatype"] == "MPI_CHAR"
    assert values_of(_read(BOTH_WAYS), "bandwidth") == {1 << 20: 21324.21e6, 4 << 20: 20111.02e6}


def test_non_blocking_collectives() -> None:
    file = _read(NON_BLOCKING)
    assert values_of(file, "overall")[4] == 6.57e-6 and values_of(file, "communication")[16] == 3.21e-6
    assert values_of(file, "overlap") == {4: 0.0, 8: 0.255, 16: 1.0}


def test_message_rate_has_pairs_and_window() -> None:
    file = _read(MULTIPLE)
    assert file.experiments[0].parameters["pairs"] == 4 and file.experiments[0].parameters["window"] == 64
    assert values_of(file, "message_rate")[1] == 9356892.44 and values_of(file, "bandwidth")[4194304] == 47002.15e6


def test_buffers_percentiles_and_validation() -> None:
    file = _read(DEVICES.format(verdict="Pass"))
    experiment, percentiles = file.experiments
    assert experiment.parameters["buffers"] == "device-host" and not experiment.failed
    assert experiment.samples[0].extra == {"resolution": pytest.approx(0.01 / 11.1)}
    assert (percentiles.benchmark, percentiles.parameters["program"]) == ("imported.osu", "MPI-CUDA Latency")
    times = {sample.series: sample.elapsed_s for sample in percentiles.samples if sample.point == {"size_B": 1}}
    assert times == {"latency_p50": 10.90e-6, "latency_p90": 12.00e-6, "latency_p99": 15.31e-6}
    failed = _read(DEVICES.format(verdict="Fail")).experiments[0].failed
    assert "validation of 4 failed" in failed


def test_one_sided_programs_say_how_they_synchronize() -> None:
    (experiment,) = _read(ONE_SIDED).experiments
    assert experiment.benchmark == "imported.osu"
    assert experiment.parameters["program"] == "MPI_Put Latency"
    assert experiment.parameters["synchronization"] == "MPI_Win_flush"


def test_several_programs_in_one_file() -> None:
    file = _read(LATENCY_5 + NON_BLOCKING.replace("v5.9", "v5.6.2"))
    assert [experiment.benchmark for experiment in file.experiments] == ["mpi.latency", "imported.osu"]


def test_two_datatypes_are_two_experiments() -> None:
    table = "\n".join(ALLREDUCE_6.splitlines()[2:]) + "\n"
    file = _read(ALLREDUCE_6.replace("v6.1\n", "v6.1\n# Datatype: MPI_CHAR.\n") + "# Datatype: MPI_INT.\n" + table)
    assert [experiment.parameters["datatype"] for experiment in file.experiments] == ["MPI_CHAR", "MPI_INT"]


def test_labels_of_mpirun_and_lines_of_launchers_are_passed_over() -> None:
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in LATENCY_5.splitlines())
    assert figures_in(reader_of("osu").read(tagged.encode())) == figures_in(_read(LATENCY_5))
    warned = LATENCY_5 + "1 more process has sent help message help-mpi-btl.txt / no device\n"
    assert figures_in(_read(warned)) == figures_in(_read(LATENCY_5))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LATENCY_5 + LATENCY_5, "already"),
        (LATENCY_5.replace("1024 ", "8    "), "already"),
        (LATENCY_5.replace("1.70", "1,70"), "not a number"),
        (LATENCY_5.replace("1.70", " nan"), "not a number"),
        (LATENCY_5.replace("1.70", " inf"), "not a number"),
        (LATENCY_5.replace(" 1.70", "-1.70"), "not a number"),
        (LATENCY_5.replace("1.70\n", "1.70"), "2 columns"),
        (LATENCY_5.replace(" " * 13 + "2.51", "99999999999999.51"), "impossible"),
        (LATENCY_5.rstrip()[:-1], "column"),
        (LATENCY_5.splitlines()[1], "cut off"),
        ("\n".join(LATENCY_5.splitlines()[:3]), "cut off"),
        (LATENCY_5.replace("Latency (us)", "Latency (parsecs)"), "column"),
        (ALLREDUCE_6 + LATENCY_5, "versions"),
        ("Size 1\n", "no line such as"),
        ("", "empty"),
        ("\0\0", "binary"),
    ],
)
def test_what_is_damaged_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        _read(text)


def test_the_slowest_rank_is_not_faster_than_the_mean() -> None:
    data = sample_file("osu_allreduce_openmpi_run1.txt").decode()
    with pytest.raises(ParseError, match="order") as caught:
        _read(data.replace("5.22  ", "3.22  "))
    assert caught.value.line == 18 and caught.value.text.startswith("8192")


@pytest.mark.parametrize("name", ["osu_latency_openmpi_run1.txt", "osu_allreduce_openmpi_run1.txt"])
def test_no_cut_file_gives_another_number(name: str) -> None:
    data = sample_file(name)
    whole = figures_in(read_osu(data))
    for cut in cuts(data):
        found = readable(read_osu, cut)
        assert found is None or is_part_of(found, whole), cut[-60:]


@pytest.mark.parametrize("name", ["osu_bw_openmpi_run1.txt", "osu_allreduce_openmpi_run1.txt"])
def test_no_lost_stretch_gives_another_number(name: str) -> None:
    data = sample_file(name)
    line = len(data.splitlines()[-1]) + 1
    whole = figures_in(read_osu(data))
    for damaged in losses(data, seed=4):
        if (len(data) - len(damaged)) % line:  # else a row's head and another's tail make a row that looks whole
            found = readable(read_osu, damaged)
            assert found is None or is_part_of(found, whole)


def test_no_change_ends_in_anything_but_figures_or_a_refusal() -> None:
    for damaged in changes(sample_file("osu_allreduce_openmpi_run1.txt"), seed=5):
        readable(read_osu, damaged)


def test_rows_that_vanished_an_early_end_and_times_of_zero_are_reported() -> None:
    (gaps,) = _read(LATENCY_5).experiments
    assert any("between 1 and 8 B, between 8 and 1024 B" in remark for remark in gaps.remarks)
    assert any("the last size is 1024 B" in remark and "-m" in remark for remark in gaps.remarks)
    (zero,) = _read(LATENCY_5.replace("0                       1.62", "0                       0.00")).experiments
    assert "OSU MPI Latency: Latency (us) is 0 at 0 B, below the printed digits: no figure" in zero.remarks
    sizes = [0, *(1 << k for k in range(23))]
    whole = LATENCY_5.splitlines()[1:3] + [f"{size:<8}{1.5:20.2f}" for size in sizes]
    assert not _read("\n".join(whole) + "\n").experiments[0].remarks


def test_no_cut_between_rows_is_silent() -> None:
    """Nothing in the text of OSU shows its end: what is left of a table says what it may be missing."""
    data = sample_file("osu_latency_openmpi_run1.txt")
    whole = figures_in(read_osu(data))
    lines = data.decode().split("\n")
    for end in range(len(lines)):
        text = "\n".join(lines[:end]) + "\n"
        found = readable(read_osu, text.encode())
        assert (
            found is None or found == whole or any("rows are missing" in r for r in _read(text).experiments[0].remarks)
        )
