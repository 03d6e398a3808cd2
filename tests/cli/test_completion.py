"""Completion: the words for each place, and the scripts in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here

from seatrial.cli.completion.answer import answers
from seatrial.cli.completion.table import made_table


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    return made_table()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "run"),
        ("--ver", "--version"),
        ("ru", "run"),
        ("run memory.str", "memory.stream"),
        ("run memory.stream --set thr", "threads="),
        ("run memory.stream --set nontemporal=t", "nontemporal=true"),
        ("run memory.stream --set kernel=copy,tr", "kernel=copy,triad"),
        ("run mpi.latency --set environment.mpi=mpi", "environment.mpi=mpich"),
        ("run mpi.latency --set environment.tr", "environment.transport="),
        ("run --fo", "--format"),
        ("run --format j", "json"),
        ("run --format=j", "--format=json"),
        ("run stu", "study.yaml"),
        ("run sub/o", "sub/other.yaml"),
        ("run s/", None),
        ("plan su", "sub/"),
        ("list mp", "mpi"),
        ("discover --from hw", "hwloc-xml="),
        ("import osu", "osu="),
        ("compare ju", "july"),
        ("run --results j", "july"),
        ("check --fail-on w", "warning"),
        ("run --system t", "tera"),
        ("run --site other.yaml --system g", "giga"),
        ("completion f", "fish"),
        ("cluster u", "up"),
        ("vm up --topo", "--topology"),
        ("cluster up --tr", "--tree"),
        ("cluster status --format j", "json"),
        ("cluster exec -- sr", None),
        ("profile -- ./a", None),
        ("nonsense ", None),
    ],
)
def test_the_words_that_may_follow(
    table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, expected: str | None
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "july").mkdir()
    for name in ("july/FORMAT", "study.yaml", "sub/other.yaml", "data.txt"):
        (tmp_path / name).touch()
    (tmp_path / "seatrial").mkdir()
    (tmp_path / "seatrial/site.yaml").write_text(
        "environments:\n  a: {}\nsystems:\n  tera:\n    partitions:\n      compute:\n"
    )
    (tmp_path / "other.yaml").write_text("systems:\n  giga: {partitions: {compute: {}}}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = [word for word, _ in answers(line.split(" "), table)]
    assert expected in found if expected is not None else not found
    assert all(word.startswith(line.split(" ")[-1]) for word in found)


def test_a_key_press_loads_nothing_heavy(tmp_path: Path) -> None:
    environment = {**os.environ, "SEATRIAL_CACHE": str(tmp_path)}
    asked = ["seatrial", "--complete", "run", "cpu."]
    for is_kept in (False, True):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", *asked], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0 and "cpu.peak\t" in done.stdout
        loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert not is_kept or not loaded & {"numpy", "rich", "duckdb", "ruamel.yaml", "jinja2"}
        assert ("typer" in loaded) is not is_kept and ("seatrial.benchmarks" in loaded) is not is_kept
    (tmp_path / "completion.json").write_text('{"key": 1')
    done = subprocess.run([sys.executable, "-m", *asked], env=environment, capture_output=True, text=True)
    assert "cpu.peak\t" in done.stdout


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "data/bash-completion/completions/seatrial"),
        ("zsh", "data/zsh/site-functions/_seatrial"),
        ("fish", "config/fish/completions/seatrial.fish"),
    ],
)
def test_one_command_installs_it(tmp_path: Path, shell: str, place: str) -> None:
    homes = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = seatrial_here("completion", shell, "--install", cwd=tmp_path, **homes)
    assert done.returncode == 0 and str(tmp_path / place) in done.stdout
    printed = seatrial_here("completion", shell, cwd=tmp_path).stdout
    assert (tmp_path / place).read_text() == printed and "--complete" in printed


BASH = r"""
source script
COMP_LINE='seatrial %s'; COMP_POINT=${#COMP_LINE}
compopt() { :; }
_seatrial
printf '%%s\n' "${COMPREPLY[@]}"
"""
ZSH = r"""
compdef() { :; }; compadd() { for word in "${(@P)@[-1]}"; do print -r -- "$word"; done }
compset() { :; }; _files() { :; }
source ./script
words=(seatrial %s); CURRENT=$#words
_seatrial
"""
FISH = "source script; complete -C 'seatrial %s'"


@pytest.mark.real
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "expected"), [("run memory.str", "memory.stream"), ("run io.file --set direct=t", "direct=true")]
)
def test_in_a_real_shell(tmp_path: Path, shell: str, line: str, expected: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} not found (Debian: apt install {shell})")
    program = tmp_path / "seatrial"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m seatrial "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(seatrial_here("completion", shell, cwd=tmp_path).stdout)
    text = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell] % line
    done = subprocess.run(
        [shell, "-c", text],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    words = [word.split("\t")[0] for word in done.stdout.splitlines()]
    if shell == "bash" and "=" in expected:
        expected = expected.rpartition("=")[2]  # bash replaces what follows the "="
    assert words == [expected], (done.stdout, done.stderr)
