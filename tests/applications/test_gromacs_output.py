"""What mdrun writes into its log: a real file, made-up ones, and what damage, cuts and other tools' files give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shared_samples import OUTPUTS, PRINTED

from seatrial.applications.gromacs import read_gromacs, why_not
from seatrial.errors import ProtocolError

SAMPLE = OUTPUTS / "gromacs_water510_2ranks.txt"
needs_sample = pytest.mark.skipif(not SAMPLE.is_file(), reason=f"needs {SAMPLE.name} of the shared data")

BEGIN = """\
GROMACS:      gmx mdrun, version 2024.2
Precision:          mixed
SIMD instructions:  AVX_512
Highest SIMD level supported by all nodes in run: AVX_512
   dt                             = 0.002
   nsteps                         = 600
Using 2 MPI processes
Using 4 OpenMP threads per MPI process
There are: 5184 Atoms
"""
RESET = "step 100: resetting all time and cycle counters\n"
END = """\
  Conserved energy drift: 1.25e-03 kJ/mol/ps per atom
	<====  A V E R A G E S  ====>
	Statistics over 601 steps using 7 frames
   Energies (kJ/mol)
        LJ (SR)   Coulomb (SR)   Coul. recip.      Potential    Kinetic En.
    1.38165e+04   -8.65222e+04    5.95944e+02   -7.21098e+04    1.27559e+04
   Total Energy  Conserved En.    Temperature Pressure (bar)
   -5.93540e+04   -6.04909e+04    2.96030e+02    9.98730e+02
     R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G
On 2 MPI ranks, each using 4 OpenMP threads
 Computing:          Num   Num      Call    Wall time         Giga-Cycles
                     Ranks Threads  Count      (s)         total sum    %
-----------------------------------------------------------------------------
 Neighbor search        2    4         13       0.107          0.278   2.5
 Wait + Comm. F         2    4        501       4.000         10.387  92.8
 Rest                                           0.207          0.537   4.7
-----------------------------------------------------------------------------
 Total                                          4.314         22.382 100.0
-----------------------------------------------------------------------------
               Core t (s)   Wall t (s)        (%)
       Time:        8.621        4.314      199.8
                 (ns/day)    (hour/ns)
Performance:       20.068        1.196
"""
FINISHED = "Finished mdrun on rank 0 Sun Nov 22 06:39:55 2026\n"
LOG = BEGIN + RESET + END + FINISHED


@needs_sample
def test_a_real_log() -> None:
    record = read_gromacs(SAMPLE.read_bytes())
    (sample,) = record.samples
    assert sample.work == {"steps": 501}
    assert sample.elapsed_s == pytest.approx(3.436, abs=5e-4)
    assert 501 * 1e-6 / sample.elapsed_s * 86400 == pytest.approx(12.599)  # ns/day
    assert (sample.extra["pme_mesh_s"], sample.extra["rest_s"]) == (2.207, 0.003)
    assert record.checks == {
        "atoms": 1530,
        "steps": 500,
        "energy_drift": -2.34,
        "temperature_K": 583.548,
        "constraint_warnings": 0,
        "ranks": 2,
        "threads": 1,
    }
    assert record.notes["build"] == "built for SSE4.1; according to GROMACS, this CPU supports AVX2_256"
    assert record.ended


def test_steps_before_the_reset_are_not_counted() -> None:
    record = read_gromacs(LOG.encode())
    assert record.samples[0].work == {"steps": 501}
    assert record.samples[0].extra["ns_per_day"] == 20.068
    assert (record.checks["steps"], record.checks["threads"]) == (600, 4)
    assert "build" not in record.notes  # built for what it runs on
    with pytest.raises(ProtocolError, match="ns/day"):
        read_gromacs(LOG.replace(RESET, "").encode())


def test_the_number_with_more_digits_is_taken() -> None:
    assert read_gromacs(LOG.encode()).samples[0].elapsed_s == pytest.approx(501 * 0.002e-3 * 86400 / 20.068, rel=1e-9)
    slow = LOG.replace("4.314", "4314.217").replace("20.068", "0.020")
    assert read_gromacs(slow.encode()).samples[0].elapsed_s == 4314.217


@pytest.mark.parametrize(
    "warning",
    [
        "Step 120, time 0.24 (ps)  LINCS WARNING",
        "step 130: Water molecule starting at atom 4 can not be settled.",
    ],
)
def test_a_molecule_that_was_not_held_rigid_is_counted(warning: str) -> None:
    record = read_gromacs((BEGIN + RESET + f"{warning}\n" + END + FINISHED).encode())
    assert record.checks["constraint_warnings"] == 1


def test_energies_that_are_no_number_are_none() -> None:
    log = LOG.replace("drift: 1.25e-03", "drift: nan").replace("    2.96030e+02", "            nan")
    record = read_gromacs(log.encode())
    assert record.ended
    assert record.checks["energy_drift"] is None and record.checks["temperature_K"] is None


def test_one_rank_with_one_thread() -> None:
    log = LOG.replace("2 MPI processes", "1 MPI process").replace(
        "4 OpenMP threads per MPI process", "1 OpenMP thread "
    )
    record = read_gromacs(log.encode())
    assert (record.checks["ranks"], record.checks["threads"]) == (1, 1)


CONTRADICTIONS = {
    "wall time": ("8.621        4.314", "8.621        4.324"),
    "performance": ("20.068", "20.168"),
    "time step": ("= 0.002", "= 0.001"),
    "steps": ("= 600", "= 700"),
    "no time": ("8.621        4.314", "8.621        0.000"),
    "account": ("4.314         22.382", "4.315         22.382"),
    "no account": (" Total        ", " Sum          "),
    "no temperature": ("Temperature", "temperature"),
    "two ends": (FINISHED, FINISHED + FINISHED),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_a_log_that_contradicts_itself_is_refused(contradiction: str) -> None:
    text, damage = CONTRADICTIONS[contradiction]
    assert text in LOG
    with pytest.raises(ProtocolError):
        read_gromacs(LOG.replace(text, damage).encode())


def test_two_logs_in_one_are_refused() -> None:
    with pytest.raises(ProtocolError):
        read_gromacs((LOG + LOG).encode())


def test_a_log_that_is_cut_gives_no_figure() -> None:
    for length in range(len(LOG) - len(FINISHED)):
        try:
            assert not read_gromacs(LOG[:length].encode()).ended
        except ProtocolError:
            assert "version 2024.2\n" not in LOG[:length]


@needs_sample
def test_no_changed_digit_changes_the_figure_unseen() -> None:
    data = SAMPLE.read_bytes()
    sound = read_gromacs(data).samples[0]
    for damaged in with_a_digit_changed(data):
        try:
            record = read_gromacs(damaged)
        except ProtocolError:
            continue
        if record.samples:
            (sample,) = record.samples
            # The wall time is printed to 0.5 ms: what it cannot show is within that.
            assert sample.work["steps"] / sample.elapsed_s == pytest.approx(
                sound.work["steps"] / sound.elapsed_s, rel=4e-4
            )


def with_a_digit_changed(data: bytes) -> Iterator[bytes]:
    """Of the lines that a figure is read from."""
    place = 0
    for line in data.splitlines(keepends=True):
        if line.split()[:1] in ([b"dt"], [b"nsteps"], [b"Time:"], [b"Performance:"], [b"Total"]):
            for i in range(place, place + len(line)):
                if chr(data[i]).isdigit():
                    yield data[:i] + str((int(chr(data[i])) + 4) % 10).encode() + data[i + 1 :]
        place += len(line)


@pytest.mark.parametrize("data", [b"no log", b"GROMACS:      gmx mdrun", b"\0" * 99, b"\xff" * 99, b"x" * (17 << 20)])
def test_what_is_none_of_mdrun_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_gromacs(data)


@pytest.mark.parametrize("name", [name for name in PRINTED if name != SAMPLE.name])
def test_other_tools_output_is_refused(name: str) -> None:
    path = OUTPUTS / name
    if not path.is_file():
        pytest.skip(f"needs {path}, which is not part of the repository")
    with pytest.raises(ProtocolError):
        read_gromacs(path.read_bytes())


def test_nothing_is_no_run() -> None:
    assert not read_gromacs(b"").ended


OPENMP = "GROMACS version:    2022.5\nOpenMP support:     {}\n"


@pytest.mark.parametrize(
    ("stated", "threads", "why"),
    [
        ("enabled (GMX_OPENMP_MAX_THREADS = 128)", 2, ""),
        ("enabled (GMX_OPENMP_MAX_THREADS = 32)", 64, "at most 32 threads of a rank"),
        ("disabled", 2, "built without OpenMP"),
        ("disabled", 1, ""),
        ("", 8, ""),
    ],
)
def test_the_build_says_how_many_threads_it_can_have(stated: str, threads: int, why: str) -> None:
    found = why_not(OPENMP.format(stated), {"threads": threads})
    assert why in found and bool(found) == bool(why)
