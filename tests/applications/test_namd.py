"""Logs of NAMD: real ones, and what goes wrong in them."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, others, refused

from seatrial.applications.readers import reader_of
from seatrial.applications.reading.log import Printed
from seatrial.errors import ParseError

STMV = "namd/namd2.14-stmv-64pe-multicore.txt"
APOA1 = "namd/namd2.14-apoa1-netlrts-16pe-cpu-ne-wall.txt"
NAMES = (STMV, APOA1, "namd/namd2-tiny.txt", "namd/namd2-ergre-1pe-six-benchmark-lines.txt")

NAMD3 = """\
Charm++> Running in Multicore mode: 8 threads (PEs)
Info: NAMD 3.0.1 for Linux-x86_64-multicore-CUDA
Info: Running on 8 processors, 1 nodes, 1 physical nodes.
Info: Configuration file is stmv.namd
Info: TIMESTEP               2
Info: NUMBER OF STEPS        20000
Info: 1066628 ATOMS
ETITLE:      TS           BOND           TEMP
ENERGY:       0        100.0         300.0
Info: Benchmark time: 8 CPUs 0.00864 s/step 20 ns/day 0 MB memory
TIMING: 20000  CPU: 170.1, 0.0085/step  Wall: 172.8, 0.00864/step, 20 ns/days, 0 hours remaining, 0 MB of memory in use.
ENERGY:   20000        100.0         301.5
WallClock: 180.500000  CPUTime: 178.100000  Memory: 900.0 MB
[Partition 0][Node 0] End of program
"""


@needs_logs
@pytest.mark.parametrize(
    ("name", "step_s", "ns_per_day"),
    [
        (STMV, 0.0916822, 0.94238),
        (APOA1, 0.0296039, 2.9185),
        ("namd/namd2-tiny.txt", 0.012974, 6.6595),
        ("namd/namd2-ergre-1pe-six-benchmark-lines.txt", 0.750557, 0.11511),
    ],
)
def test_the_last_benchmark_line_counts(name: str, step_s: float, ns_per_day: float) -> None:
    found = figures("namd", log(name))
    assert found["step"] == [step_s]
    assert 86400 / found["ns_time"][0] == pytest.approx(ns_per_day, rel=5e-5)


@needs_logs
def test_the_whole_run_is_another_figure() -> None:
    assert figures("namd", log(STMV))["wall"] == [52.31723]
    (experiment,) = reader_of("namd").read(log(STMV)).experiments
    assert experiment.parameters == {
        "build": "Linux-x86_64-multicore",
        "timestep": "1 fs",
        "input": "stmv.namd",
        "atoms": 1066628,
        "steps": 500,
        "ranks": 1,
        "threads": 64,
        "nodes": 1,
    }


@needs_logs
def test_a_failure_after_the_last_step_is_told() -> None:
    (experiment,) = reader_of("namd").read(log(APOA1)).experiments
    assert "failed after its last step" in experiment.remarks[0]
    assert "wall" not in {sample.series for sample in experiment.samples}


def test_NAMD_3_prints_ns_per_day() -> None:
    found = figures("namd", NAMD3.encode())
    assert found["step"] == [0.00864]
    assert 86400 / found["ns_time"][0] == pytest.approx(20)
    assert found["wall"] == [180.5]


def test_both_directions_give_one_unit() -> None:
    days, rate = Printed.of(0.25, "0.25"), Printed.of(4.0, "4.0")
    assert days.ns_time_from_days().value == rate.ns_time_from_rate().value == 21600


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Info: NAMD 3.0.1 for", "Info: something else for", "from another program"),
        ("WallClock", "Wall", "no figure"),
        ("0.00864 s/step", "0.00964 s/step", "s/step of 2 fs are not"),
        ("TIMESTEP               2", "TIMESTEP               4", "s/step of 4 fs are not"),
        ("100.0         301.5", "100.0         29000.0", "exploded"),
        ("100.0         301.5", "-nan         nan", "exploded"),
        ("on 8 processors", "on 16 processors", "but NAMD runs on 16"),
        ("WallClock: 180.5", "WallClock: 80.5", "below the 172.8 s"),
        ("Info: Benchmark time: 8", "Info: Initial time: 8", "no `Benchmark time`"),
        ("Info: Benchmark time: 8", "FATAL ERROR: disk\nInfo: Benchmark time: 8", "before its last step"),
        ("ENERGY:   20000", "ERROR: Constraint failure in RATTLE\nENERGY:   20000", "exploded"),
    ],
)
def test_what_has_no_figure_is_refused(old: str, new: str, why: str) -> None:
    text = NAMD3.replace(old, new)
    if why == "no figure":  # without either end
        text, why = text.replace("End of program", ""), "has not ended"
    refused("namd", text.encode(), why)


def test_a_log_pasted_twice_counts_once() -> None:
    counted_once("namd", NAMD3.encode())


def test_noise_is_survived() -> None:
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in NAMD3.splitlines())
    noisy = b"\xff\xfe\xe9 caf\n\x1b[31mwarning\x1b[0m\n" + tagged.encode()
    assert figures("namd", noisy) == figures("namd", NAMD3.encode())


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("namd"):
        with pytest.raises(ParseError):
            reader_of("namd").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    # The lines fall by 1.4 % through a run, and without the last one the one before it counts.
    check_mutants("namd", NAMES, near=0.02, unguarded=("wall",))


def test_steps_that_another_run_made_are_refused() -> None:
    """0.00864 s a step are stated, and 1.728 s have passed for each since the line before."""
    before = (
        "TIMING: 19900  CPU: 0.1, 0.0085/step  Wall: 0.1, 0.00864/step, 20 ns/days, 0 hours remaining, 0 MB in use.\n"
    )
    text = NAMD3.replace("TIMING: 20000", f"{before}TIMING: 20000")
    with pytest.raises(ParseError, match=r"0.00864 s per step, but 1.727 s have passed for each .*: two runs"):
        reader_of("namd").read(text.encode())
    within = text.replace("Wall: 0.1,", "Wall: 171.9,")
    assert figures("namd", within.encode())["step"] == [0.00864]


def test_each_benchmark_line_agrees_with_itself() -> None:
    line = "Info: Benchmark time: 8 CPUs 0.00864 s/step 20 ns/day 0 MB memory\n"
    assert figures("namd", NAMD3.replace(line, line * 2).encode())["step"] == [0.00864]
    refused("namd", NAMD3.replace(line, line.replace("20 ns", "21 ns") + line).encode(), "are not 21 ns/day")
