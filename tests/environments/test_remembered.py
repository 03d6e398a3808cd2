"""What programs answer is asked once, until something that it may depend on has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.environments import asking as module
from seatrial.environments.asking import ask_once, last_object, remembered
from seatrial.errors import BuildError

SCRIPT = """#!/bin/sh
echo called >> "{log}"
echo "version 1 $WORD"
exit {status}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tool(tmp_path: Path, cache: Path) -> Callable[..., Path]:
    """`tool(status)`: a program that notes each of its calls."""

    def make(status: int = 0) -> Path:
        path = tmp_path / "tool"
        path.write_text(SCRIPT.format(log=tmp_path / "log", status=status))
        path.chmod(0o755)
        return path

    return make


def calls(tool: Path) -> int:
    log = tool.with_name("log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_program_is_asked_again_when_it_or_a_file_or_a_variable_has_changed(
    tool: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tool()
    beside = tmp_path / "library"
    beside.write_text("one")

    def ask() -> str:
        return ask_once([str(program), "--version"], files=(beside,)).stdout

    assert ask() == ask() == "version 1 \n" and calls(program) == 1
    monkeypatch.setenv("WORD", "there")
    assert ask() == "version 1 there\n" and calls(program) == 2
    beside.write_text("another")
    assert ask() == "version 1 there\n" and calls(program) == 3
    program.write_text(program.read_text().replace("version 1", "version 2"))
    assert ask() == "version 2 there\n" and calls(program) == 4
    monkeypatch.setattr(module, "_LOADER_CACHE", beside)  # installing a library renews it
    assert ask() == "version 2 there\n" and calls(program) == 5


@pytest.mark.parametrize("name", ["PWD", "SHLVL", "COLUMNS", "SLURM_JOB_ID", "SSH_TTY"])
def test_the_shell_and_the_job_do_not_matter(
    name: str, tool: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tool()
    ask_once([str(program)])
    monkeypatch.setenv(name, "17")
    ask_once([str(program)])
    assert calls(program) == 1


def test_other_words_are_another_question(tool: Callable[..., Path]) -> None:
    program = tool()
    ask_once([str(program), "-v"])
    ask_once([str(program), "--version"])
    assert calls(program) == 2


def test_what_failed_is_asked_again(tool: Callable[..., Path]) -> None:
    program = tool(status=1)
    for _ in range(2):
        with pytest.raises(BuildError):
            ask_once([str(program)])
    assert calls(program) == 2


def test_a_value_that_is_no_longer_true_is_made_again(cache: Path) -> None:
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    assert remembered(["x"], (), make) == remembered(["x"], (), make) == 0
    assert remembered(["x"], (), make, still_true=lambda value: value > 0) == 1
    assert remembered(["x"], (), make, still_true=lambda value: value > 0) == 1


@pytest.mark.parametrize("text", ["", "{", "\x00\xff", "7", "[]", '["a", 1]'])
def test_a_damaged_answer_is_asked_again(text: str, tool: Callable[..., Path], cache: Path) -> None:
    program = tool()
    ask_once([str(program)])
    (kept,) = (cache / "answers").glob("*.json")
    kept.write_text(text)
    assert ask_once([str(program)]).stdout == "version 1 \n" and calls(program) == 2
    assert ask_once([str(program)]).stdout == "version 1 \n" and calls(program) == 2


def test_nothing_is_read_from_or_written_to_a_cache_of_others(tool: Callable[..., Path], cache: Path) -> None:
    program = tool()
    cache.mkdir()
    cache.chmod(0o777)
    for expected in (1, 2):
        assert ask_once([str(program)]).stdout == "version 1 \n" and calls(program) == expected
    assert list(cache.iterdir()) == []


def test_without_a_cache_programs_are_asked_each_time(
    tool: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tool()
    monkeypatch.setenv("SEATRIAL_CACHE", "/proc/nowhere")
    for expected in (1, 2):
        assert ask_once([str(program)]).stdout == "version 1 \n" and calls(program) == expected


def test_nobody_else_may_write_an_answer(tool: Callable[..., Path], cache: Path) -> None:
    ask_once([str(tool())])
    (kept,) = (cache / "answers").iterdir()
    assert kept.suffix == ".json" and kept.stat().st_mode & 0o022 == 0


def test_what_a_library_prints_before_an_answer_is_ignored() -> None:
    assert last_object('{"core": "zen"}\n') == {"core": "zen"}
    assert last_object('a warning of a library\n{"core": {"a": 1}}\n') == {"core": {"a": 1}}
