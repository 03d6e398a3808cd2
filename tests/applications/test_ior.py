"""Results of IOR: real ones, and damaged ones."""

from __future__ import annotations

import json
from random import Random

import pytest
from applications.log_damage import (
    check_mutants,
    counted_once,
    figures,
    log,
    mutant,
    needs_logs,
    noisy,
    others,
    refused,
)

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

NARVAL = "ior/ior-easy-write-narval.txt"
HARD = "ior/ior-hard-read-ddn-2025.txt"
RANDOM = "ior/ior-rnd4K-read-ddn-2025.txt"
MIB = 2.0**20

# Of IOR 4.1 (two ranks, blocks of 4 MiB in two segments, two repeats).
CSV = """\
access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter
write,346.0504,346.8015,0.0058,4096.0000,1024.0000,0.0001,0.0461,0.0347,0.0462,2,0
read,1760.4634,1789.5697,0.0001,4096.0000,1024.0000,0.0000,0.0089,0.0001,0.0091,2,0
write,532.6777,534.1531,0.0032,4096.0000,1024.0000,0.0010,0.0300,0.0032,0.0300,2,1
read,2837.9441,2845.5251,0.0006,4096.0000,1024.0000,0.0007,0.0056,0.0008,0.0056,2,1
"""

# The form of IOR 3.0: without IOPS, with a summary.
OLD = """\
IOR-3.0.1: MPI Coordinated Test of Parallel I/O

Began: Thu Mar 14 10:00:00 2019
Command line used: ./ior -a MPIIO -b 1g -t 1m -i 2 -w -r
Machine: Linux n001

Test 0 started: Thu Mar 14 10:00:00 2019
Summary:
\tapi                = MPIIO (version=3, subversion=1)
\ttest filename      = testFile
\taccess             = single-shared-file
\tordering in a file = sequential offsets
\tordering inter file= no tasks offsets
\tclients            = 8 (4 per node)
\trepetitions        = 2
\txfersize           = 1 MiB
\tblocksize          = 1 GiB
\taggregate filesize = 8 GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     1024.00    1048576    1024.00    0.010000   7.98       0.010000   8.00       0
read      2048.00    1048576    1024.00    0.010000   3.98       0.010000   4.00       0
remove    -          -          -          -          -          -          0.010000   0
write     1280.00    1048576    1024.00    0.010000   6.38       0.010000   6.40       1
read      2560.00    1048576    1024.00    0.010000   3.18       0.010000   3.20       1

Max Write: 1280.00 MiB/sec (1342.18 MB/sec)
Max Read:  2560.00 MiB/sec (2684.35 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev
write        1280.00    1024.00    1152.00     128.00
read         2560.00    2048.00    2304.00     256.00

Finished: Thu Mar 14 10:01:00 2019
"""


def as_json(**changes: object) -> bytes:
    row = {"access": "write", "bwMiB": 500.0, "blockKiB": 1024.0, "xferKiB": 256.0, "iops": 2500.0, "latency": 0.0004}
    row |= {"openTime": 0.1, "wrRdTime": 0.8, "closeTime": 0.1, "totalTime": 1.0}
    options = {"api": "POSIX", "access": "single-shared-file", "nodes": "1", "tasks": "2", "repetitions": "1"}
    options |= {"xfersize": "262144 bytes", "blocksize": "250 MiB", "aggregate filesize": "500 MiB"}
    summary = [{"operation": "write", "bwMaxMIB": 500.0, "bwMinMIB": 500.0, "bwMeanMIB": 500.0}]
    test = {"TestID": 0, "Options": options, "Results": [[row | changes]]}
    document = {"Version": "4.0.0", "Began": "now", "Command line": "ior -O summaryFormat=JSON", "Tests": [test]}
    return json.dumps(document | {"summary": summary, "Finished": "later"}, indent=1).encode()


@needs_logs
@pytest.mark.parametrize(
    ("name", "way", "bandwidth", "iops"),
    [(NARVAL, "write", 130047, 65149), (HARD, "read", 57799, 1294855), (RANDOM, "read", 256821, 66634002)],
)
def test_bandwidth_and_operations(name: str, way: str, bandwidth: float, iops: float) -> None:
    assert figures("ior", log(name)) == {way: [bandwidth * MIB], f"{way}_iops": [iops]}


@needs_logs
def test_what_a_run_states() -> None:
    (experiment,) = reader_of("ior").read(log(HARD)).experiments
    assert experiment.parameters == {
        "api": "POSIX",
        "access": "single-shared-file",
        "order": "sequential",
        "segments": 45000,
        "nodes": 80,
        "ranks": 1280,
        "transfer_B": 47008,
        "block_B": 47008,
    }


def test_repeats_of_an_older_version() -> None:
    (experiment,) = reader_of("ior").read(OLD.encode()).experiments
    found = {(one.series, one.i): one.work["amount"] / MIB for one in experiment.samples}
    assert found == {("write", 0): 1024, ("read", 0): 2048, ("write", 1): 1280, ("read", 1): 2560}
    assert experiment.parameters["ranks"] == 8


def test_JSON() -> None:
    assert figures("ior", as_json()) == {"write": [500 * MIB], "write_iops": [2500]}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("write     1280.00 ", "write     1290.00 ", "are not 8589934592 B"),
        ("6.40       1", "4.60       1", "longer than all"),
        ("6.40       1", "6.60       1", "are not 8589934592 B"),
        ("write     1280.00    1048576", "write     1280.00    ", "8 columns, but the header has 9"),
        ("6.40       1", "6.40       2", "rows are missing"),
        ("repetitions        = 2", "repetitions        = 3", "rows are missing"),
        ("Max Write: 1280.00", "Max Write: 1290.00", "not the largest"),
        ("(2684.35 MB/sec)", "(2584.35 MB/sec)", "not the largest"),
        ("Machine:", "ior ERROR: write() failed, errno 28\nMachine:", "IOR found an error"),
        ("remove ", "WARNING: incorrect data on read (12 errors found).\nremove ", "IOR found an error"),
        ("IOR-3.0.1", "IOR", "from another program"),
    ],
)
def test_a_damaged_run_is_refused(old: str, new: str, why: str) -> None:
    assert old in OLD
    refused("ior", OLD.replace(old, new).encode(), why)


def test_a_run_that_did_not_end_is_refused() -> None:
    lines = OLD.splitlines(keepends=True)
    for count in range(len(lines)):
        if not any(line.startswith("Max Write") for line in lines[:count]):
            with pytest.raises(ParseError):
                reader_of("ior").read("".join(lines[:count]).encode().replace(b"read      2560", b"later     2560"))
    counted_once("ior", OLD.encode())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"bwMiB": 600.0}, "are not 524288000 B"),
        ({"iops": 2600.0}, "transfers per second"),
        ({"wrRdTime": 8.0}, "longer than all"),
        ({"totalTime": 0.0}, "totalTime is 0"),
        ({"bwMiB": "inf"}, "not a number"),
        ({"access": "verify"}, "neither write nor read"),
    ],
)
def test_damaged_JSON_is_refused(changes: dict[str, object], why: str) -> None:
    refused("ior", as_json(**changes), why)


def test_CSV() -> None:
    found = figures("ior", CSV.encode())
    assert found["write"] == pytest.approx([(346.0504 + 532.6777) / 2 * MIB]), "the median of both"
    assert found["read_iops"] == pytest.approx([(1789.5697 + 2845.5251) / 2])
    (experiment,) = reader_of("ior").read(CSV.encode()).experiments
    assert [sample.i for sample in experiment.samples if sample.series == "write"] == [0, 1]
    assert experiment.parameters == {"block_B": 4 << 20, "transfer_B": 1 << 20, "ranks": 2}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("346.0504", "446.0504", "transfers per second"),
        ("write,346.0504,346.8015", "write,460.0504,461.8015", "not a multiple"),
        (",2,0\nread", ",2,1\nread", "rows are missing"),
        ("0.0056,2,1\n", "0.0056,2,1", "cut off"),
        ("0.0056,2,1\n", "0.0056\n", "cut off"),
        ("read,2837.9441,2845.5251,0.0006,4096", "read,2837.9441,2845.5251,0.0006,8192", "several sizes"),
        ("numTasks", "tasks", "no column"),
        ("write,532", "remove,532", "neither write nor read"),
        ("1760.4634", "nan", "not a plain number"),
    ],
)
def test_damaged_CSV_is_refused(old: str, new: str, why: str) -> None:
    assert old in CSV
    refused("ior", CSV.replace(old, new).encode(), why)


def test_no_damage_gives_another_rate() -> None:
    """But for the rounding of the times, which have two digits or three here, and for a repeat that is lost at the
    end, which nothing states."""
    whole = {"write": (346.0504, 439.364, 532.6777), "read": (1760.4634, 2299.2, 2837.9441)}
    for n in range(300):
        try:
            found = figures("ior", mutant(CSV.encode(), Random(n)))
        except ParseError:
            continue
        for way in ("write", "read"):
            for value in found.get(way, []):
                assert any(value == pytest.approx(true * MIB, rel=0.05) for true in whole[way]), (n, way, value)


def test_noise_is_survived() -> None:
    text = OLD.encode()
    assert figures("ior", noisy(text)) == figures("ior", text)


@needs_logs
def test_results_of_other_programs_are_refused() -> None:
    for path in others("ior"):
        with pytest.raises(ParseError):
            reader_of("ior").read(path.read_bytes())


@needs_logs
def test_damaged_results() -> None:
    check_mutants("ior", (NARVAL, HARD, RANDOM), near=4e-3)
