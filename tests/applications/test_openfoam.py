"""Logs of OpenFOAM: real ones, and the traps in them."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample

from seatrial.applications.readers import reader_of

BANNER = r"""/*---------------------------------------------------------------------------*\
| =========                 |                                                 |
| \\      /  F ield         | OpenFOAM: The Open Source CFD Toolbox           |
|  \\    /   O peration     | Version:  v2406                                 |
\*---------------------------------------------------------------------------*/
Build  : _abc OPENFOAM=2406 version=v2406
Exec   : /opt/foam/bin/icoFoam -parallel
Case   : /home/somebody/run/cavity
nProcs : 4
Hosts  :
(
    (n1 2)
    (n2 2)
)
Create mesh for time = 0
"""
PITZ = "openfoam/openfoam9-simpleFoam-pitzDaily-converged.txt"
TWO_RANKS = "openfoam/v1912-simpleFoam-2ranks-oversubscribed-own-run.txt"
MOTORBIKE = "openfoam/v2312-simpleFoam-motorBike-6ranks-first5-last10-steps.txt"


def step(time: str, cpu: str, clock: int, residual: str = "0.5") -> str:
    solver = f"GAMG:  Solving for p, Initial residual = {residual}, Final residual = 0.0001, No Iterations 3\n"
    return f"Time = {time}\n\n{solver}ExecutionTime = {cpu} s  ClockTime = {clock} s\n\n"


def log(steps: str | None = None, end: str = "End\n") -> str:
    own = step("0.1", "0.5", 2) + step("0.2", "0.9", 7) + step("0.3", "1.3", 12)
    return BANNER + "\nStarting time loop\n\n" + (own if steps is None else steps) + end


def test_the_elapsed_time_is_the_clock_and_the_first_step_is_set_apart() -> None:
    assert figures("openfoam", log()) == {("wall",): 12.0, ("step",): 5.0}
    file = reader_of("openfoam").read(log().encode())
    assert file.version == "v2406"
    assert [sample.extra["resolution"] for sample in file.experiments[0].samples] == [1 / 12, 1 / 10]
    assert file.experiments[0].notes == {"cpu_time_of_rank_0_s": 1.3, "steps": 3}
    assert stated("openfoam", log()) == {"solver": "icoFoam", "case": "cavity", "ranks": 4, "nodes": 2}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (log(end=""), "not ended"),
        (log().replace("F ield", "F"), "from another program"),
        (log(step("0.1", "0.01", 0) + step("0.2", "0.02", 0)), "whole seconds"),
        (log() + "[3] --> FOAM FATAL ERROR: \n", "crashed"),
        (log().replace("0.9 s", "0.4 s"), "backwards"),
        (log().replace("1.3 s", "90.3 s"), "more CPU time"),
        (log().replace("0.5,", "nan,", 1), "diverged"),
        (log().replace("Time = 0.3", "Courant Number mean: 1e+20 max: 3e+22\nTime = 0.3"), "diverged"),
        (log().replace("ExecutionTime = 1.3 s  ClockTime = 12 s", "ExecutionTime = 1.3 s  Clock"), "damaged"),
        (log("Time = 0.1\n"), "no `ExecutionTime"),
        (log().replace("(n2 2)", "(n2 3)"), "hosts"),
        (log().replace("End\n", "SIMPLE solution converged in 313 iterations\nEnd\n"), "last step"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("openfoam", text)


def test_steps_that_are_missing_give_no_time_per_step() -> None:
    lost = log().replace("Time = 0.2\n", "")
    assert figures("openfoam", lost) == {("wall",): 12.0}
    assert figures("openfoam", log(step("0.5", "0.5", 2) + step("0.6", "0.9", 7))) == {("wall",): 7.0}
    adaptive = step("0.001", "0.5", 1) + "deltaT = 0.004\n" + step("0.005", "0.9", 3) + "deltaT = 0.02\n"
    assert ("step",) in figures("openfoam", log("deltaT = 0.001\n" + adaptive + step("0.025", "1.1", 5)))


def test_what_a_launcher_adds_to_lines_and_between_them_is_left_out() -> None:
    tagged = "".join(f"[1,0]<stdout>:{line}" for line in log().splitlines(keepends=True))
    noisy = b"\x1b[1;33mwarning: \xff\xfe\x1b[0m\r\n" + tagged.encode() + b"srun: job 17 done \x80\n"
    assert figures("openfoam", noisy) == figures("openfoam", log())
    assert stated("openfoam", noisy) == stated("openfoam", log())


def test_a_last_step_longer_than_all_others_is_told() -> None:
    steps = [step(f"{k}", f"0.{10 + k}", 1) for k in range(1, 12)]
    (experiment,) = reader_of("openfoam").read(log("".join([*steps, step("12", "0.9", 9)])).encode()).experiments
    assert "last of 12 steps took 8 s" in experiment.remarks[0]


@needs_logs
def test_real_runs() -> None:
    assert figures("openfoam", sample(PITZ)) == {("wall",): 11.0, ("step",): pytest.approx(11 / 312)}
    assert figures("openfoam", sample(TWO_RANKS)) == {("wall",): 32.0, ("step",): pytest.approx(32 / 59)}
    assert figures("openfoam", sample(MOTORBIKE)) == {("wall",): 19.0, ("step",): pytest.approx(19 / 499)}
    assert stated("openfoam", sample(MOTORBIKE))["ranks"] == 6


@needs_logs
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("invalid-output", "not ended"),
        ("v2012-icoFoam-cavity-clocktime-zero", "whole seconds"),
        ("v2312-chemFoam-h2", "whole seconds"),
        ("v1912-parallel-fatal-error-own-run", "crashed"),
        ("summary-jobs-7995wx", "from another program"),
    ],
)
def test_real_runs_without_a_figure(name: str, why: str) -> None:
    assert why in refusal("openfoam", sample(f"openfoam/{name}.txt"))


@needs_logs
@pytest.mark.parametrize("name", [MOTORBIKE, TWO_RANKS])
def test_damaged_logs(name: str) -> None:
    check_mutants("openfoam", (name,), fewer=("wall",))


def test_steps_that_are_lost_before_the_last_clock_do_not_change_the_time_per_step() -> None:
    steps = [step(f"{k}", f"{0.1 * k:.2f}", k) for k in range(1, 61)]
    whole = figures("openfoam", log("".join(steps)))
    assert whole[("step",)] == 1.0
    before, after = steps[57].split("ExecutionTime")[0], "ExecutionTime" + steps[59].split("ExecutionTime")[1]
    lost = log("".join([*steps[:57], before + after]))
    assert figures("openfoam", lost) == {("wall",): 60.0, ("step",): 1.0}
    (experiment,) = reader_of("openfoam").read(lost.encode()).experiments
    assert "the last step took 0.30 s of CPU time" in experiment.remarks[0]


def utility(name: str) -> str:
    return BANNER.replace("/opt/foam/bin/icoFoam -parallel", name) + "\nTime = constant\n\nEnd\n\n"


def test_programs_that_prepare_a_case_are_left_out() -> None:
    text = utility("/opt/foam/bin/blockMesh") + utility("decomposePar -force") + log()
    assert figures("openfoam", text) == figures("openfoam", log())
    (experiment,) = reader_of("openfoam").read(text.encode()).experiments
    assert experiment.remarks[0] == "without the output of blockMesh, decomposePar, of which no figure is read"
    assert "no figure is read of checkMesh" in refusal("openfoam", utility("checkMesh"))
    assert "no figure is read of checkMesh" in refusal(
        "openfoam", utility("checkMesh") + utility("checkMesh -constant")
    )
