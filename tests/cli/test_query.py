"""`seatrial query`: streamed, in bounded memory, ended by a signal; and commands below limits of a process."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from analysis.test_index import put
from cli.in_process import seatrial_here

ENDLESS = "with recursive t(i) as (select 1 union all select (i+1)%1000000 from t) select count(*) from t"


def of_process(folder: Path, *words: str, limit: int | None = None, most: int = 0) -> subprocess.CompletedProcess[str]:
    def lower() -> None:
        if limit is not None:
            resource.setrlimit(limit, (most, most))

    command = [sys.executable, "-m", "seatrial", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=lower, check=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("query")
    put(folder / "r", 6)
    return folder


@pytest.mark.real
def test_a_signal_ends_a_query_that_runs_for_ever(results: Path) -> None:
    command = [sys.executable, "-m", "seatrial", "query", "r", ENDLESS]
    running = {
        number: subprocess.Popen(command, cwd=results, stderr=subprocess.PIPE, text=True)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    for process in running.values():
        while "duckdb" not in Path(f"/proc/{process.pid}/maps").read_text() or process.poll() is not None:
            os.sched_yield()
    for number, process in running.items():
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 128 + number and said.count("\n") == 1, said


_SIGNAL_WHILE_DUCKDB_LOADS = """
import enum, signal, time
from seatrial.cli.process import stopped_status, take_signals

take_signals()
made = enum.EnumType.__call__

def signalled(*words, **named):
    enum.EnumType.__call__ = made
    signal.raise_signal(signal.SIGTERM)
    return made(*words, **named)

enum.EnumType.__call__ = signalled
import duckdb
assert enum.EnumType.__call__ is made, "DuckDB makes no enumeration any more"
while True:
    time.sleep(0.001)
"""


def test_a_signal_while_a_compiled_module_loads_waits_for_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SIGNAL_WHILE_DUCKDB_LOADS], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert not done.stderr


def test_a_signal_that_a_library_turns_into_another_error_ends_in_one_line(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except SystemExit as end:
            raise RuntimeError("Query interrupted") from end

    monkeypatch.setattr("seatrial.cli.query.asked", interrupted)
    done = seatrial_here("query", "r", "select 1", cwd=results)
    assert done.returncode == 130 and done.stderr.count("\n") == 1, done.stderr


def test_rows_are_streamed_and_bounded(results: Path) -> None:
    many = "select i, 'a' || i as name from range(20000) t(i)"
    done = seatrial_here("query", "r", many, cwd=results)
    assert len(done.stdout.splitlines()) == 10_001 and "only the first 10000 rows" in done.stderr
    found = json.loads(seatrial_here("query", "r", many, "--format", "json", cwd=results).stdout)
    assert found["rows"][19_999] == {"i": 19_999, "name": "a19999"} and len(found["rows"]) == 20_000
    few = seatrial_here("query", "r", many, "--format", "csv", "--rows", "2", cwd=results)
    assert few.stdout.splitlines() == ["i,name", "0,a0", "1,a1"]
    assert (
        json.loads(seatrial_here("query", "r", f"{many} limit 0", "--format", "json", cwd=results).stdout)["rows"] == []
    )


def test_a_query_that_needs_too_much_memory_is_one_clear_error(results: Path) -> None:
    done = seatrial_here("query", "r", "select list(i) from range(100000000) t(i)", cwd=results)
    assert done.returncode == 3 and "needs more than 100MB of memory" in done.stderr, done.stderr


@pytest.mark.real
@pytest.mark.parametrize(
    ("limit", "most", "words", "said"),
    [
        (resource.RLIMIT_AS, 200 << 20, "query r SELECT", "needs 1024 MiB of virtual memory"),
        (resource.RLIMIT_AS, 100 << 20, "list", "ulimit -v"),
        (resource.RLIMIT_NOFILE, 12, "profile -- true", "ulimit -n"),
    ],
)
def test_a_limit_of_the_process_is_one_clear_error(
    results: Path, limit: int, most: int, words: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(results / "cache"))
    done = of_process(results, *words.split(), limit=limit, most=most)
    assert done.returncode == 3 and "Traceback" not in done.stderr and done.stderr.count("\n") == 2, done.stderr
    assert said.replace("1024", str(768 + 128 * (os.cpu_count() or 1))) in done.stderr, done.stderr


@pytest.mark.real
def test_a_program_starts_with_few_open_files(results: Path) -> None:
    line = "from seatrial.processes.start import output_of; print(output_of(['echo', 'hello'], {}, 9).stdout)"
    done = subprocess.run(
        [sys.executable, "-c", line],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)),
        check=False,
    )
    assert "hello" in done.stdout, done.stderr
