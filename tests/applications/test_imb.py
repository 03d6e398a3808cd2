"""The output of Intel MPI Benchmarks, whole and damaged."""

from __future__ import annotations

import pytest
from applications.table_damage import changes, cuts, figures_in, is_part_of, losses, readable, sample_file, values_of

from seatrial.applications.imb import read_imb
from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

HEAD = """#------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part
#------------------------------------------------------------
# MPI_Datatype                   :   MPI_BYTE
# MPI_Datatype for reductions    :   MPI_FLOAT
# MPI_Op                         :   MPI_SUM
"""

ALLREDUCE = """
#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = 4
# ( 4 additional processes waiting in MPI_Barrier )
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.04         0.03
            4         1000         1.71         1.92         1.81
            8         1000         1.75         1.95         1.84
           16         1000         1.80         2.01         1.90
"""

SENDRECV = """
#-----------------------------------------------------------------------------
# Benchmarking Sendrecv
# #processes = 4
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0         1000         0.50         0.52         0.51         0.00
         1024         1000         0.80         1.00         0.90      2048.00
      1048576           40       180.00       200.00       190.00     10485.76
"""

BARRIER = """
#---------------------------------------------------
# Benchmarking Barrier
# #processes = 4
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         0.61         0.63         0.62
"""

PINGPONG_OF_OLD = """#    Intel (R) MPI Benchmark Suite V3.2, MPI-1 part
#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.62         0.00
         1024         1000         2.50       390.62
      1048576           40       330.00      3030.30
      4194304           10      1290.00      3100.78
"""

UNIBAND = """
# Benchmarking Uniband
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions   Mbytes/sec      Msg/sec
            0         1000         0.00      2189915
         4096         1000      8192.00      2000000
      1048576           40     12582.91        12000
"""

PAIRS = """
# Benchmarking PingPong
# #processes = 8
#----------------------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec      Msg/sec
         1024       100000        10.00       409.60       400000
         4096       100000        20.00       819.20       200000
        65536        12800       100.00      2621.44        40000
"""

MODES = """
# Benchmarking Unidir_Put
# #processes = 2
#---------------------------------------------------
#
#    MODE: AGGREGATE
#
       #bytes #repetitions      t[usec]   Mbytes/sec
            8         1000         0.20        40.00
         4096         1000         0.50      8192.00
     1048576           40       100.00     10485.76

#---------------------------------------------------
#
#    MODE: NON-AGGREGATE
#
       #bytes #repetitions      t[usec]   Mbytes/sec
            8         1000         1.20         6.67
         4096         1000         1.50      2730.67
      1048576           40       110.00      9532.51
""".replace("     1048576           40       100.00", "      1048576           40       100.00")


def _read(text: str):
    return read_imb(text.encode())


def test_it_is_found_by_its_kind() -> None:
    assert reader_of("imb").parse is read_imb


def test_pingpong_of_a_real_file() -> None:
    file = read_imb(sample_file("imb_pingpong_openmpi_run1.txt"))
    assert (file.tool, file.version) == ("Intel MPI Benchmarks", "2021.11")
    assert [e.benchmark for e in file.experiments] == ["mpi.latency", "imported.imb"]
    assert file.experiments[0].parameters == {"ranks": 2, "datatype": "MPI_BYTE", "buffers": "host"}
    one_way, bandwidth = values_of(file, "one_way"), values_of(file, "bandwidth")
    assert one_way[0] == 0.12e-6 and one_way[8] == 0.13e-6 and one_way[4194304] == 372.41e-6
    assert bandwidth[4194304] == 11262.65e6 and bandwidth[1] == 7.59e6
    assert len(one_way) == 24 and len(bandwidth) == 23  # 0 B have no rate


def test_a_megabyte_of_older_releases_is_2_to_the_20() -> None:
    file = _read(PINGPONG_OF_OLD)
    assert file.version == "3.2"
    bandwidth = values_of(file, "bandwidth")
    assert bandwidth[1024] == 390.62 * 2**20 and bandwidth[4194304] == 3100.78 * 2**20
    assert bandwidth[4194304] == pytest.approx(4194304 / 1290e-6, rel=1e-5)


def test_a_bandwidth_of_unknown_unit_is_absent() -> None:
    rows = [line for line in PINGPONG_OF_OLD.splitlines() if not line.lstrip().startswith(("1048576", "4194304"))]
    file = _read("\n".join(rows).replace("2.50       390.62", "0.02     50000.00") + "\n")
    assert values_of(file, "one_way")[1024] == 0.02e-6
    assert values_of(file, "bandwidth") == {}


def test_collectives_and_several_benchmarks_in_one_file() -> None:
    file = _read(HEAD + ALLREDUCE + SENDRECV + BARRIER)
    assert file.version == "2019 Update 6"
    allreduce, sendrecv, barrier = file.experiments
    assert allreduce.benchmark == "mpi.allreduce"
    assert allreduce.parameters == {
        "ranks": 4,
        "datatype": "MPI_FLOAT",
        "buffers": "host",
        "call": "blocking",
        "start": "barrier",
    }
    assert sendrecv.parameters == {"test": "Sendrecv", "ranks": 4}
    assert barrier.parameters == {"test": "Barrier", "ranks": 4}
    found = figures_in(file)
    by_name = {(key[0], key[2], dict(key[3]).get("size_B"), dict(key[1]).get("test")): v for key, v in found.items()}
    assert by_name["mpi.allreduce", "time_mean", 8, None] == (1.84e-6,)
    assert by_name["mpi.allreduce", "time_max", 8, None] == (1.95e-6,)
    assert by_name["imported.imb", "bandwidth", 1048576, "Sendrecv"] == (10485.76e6,)
    assert by_name["imported.imb", "time_max", None, "Barrier"] == (0.63e-6,)


def test_a_bandwidth_without_time_is_held_against_the_message_rate() -> None:
    file = _read(UNIBAND)
    assert values_of(file, "bandwidth") == {4096: 8192.00e6, 1048576: 12582.91e6}
    assert values_of(file, "message_rate")[0] == 2189915


def test_pairs_at_once_are_no_latency_of_two_ranks() -> None:
    file = _read(PAIRS)
    assert [e.benchmark for e in file.experiments] == ["imported.imb"]
    assert values_of(file, "bandwidth")[1024] == 409.60e6 and values_of(file, "time")[1024] == 10e-6


def test_modes_are_experiments_of_their_own() -> None:
    file = _read(MODES)
    assert [e.parameters["mode"] for e in file.experiments] == ["AGGREGATE", "NON-AGGREGATE"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + ALLREDUCE + ALLREDUCE, "already"),
        (HEAD + ALLREDUCE + HEAD.replace("2019 Update 6", "2021.3") + BARRIER, "another release"),
        (PINGPONG_OF_OLD.replace("330.00", "303.00"), "inconsistent"),
        (PINGPONG_OF_OLD.replace("3030.30", "3003.30"), "inconsistent"),
        (PINGPONG_OF_OLD.replace("3030.30", "3177.53"), "inconsistent"),  # a megabyte of 10^6 among those of 2^20
        (PINGPONG_OF_OLD.replace(" 390.62", "-390.62"), "not a number"),
        (PINGPONG_OF_OLD.replace(" 390.62", "390,620"), "not a number"),
        (PINGPONG_OF_OLD.replace("390.62", "   nan"), "not a number"),
        (PINGPONG_OF_OLD.replace("390.62\n", "390.62"), "columns"),
        (ALLREDUCE.replace("1.95", "1.59"), "order"),
        (ALLREDUCE.replace("t_avg[usec]", "t_avg[hours]"), "unknown column"),
        ("\n".join(ALLREDUCE.splitlines()[:7]), "cut off"),
        (BARRIER + "         1000         0.61         0.63         0.62\n", "already"),
        (HEAD, "no table"),
        ("", "empty"),
        ("\0", "binary"),
    ],
)
def test_what_is_damaged_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        _read(text)


def test_defects_fail() -> None:
    header, row = "  t_avg[usec]\n", "1.84\n"
    text = ALLREDUCE.replace(header, header.rstrip("\n") + "      defects\n")
    for value in ("0.03", "1.81", "1.84", "1.90"):
        defects = "1.00" if value in row else "0.00"
        text = text.replace(f"         {value}\n", f"         {value}         {defects}\n")
    (experiment,) = _read(text).experiments
    assert "1.00 defects" in experiment.failed


def test_no_cut_or_lost_stretch_gives_another_number() -> None:
    data = sample_file("imb_pingpong_openmpi_run1.txt")
    line = len("            0         1000         0.12         0.00\n")
    whole = figures_in(read_imb(data))
    for damaged in [*cuts(data), *losses(data, seed=7)]:
        if (len(data) - len(damaged)) % line:  # else digits of one row may stand in place of another's
            found = readable(read_imb, damaged)
            assert found is None or is_part_of(found, whole), damaged[-60:]


def test_no_change_ends_in_anything_but_figures_or_a_refusal() -> None:
    for damaged in changes((HEAD + ALLREDUCE + SENDRECV + BARRIER + UNIBAND + MODES).encode(), seed=8):
        readable(read_imb, damaged)


def test_how_calls_start_goes_by_the_release() -> None:
    for release, start in (("2021.11", "barrier"), ("2019 Update 6", "barrier"), ("2018 Update 1", "back-to-back")):
        (experiment,) = _read(HEAD.replace("2019 Update 6", release) + ALLREDUCE).experiments
        assert experiment.parameters["start"] == start
    (unknown,) = _read(ALLREDUCE).experiments
    assert "start" not in unknown.parameters


def test_a_table_that_ends_before_the_size_that_imb_states_is_refused() -> None:
    data = sample_file("imb_pingpong_openmpi_run1.txt")
    whole = figures_in(read_imb(data))
    lines = data.decode().split("\n")
    for end in range(len(lines)):
        found = readable(read_imb, "\n".join(lines[:end]).encode() + b"\n")
        assert found is None or found == whole, lines[end - 1]
    explained = data.replace(
        b"      4194304           10       372.41     11262.65", b"# out-of-mem.; needed X= 9.1 GB"
    )
    (latency, bandwidth) = read_imb(explained).experiments
    assert any("out-of-mem" in remark for remark in latency.remarks) and bandwidth.remarks


def test_a_listed_benchmark_without_a_table_shows_that_the_file_was_cut() -> None:
    listed = "# List of Benchmarks to run:\n# Allreduce\n# Barrier\n"
    with pytest.raises(ParseError, match="Barrier, listed below this line, has no table"):
        _read(HEAD + listed + ALLREDUCE)
    (experiment,) = _read(HEAD + listed.replace("# Barrier\n", "") + ALLREDUCE).experiments
    assert any("MPI_Finalize" in remark for remark in experiment.remarks)
    ended = ALLREDUCE + "\n# All processes entering MPI_Finalize\n"
    assert not _read(HEAD + listed.replace("# Barrier\n", "") + ended).experiments[0].remarks


def test_rows_that_vanished_and_times_of_zero_are_reported() -> None:
    data = sample_file("imb_pingpong_openmpi_run1.txt").decode()
    row = next(line for line in data.splitlines() if line.split()[:1] == ["64"])
    (latency, _) = _read(data.replace(row + "\n", "")).experiments
    assert any("between 32 and 128 B" in remark for remark in latency.remarks)
    (allreduce,) = _read(
        HEAD + ALLREDUCE.replace("0.03         0.04         0.03", "0.00         0.00         0.00")
    ).experiments
    assert "Allreduce: t_avg[usec] is 0 at 0 B, below the printed digits: no figure" in allreduce.remarks


def test_all_sizes_that_IMB_left_out_are_counted() -> None:
    skipped = "".join(f"{size:>13} out-of-mem.; needed X=   2.003 GB\n" for size in (32, 64, 128))
    (experiment,) = _read(HEAD + ALLREDUCE + skipped).experiments
    assert experiment.remarks[0] == "Allreduce: sizes are missing: 32 out-of-mem.; needed X=   2.003 GB and 2 more"
