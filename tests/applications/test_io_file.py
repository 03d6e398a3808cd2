"""io.file: its surface, the reading of fio's output, real runs, and a false fio for each check."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import run_one
from made_up import made_up_machine
from one_point import prepare_point

from seatrial.applications.fio import BENCHMARK as IO_FILE
from seatrial.applications.fio import read_fio, surface
from seatrial.engine.prepare import lacking
from seatrial.engine.ready import Ready, Refused
from seatrial.errors import NoCompilerError, ProtocolError, UsageError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MACHINE = made_up_machine(cores=2)
NO_COMPILER = NoCompilerError("none")
SMALL = {"file_B": "1MiB", "record_B": "64KiB"}


def job(name: str, *, error: int = 0, read_B: int = 0, written_B: int = 0, short: int = 0, ms: int = 150) -> object:
    def told(moved: int) -> dict[str, object]:
        clat = {"mean": 2e3, "max": 9e3}
        return {"io_bytes": moved, "runtime": ms, "total_ios": moved // 4096, "short_ios": short, "clat_ns": clat}

    options = {"direct": "1"} if ":" in name else {}
    return {"jobname": name, "error": error, "job options": options, "read": told(read_B), "write": told(written_B)}


def output(*jobs: object) -> bytes:
    return b"fio: a warning\n" + json.dumps({"fio version": "fio-3.33", "jobs": jobs}).encode()


def test_a_job_of_a_point_is_a_sample() -> None:
    record = read_fio(output(job("layout", read_B=1 << 20), job("read:1048576:4096", read_B=3 << 20)))
    (sample,) = record.samples
    assert (sample.series, sample.point) == ("read", {"file_B": 1 << 20, "record_B": 4096})
    assert sample.work["bytes"] / sample.elapsed_s == (3 << 20) / 0.15
    assert record.checks == {"errors": 0, "verified_B": 1 << 20, "short_ios": 0}
    assert record.ended


def test_errors_and_short_calls_are_counted() -> None:
    record = read_fio(output(job("layout", error=84), job("write:1048576:4096", written_B=4096, short=3)))
    assert record.checks["errors"] == 1
    assert record.checks["short_ios"] == 6
    assert record.checks["verified_B"] == 0


def test_refused_direct_calls_are_a_reason_to_skip() -> None:
    assert read_fio(output(job("layout"), job("write:1048576:4096", error=22))).skip is not None
    assert read_fio(output(job("layout", error=22))).skip is None  # the check itself must not be refused


@pytest.mark.parametrize("damage", [b"", b"no JSON", b"{}", output(job("read:x:y", read_B=1)), output("job")[:-9]])
def test_output_that_is_not_fios_is_refused(damage: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_fio(damage)


def test_the_surface_leaves_out_records_that_are_longer_than_the_file() -> None:
    assert len(surface(IO_FILE.point({}))) == 4
    assert surface({"file_B": 65536, "record_B": "surface"}) == ((65536, 4096), (65536, 16384), (65536, 65536))
    assert all(record_B <= file_B for file_B, record_B in surface({"file_B": "surface", "record_B": "surface"}))
    (point,) = plan_points(["io.file"], {"file_B": ["4KiB"], "record_B": ["1MiB"]}, MACHINE)
    assert point.refusal is not None and point.refusal.state is State.SKIPPED


def test_a_folder_that_is_none_is_bad_usage() -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        plan_points(["io.file"], {"folder": ["/no/such/folder"]}, MACHINE)


def test_without_fio_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "fio is not on PATH" in (lacking(IO_FILE, NO_COMPILER) or "")
    item = prepare_point(IO_FILE, MACHINE, environment=NO_COMPILER)
    assert isinstance(item, Refused)
    assert item.outcome.state is State.UNSUPPORTED and "install fio" in item.outcome.reason


def measured(results_folder: Path, **settings: str) -> RepeatRecord:
    """One record of a real run; no compiler is needed for it."""
    item = prepare_point(IO_FILE, MACHINE, settings, NO_COMPILER)
    assert isinstance(item, Ready), item.outcome
    return run_one(item, MACHINE, ResultsFolder.create(results_folder))


@pytest.mark.real
@pytest.mark.parametrize("direct", ["false", "true"])
def test_it_measures_and_leaves_no_file(direct: str, tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fio", "apt install fio")
    files, here = tmp_path / "files", tmp_path / "here"
    files.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    record = measured(tmp_path / "results", direct=direct, folder=str(files), **SMALL)
    if record.outcome.state is State.SKIPPED and direct == "true":
        pytest.skip(record.outcome.reason)
    assert record.outcome.is_ok, record.outcome
    assert {sample.series for sample in record.samples} == {"read", "write"}
    assert not list(files.iterdir()) and not list(here.iterdir())


@pytest.mark.real
def test_a_file_system_without_direct_calls_is_skipped(tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch) -> None:
    """fio's own words for it, from a fio that is given a file system that refuses."""
    need("fio", "apt install fio")
    real = output(job("layout", read_B=1 << 20), job("write:1048576:65536", error=22))
    pretend(tmp_path, real, monkeypatch, status=1)
    record = measured(tmp_path / "results", direct="true", **SMALL)
    assert record.outcome == Outcome.skipped("the file system refuses direct I/O")


GOOD = (
    job("layout", read_B=1 << 20),
    job("write:1048576:65536", written_B=1 << 20),
    job("read:1048576:65536", read_B=1 << 20),
)


def pretend(folder: Path, told: bytes, monkeypatch: pytest.MonkeyPatch, status: int = 0) -> None:
    """A program called fio that writes this answer where it is asked to."""
    answer = folder / "answer.json"
    answer.write_bytes(told)
    program = folder / "bin" / "fio"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo fio-0.0; exit 0; fi\n'
        'for option in "$@"; do case "$option" in --output=*) out=${option#--output=};; esac; done\n'
        f'cp "{answer}" "$out"\nexit {status}\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


FAULTS = {
    "nothing": (GOOD, State.OK, ""),
    "what was written is not what was read back": ((job("layout", error=84), *GOOD[1:]), State.INVALID, "errors: "),
    "nothing was read back": ((job("layout"), *GOOD[1:]), State.INVALID, "verified_B: "),
    "calls were short": (
        (GOOD[0], GOOD[1], job("read:1048576:65536", read_B=9, short=1)),
        State.INVALID,
        "short_ios: ",
    ),
    "a point is missing": (GOOD[:2], State.INVALID, "points_measured: "),
    "another point": ((*GOOD, job("read:1048576:4096", read_B=1)), State.INVALID, "points_measured: "),
    "no time passed": ((*GOOD[:2], job("read:1048576:65536", read_B=1, ms=0)), State.INVALID, "samples: "),
}


@pytest.mark.real
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, state, reason = FAULTS[fault]
    pretend(tmp_path, output(*jobs), monkeypatch)
    record = measured(tmp_path / "results", **SMALL)
    assert (record.outcome.state, record.outcome.reason[: len(reason)]) == (state, reason), record.outcome


@pytest.mark.real
@pytest.mark.parametrize(("told", "stage"), [(output(*GOOD)[:-20], "record"), (b"", "record")])
def test_output_that_is_cut_is_a_failure(
    told: bytes, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, told, monkeypatch)
    record = measured(tmp_path / "results", **SMALL)
    assert record.outcome.state is State.FAILED and record.outcome.stage == stage


def test_the_program_is_known_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another fio is another environment: its figures are not mixed with these."""
    pretend(tmp_path, output(*GOOD), monkeypatch)
    one = prepare_point(IO_FILE, MACHINE, environment=NO_COMPILER)
    program = tmp_path / "bin" / "fio"
    program.write_text(program.read_text() + "# another\n")
    other = prepare_point(IO_FILE, MACHINE, environment=NO_COMPILER)
    assert one.experiment.environment != other.experiment.environment


def test_the_declared_program_is_external() -> None:
    program = IO_FILE.program
    assert isinstance(program, External)
    with pytest.raises(ProtocolError):
        replace(program).parse(b"x")
