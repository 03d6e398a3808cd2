"""Logs of GROMACS' mdrun: a real one, made-up ones, and what goes wrong in them."""

from __future__ import annotations

import pytest
from applications.log_damage import figures, noisy, refused
from applications.test_gromacs_output import LOG, SAMPLE, needs_sample

from seatrial.applications.readers import reader_of

TEXT = LOG.encode()


@needs_sample
def test_a_real_log() -> None:
    """One of GROMACS 2022 with 2 ranks."""
    found = figures("gromacs", SAMPLE.read_bytes())
    assert 86400 / found["ns_time"][0] == pytest.approx(
        float(SAMPLE.read_text().split("Performance:")[1].split()[0]), rel=1e-3
    )


def test_the_steps_after_the_reset_count() -> None:
    found = figures("gromacs", TEXT)
    assert found["time"] == [4.314]
    assert found["step"] == [pytest.approx(4.314 / 501, rel=1e-4)]
    assert 86400 / found["ns_time"][0] == pytest.approx(20.068, rel=1e-4)
    (experiment,) = reader_of("gromacs").read(TEXT).experiments
    assert experiment.parameters == {"timestep": "2 fs", "steps": 501, "atoms": 5184, "ranks": 2, "threads": 4}


def test_a_log_with_noise_of_its_launcher() -> None:
    assert figures("gromacs", noisy(TEXT)) == figures("gromacs", TEXT)


def test_steps_of_the_command_line_override_those_of_the_input() -> None:
    overridden = TEXT.replace(b"nsteps                         = 600", b"nsteps                         = 50000")
    refused("gromacs", overridden, "50000 steps")
    line = b"Overriding nsteps with value passed on the command line: 600 steps, 1.2 ps\n"
    assert figures("gromacs", overridden.replace(b"Using 2 MPI", line + b"Using 2 MPI")) == figures("gromacs", TEXT)


def test_a_run_with_a_time_limit_may_have_steps_without_end() -> None:
    unlimited = TEXT.replace(b"nsteps                         = 600", b"nsteps                         = -1")
    assert figures("gromacs", unlimited) == figures("gromacs", TEXT)


def test_a_warning_of_constraints_is_remarked() -> None:
    warning = b"Step 7, time 0.014 (ps)  LINCS WARNING\n"
    (experiment,) = reader_of("gromacs").read(TEXT.replace(b"step 100:", warning + b"step 100:")).experiments
    assert "LINCS WARNING" in experiment.remarks[0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("4.314      199.8", "5.314      199.8", "are not 501 steps of 2 fs"),
        ("20.068        1.196", "21.068        1.196", "are not 501 steps of 2 fs"),
        ("20.068        1.196", "20.068        1.296", "are not 501 steps of 2 fs"),
        ("= 0.002", "= 0.004", "are not 501 steps of 4 fs"),
        ("over 601 steps", "over 600 steps", "steps are missing"),
        ("2.96030e+02", "2.96030e+05", "has exploded"),
        ("2.96030e+02", "        nan", "not a number"),
        ("Finished mdrun", "Fatal error:\nFinished mdrun", "mdrun failed"),
        ("Finished mdrun", "Finishing mdrun", "has not ended"),
        ("GROMACS: ", "GROMOS: ", "from another program"),
        (END_OF_RUN := "Performance:       20.068        1.196\n", END_OF_RUN * 2, "two runs in one file"),
    ],
)
def test_a_damaged_or_failed_run_is_refused(old: str, new: str, why: str) -> None:
    assert old in LOG
    refused("gromacs", LOG.replace(old, new).encode(), why)
