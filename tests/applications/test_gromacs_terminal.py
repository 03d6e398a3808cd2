"""What mdrun printed on the terminal, where its log is missing."""

from __future__ import annotations

import pytest

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

TERMINAL = """\
GROMACS:      gmx mdrun, version 2021.4
Using 2 MPI threads
Using 6 OpenMP threads per tMPI thread

starting mdrun 'Protein in water'
10000 steps,     20.0 ps.

Writing final coordinates.

               Core t (s)   Wall t (s)        (%)
       Time:      600.036       50.003     1200.0
                 (ns/day)    (hour/ns)
Performance:       34.559        0.694

GROMACS reminds you: "..." (...)
"""


def test_rate_and_time_with_a_caution() -> None:
    file = reader_of("gromacs").read(TERMINAL.encode())
    (experiment,) = file.experiments
    assert file.version == "2021.4"
    assert experiment.parameters == {"steps": 10000, "ranks": 2, "threads": 6}
    values = {sample.series: sample.elapsed_s for sample in experiment.samples}
    assert values == {"ns_time": pytest.approx(86400 / 34.559), "time": 50.003}
    assert "temperature is not in it" in experiment.remarks[0]


def test_after_a_reset_of_the_counters_the_steps_are_unknown() -> None:
    reset = TERMINAL.replace("Writing", "step 5000: resetting all time and cycle counters\nWriting")
    half = reset.replace("50.003", "25.002")
    assert "steps" not in reader_of("gromacs").read(half.encode()).experiments[0].parameters


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TERMINAL.partition("Performance")[0], "has not ended"),
        (TERMINAL.replace("34.559", "14.559"), "contradict"),
        (TERMINAL.replace("50.003", "90.003"), "are not"),
        (TERMINAL + TERMINAL, "two runs"),
        ("Fatal error:\n" + TERMINAL, "no figure"),
    ],
)
def test_cut_and_contradicting_output_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        reader_of("gromacs").read(text.encode())
    assert why in str(caught.value)


def test_the_end_of_the_log_below_it_must_say_the_same() -> None:
    end = TERMINAL[TERMINAL.index("               Core t") : TERMINAL.index("GROMACS reminds")]
    both = f"{TERMINAL}{end}Finished mdrun on rank 0 Wed Feb 17 12:08:06 2021\n"
    assert len(reader_of("gromacs").read(both.encode()).experiments[0].samples) == 2
    with pytest.raises(ParseError, match="two runs"):
        reader_of("gromacs").read((TERMINAL + end.replace("34.559", "35.559")).encode())
