"""The command line as scripts see it: exit status, JSON, messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.built_before import cache_of_parts
from cli.in_process import seatrial_here
from published_schemas import check

SEATRIAL = [sys.executable, "-m", "seatrial"]
QUICK = ("run", "cpu.peak", "--set", "cores=one", "--budget", "2s")
"""A run that ends after six short repeats."""


def seatrial(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SEATRIAL, *arguments], cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300
    )


def answer(done: subprocess.CompletedProcess[str], name: str) -> dict[str, object]:
    """The one JSON object on stdout, valid against the published schema."""
    document = json.loads(done.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    check(document, name)
    return document


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "memory.steam"], "memory.stream"),
        (["run", "memory.stream", "--set", "thread=1"], "threads"),
        (["run", "memory.stream", "--set", "threads=0"], "threads cannot be '0'"),
        (["run", "memory.stream", "--set", "threads"], "--set"),
        (["run", "memory.stream", "--set", "threads=" + "9" * 5000], "threads cannot be"),
        (["run", "memory.stream", "--set", "array_B=1e400B"], "array_B cannot be"),
        (["run", "memory.stream", "--set", "array_B=9EB"], "array_B cannot be"),
        (["run", "memory.stream", "--budget", "20"], "duration"),
        (["run", "mpi.latency", "--set", "environment.mpi=nompi", "--results", "/proc/nowhere"], "--results"),
        (["report", "nowhere", "-o", "page.html"], "nowhere"),
        (["discover", "-o", "missing/file"], "missing/file"),
        (["build", "nothing"], "nothing"),
        (["frobnicate"], "frobnicate"),
        (["run", "--format", "xml"], "xml"),
    ],
)
def test_bad_usage_is_one_clear_message_and_exit_2_before_anything_runs(
    tmp_path: Path, arguments: Sequence[str], words: str
) -> None:
    done = seatrial_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_process_prints_the_same_as_the_command_in_process(tmp_path: Path) -> None:
    arguments = ("run", "memory.steam")
    child, here = seatrial(*arguments, cwd=tmp_path), seatrial_here(*arguments, cwd=tmp_path)
    assert (child.returncode, child.stdout, child.stderr) == (here.returncode, here.stdout, here.stderr)
    assert child.returncode == 2 and "memory.stream" in child.stderr


@pytest.mark.real
@pytest.mark.lab
def test_a_folder_that_cannot_be_created_is_rejected(tmp_path: Path) -> None:
    done = seatrial_here("run", "memory.stream", "--results", "/proc/nowhere", cwd=tmp_path)
    assert done.returncode == 2 and "--results" in done.stderr and done.stdout == "", done.stderr
    assert "Traceback" not in done.stderr and list(tmp_path.iterdir()) == []


def test_help_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "seatrial", "--help"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "discover" in done.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert not loaded & {"numpy", "scipy", "rich", "duckdb", "jinja2", "vl_convert", "elftools"}


def test_output_to_a_pipe_loads_neither_rich_nor_numpy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "seatrial", "list"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "cpu.peak" in done.stdout and "\x1b" not in done.stdout
    assert not re.search(r"\| +(rich|numpy)\b", done.stderr)


def test_the_version(tmp_path: Path) -> None:
    from seatrial import __version__

    assert seatrial("--version", cwd=tmp_path).stdout == f"seatrial {__version__}\n"


@pytest.mark.real
@pytest.mark.lab
def test_list(tmp_path: Path) -> None:
    done = seatrial_here("list", "--format", "json", cwd=tmp_path)
    document = answer(done, "list-1")
    assert done.returncode == 0
    states = {benchmark["name"]: benchmark["state"] for benchmark in document["benchmarks"]}
    assert states["memory.stream"] == "ready" and states["cpu.peak"] == "ready"


@pytest.fixture
def own_cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


@pytest.mark.real
@pytest.mark.lab
def test_without_a_compiler_everything_states_what_to_install_and_so_does_the_page(
    tmp_path: Path, own_cache: str
) -> None:
    bare = {"PATH": "/nowhere", "SEATRIAL_CACHE": own_cache}
    listed = seatrial_here("list", "--format", "json", cwd=tmp_path, **bare)
    assert {b["state"] for b in answer(listed, "list-1")["benchmarks"]} == {"unsupported"}
    named = seatrial_here("run", "cpu.peak", "--format", "json", cwd=tmp_path, **bare)
    (experiment,) = answer(named, "results-1")["experiments"]
    assert named.returncode == 3
    assert experiment["outcome"] == "unsupported" and "compiler" in experiment["reason"]
    unnamed = seatrial_here("run", "--format", "json", cwd=tmp_path, **bare)
    assert unnamed.returncode == 3, "nothing was measured"
    page = seatrial_here("report", "-o", "page.html", cwd=tmp_path, **bare)
    assert page.returncode == 0 and "apt install g++" in (tmp_path / "page.html").read_text()
    # With a compiler the same command measures, and the page forgets what could not be done before.
    mended = seatrial_here(*QUICK, cwd=tmp_path)
    assert mended.returncode == 0, mended.stderr


@pytest.mark.real
@pytest.mark.lab
def test_what_was_built_ahead_runs_without_a_compiler(tmp_path: Path, program_cache: Path) -> None:
    own_cache = cache_of_parts(tmp_path / "cache", program_cache, "cpu.peak", cwd=tmp_path)
    built = seatrial_here("build", "cpu.peak", cwd=tmp_path, SEATRIAL_CACHE=own_cache)
    assert built.returncode == 0 and "built in" in built.stdout
    done = seatrial_here(
        *QUICK,
        cwd=tmp_path,
        SEATRIAL_CACHE=own_cache,
        PATH="/nowhere",
    )
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.real
@pytest.mark.lab
def test_how_a_compiler_is_found_does_not_change_the_experiment(tmp_path: Path) -> None:
    arguments = (*QUICK, "--format", "json")
    first = answer(seatrial_here(*arguments, cwd=tmp_path), "results-1")
    compiler = shutil.which("g++") or shutil.which("clang++") or ""
    roundabout = str(Path(compiler).parent / ".." / Path(compiler).parent.name / Path(compiler).name)
    second = answer(seatrial_here(*arguments, cwd=tmp_path, CXX=roundabout), "results-1")
    assert [e["id"] for e in second["experiments"]] == [e["id"] for e in first["experiments"]]
    assert second["experiments"][0]["reused"]


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_reports_it_and_leaves_nothing_running(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    command = [*SEATRIAL, "run", "cpu.peak", "--set", "cores=one", "--budget", "60s"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs these tests in the background has its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("seatrial-results/records/*.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == status
    assert "finished repeats are kept" in said and "Traceback" not in said
    assert not list(tmp_path.glob("seatrial-results/artefacts/*/[0-9]*"))


@pytest.mark.real
@pytest.mark.lab
def test_streams_that_cannot_be_written_end_without_a_traceback(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*SEATRIAL, "list"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        assert done.returncode == 3 and "No space left" in done.stderr and "Traceback" not in done.stderr
        usage = subprocess.run([*SEATRIAL, "run", "x"], stdout=subprocess.PIPE, stderr=full, cwd=tmp_path)
        assert usage.returncode == 2


@pytest.mark.real
@pytest.mark.lab
def test_a_link_is_followed_and_a_device_stays_a_device(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    assert seatrial_here("discover", "-o", "link.txt", cwd=tmp_path).returncode == 0
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real.txt").read_text().strip()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen([*SEATRIAL, "discover", "-o", str(pipe)])
    assert pipe.read_text().strip()
    assert process.wait(timeout=30) == 0 and pipe.is_fifo()


@pytest.mark.real
@pytest.mark.lab
def test_discover(tmp_path: Path) -> None:
    done = seatrial_here("discover", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0
    answer(done, "machine-1")
    text = seatrial_here("discover", "-o", "machine.txt", cwd=tmp_path)
    assert text.returncode == 0 and text.stdout == "" and (tmp_path / "machine.txt").read_text().strip()


@pytest.mark.real
@pytest.mark.quiet
def test_run_measures_stores_and_comes_back(tmp_path: Path) -> None:
    arguments = ("run", "cpu.peak", "--set", "cores=one", "--set", "precision=fp64,fp32", "--budget", "2s")
    first = seatrial_here(*arguments, "--format", "json", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    document = answer(first, "results-1")
    assert [e["parameters"]["precision"] for e in document["experiments"]] == ["fp64", "fp32"]
    for experiment in document["experiments"]:
        assert experiment["outcome"] == "ok" and not experiment["reused"]
        assert experiment["environment"] in document["environments"]
        (figure,) = experiment["figures"]
        assert figure["name"] == "fma" and figure["unit"] == "flop/s" and figure["n_repeats"] >= 6
        assert figure["ci95"][0] <= figure["median"] <= figure["ci95"][1]
        assert figure["min"] <= figure["median"] <= figure["max"] and figure["n_samples"] > figure["n_repeats"]

    started = time.monotonic()
    again = seatrial_here(*arguments, "--format", "json", cwd=tmp_path)
    assert time.monotonic() - started < 2
    reused = answer(again, "results-1")
    assert all(experiment["reused"] for experiment in reused["experiments"])
    assert [e["figures"] for e in reused["experiments"]] == [e["figures"] for e in document["experiments"]]

    more = answer(seatrial_here(*arguments, "--again", "--format", "json", cwd=tmp_path), "results-1")
    for before, after in zip(document["experiments"], more["experiments"], strict=True):
        assert after["figures"][0]["n_repeats"] >= before["figures"][0]["n_repeats"] + 6 and not after["reused"]

    lines = [
        json.loads(line)
        for path in (tmp_path / "seatrial-results/records").iterdir()
        for line in path.read_text().splitlines()
    ]
    assert {"v", "experiment", "repeat", "order", "t0", "outcome", "seen", "samples", "checks", "crc"} <= set(lines[0])
    keys = [(line["experiment"], line["repeat"]) for line in lines]
    assert len(keys) == len(set(keys)) == sum(e["figures"][0]["n_repeats"] for e in more["experiments"])
    assert not any((tmp_path / "seatrial-results/artefacts").glob("*/[0-9]*"))

    page = seatrial_here("report", "-o", "page.html", cwd=tmp_path)
    assert page.returncode == 0 and page.stdout.strip() == str((tmp_path / "page.html").resolve())
    assert "cpu.peak" in (tmp_path / "page.html").read_text()


@pytest.mark.real
@pytest.mark.lab
def test_secrets_in_the_environment_are_not_recorded(tmp_path: Path) -> None:
    done = seatrial_here(
        *QUICK,
        cwd=tmp_path,
        SOME_TOKEN="s3cr3t-t0k3n",
        SLURM_JWT="s3cr3t-t0k3n",
        OMP_NUM_THREADS="2",
    )
    assert done.returncode == 0
    text = "".join(p.read_text() for p in (tmp_path / "seatrial-results").rglob("*") if p.is_file())
    assert "s3cr3t" not in text and '"OMP_NUM_THREADS":"2"' in text


@pytest.mark.real
@pytest.mark.lab
def test_a_folder_that_cannot_be_written_is_rejected_before_anything_runs(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "r").mkdir(mode=0o500)
    assert seatrial_here("run", "cpu.peak", "--results", "r", cwd=tmp_path).returncode == 2


@pytest.mark.real
@pytest.mark.lab
def test_a_full_disk_is_reported_once_and_loses_nothing(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], capture_output=True).returncode:
        pytest.skip("mount is not allowed here")
    try:
        done = seatrial_here(
            "run", "cpu.peak", "--set", "cores=one", "--results", "disk/r", "--format", "json", cwd=tmp_path
        )
        assert done.returncode == 3 and "Traceback" not in done.stderr
        (experiment,) = answer(done, "results-1")["experiments"]
        assert experiment["outcome"] == "failed" and "No space left on device" in experiment["reason"]
        for path in (disk / "r" / "records").glob("*.jsonl"):
            assert path.read_bytes().endswith(b"\n") or not path.read_bytes()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.real
def test_a_trial_of_which_nothing_fits_into_its_budget_says_so_and_measures_nothing(tmp_path: Path) -> None:
    done = seatrial_here("run", "--budget", "1s", "--format", "json", cwd=tmp_path)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if "load average" not in line]
    assert said[0] == "fits into 1 s: nothing" and said[1].startswith("does not fit: ") and "--budget " in said[1]
    experiments = answer(done, "results-1")["experiments"]
    assert isinstance(experiments, list)
    states = {one["outcome"] for one in experiments}
    assert "skipped" in states and states <= {"skipped", "unsupported"}
    assert all("budget of 1 s" in one["reason"] for one in experiments if one["benchmark"] == "cpu.peak")
    assert not [
        path for path in (tmp_path / "seatrial-results" / "records").iterdir() if "cpu.peak" in path.read_text()
    ]
