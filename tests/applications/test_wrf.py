"""Logs of WRF: a real one, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

NAME = "wrf/wrf4.1.4-rsl-out-complete.txt"


def step(time: str, seconds: str, domain: int = 1, dt: str = "") -> str:
    return f"Timing for main{dt}: time 2020-03-18_{time} on domain   {domain}:    {seconds} elapsed seconds\n"


def rsl(steps: str, end: str = "00:00:45", last: str = "wrf: SUCCESS COMPLETE WRF") -> str:
    return f" Ntasks in X    2 , ntasks in Y    4\nWRF V4.6.0 MODEL\n{steps}d01 2020-03-18_{end} {last}\n"


THREE = step("00:00:15", "3.00000") + step("00:00:30", "1.00000") + step("00:00:45", "2.00000")


@needs_logs
def test_mean_and_median_of_the_steps_after_the_first() -> None:
    found = figures("wrf", log(NAME))
    assert found["step"] == [pytest.approx((480 * 0.37586 - 1.52669) / 479, rel=1e-4)]
    assert found["step_median"] == [pytest.approx(0.23874, rel=1e-3)]
    (experiment,) = reader_of("wrf").read(log(NAME)).experiments
    assert experiment.parameters == {"ranks": 8, "nx": 73, "ny": 60, "domains": 1, "timestep": "180 s"}
    assert experiment.notes == {"steps": 480, "first_step_s": 1.52669}


def test_nests_are_in_the_steps_of_the_outermost_domain() -> None:
    nests = step("00:00:05", "0.30000", 2) + step("00:00:10", "0.30000", 2) + step("00:00:15", "0.30000", 2)
    assert figures("wrf", rsl(nests + THREE).encode()) == {"step": [1.5], "step_median": [1.5]}
    threads = "WRF NUMBER OF TILES FROM OMP_GET_MAX_THREADS =   4\n"
    (experiment,) = reader_of("wrf").read(rsl(threads + nests + threads + THREE).encode()).experiments
    assert (experiment.parameters["domains"], experiment.parameters["threads"]) == (2, 4)


def test_steps_of_a_part_of_a_second_and_of_changing_width() -> None:
    parts = step("00:00:07+01/02", "3.00000") + step("00:00:15", "1.00000") + step("00:00:22+01/02", "2.00000")
    assert figures("wrf", rsl(parts, "00:00:22+01/02").encode())["step"] == [1.5]
    adaptive = step("00:00:15", "3.00000", dt=" (dt= 15.00)") + step("00:00:45", "1.50000", dt=" (dt= 30.00)")
    assert figures("wrf", rsl(adaptive).encode())["step"] == [1.5]


def test_an_unstable_run_is_told() -> None:
    cfl = "d01 2020-03-18_00:00:30  12 points exceeded cfl=2 in domain d01 at time 2020-03-18_00:00:30 hours\n"
    (experiment,) = reader_of("wrf").read(rsl(THREE + cfl).encode()).experiments
    assert "may be unstable" in experiment.remarks[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (rsl(THREE, last="wrf:"), "has not ended"),
        (rsl(THREE, end="00:01:00"), "steps are missing"),
        (rsl(THREE.replace("00:00:30", "00:00:20")), "steps missing"),
        (rsl(THREE.replace("1.00000", "1.0000")), "damaged `Timing for main`"),
        (rsl(THREE + step("00:00:45", "1.00000")), "not later than"),
        (rsl(THREE) + rsl(THREE), "second run"),
        (rsl(step("00:00:45", "1.00000")), "too few"),
        (rsl(THREE.replace("03-18_00:00:30", "13-18_00:00:30")), "not a valid date"),
        (rsl(THREE + "-------------- FATAL CALLED ---------------\n"), "WRF failed"),
        (rsl(THREE).replace("WRF V4.6.0 MODEL", "REAL_EM V4.6.0 PREPROCESSOR"), "from another program"),
    ],
)
def test_runs_without_a_figure_are_refused(text: str, why: str) -> None:
    refused("wrf", text.encode(), why)


def test_noise_is_survived() -> None:
    text = rsl(THREE).encode()
    assert figures("wrf", noisy(text)) == figures("wrf", text)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("wrf"):
        with pytest.raises(ParseError):
            reader_of("wrf").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    # Nothing confirms the time of a single step, which the mean has in it.
    check_mutants("wrf", (NAME,), near=0.01, unguarded=("step",), share=0.5)


def test_an_end_without_the_simulated_time_is_read_with_a_caution() -> None:
    text = rsl(THREE).replace("d01 2020-03-18_00:00:45 wrf:", "wrf:")
    assert figures("wrf", text.encode())["step"] == [1.5]
    (experiment,) = reader_of("wrf").read(text.encode()).experiments
    assert "does not state the simulated time" in experiment.remarks[0]


def test_AceCAST_is_WRF_on_GPUs() -> None:
    text = rsl(THREE).replace("WRF V4.6.0 MODEL", "Equivalent WRF version: WRF V4.6.0 MODEL")
    assert figures("wrf", text.encode())["step"] == [1.5]
    assert reader_of("wrf").read(text.encode()).version == "4.6.0"
