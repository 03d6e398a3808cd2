"""Made-up result files of other tools, printed as these tools print, from numbers that fit together."""

from __future__ import annotations

import json
from typing import Any

from seatrial.model.results.exported import COLUMNS

RULE = "-" * 61
MAPDL = """
+--------------------- M A P D L   S T A T I S T I C S ------------------------+
Release: 2021 R1            Build: 21.1       Update: UP20201109   Platform: LINUX x64
Number of machines requested            :    1
Number of processes requested           :    4
Number of threads per process requested :    2
Total number of cores requested         :    8 (Distributed Memory Parallel)
Elapsed time spent obtaining a license            :        0.4 seconds
Elapsed time spent computing solution             :       61.5 seconds
Equation solver used                              :            Sparse (symmetric)
+------------------ E N D   M A P D L   S T A T I S T I C S -------------------+
 *-----------------------------------------------------------------------------*
 |                               RUN COMPLETED                                 |
 |  Ansys MAPDL 2021 R1         Build 21.1         UP20201109    LINUX x64     |
 |        CP Time      (sec) =        412.125       Time  =  12:03:25          |
 |        Elapsed Time (sec) =         65.000       Date  =  03/01/2021        |
 *-----------------------------------------------------------------------------*
"""

# Real, of version 9.6.2 with two ranks, shortened.
ABINIT = """\
.Version 9.6.2 of ABINIT
.(MPI version, prepared for a x86_64_linux_gnu11.2 computer)

     natom =       2  nloc_mem =       1    nspden =       1   nspinor =       1
-   mpi_nproc: 2, omp_nthreads: -1 (-1 if OMP is not activated)
-
- Proc.   0 individual time (sec): cpu=          1.5  wall=          3.7

 Calculation completed.
.Delivered   0 WARNINGs and   1 COMMENTs to log file.
+Overall time at end (sec) : cpu=          3.0  wall=          7.4
"""
PAM_CRASH = """\
 | PAM-CRASH/SAFE                      |
 | Version   : 2018.01                 |
 | Precision : Single precision        |
 CYCLE  10000  TIME 0.100E+02
 CPU TIME          910.25
 ELAPSED TIME      230.50
 CPU TIME         1810.25
 ELAPSED TIME      460.75
 NORMAL TERMINATION
"""

STAR_NAMES = ("Iteration", "Continuity", "X-momentum", "Total Solver CPU Time (s)", "Total Solver Elapsed Time (s)")


def star_table(first: int = 1, count: int = 6, step_s: float = 1.5, names: tuple[str, ...] = STAR_NAMES) -> str:
    """Iterations of 16 processes; the first one takes 10 s more."""
    lines = ["".join(f"   {name:>12}" for name in names)]
    for i in range(first, first + count):
        total = 10 + step_s * i
        cells = (f"{i:d}", "1.000000e-03", "2.000000e-04", f"{15.5 * total:.6e}", f"{total:.6e}")
        lines.append("".join(f"   {cell:>{max(12, len(name))}}" for cell, name in zip(cells, names, strict=True)))
        lines.append("Reversed flow on  36 faces on Outlet")
    return "\n".join(lines) + "\n"


def star_log(rows: str) -> str:
    return f"""\
Starting STAR-CCM+ parallel server
MPI Distribution : Open MPI-4.1.2
Total number of processes : 16

Simcenter STAR-CCM+ 2210 Build 17.06.007 (linux-x86_64-2.17/gnu11.2)
1 copy of ccmppower checked out from 1999@licences
Server::start -host n01:47827
Simulation database saved by:
  STAR-CCM+ 9.06.011 (win64/intel12.1-r8) Mon Nov 10 22:24:21 UTC 2014 Np=4
Loading into:
  Simcenter STAR-CCM+ 2210 Build 17.06.007 (linux-x86_64-2.17/gnu11.2) Tue Oct 6 20:33:26 UTC 2022 Np=16
{rows}Stopping criterion Maximum Steps satisfied.
Simulation saved to car.sim (84.221MB in 0.62764s).
Server process exited with code 0
"""


def stream(
    rates_MBps: tuple[float, float, float, float] = (38853.9, 43238.9, 39045.0, 38487.0),
    elements: int = 80_000_000,
    threads: int | None = 2,
    version: str = "5.10",
    validation: str = "Solution Validates: avg error less than 1.000000e-13 on all three arrays",
) -> str:
    """STREAM as 5.10 prints it, or 5.9."""
    old = version == "5.9"
    counts = (16, 16, 24, 24)
    lines = [
        *(RULE, f"STREAM version $Revision: {version} $", RULE),
        f"This system uses 8 bytes per {'DOUBLE PRECISION word' if old else 'array element'}.",
        RULE,
        f"Array size = {elements}, Offset = 0" if old else f"Array size = {elements} (elements), Offset = 0 (elements)",
        "Each test is run 20 times, but only" if old else "Each kernel will be executed 20 times.",
        "the *best* time for each is used."
        if old
        else " The *best* time for each kernel (excluding the first iteration)",
        RULE,
    ]
    if threads is not None:
        lines.append(f"Number of Threads requested = {threads}")
        lines += [] if old else [f"Number of Threads counted = {threads}"]
    lines += [RULE, "Your clock granularity/precision appears to be 1 microseconds.", RULE]
    lines.append(
        "Function      Rate (MB/s)   Avg time     Min time     Max time"
        if old
        else "Function    Best Rate MB/s  Avg time     Min time     Max time"
    )
    for name, rate, count in zip(("Copy", "Scale", "Add", "Triad"), rates_MBps, counts, strict=True):
        least = count * elements / rate / 1e6
        decimals = 4 if old else 6
        cells = "".join(f"  {value:11.{decimals}f}" for value in (least * 1.04, least, least * 1.2))
        lines.append(f"{name + ':':12}{rate:11.1f}{cells}")
    return "\n".join([*lines, RULE, validation, RULE, ""])


def stream_mpi(ranks: int = 4, threads: int = 8) -> str:
    """STREAM over MPI processes (stream_mpi.c)."""
    text = stream(threads=None)
    text = text.replace(
        "Array size = 80000000 (elements), Offset = 0 (elements)",
        "\n".join(
            (
                "Total Aggregate Array size = 80000000 (elements)",
                f"Data is distributed across {ranks} MPI ranks",
                f"   Array size per MPI rank = {80000000 // ranks} (elements)",
            )
        ),
    )
    return text.replace("Your clock", f"Number of Threads requested for each MPI rank = {threads}\nYour clock")


def babelstream(unit: str = "MB/s", elements: int = 80_000_000, double: bool = True, with_elements: bool = True) -> str:
    """BabelStream as text; rates are 37000, 37100, ... of `unit`."""
    size = 8 if double else 4
    scale = 2.0**20 if unit.startswith("Mi") else 1e6
    lines = ["BabelStream", "Version: 5.0", "Implementation: OpenMP", "Running kernels 100 times"]
    lines += [f"Number of elements: {elements}"] if with_elements else []
    lines += [
        f"Precision: {'double' if double else 'float'}",
        f"Array size: {elements * size / 1e6:.1f} MB (=0.6 GB)",
        f"{'Function':12}{unit:12}{'Min (sec)':12}{'Max':12}{'Average':12}",
    ]
    for i, (name, arrays) in enumerate((("Copy", 2), ("Mul", 2), ("Add", 3), ("Triad", 3), ("Dot", 2))):
        rate = 37000.0 + 100 * i
        least = arrays * elements * size / rate / scale
        lines.append(f"{name:12}{rate:<12.3f}{least:<12.5f}{least * 1.2:<12.5f}{least * 1.1:<12.5f}")
    return "\n".join([*lines, ""])


def babelstream_csv(unit: str = "mbytes") -> str:
    """BabelStream with --csv."""
    scale = 2.0**20 if unit == "mibytes" else 1e6
    lines = [f"function,num_times,n_elements,sizeof,max_{unit}_per_sec,min_runtime,max_runtime,avg_runtime"]
    for i, (name, arrays) in enumerate((("Copy", 2), ("Mul", 2), ("Add", 3), ("Triad", 3), ("Dot", 2))):
        rate = 37000.0 + 100 * i
        least = arrays * 33554432 * 8 / rate / scale
        lines.append(f"{name},100,33554432,8,{rate:.6g},{least:.6g},{least * 1.2:.6g},{least * 1.1:.6g}")
    return "\n".join([*lines, ""])


def hpl_row(n: int, rate_Gflops: float, nb: int = 192, p: int = 2, q: int = 2, variant: str = "WR11C2R4") -> str:
    """One row of HPL with its rule."""
    time_s = (2 / 3 * n + 1.5) * n * n / rate_Gflops / 1e9
    return f"{variant}{n:12}{nb:6}{p:6}{q:6}{time_s:19.2f}{rate_Gflops:19.4e}"


def hpl(rows: tuple[tuple[str, bool], ...] = ((hpl_row(20000, 55.5), True),), version: str = "2.3") -> str:
    """HPL: (row, whether its residual passed) in order, and a summary that counts them."""
    passed = sum(ok for _, ok in rows)
    lines = [
        "=" * 80,
        f"HPLinpack {version}  --  High-Performance Linpack benchmark  --   December 2, 2018",
        "=" * 80,
        "",
    ]
    for row, ok in rows:
        lines += [
            "=" * 80,
            "T/V                N    NB     P     Q               Time                 Gflops",
            "-" * 80,
            row,
            "HPL_pdgesv() start time Sat Nov 21 19:17:00 2026",
            "-" * 80,
            "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   "
            + ("3.21360000e-03 ...... PASSED" if ok else "2.51360000e+09 ...... FAILED"),
        ]
    lines += [
        "=" * 80,
        "",
        f"Finished {len(rows):6} tests with the following results:",
        f"         {passed:6} tests completed and passed residual checks,",
        f"         {len(rows) - passed:6} tests completed and failed residual checks,",
        f"         {0:6} tests skipped because of illegal input values.",
        "-" * 80,
        "",
        "End of Tests.",
        "=" * 80,
    ]
    return "\n".join([*lines, ""])


def google_benchmark(**first: Any) -> dict[str, Any]:
    """A document with two benchmarks, the first of three repetitions with aggregates; `first` changes its entries."""
    repeated = [
        {
            "name": "BM_Copy/4096",
            "run_name": "BM_Copy/4096",
            "run_type": "iteration",
            "repetitions": 3,
            "repetition_index": i,
            "threads": 1,
            "iterations": 1000,
            "real_time": 125.0 + i,
            "cpu_time": 124.0 + i,
            "time_unit": "ns",
            "bytes_per_second": 3.2e10 + i,
            **first,
        }
        for i in range(3)
    ]
    mean = {**repeated[0], "name": "BM_Copy/4096_mean", "run_type": "aggregate", "aggregate_name": "mean"}
    other = {
        "name": "BM_Sort",
        "run_type": "iteration",
        "iterations": 10,
        "real_time": 2.5,
        "cpu_time": 2.4,
        "time_unit": "ms",
        "items_per_second": 4e5,
    }
    context = {
        "date": "2026-11-21T19:00:00+00:00",
        "host_name": "node7",
        "executable": "/home/someone/build/bench",
        "num_cpus": 2,
        "library_build_type": "release",
    }
    return {"context": context, "benchmarks": [*repeated, mean, other]}


def fio(bw_bytes: int = 706_810_455, error: int = 0, **options: str) -> dict[str, Any]:
    """A document of fio 3 with one job that reads for three seconds."""
    runtime_ms = 3001
    nothing = {"io_bytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}
    total = bw_bytes * runtime_ms // 1000 // 131072
    read = {
        "io_bytes": bw_bytes * runtime_ms // 1000,
        "bw_bytes": bw_bytes,
        "bw": bw_bytes // 1024,
        "iops": total / runtime_ms * 1e3,
        "runtime": runtime_ms,
        "total_ios": total,
        "lat_ns": {"min": 125356, "max": 3271847, "mean": 184475.7, "N": total},
    }
    job = {
        "jobname": "seqread",
        "error": error,
        "job options": {"name": "seqread", "rw": "read", "bs": "128k", "size": "128M", "direct": "1", **options},
        "read": read,
        "write": nothing,
    }
    return {"fio version": "fio-3.33", "timestamp": 1795293280, "timestamp_ms": 1795293280212, "jobs": [job]}


def as_bytes(document: dict[str, Any]) -> bytes:
    """A document as a file."""
    return json.dumps(document, indent=1).encode()


def csv_table() -> str:
    """A table as `seatrial export --format csv` writes it: one experiment with two figures."""
    parameters = '"{""n"": 82081, ""nb"": 256, ""p"": 1, ""q"": 1, ""ranks"": 1, ""variant"": ""WC00R2L1""}"'
    rows = ("rate", "flop/s,higher,668032000000.0"), ("time", "s,lower,551.89")
    lines = (f"imported.hpl,{parameters},d3b68e711c8dca6d,{name},{parameters},{value},,,1,ok" for name, value in rows)
    return "\n".join([",".join(COLUMNS), *lines, ""])


def perftest(unit: str = "MiB/sec", average: str = "23511.85") -> str:
    """ib_write_bw with one size."""
    rule = "-" * 87
    return f"""{rule}
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 TX depth        : 128
 Mtu             : 4096[B]
 Link type       : IB
{rule}
 #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]
 65536      5000             {average}            {average}\t\t     0.376190
{rule}
"""


def iperf3() -> dict[str, Any]:
    """A run over TCP."""
    return {
        "start": {
            "version": "iperf 3.16",
            "timestamp": {"timesecs": 1.7e9},
            "connecting_to": {"host": "b", "port": 5201},
            "test_start": {"protocol": "TCP", "num_streams": 4, "blksize": 131072, "reverse": 0},
        },
        "end": {
            "sum_sent": {"seconds": 30.0, "bytes": 35250000000, "bits_per_second": 9.4e9, "retransmits": 12},
            "sum_received": {"seconds": 30.0, "bytes": 35175000000, "bits_per_second": 9.38e9},
            "cpu_utilization_percent": {"host_total": 97.2, "remote_total": 22.1},
        },
    }


def inspector() -> str:
    """Two collectives on two of their ranks."""
    size_B = 1 << 30
    lines = []
    for number, rank, time_us in ((7, 0, 4000), (7, 1, 4100), (8, 0, 4000), (8, 1, 3990)):
        algbw = size_B / time_us / 1e3
        perf = {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": size_B, "coll_exec_time_us": time_us}
        perf |= {"coll_algobw_gbs": algbw, "coll_busbw_gbs": algbw * 2 * 7 / 8}
        lines.append(json.dumps({"header": {"id": "0x1", "rank": rank, "n_ranks": 8, "nnodes": 1}, "coll_perf": perf}))
    return "\n".join(lines) + "\n"


SACCT = """\
JobID|JobName|Partition|AllocNodes|AllocCPUS|State|ExitCode|ElapsedRaw|TotalCPU|MaxRSS
12748|relax|compute|2|128|COMPLETED|0:0|3721|5-12:00:01|
12748.batch|batch||1|64|COMPLETED|0:0|3721|10:00.500|22000K
12748.0|pw.x||2|128|COMPLETED|0:0|3700|5-11:50:00|4.5G
12749|relax|compute|2|128|TIMEOUT|0:0|7200|10-00:00:00||
12750|next|compute|2|128|RUNNING|0:0|60|00:00:00|
"""
"""As `sacct -P` prints it, and one line as `sacct -p` does, with a `|` at its end."""


def dcgm_row(left: str, right: str) -> str:
    """One row of the table of `dcgmi diag`."""
    return f"| {left:<25} | {right:<46} |"


def dcgm_message(kind: str, text: str) -> list[str]:
    """A message over as many rows as it needs: 45 characters each, wherever words end."""
    parts = [text[k : k + 45] for k in range(0, len(text), 45)]
    return [dcgm_row(kind if k == 0 else "", part) for k, part in enumerate(parts)]


def dcgm(stress: tuple[str, ...] = ("Pass - All",), version: str = "3.3.9", end: bool = True) -> str:
    """`dcgmi diag -r 3 -v` of two GPUs."""
    edge = f"+{'-' * 27}+{'-' * 48}+"
    copies = (
        "GPU {0} GPU to Host bandwidth:  13.1{0} GB/s, GPU {0} Host to GPU bandwidth:  12.37 GB/s, "
        "GPU {0} bidirectional bandwidth: 22.42 GB/s, GPU {0} GPU to Host latency:  2.028 us, "
        "GPU {0} Host to GPU latency:  2.127 us, GPU {0} bidirectional latency:  3.865 us"
    )
    products = (
        "GPU 1 Allocated space for 441 output matricies from 14943014092 bytes available., "
        "GPU 1 Running with precisions: FP64 1, FP32 1, FP16 1, "
        "GPU 1 GPU 1 calculated at approximately 21688.18 gigaflops during this test"
    )
    lines = [
        "Successfully ran diagnostic for group.", edge, dcgm_row("Diagnostic", "Result"), edge.replace("-", "="),
        f"|-----  Metadata  ----------+{'-' * 48}|", dcgm_row("DCGM Version", version),
        dcgm_row("GPU Device IDs Detected", "1db4,1db4"),
        f"|-----  Deployment  --------+{'-' * 48}|", dcgm_row("Denylist", "Pass"), dcgm_row("Inforom", "Pass"),
        f"+-----  Integration  -------+{'-' * 48}+", dcgm_row("PCIe", "Pass - All"),
        *dcgm_message("Info", copies.format(0)), *dcgm_message("Info", copies.format(1)),
        f"+-----  Hardware  ----------+{'-' * 48}+", dcgm_row("Diagnostic", "Pass - All"),
        *dcgm_message("Info", products),
        f"+-----  Stress  ------------+{'-' * 48}+",
        dcgm_row("Targeted Stress", stress[0]), *(dcgm_row("", other) for other in stress[1:]),
        *(dcgm_message("Warning", "GPU 1 Max stress level of 224.1 did not reach the desired") if stress[1:] else ()),
        *dcgm_message("Info", "GPU 0 GPU 0 relative stress level 1929"),
        *dcgm_message("Info", "GPU 1 GPU 1 relative stress level 224"),
        dcgm_row("EUD Test", "Skip - All"), *([edge] if end else []),
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def dcgm_json(status: str = "Pass", summary: str = "Pass") -> dict[str, Any]:
    """`dcgmi diag -j` of DCGM 4 on two GPUs; the second one has this result in the test of memory."""
    one = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"}
    other = {**one, "entity_id": 1, "status": status}
    if status != "Pass":
        other["warnings"] = [{"error_id": 10, "warning": "An uncorrectable ECC error was found on GPU 1."}]
    copies = {**one, "info": ["GPU to Host bandwidth:\t\t24.02 GB/s", "GPU to Host latency:\t\t3.024 us"]}
    tests = [
        ("Hardware", "memory", [one, other], summary),
        ("Integration", "pcie", [copies, {**one, "entity_id": 1}], "Pass"),
    ]
    categories = [
        {"category": category, "tests": [{"name": name, "results": results, "test_summary": {"status": of_all}}]}
        for category, name, results, of_all in tests
    ]
    serials = [{"entity_id": k, "device_id": "2330", "serial_num": f"16512{k}"} for k in range(2)]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1, "entities": serials}],
        "metadata": {"Driver Version Detected": "580.82.09", "version": "4.2.3"},
    }


def likwid_bench() -> str:
    """likwid-bench of two threads."""
    rule = "-" * 80
    values = (
        ("Cycles", "\t\t\t1194882"), ("CPU Clock", "\t\t2596095630"), ("Cycle Clock", "\t\t2596095630"),
        ("Time", "\t\t\t4.602612e-04 sec"), ("Iterations", "\t\t2000"), ("Iterations per thread", "\t1000"),
        ("Inner loop executions", "\t250"), ("Size (Byte)", "\t\t64000"), ("Size per thread", "\t32000"),
        ("Number of Flops", "\t4000000"), ("MFlops/s", "\t\t8690.72"), ("Data volume (Byte)", "\t64000000"),
        ("MByte/s", "\t\t139051.49"), ("Cycles per update", "\t0.597441"), ("Cycles per cacheline", "\t4.779528"),
    )  # fmt: skip
    return "\n".join(
        (
            "Allocate: Process running on hwthread 0 (Domain S0) - Vector length 2000/16000 Offset 0 Alignment 512",
            *(rule, "LIKWID MICRO BENCHMARK", "Test: triad", rule, "Using 1 work groups", "Using 2 threads", rule),
            "Group: 0 Thread 0 Global Thread 0 running on hwthread 0 - Vector length 1000 Offset 0",
            "Group: 0 Thread 1 Global Thread 1 running on hwthread 1 - Vector length 1000 Offset 1000",
            *(rule, *(f"{name}:{value}" for name, value in values), rule, ""),
        )
    )
