"""The tasks of docs/first-day.md: each section's files are written and its commands run, with shorter budgets."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from usual import usually

from seatrial.cli.command import command_named

TEXT = (Path(__file__).parents[2] / "docs" / "first-day.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^(?://|#) (\S+\.\w+)\n")
OSU = "".join(
    f"{line}\n"
    for line in (
        "# OSU MPI Latency Test v7.4",
        "# Datatype: MPI_CHAR.",
        "# Size       Avg Latency(us)",
        *(f"{size_B:<20}{latency_us:>8.2f}" for size_B, latency_us in ((1, 0.24), (8, 0.25), (64, 0.27))),
    )
)
"""Made up: the program is not in a package."""
MAY_END_WITH = {
    ("Is my node healthy?", "run"): {0, 3},  # 3: little fits into the budget of a test on a busy machine
    ("Is my node healthy?", "report"): {0, 2},
    ("Is the new version slower?", "run"): {0, 1},
}
"""The exit statuses of commands whose answer depends on the machine."""


@dataclass(frozen=True)
class Task:
    title: str
    files: dict[str, str]
    commands: list[list[str]]

    @property
    def programs(self) -> set[str]:
        """What must be installed for it."""
        own = {command[0] for command in self.commands} - {"seatrial"}
        return own | ({"mpirun.openmpi", "mpirun.mpich"} if "mpi.yaml" in self.files else set())


def task(title: str, text: str) -> Task:
    files, commands = {}, []
    for language, block in BLOCK.findall(text):
        if language == "console":
            assert all(line.startswith("$ ") for line in block.splitlines())
            commands += [shlex.split(line[2:]) for line in block.splitlines()]
        else:
            name = NAME.match(block)
            assert name, f"a block of {title} names no file"
            files[name[1]] = block
    return Task(title, files, commands)


FOR_ALL, *SECTIONS = re.split(r"^## (.+)\n", TEXT, flags=re.MULTILINE)
TASKS = [task(title, FOR_ALL + text) for title, text in zip(SECTIONS[::2], SECTIONS[1::2], strict=True)]


def shortened(command: list[str]) -> list[str]:
    """The command with a budget of seconds."""
    budget = "10s" if "5min" not in command else "30s"  # the trial builds many programs
    return [budget if before == "--budget" else word for before, word in pairwise(["", *command])]


def test_there_are_ten_tasks() -> None:
    assert len(TASKS) == 10 and all(one.commands for one in TASKS)


def test_every_command_has_words_that_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [command for one in TASKS for command in one.commands if command[0] == "seatrial"]
    for _, name, *words in commands:
        assert command_named(name).make_context(name, words)
    assert len(commands) > 15


MEASURED_ELSEWHERE = {"Which MPI is faster here?", "The same machine, last month and now", "A table for a paper"}
"""By examples and tests of `compare` and `export`: of these tasks, the words of the commands are checked."""


@pytest.mark.real
@pytest.mark.parametrize(
    "one",
    usually(TASKS, lambda one: one.title not in MEASURED_ELSEWHERE),
    ids=[re.sub(r"\W+", "-", one.title.lower()).strip("-") for one in TASKS],
)
def test_a_task_of_the_first_day(one: Task, tmp_path: Path) -> None:
    (tmp_path / "osu_latency.txt").write_text(OSU)
    for name, text in one.files.items():
        (tmp_path / name).write_text(text)
    for program in one.programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for command in map(shortened, one.commands):
        if command[0] == "seatrial":
            done = seatrial_here(*command[1:], cwd=tmp_path, **variables)
        else:
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | variables)
        ends = MAY_END_WITH.get((one.title, command[1]), {0})
        assert done.returncode in ends, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
