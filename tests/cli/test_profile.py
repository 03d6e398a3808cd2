"""`seatrial profile`: real programs under it, and what is not one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here
from environments.mpi_libraries import library
from profiler.mpi_programs import ROOT_MAY, traffic_program
from published_schemas import check
from usual import usually_first

TWO = ("openmpi", "mpich")


def profile(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seatrial", "profile", "--results", str(tmp_path / "results"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ROOT_MAY}, check=False)


def ranks(name: str, part: str, number: int = 2) -> list[str]:
    mpi = library(name)
    return [str(mpi.launcher), "-n", str(number), str(traffic_program(mpi)), part]


def document(completed: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(completed.stdout)
    check(answer, "profile-1")
    return answer


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no command given"),
        (["--", "no-such-program"], "command not found"),
        (["--io", "5", "--", "true"], "is not a duration"),
        (["--trace", "5s", "--", "true"], "is not a size in bytes"),
        (["--trace", "100", "--", "true"], "give 64KiB or more"),
        (["--wait", "-1", "--", "true"], "--wait"),
        (["--tables", "nowhere"], "is not a folder"),
        (["--tables", ".", "--", "true"], "give one of them"),
    ],
)
def test_bad_usage_is_reported_before_anything_runs(arguments: list[str], words: str, tmp_path: Path) -> None:
    completed = seatrial_here("profile", "--results", str(tmp_path / "results"), *arguments, cwd=Path.cwd())
    assert completed.returncode == 2 and completed.stdout == ""
    assert words in completed.stderr and "Traceback" not in completed.stderr
    assert not list((tmp_path / "results").glob("profiles/*"))


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("name", TWO)
def test_an_unmodified_program_is_profiled(name: str, tmp_path: Path) -> None:
    command = ranks(name, "collectives")
    answer = document(profile(tmp_path, "--format", "json", "--", *command))
    assert answer["outcome"] == {"state": "ok", "reason": ""} and answer["exit_status"] == 0
    assert answer["ranks"] == 2 and answer["complete"] and answer["command"] == command
    calls = {call["call"]: (call["count"], call["bytes"]) for call in answer["calls"]}
    assert calls["MPI_Allreduce"] == (24, 144) and calls["MPI_Init"] == (2, 0)
    folder = Path(answer["folder"])
    assert json.loads((folder / "profile.json").read_text()) == answer
    assert not list(folder.glob("*.parquet")), "nobody asked for them"
    assert len(list((folder / "tables").glob("*.mpi"))) == 2
    assert not list(folder.rglob(".*")) and not list(folder.rglob("*.collecting"))
    assert not list(Path("/dev/shm").glob(f"seatrial-{os.getuid()}-*{folder.name.rsplit('-', 1)[-1]}*"))
    columns = tmp_path / "columns"
    again = document(
        profile(tmp_path, "--format", "json", "--tables", str(folder / "tables"), "--parquet", str(columns))
    )
    assert (columns / "calls.parquet").is_file()
    assert again["calls"] == answer["calls"] and again["exit_status"] is None


@pytest.mark.real
@pytest.mark.parallel
def test_the_output_of_the_program_is_unchanged(tmp_path: Path) -> None:
    script = "read line; echo got $line; echo told >&2"
    bare = subprocess.run(["sh", "-c", script], input="abc\n", capture_output=True, text=True, check=True)
    command = [sys.executable, "-m", "seatrial", "profile", "--results", str(tmp_path / "r")]
    seen = [
        subprocess.run([*command, *form, "--", "sh", "-c", script], input="abc\n", capture_output=True, text=True)
        for form in ([], ["--format", "json"])
    ]
    assert bare.stdout == seen[0].stdout == "got abc\n"
    assert "got abc" in seen[1].stderr and json.loads(seen[1].stdout)["exit_status"] == 0
    assert all("told" in one.stderr and one.returncode == 3 for one in seen)


@pytest.mark.real
@pytest.mark.parallel
def test_programs_without_mpi_have_a_clear_outcome(tmp_path: Path) -> None:
    answer = profile(tmp_path, "--format", "json", "--", "true")
    told = document(answer)
    assert answer.returncode == 3 and told["outcome"]["state"] == "unsupported" and told["exit_status"] == 0
    assert "MPI_Init" in told["outcome"]["reason"] and told["folder"] is None and told["ranks"] == 0
    static = tmp_path / "static"
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-o", static, source], check=True)
    said = profile(tmp_path, "--", str(static), "a b").stderr
    assert "linked statically" in said and f"next: `seatrial run command -- {static} 'a b'` measures" in said
    failed = document(profile(tmp_path, "--format", "json", "--", "sh", "-c", "exit 7"))
    assert failed["exit_status"] == 7 and failed["outcome"]["state"] == "failed"
    killed = document(profile(tmp_path, "--format", "json", "--", "sh", "-c", "kill -9 $$"))
    assert killed["exit_status"] == 137


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("name", usually_first(TWO))
def test_killed_ranks_leave_their_tables(name: str, tmp_path: Path) -> None:
    completed = profile(tmp_path, "--format", "json", "--", *ranks(name, "killed"))
    answer = document(completed)
    assert completed.returncode == 3 and answer["exit_status"] != 0 and not answer["complete"]
    assert answer["ranks"] == 2 and len(answer["per_rank"]) == 2 and "Traceback" not in completed.stderr


@pytest.mark.real
@pytest.mark.parallel
def test_several_programs_of_one_command(tmp_path: Path) -> None:
    first, second = (" ".join(ranks("mpich", part, n)) for part, n in (("collectives", 2), ("point_to_point", 1)))
    answer = document(profile(tmp_path, "--format", "json", "--", "sh", "-c", f"{first} && {second}"))
    assert answer["other_programs"] == len(answer["others"]) == 1
    assert {answer["ranks"], answer["others"][0]["ranks"]} == {1, 2}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("name", usually_first(TWO))
def test_programs_that_run_at_the_same_time_are_not_mixed(name: str, tmp_path: Path) -> None:
    parts = ("collectives", "point_to_point")
    first, second = (" ".join(ranks(name, part)) for part in parts)
    answer = document(profile(tmp_path, "--format", "json", "--", "sh", "-c", f"{first} & {second} & wait"))
    both = [answer, *answer["others"]]
    assert [one["ranks"] for one in both] == [2, 2] and all(one["complete"] for one in both)
    called = [{call["call"]: call["count"] for call in one["calls"]} for one in both]
    assert sorted(one.get("MPI_Sendrecv", 0) for one in called) == [0, 10]
    assert sorted(one.get("MPI_Allreduce", 0) for one in called) == [0, 24]


@pytest.mark.real
@pytest.mark.parallel
def test_a_signal_is_passed_on_and_the_profile_is_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seatrial", "profile", "--results", str(tmp_path), "--format", "json", "--"]
    script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([*command, "bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None and process.stdout is not None
        while process.stderr.readline() != b"ready\n":
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        answer = json.loads(process.stdout.read())
        assert answer["exit_status"] == 5 and b"caught" in process.stderr.read()


@pytest.mark.real
@pytest.mark.parallel
def test_a_trace_is_written_for_a_replay(tmp_path: Path) -> None:
    command = ranks("openmpi", "point_to_point")
    completed = profile(tmp_path, "--trace", "1MiB", "--format", "json", "--", *command)
    trace = document(completed)["trace"]
    assert completed.returncode == 0 and trace["command"] is None and "seatrial run mpi.latency" in completed.stderr
    assert {Path(file).name for file in trace["files"]} >= {"trace.txt", "rank-0.txt", "rank-1.txt"}
    assert all(Path(file).is_file() for file in trace["files"]) and "messages" in trace["summary"][0]
    assert "trace" not in document(profile(tmp_path, "--format", "json", "--", *command))
    assert document(profile(tmp_path, "--trace", "1MiB", "--format", "json", "--", "true"))["trace"] is None


@pytest.mark.real
@pytest.mark.parallel
def test_the_page_of_a_real_run(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    completed = profile(tmp_path, "-o", str(page), "--", *ranks("openmpi", "collectives"))
    assert completed.returncode == 0, completed.stderr
    text = page.read_text()
    assert "MPI_Allreduce" in text and "Where the wall time goes" in text and "<script" not in text


@pytest.mark.real
@pytest.mark.parallel
def test_ranks_that_a_remote_shell_starts_are_profiled_too(tmp_path: Path) -> None:
    """Two made-up nodes, reached by an agent that passes no variable on: Open MPI's launcher must be told to. Each has
    its own folder for temporary files: of two daemons in one, now and then one does not come up."""
    agent = tmp_path / "agent"
    root = " ".join(f"{name}={value}" for name, value in ROOT_MAY.items())
    agent.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\n'
        f'exec env -i PATH=/usr/bin:/bin HOME="$HOME" TMPDIR="$(mktemp -d -p {tmp_path})" {root} sh -c "$*"\n'
    )
    agent.chmod(0o755)
    launcher, *_, program, part = ranks("openmpi", "collectives")
    command = [launcher, "--mca", "plm_rsh_agent", str(agent), "--host", "nodea:1,nodeb:1", "-n", "2", program, part]
    answer = document(profile(tmp_path, "--format", "json", "--", *command))
    assert answer["exit_status"] == 0
    assert answer["complete"] and answer["ranks"] == len(answer["per_rank"]) == 2, answer["trust"]


@pytest.mark.real
@pytest.mark.parallel
def test_the_page_of_a_results_folder_has_its_profiles(tmp_path: Path) -> None:
    assert profile(tmp_path, "--", *ranks("mpich", "point_to_point")).returncode == 0
    page = tmp_path / "page.html"
    done = seatrial_here("report", "results", "-o", str(page), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traffic between ranks" in page.read_text()


@pytest.mark.real
@pytest.mark.parametrize(
    ("line", "how", "status"),
    [("exit 7", "program", 7), ("exit 7", "lab", 3), ("kill -TERM $$", "program", 143), ("exit 0", "program", 0)],
)
def test_the_exit_status_is_that_of_the_program_or_ours(line: str, how: str, status: int, tmp_path: Path) -> None:
    done = seatrial_here("profile", "--status", how, "--", "sh", "-c", line, cwd=tmp_path)
    assert done.returncode == status, done.stderr
