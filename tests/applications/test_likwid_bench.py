"""likwid-bench: figures of a run, what it states, and damage."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from applications.result_texts import likwid_bench

from seatrial.applications import likwid_bench as reader
from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedFile


def read(text: str) -> ImportedFile:
    return reader_of("likwid-bench").read(text.encode())


def test_figures_of_a_run() -> None:
    (experiment,) = read(likwid_bench()).experiments
    assert experiment.parameters == {
        "kernel": "triad", "threads": 2, "size_B": 64000, "groups": 1, "domains": "S0",
    }  # fmt: skip
    values = {s.series: s.work["amount"] for s in experiment.samples}
    assert values == {"bandwidth": 139051.49e6, "flops": 8690.72e6, "cycles": 0.597441}


def test_a_kernel_without_operations_has_no_rate_of_them() -> None:
    text = likwid_bench().replace("\t4000000\n", "\t0\n").replace("8690.72", "0.00")
    assert [s.series for s in read(text).experiments[0].samples] == ["bandwidth", "cycles"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("139051.49", "239051.49", "are not Data volume"),
        ("8690.72", "869.72", "are not Number of Flops"),
        ("4.602612e-04", "4.602612e-03", "are not"),
        ("1194882", "2194882", "are not Cycles"),
        ("64000\n", "65000\n", "move another volume"),
        ("0.597441", "0.557441", "not a multiple"),
        ("Global Thread 1", "Global Thread 0", "2 threads, but lines of 1"),
        ("MByte/s", "MB", "no line with MByte/s"),
        ("LIKWID MICRO BENCHMARK", "", "from another program"),
        ("Using 1 work", "ERROR - cannot allocate\nUsing 1 work", "reports an error"),
    ],
)
def test_damaged_output_is_refused(old: str, new: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        read(likwid_bench().replace(old, new))


def test_two_runs_are_not_one() -> None:
    other = likwid_bench().replace("(Domain S0)", "(Domain S1)").replace("triad", "daxpy")
    first, second = read(likwid_bench() + other).experiments
    assert first.parameters["domains"] == "S0" and "domains" not in second.parameters
    assert (first.parameters["kernel"], second.parameters["kernel"]) == ("triad", "daxpy")


def test_a_working_set_in_the_caches_has_no_limit_of_the_memory(live_machine: Machine) -> None:
    (rate, *_) = reader.IMPORTED.figures
    assert rate.limit is not None
    limit = rate.limit(live_machine, {"size_B": 64000}, ())
    assert limit.value is None
    if live_machine.last_level_cache_bytes(live_machine.pus) is not None:
        assert "working set" in limit.derivation


@pytest.mark.real
def test_what_likwid_bench_prints_here(need: Callable[[str, str], str]) -> None:
    command = [need("likwid-bench", "apt install likwid"), "-t", "copy", "-w", "N:64kB:1", "-i", "1000"]
    ran = subprocess.run(command, capture_output=True, check=True, timeout=60)
    (experiment,) = reader_of("likwid-bench").read(ran.stdout).experiments
    assert experiment.parameters["kernel"] == "copy" and experiment.parameters["threads"] == 1
    assert {s.series for s in experiment.samples} == {"bandwidth", "cycles"}
