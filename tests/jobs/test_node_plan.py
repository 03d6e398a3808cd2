"""What a node without Python makes of a plan, and what is recorded of it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from seatrial.errors import BuildError, UsageError
from seatrial.jobs.node_plan import NodeRepeat, commands_in, needs_python, repeats_in, variables_with_lines
from seatrial.machine.copied import PATTERNS, copied_cpu_words, cpu_words, discover_copied
from seatrial.machine.live import discover_live
from seatrial.places.rank_helpers import helper
from seatrial.plan.points import plan_points


@pytest.fixture(scope="module")
def programs() -> tuple[Path, Path]:
    try:
        return helper("copy_facts"), helper("repeats")
    except BuildError as problem:
        pytest.skip(f"needs a compiler: {problem}")


def make(programs: tuple[Path, Path], folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    (folder / "plan").write_text("\n".join(lines) + "\n")
    (folder / "repeats").mkdir(exist_ok=True)
    command = [str(programs[1]), "--plan", str(folder / "plan"), "--programs", str(folder / "programs")]
    command += ["--into", str(folder / "repeats")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def made(folder: Path) -> list[NodeRepeat]:
    return list(repeats_in((folder / "repeats" / "repeats").read_text()))


def shell(text: str) -> tuple[str, ...]:
    from urllib.parse import quote

    return ("argument /bin/sh", "argument -c", "argument " + quote(text, safe=""))


def test_a_plan_is_made_as_often_as_it_says(programs: tuple[Path, Path], tmp_path: Path) -> None:
    plan = [
        *("pool 0", "group 2 5", "experiment 9000", *shell('echo "$1 $A ${HOME-none} $0"')),
        *("argument %[folder]/x%[programs]", "argument a%25[folder]%0Ab", "set A %26%5Bfolder%5D", "unset HOME"),
        *("pool 60000", "group 1 3", "experiment 9000", *shell("exit 0"), "experiment 9000", *shell("kill -9 $$")),
    ]
    done = make(programs, tmp_path, *plan)
    assert done.returncode == 0, done.stderr
    repeats = made(tmp_path)
    assert [one.number for one in repeats if one.experiment == 0] == [0, 1], "no time for more than the least"
    assert [one.number for one in repeats if one.experiment == 1] == [0, 1, 2], "the most"
    (killed,) = [one for one in repeats if one.experiment == 2]
    assert killed.status == -9 and not killed.timed_out
    assert {one.round for one in repeats} == {1, 2, 3}
    first = tmp_path / "repeats" / "0-0"
    assert (first / "stdout").read_text() == f"a%[folder]\nb &[folder] none {first}/x{tmp_path}/programs\n"
    assert all(0.0 < one.wall_s < 9.0 and one.used["max_resident_B"] > 0 for one in repeats)


def test_a_started_again_job_makes_what_is_missing(programs: tuple[Path, Path], tmp_path: Path) -> None:
    plan = ["pool 60000", "group 3 3", "experiment 9000", *shell("exit 0")]
    make(programs, tmp_path, *plan)
    log = tmp_path / "repeats" / "repeats"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))  # the third was being made
    assert make(programs, tmp_path, *plan).returncode == 0
    assert [(one.number, one.round) for one in made(tmp_path)] == [(0, 1), (1, 2), (3, 3)]


def test_a_program_that_hangs_is_ended_with_its_children(programs: tuple[Path, Path], tmp_path: Path) -> None:
    done = make(programs, tmp_path, "pool 0", "group 1 1", "experiment 200", *shell("sleep 300 & wait"))
    (one,) = made(tmp_path)
    assert done.returncode == 0 and one.timed_out and one.status == -15


@pytest.mark.parametrize("line", ["nonsense", "argument x", "experiment 5", "group 1 1", "pool x"])
def test_a_damaged_plan_is_refused(line: str, programs: tuple[Path, Path], tmp_path: Path) -> None:
    done = make(programs, tmp_path, line)
    assert done.returncode == 64 and "the plan has" in done.stderr


def test_damaged_lines_are_left_out() -> None:
    good = "0 1 2 3.5 0.25 256 0 0.1 1 2 3 4 5"
    (one,) = repeats_in(f"{good[:20]}\n{good}\n{good} 6\n-1 {good}\n\n")
    assert (one.number, one.round, one.status, one.folder) == (1, 2, 1, "0-1")
    assert commands_in("pool 1\ngroup 1 1\nexperiment 5\nargument a\nset B c\n") == [("argument a", "set B c")]


def test_the_variables_of_a_node_are_changed_as_planned() -> None:
    lines = ("argument a", "set OMP_NUM_THREADS 2%203", "unset OMPI_MCA_x", "unset OMP_PLACES")
    found = variables_with_lines(lines, {"OMP_NUM_THREADS": "8", "OMPI_MCA_x": "1", "TMPDIR": "/t"})
    assert found == {"OMP_NUM_THREADS": "2 3", "TMPDIR": "/t"}


def test_what_needs_python_on_the_node() -> None:
    machine = discover_live()
    points = plan_points(["cpu.peak", "gpu.triad", "apps.hpl", "mpi.latency"], {}, machine)
    assert {point.benchmark.name for point in points if needs_python(point) is None} == {"cpu.peak", "mpi.latency"}


def test_a_copied_machine_is_the_machine(programs: tuple[Path, Path]) -> None:
    listed = "\n".join(PATTERNS) + "\n"
    archive = subprocess.run([programs[0]], input=listed.encode(), capture_output=True, check=True).stdout
    copied, live = discover_copied(archive), discover_live(use_hwloc=False)
    assert [(device.id, device.kind, device.parent) for device in copied.devices] == [
        (device.id, device.kind, device.parent) for device in live.devices
    ]
    assert (copied.name, copied.allowed_cpus) == (live.name, live.allowed_cpus)
    assert copied_cpu_words(archive) == cpu_words(Path("/proc/cpuinfo").read_text())


def test_an_archive_stays_in_its_folder() -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, target in (("proc/out", "../../etc"), ("proc/far", "/etc"), ("proc/in", "../sys")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        for name in ("proc/out/passwd", "proc/in/x", "../y", "/z"):
            tar.addfile(tarfile.TarInfo(name))
    assert discover_copied(data.getvalue()).devices == discover_copied(b"\0" * 10240).devices
    with pytest.raises(UsageError, match="cannot be read"):
        discover_copied(b"nothing")
