"""HOOMD-blue: metadata of hoomd-benchmarks, logs as HOOMD 2 prints them, and what goes wrong in them."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

HEXAGON = "hoomd/hoomd2.x-hexagon-metadata.txt"
CRYSTAL = "hoomd/hoomd-quasicrystal-metadata-2015.txt"

MD = """\
HOOMD-blue v2.9.0 CUDA (10.2) SINGLE HPMC_MIXED MPI SSE SSE2 AVX
Compiled: 04/28/2020
-----
HOOMD-blue is running on the following GPU(s):
 [0]    Tesla V100  80 SM_7.0 @ 1.53 GHz, 16160 MiB DRAM
notice(2): Group "all" created containing 64000 particles
** starting run **
Time 00:00:10 | Step 20000 / 30000 | TPS 2000 | ETA 00:00:05
Time 00:00:15 | Step 30000 / 30000 | TPS 2001.5 | ETA 00:00:00
Average TPS: 2000.5
---------
** run complete **
** starting run **
Time 00:00:40 | Step 80000 / 80000 | TPS 2010.2 | ETA 00:00:00
Average TPS: 2010.2
---------
** run complete **
** starting run **
Time 00:01:05 | Step 130000 / 130000 | TPS 2020.4 | ETA 00:00:00
Average TPS: 2020.4
---------
** run complete **
"""
HOURS = "Hours to complete 10e6 steps: 1.37834455\n"  # 10e6 / 2015.3 / 3600
MOVES = "notice(2): -- HPMC stats:\nnotice(2): Trial moves per second:        4.5e+08\n** run complete **\n"
HPMC = MD.replace("** run complete **\n", MOVES)


@needs_logs
def test_ten_million_steps_of_molecular_dynamics() -> None:
    found = figures("hoomd", log(CRYSTAL))
    assert found["ten_million_steps"] == [pytest.approx(8.455 * 3600, rel=1e-4)]
    assert 1 / found["step"][0] == pytest.approx(328.543, rel=1e-5) and found["mps"] == [32854304.504394531]
    file = reader_of("hoomd").read(log(CRYSTAL))
    (experiment,) = file.experiments
    assert (file.version, file.host) == ("1.2.1", "collins")
    stated = {"method": "md", "particles": 100000, "ranks": 1, "device": "Tesla K40c", "precision": "fp32"}
    assert experiment.parameters == stated


@needs_logs
def test_moves_of_hard_particles_are_not_steps() -> None:
    found = figures("hoomd", log(HEXAGON))
    assert found["ten_million_steps"] == [pytest.approx(50.851 * 3600, rel=1e-5)]
    assert 1 / found["step"][0] == pytest.approx(7.84695, rel=1e-5)
    (experiment,) = reader_of("hoomd").read(log(HEXAGON)).experiments
    assert experiment.parameters["method"] == "hpmc"
    assert experiment.notes["moves_per_particle_and_step"] == pytest.approx(6.9615, rel=1e-4)


@needs_logs
@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        (CRYSTAL, b"329.58", b"339.58", "particle steps (mps)"),
        (CRYSTAL, b"32854304.504394531", b"3285430.4504394531", "particle steps (mps)"),
        (CRYSTAL, b'"N": 100000', b'"N": 10000', "density x volume are 100000 particles, not 10000"),
        (CRYSTAL, b'"tps": [', b'"tps": [0, ', "missing or 0"),
        (CRYSTAL, b"328.1981506347656", b"NaN", "NaN is not valid"),
        (CRYSTAL, b'"tps"', b'"fps"', "tps is None"),
        (HEXAGON, b"57279160.561178528", b"57279160561178528", "is impossible"),
        (HEXAGON, b"1048576", b"1048577e3", "no number of particles"),
    ],
)
def test_metadata_that_contradict_themselves(name: str, old: bytes, new: bytes, why: str) -> None:
    refused("hoomd", log(name).replace(old, new), why)


@needs_logs
def test_two_runs_in_one_list_are_refused() -> None:
    one = log(CRYSTAL).strip()[1:-1]
    refused("hoomd", b"[" + one + b"," + one + b"]", "a list of 2 runs")
    refused("hoomd", log(HEXAGON) * 2, "more after the JSON object")


@pytest.mark.parametrize(("text", "rates"), [(MD, [2010.2, 2020.4]), (MD + HOURS, [2010.2, 2020.4])])
def test_runs_as_long_as_the_last_count(text: str, rates: list[float]) -> None:
    (experiment,) = reader_of("hoomd").read(text.encode()).experiments
    assert experiment.notes == {"steps_per_second": rates}
    assert experiment.remarks == ("1 earlier runs of the script, such as warm-up, are left out",)
    stated = {"method": "md", "particles": 64000, "steps": 50000, "precision": "fp32"}
    assert experiment.parameters == stated


def test_the_hours_say_which_runs_count() -> None:
    found = figures("hoomd", (MD + "Hours to complete 10e6 steps: 1.37487\n").encode())
    assert found["ten_million_steps"] == [pytest.approx(1.37487 * 3600)] and found["step"] == [1 / 2020.4]
    moves = 64000 * 10e6 / (4.5e8 / 2020.4 * 2015.3) / 3600
    found = figures("hoomd", (HPMC + f"Hours to complete 10e6 steps: {moves}\n").encode())
    assert found["mps"] == [pytest.approx(4.5e8 / 2020.4 * 2015.3)]
    assert found["ten_million_steps"] == [pytest.approx(moves * 3600)]
    refused("hoomd", (HPMC + HOURS).encode(), "not those of ten million")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("HOOMD-blue v2.9.0", "LAMMPS", "from another program"),
        ("Average TPS: 2020.4\n", "", "has no `Average TPS` and `** run complete **` (step 130000 of 130000)"),
        ("Average TPS: 2020.4", "Average TPS: 2120.4", "is not 2120.4"),
        ("Average TPS: 2000.5", "Average TPS: nan", "not a plain number"),
        ("1.37834455", "13.7834455", "not those of ten million"),
        ("** starting run **", "** run **", "no `** starting run **`"),
        ("Time 00:01:05", "**ERROR**: Particle with unique tag 3 is no longer in the box.\nTime", "with an error"),
    ],
)
def test_what_has_no_figure_is_refused(old: str, new: str, why: str) -> None:
    refused("hoomd", (MD + HOURS).replace(old, new).encode(), why)


def test_two_logs_in_one_file_and_a_log_that_goes_on() -> None:
    counted_once("hoomd", MD.encode())
    refused("hoomd", MD[: MD.rindex("Average")].encode(), "has not ended")


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("hoomd"):
        with pytest.raises(ParseError):
            reader_of("hoomd").read(path.read_bytes())


@needs_logs
def test_damaged_metadata() -> None:
    check_mutants("hoomd", (CRYSTAL,))
    # Nothing contradicts a changed digit in these rates.
    check_mutants("hoomd", (HEXAGON,), unguarded=("step", "mps", "ten_million_steps"))
