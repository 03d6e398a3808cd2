"""What LAMMPS prints: the run of a real file, made-up runs, and what damage, cuts and other tools' files give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shared_samples import OUTPUTS, PRINTED

from seatrial.applications.lammps import read_lammps
from seatrial.errors import ProtocolError

SAMPLE = OUTPUTS / "lammps_lj4000_2ranks.txt"
needs_sample = pytest.mark.skipif(not SAMPLE.is_file(), reason=f"needs {SAMPLE.name} of the shared data")


def run_text(
    *, start: int = 0, steps: int = 100, loop: str = "0.5", ranks: int = 2, energy: str = "-4.25", procs: int = 0
) -> str:
    rate = f"{steps / float(loop):.3f}"
    return (
        "Per MPI rank memory allocation (min/avg/max) = 3.3 | 3.3 | 3.3 Mbytes\n"
        "   Step          Temp          TotEng    \n"
        f"  {start}   1.44   -4.5\n  {start + steps}   0.75   {energy}\n"
        f"Loop time of {loop} on {procs or ranks} procs for {steps} steps with 4000 atoms\n\n"
        f"Performance: 1.5 tau/day, {rate} timesteps/s, 0.8 Matom-step/s\n"
        f"99.5% CPU use with {ranks} MPI tasks x 1 OpenMP threads\n\n"
        "MPI task timing breakdown:\n"
        "Section |  min time  |  avg time  |  max time  |%varavg| %total\n"
        "---------------------------------------------------------------\n"
        f"Pair    | 0.1        | {float(loop) - 0.1:.5f}    | 0.5        |   0.4 | 80.00\n"
        "Other   |            | 0.1        |            |       | 20.00\n\n"
        "Neighbor list builds = 5\n"
    )


HEAD = "LAMMPS (2 Aug 2023 - Update 3)\nCreated 4000 atoms\n  (1) pair lj/cut/opt, perpetual\n"
END = "Total wall time: 0:00:01\n"


def text(*runs: str, head: str = HEAD, end: str = END) -> bytes:
    return (head + "".join(runs) + end).encode()


@needs_sample
def test_a_real_run() -> None:
    record = read_lammps(SAMPLE.read_bytes())
    (sample,) = record.samples
    assert (sample.series, sample.elapsed_s) == ("run", 0.668186)
    assert sample.work == {"atom_steps": 400_000, "steps": 100}
    assert sample.extra["comm_s"] == 0.40997
    assert record.checks == {
        "atoms": 4000,
        "steps": 100,
        "settling_steps": 0,
        "list_builds": 10,
        "energy_drift": pytest.approx(-4.6227726 + 4.6139081),
        "ranks": 2,
        "threads": 1,
    }
    assert record.notes == {"version": "29 Sep 2021 - Update 2", "pair": "lj/cut", "precision": "double"}
    assert record.ended


def test_the_last_run_is_the_measured_one() -> None:
    record = read_lammps(text(run_text(), run_text(start=100, steps=200, loop="0.8", energy="-4.75")))
    assert [(sample.series, sample.elapsed_s) for sample in record.samples] == [("settling", 0.5), ("run", 0.8)]
    assert (record.checks["steps"], record.checks["settling_steps"]) == (200, 100)
    assert record.checks["energy_drift"] == pytest.approx(-0.25)  # from the first row of all to the last
    assert record.notes["pair"] == "lj/cut/opt"


def test_the_package_intel_tells_its_precision() -> None:
    assert read_lammps(text(run_text(), head=HEAD + "Precision: single\n")).notes["precision"] == "single"


def test_an_energy_that_is_no_number_is_none() -> None:
    for energy in ("nan", "-nan", "inf"):
        record = read_lammps(text(run_text(energy=energy)))
        assert record.ended and record.checks["energy_drift"] is None


@pytest.mark.parametrize("package", ["OPENMP", "INTEL"])
def test_a_package_that_is_not_there_is_a_reason_to_skip(package: str) -> None:
    error = f"ERROR: Using suffix omp without {package} package installed (src/lammps.cpp:862)\n"
    record = read_lammps(text(error, head="LAMMPS (29 Sep 2021 - Update 2)\n", end="mpirun: one process failed\n"))
    assert record.skip == f"this LAMMPS was built without its package {package}"


def test_another_error_is_none() -> None:
    record = read_lammps(text(run_text(), "ERROR: Lost atoms: original 32000 current 1092 (src/thermo.cpp:439)\n"))
    assert record.skip is None and not record.ended and not record.samples
    assert "Lost atoms" in record.notes["error"]


def test_ranks_that_ran_alone_are_told() -> None:
    alone = text(run_text(ranks=1))
    with pytest.raises(ProtocolError, match="another MPI library's launcher"):
        read_lammps(alone + alone)


CONTRADICTIONS = {
    "processes": run_text(procs=3),
    "rate": run_text().replace("200.000 timesteps/s", "250.000 timesteps/s"),
    "breakdown": run_text().replace("0.40000 ", "0.30000 "),
    "steps of the rows": run_text().replace("  100   0.75", "  150   0.75"),
    "atoms": run_text().replace("4000 atoms", "4001 atoms"),
    "a row": run_text().replace("   0.75   ", "   "),
    "an energy": run_text(energy="-4.2,5"),
    "no steps": run_text().replace("100 steps", "0 steps"),
    "no time": run_text().replace("time of 0.5 on", "time of 0.0 on"),
    "two loop times": run_text() + run_text().partition("Mbytes\n")[2],
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_a_run_that_contradicts_itself_is_refused(contradiction: str) -> None:
    assert read_lammps(text(run_text())).ended
    with pytest.raises(ProtocolError):
        read_lammps(text(CONTRADICTIONS[contradiction]))


def test_output_that_is_cut_gives_no_figure() -> None:
    whole = text(run_text(), run_text(start=100))
    for length in range(len(whole) - len(END)):
        try:
            assert not read_lammps(whole[:length]).ended
        except ProtocolError:
            assert b"LAMMPS (2 Aug 2023 - Update 3)\n" not in whole[:length]


@needs_sample
def test_no_changed_digit_changes_the_figure_unseen() -> None:
    data = SAMPLE.read_bytes()
    sound = read_lammps(data)
    for damaged in with_a_digit_changed(data):
        try:
            record = read_lammps(damaged)
        except ProtocolError:
            continue
        if record.checks != sound.checks or not record.samples:
            continue
        rates = [one.samples[0].work["atom_steps"] / one.samples[0].elapsed_s for one in (sound, record)]
        assert rates[1] == pytest.approx(rates[0], rel=1e-5)


def with_a_digit_changed(data: bytes) -> Iterator[bytes]:
    for i, byte in enumerate(data):
        if chr(byte).isdigit():
            yield data[:i] + str((int(chr(byte)) + 4) % 10).encode() + data[i + 1 :]


FOREIGN = [b"no output of any program", b"LAMMPS", b"\0" * 100, b"LAMMPS (\xff" * 9, b"x" * (17 << 20)]


@pytest.mark.parametrize("data", FOREIGN)
def test_what_is_none_of_lammps_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_lammps(data)


@pytest.mark.parametrize("name", [name for name in PRINTED if name != SAMPLE.name])
def test_other_tools_output_is_refused(name: str) -> None:
    path = OUTPUTS / name
    if not path.is_file():
        pytest.skip(f"needs {path}, which is not part of the repository")
    with pytest.raises(ProtocolError):
        read_lammps(path.read_bytes())


def test_nothing_is_no_run() -> None:
    assert not read_lammps(b"").ended
