"""Shared libraries of C: built once, found again, and without a compiler too."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.environments.compiler import Compiler, first_compiler
from seatrial.environments.loader import Texts, build_library, build_program
from seatrial.errors import BuildError, NoCompilerError

pytestmark = pytest.mark.real

TEXTS = {"one.c": "int other(void);\n", "two.c": "int other(void) { return 1; }\n"}


def made(texts: dict[str, str]) -> Texts:
    return Texts(lambda: texts)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "answer.c"
    path.write_text('#include "answer.h"\n__attribute__((visibility("default"))) int answer(void) { return ANSWER; }\n')
    path.with_name("answer.h").write_text("#define ANSWER 42\n")
    return path


def left(source: Path) -> list[Path]:
    return list((source.parent / "cache" / "libraries").glob("*"))


def test_a_library_is_built_once_and_again_when_a_header_changes(source: Path) -> None:
    compiler = first_compiler()
    built = build_library("answer", compiler, [source], made(TEXTS))
    assert ctypes.CDLL(str(built)).answer() == 42
    time = built.stat().st_mtime_ns
    assert build_library("answer", compiler, [source], made(TEXTS)) == built
    assert built.stat().st_mtime_ns == time
    source.with_name("answer.h").write_text("#define ANSWER 43\n")
    assert build_library("answer", compiler, [source], made(TEXTS)) != built
    assert not list(built.parent.glob(".*"))


def test_texts_are_generated_only_to_be_compiled(source: Path) -> None:
    generator, generated = source.with_name("generator"), []

    def make() -> dict[str, str]:
        generated.append(generator.read_text())
        return TEXTS

    for version in ("1", "1", "2"):
        generator.write_text(version)
        build_library("answer", first_compiler(), [source], Texts(make, (generator,)))
    assert generated == ["1", "2"]


def test_without_a_compiler_what_another_machine_built_is_used(source: Path) -> None:
    with pytest.raises(NoCompilerError, match="seatrial build"):
        build_library("answer", None, [source], Texts())
    built = build_library("answer", first_compiler(), [source], Texts())
    assert build_library("answer", None, [source], Texts()) == built
    source.write_text("int main(void) { return 0; }\n")
    with pytest.raises(NoCompilerError):
        build_program("program", None, [source])
    program = build_program("program", first_compiler(), [source])
    assert build_program("program", None, [source]) == program


def test_a_failed_compilation_states_the_reason(source: Path) -> None:
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(BuildError, match="nothing"):
        build_program("program", first_compiler(), [source])


def test_the_source_that_does_not_compile_is_reported_and_nothing_is_left(source: Path) -> None:
    texts = {**TEXTS, "three.c": "int third(void) { return missing; }\n", "four.c": ""}
    with pytest.raises(BuildError, match=r"three\.c:1:\d+: error: .*missing") as raised:
        build_library("answer", first_compiler(), [source], made(texts))
    assert "missing" in raised.value.output
    assert left(source) == []


def test_what_does_not_link_leaves_nothing(source: Path) -> None:
    with pytest.raises(BuildError) as raised:
        build_library("answer", first_compiler(), [source], made({**TEXTS, "three.c": TEXTS["two.c"]}))
    assert "multiple" in raised.value.output or "duplicate" in raised.value.output
    assert left(source) == []


def slow_compiler(folder: Path, script: str) -> Compiler:
    """A compiler that runs the script first; the last word of its command is the output, $1 stands for it."""
    command = folder / "slow-g++"
    command.with_name("slow-gcc").write_text(f'#!/bin/sh\nfor word; do last="$word"; done\n{script}\nexec cc "$@"\n')
    for path in (command, command.with_name("slow-gcc")):
        path.touch()
        path.chmod(0o755)
    return Compiler((str(command),), "gcc", "slow 1")


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_compiler_is_reported_and_leaves_nothing(source: Path) -> None:
    killed = slow_compiler(source.parent, 'case "$*" in *two.c*) echo half > "$last"; kill -9 $$;; esac')
    with pytest.raises(BuildError, match="killed by SIGKILL"):
        build_library("answer", killed, [source], made(TEXTS))
    assert left(source) == []


_BUILD = """
import signal
import sys
from pathlib import Path
from seatrial.environments.compiler import Compiler
from seatrial.environments.loader import Texts, build_library
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with SIGINT ignored
print(build_library("answer", Compiler((sys.argv[1],), "gcc", "slow 1"), [Path(sys.argv[2])], Texts(lambda: {texts!r})))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_build_leaves_no_library_and_the_next_one_cleans_up(source: Path, number: int) -> None:
    started, go = source.parent / "started", source.parent / "go"
    compiler = slow_compiler(source.parent, f"test -e {go} || {{ echo $$ >> {started}; exec sleep 60; }}")
    command = [sys.executable, "-c", _BUILD.format(texts=TEXTS), compiler.command[0], str(source)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as build:
        until(lambda: started.exists() and started.read_text().endswith("\n"))
        build.send_signal(number)
        build.wait(20)
    pids = started.read_text().split()
    if number == signal.SIGINT:
        assert left(source) == [] and not any(Path("/proc", pid).exists() for pid in pids)
    else:
        assert any(f"-{build.pid}-" in path.name for path in left(source))
        assert all(path.name.startswith(".") for path in left(source))
        until(lambda: not any(Path("/proc", pid).exists() for pid in pids))
    go.touch()
    assert ctypes.CDLL(str(build_library("answer", compiler, [source], made(TEXTS)))).answer() == 42
    assert [path.name.startswith(".") for path in left(source)] == [False]
