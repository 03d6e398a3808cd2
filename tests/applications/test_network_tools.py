"""perftest, iperf3, NCCL Inspector and sacct: figures, what they state, and damage."""

from __future__ import annotations

import json
from typing import Any

import pytest
from applications.result_texts import SACCT, as_bytes, inspector, iperf3, perftest
from applications.table_damage import values_of
from conftest import SHARED_DATA

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

COLLECTIVES = SHARED_DATA / "collectives"


def test_rates_of_perftest_are_in_MiB() -> None:
    (experiment,) = reader_of("perftest").read(perftest().encode()).experiments
    assert experiment.parameters == {
        "test": "RDMA_Write BW", "device": "mlx5_0", "pairs": 1, "connection": "RC", "mtu_B": 4096, "link": "IB",
        "buffers": "host",
    }  # fmt: skip
    file = reader_of("perftest").read(perftest().encode())
    assert values_of(file, "bandwidth")[65536] == pytest.approx(23511.85 * 2**20)
    assert values_of(file, "message_rate")[65536] == pytest.approx(0.376190e6)
    in_bits = reader_of("perftest").read(perftest(unit="Gb/sec", average="197.23").encode())
    assert values_of(in_bits, "bandwidth")[65536] == pytest.approx(197.23e9 / 8)


def test_times_of_perftest() -> None:
    text = """ #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.65           6.25         1.67     \t       1.70        \t0.28   \t\t3.52    \t\t6.25
 4       1000          1.83           7.17         1.86     \t       1.90        \t0.33   \t\t2.19    \t\t7.17
"""  # noqa: E501
    file = reader_of("perftest").read(text.encode())
    assert values_of(file, "time") == {2: 1.67e-6, 4: 1.86e-6} and values_of(file, "time_p99")[2] == 3.52e-6
    with pytest.raises(ParseError, match="not in this order"):
        reader_of("perftest").read(text.replace("1.67", "0.67").encode())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (perftest(average="13511.85"), "not that of the message rate"),
        (perftest().replace("0.376190", ""), "cells"),
        (perftest().replace("0.376190", "0"), "not that of the message rate"),
        (perftest().partition(" 65536")[0], "no rows below"),
        (perftest().replace("MsgRate[Mpps]", "Msg"), "unknown, or the header is cut off"),
        ("hello", "no header"),
    ],
)
def test_damaged_output_of_perftest_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        reader_of("perftest").read(text.encode())


def test_what_iperf3_received_counts_and_losses_are_remarks() -> None:
    file = reader_of("iperf3").read(as_bytes(iperf3()))
    (experiment,) = file.experiments
    assert (file.tool, file.version, file.date_s) == ("iperf3", "3.16", 1.7e9)
    assert values_of(file, "bandwidth") == {None: 9.38e9 / 8}
    assert experiment.parameters["protocol"] == "tcp" and experiment.parameters["streams"] == 4
    assert experiment.remarks == (
        "12 TCP segments were sent again",
        "iperf3 used most of one CPU (host 97 %): the CPU may limit the rate",
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"error": "unable to connect to server"}, "reports an error: unable to connect"),
        ({"end": {}}, "the run did not end"),
        (
            {"end": {"sum_received": {"bits_per_second": 9.4e9, "seconds": 10.0, "bytes": 1.0e9}}},
            "are not 1000000000 B",
        ),
        ({"end": {"sum_received": {"bits_per_second": 9.34e9, "seconds": 30.0, "bytes": 35175000000}}}, "are not"),
        ({"end": {"sum_received": {"bits_per_second": 0}}}, "nothing was received"),
    ],
)
def test_runs_of_iperf3_without_a_figure_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ParseError, match=why):
        reader_of("iperf3").read(as_bytes({**iperf3(), **change}))


def test_collectives_of_the_inspector() -> None:
    file = reader_of("nccl-inspector").read(inspector().encode())
    (experiment,) = file.experiments
    assert experiment.parameters == {"op": "AllReduce", "size_B": 1 << 30, "ranks": 8, "nodes": 1}
    times = [sample.elapsed_s for sample in experiment.samples if sample.series == "time"]
    assert times == pytest.approx([4.1e-3, 4.0e-3]), "that of the slowest rank"
    wrong = json.loads(inspector().splitlines()[0])
    wrong["coll_perf"]["coll_algobw_gbs"] *= 2
    with pytest.raises(ParseError, match="are not"):
        reader_of("nccl-inspector").read(json.dumps(wrong).encode())


@pytest.mark.skipif(not COLLECTIVES.is_dir(), reason="the samples (shared/data/collectives) are not here")
def test_recorded_lines_of_the_inspector() -> None:
    file = reader_of("nccl-inspector").read((COLLECTIVES / "inspector-v4.jsonl.txt").read_bytes())
    largest = next(e for e in file.experiments if e.parameters["size_B"] == 17179869184)
    rates = {sample.series: sample.work["amount"] for sample in largest.samples if sample.work}
    assert rates == pytest.approx({"algbw": 277.21e9, "busbw": 485.12e9}, rel=1e-3)
    with pytest.raises(ParseError, match="are not"):
        reader_of("nccl-inspector").read((COLLECTIVES / "cvs-inspector_v5_sample.jsonl.txt").read_bytes())
    with pytest.raises(ParseError, match="has one on each line, with `coll_perf`"):  # RCCL's report on a healthy job
        reader_of("nccl-inspector").read((COLLECTIVES / "rccl_v2283_text_healthy.txt.txt").read_bytes())


def test_jobs_of_sacct() -> None:
    done, stopped = reader_of("sacct").read(SACCT.encode()).experiments
    assert done.parameters == {"job": "12748", "name": "relax", "partition": "compute", "nodes": 2, "cpus": 128}
    values = {s.series: s.work.get("amount", s.elapsed_s) for s in done.samples}
    assert values == {"wall": 3721.0, "cpu_time": 5 * 86400 + 12 * 3600 + 1, "max_rss": 4.5 * 2**30}
    assert not done.failed and stopped.failed == "Slurm calls the job TIMEOUT (exit code 0:0)"


def test_a_table_of_fixed_width_and_JSON_of_sacct() -> None:
    table = """JobID           JobName  Partition    Account  AllocCPUS      State ExitCode    Elapsed
------------ ---------- ---------- ---------- ---------- ---------- -------- ----------
12748             relax    compute                   128  COMPLETED      0:0   01:02:01
12748.batch       batch                              128  COMPLETED      0:0   01:02:01
"""
    (job,) = reader_of("sacct").read(table.encode()).experiments
    assert job.parameters == {"job": "12748", "name": "relax", "partition": "compute", "cpus": 128}
    assert [(s.series, s.elapsed_s) for s in job.samples] == [("wall", 3721.0)]
    one = {
        "job_id": 12748, "name": "relax", "partition": "compute", "allocation_nodes": 2,
        "state": {"current": ["FAILED"]},
        "tres": {"allocated": [{"type": "cpu", "count": 128}]},
        "time": {"elapsed": 3721, "total": {"seconds": 10, "microseconds": 500000}},
    }  # fmt: skip
    (failed,) = reader_of("sacct").read(as_bytes({"jobs": [one]})).experiments
    assert failed.failed == "Slurm calls the job FAILED" and failed.parameters["cpus"] == 128
    assert {s.series: s.elapsed_s for s in failed.samples} == {"wall": 3721.0, "cpu_time": 10.5}


def json_job(number: int, **changed: Any) -> dict[str, Any]:
    """A job as sacct of Slurm 24.11 writes it: without what was not set."""
    unset = {"set": False, "infinite": False, "number": 0}
    return {
        "job_id": number, "name": "relax", "partition": "compute", "allocation_nodes": 1, "steps": [],
        "array": {"job_id": 0, "task_id": unset}, "state": {"current": ["COMPLETED"], "reason": "None"},
        "exit_code": {"status": ["SUCCESS"], "return_code": {"set": True, "infinite": False, "number": 0}},
        "tres": {"allocated": [{"type": "cpu", "id": 1, "count": 8}, {"type": "node", "id": 4, "count": 1}]},
        "time": {"elapsed": 259223, "total": {"seconds": 0, "microseconds": 0}},
        **changed,
    }  # fmt: skip


def test_JSON_of_sacct_of_both_layouts() -> None:
    code = {"status": ["ERROR"], "return_code": {"set": True, "infinite": False, "number": 2}}
    never_started = json_job(
        3, state={"current": ["CANCELLED"]}, allocation_nodes=0, tres={"allocated": []}, time={"elapsed": 0}
    )
    old = json_job(4, state={"current": "FAILED", "reason": "Prolog"}, exit_code={"status": "ERROR", "return_code": 1})
    jobs = [json_job(1), json_job(2, state={"current": ["FAILED"]}, exit_code=code), never_started, old]
    found = reader_of("sacct").read(as_bytes({"meta": {}, "jobs": jobs, "errors": []})).experiments
    assert [e.failed for e in found] == [
        "",
        "Slurm calls the job FAILED (exit code 2)",
        "Slurm calls the job CANCELLED (exit code 0)",
        "Slurm calls the job FAILED (exit code 1)",
    ]
    assert found[0].parameters == {"job": "1", "name": "relax", "partition": "compute", "nodes": 1, "cpus": 8}
    assert not found[2].samples and "cpus" not in found[2].parameters


def test_rows_without_header_are_read_if_their_form_is_known() -> None:
    path = SHARED_DATA / "schedulers" / "slurm-sacct-pipe-xdmod.txt"
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    timeout, cancelled, done, _ = reader_of("sacct").read(path.read_bytes()).experiments
    assert timeout.failed.startswith("Slurm calls the job TIMEOUT") and cancelled.failed.startswith("Slurm calls")
    assert done.parameters == {
        "job": "4107219", "name": "anonjobname", "partition": "general-compute", "nodes": 4, "cpus": 48,
    }  # fmt: skip
    assert [(s.series, s.elapsed_s) for s in done.samples] == [("wall", 50449.0)]
    for old, new in (
        (b"|3-00:00:00|1:0|", b"|5-00:00:00|1:0|"),
        (b"|TIMEOUT|32|", b"|32|TIMEOUT|"),
        (b"|256|256|", b"|"),
    ):
        with pytest.raises(ParseError, match=r"elapsed, but|no header with JobID"):
            reader_of("sacct").read(path.read_bytes().replace(old, new))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SACCT.partition("\n")[2], "no header with JobID"),
        (SACCT.replace("|State|", "|Start|"), "no State"),
        (SACCT.replace("12749|", "12748|"), "a second time"),
        (SACCT.replace("|relax|compute|2|128|TIMEOUT", "|relax|compute|TIMEOUT"), "cells, but the header"),
        (
            "".join(line for line in SACCT.splitlines(keepends=True) if "RUNNING" in line or "JobID" in line),
            "no job that",
        ),
        ("JobID JobName State\n12 a COMPLETED\n", "no line of dashes"),
    ],
)
def test_what_is_no_table_of_ended_jobs_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        reader_of("sacct").read(text.encode())
