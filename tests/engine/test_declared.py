"""Programs declared in files, run for real: scripts, a program that is built first, and MPI ranks."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from seatrial.analysis.results import RunResult
from seatrial.benchmarks import registry
from seatrial.interface.results import results
from seatrial.interface.run import run
from seatrial.model.results.sample import State
from seatrial.plan.targets import with_declared

pytestmark = [pytest.mark.real, pytest.mark.lab]

SCRIPT = """
import json, os, sys
size = int(sys.argv[1])
print("input:", open("input.dat").read().strip(), os.environ["MODE"])
print("rate: %.1f GB/s" % (size / 10))
if size == 13:
    print("WARNING: unlucky")
json.dump({"steps": [{"s": 0.25}]}, open("out.json", "w"))
sys.exit(3 if size == 99 else 0)
"""

DECLARED = """
benchmark:
  name: mine
  question: How fast is it?
  argv: [PYTHON, script.py, "{size}"]
  parameters: {size: 100, mode: fast}
  variables: {MODE: "{mode}"}
  files: [script.py, input.dat]
  figures:
    - {name: rate, unit: B/s, better: higher, pattern: 'rate: (\\S+) GB/s', scale: 1e9}
    - {name: step, unit: s, better: lower, json: 'steps[0].s', file: out.json}
  checks:
    - {name: clean, must_not_match: WARNING}
    - {name: mode, must_match: 'input: 42 fast'}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "input.dat").write_text("42\n")
    (tmp_path / "mine.yaml").write_text(DECLARED.replace("PYTHON", sys.executable))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def figures(found: RunResult) -> dict[str, float | None]:
    (one,) = found.experiments
    assert one.outcome.is_ok, one.outcome
    return {figure.name: figure.median for figure in one.figures}


def test_figures_checks_and_reuse(folder: Path) -> None:
    found = run("mine.yaml", repeats=1)
    made = figures(found)
    assert made["rate"] == 10e9 and made["step"] == 0.25 and (made["wall"] or 0) > 0
    assert run("mine.yaml", repeats=1).experiments[0].reused
    # A corrected pattern reads other numbers: it is another experiment.
    text = (folder / "mine.yaml").read_text()
    (folder / "mine.yaml").write_text(text.replace("scale: 1e9", "scale: 1e6"))
    assert figures(run("mine.yaml", repeats=1))["rate"] == 10e6
    # So is another input file.
    (folder / "input.dat").write_text("42\n\n")
    assert not run("mine.yaml", repeats=1).experiments[0].reused


def test_failed_checks_and_exit_statuses(folder: Path) -> None:
    (one,) = run("mine.yaml", set={"size": 13}, repeats=1).experiments
    assert one.outcome.state is State.INVALID and one.outcome.check == "clean"
    (one,) = run("mine.yaml", set={"size": 99}, repeats=1).experiments
    assert one.outcome.state is State.FAILED and "exit status 3" in one.outcome.reason
    (folder / "mine.yaml").write_text((folder / "mine.yaml").read_text() + "  exit_status: 3\n")
    (one,) = run("mine.yaml", set={"size": 99}, repeats=1).experiments
    assert one.outcome.is_ok
    (one,) = run("mine.yaml", repeats=1).experiments
    assert one.outcome.state is State.FAILED and "exit status 0 instead of 3" in one.outcome.evidence


def test_a_missing_figure_is_a_failure_that_says_which(folder: Path) -> None:
    text = (folder / "mine.yaml").read_text()
    (folder / "mine.yaml").write_text(text.replace("rate: (", "speed: ("))
    (one,) = run("mine.yaml", repeats=1).experiments
    assert one.outcome.state is State.FAILED
    assert "figure rate: none of the" in one.outcome.reason


def test_results_can_be_read_without_the_declaration(folder: Path) -> None:
    run("mine.yaml", repeats=1)
    (folder / "mine.yaml").unlink()
    with_declared()
    assert not registry()["local.mine"].program.can_run
    (one,) = results(folder / "seatrial-results").experiments
    assert {figure.name: figure.median for figure in one.figures}["rate"] == 10e9


def test_found_by_name_in_folders(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    own, site = folder / "seatrial-benchmarks", folder / "site"
    for where, name in ((own, "here"), (site, "there")):
        where.mkdir()
        text = (folder / "mine.yaml").read_text().replace("name: mine", f"name: {name}")
        (where / f"{name}.yaml").write_text(text)
    (own / "broken.yaml").write_text("benchmark: {name: x}\n")
    (folder / "config" / "seatrial").mkdir(parents=True)
    (folder / "config" / "seatrial" / "site.yaml").write_text(f"benchmarks: [{site}]\n")
    from seatrial.plan.site_in_force import use_site

    use_site(None)
    try:
        with_declared()
        assert {"local.here", "local.there"} <= set(registry())
    finally:
        use_site(None)
    assert "broken.yaml" in caplog.text


def test_a_program_is_built_first(folder: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    (folder / "p.cpp").write_text('#include <cstdio>\nint main() { std::puts("n 7"); }\n')
    (folder / "p.yaml").write_text(
        "benchmark:\n  name: p\n  question: q\n  argv: [./p]\n  build: [[g++, p.cpp, -o, p]]\n"
        "  figures: [{name: n, unit: '1', better: higher, pattern: 'n (\\d+)'}]\n"
    )
    assert figures(run("p.yaml", repeats=1))["n"] == 7.0
    (folder / "p.cpp").write_text("int main() { return x; }\n")
    (one,) = run("p.yaml", repeats=1).experiments
    assert one.outcome.state is State.FAILED and "`g++ p.cpp -o p`" in one.outcome.reason


@pytest.mark.parallel
@pytest.mark.parametrize("family", ["openmpi", "mpich"])
def test_ranks(folder: Path, family: str) -> None:
    if shutil.which(f"mpicc.{family}") is None or len(os.sched_getaffinity(0)) < 2:
        pytest.skip(f"needs two CPUs and mpicc.{family}")
    (folder / "r.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(int c, char** v) { int n, r; MPI_Init(&c, &v);"
        " MPI_Comm_size(MPI_COMM_WORLD, &n); MPI_Comm_rank(MPI_COMM_WORLD, &r);"
        ' if (r == 0) printf("ranks %d\\n", n); MPI_Finalize(); return 0; }\n'
    )
    (folder / "r.yaml").write_text(
        f"benchmark:\n  name: r\n  question: q\n  argv: [./r]\n  ranks: 2\n  build: [[mpicc.{family}, r.c, -o, r]]\n"
        "  figures: [{name: n, unit: '1', better: higher, pattern: 'ranks (\\d+)'}]\n"
    )
    made = figures(run("r.yaml", repeats=1))
    assert made["n"] == 2.0 and (made["wall"] or 0) > 0
