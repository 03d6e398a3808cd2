"""Building and keeping programs, with the real compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.engine.environments import native_environment
from seatrial.environments import build as builds
from seatrial.environments.build import Environment, build, cache_folder, program_key
from seatrial.errors import BuildError
from seatrial.model.machine import Machine

pytestmark = pytest.mark.real


@pytest.fixture
def environment(live_machine: Machine) -> Environment:
    return native_environment(live_machine)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def source(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tiny.cpp"
    path.write_text(text)
    return path


TINY = """
#include "program.hpp"
int main(int argc, char** argv) {
  using namespace seatrial;
  return run_program("tiny", argc, argv, [](Arguments&) { return 0; }, [](Program&, int) {});
}
"""


def test_a_program_is_built_once_and_introduces_itself(
    environment: Environment, own_cache: Path, tmp_path: Path
) -> None:
    first = build(environment, source(tmp_path, TINY))
    second = build(environment, source(tmp_path, TINY))
    assert not first.from_cache and second.from_cache and first.path == second.path
    assert first.hello.build == first.key and "libc.so.6" in first.hello.libs
    kept = json.loads((first.path.parent / "build.json").read_text())
    assert kept["command"][0] == environment.compiler.command[0] and str(tmp_path / "tiny.cpp") in kept["command"]


def test_another_source_or_another_environment_is_another_key(environment: Environment, tmp_path: Path) -> None:
    from dataclasses import replace

    first = source(tmp_path, TINY)
    key = program_key(environment, first)
    assert program_key(replace(environment, libc="glibc 1.0"), first) != key
    changed = tmp_path / "other" / "tiny.cpp"
    changed.parent.mkdir()
    changed.write_text(TINY + "// changed\n")
    assert program_key(environment, changed) != key


def test_a_binary_that_was_damaged_is_built_again(environment: Environment, own_cache: Path, tmp_path: Path) -> None:
    first = build(environment, source(tmp_path, TINY))
    first.path.write_bytes(first.path.read_bytes()[:-100])
    again = build(environment, source(tmp_path, TINY))
    assert not again.from_cache and again.hello.build == first.key
    assert [path.name for path in again.path.parent.parent.iterdir()] == [first.key]  # nothing half-made is left


_BUILDS = """
import sys
from pathlib import Path
from seatrial.engine.environments import native_environment
from seatrial.environments.build import build
from seatrial.machine.live import discover_live
print(build(native_environment(discover_live()), Path(sys.argv[1])).path)
"""


def test_two_processes_at_once_get_one_whole_program(own_cache: Path, tmp_path: Path) -> None:
    path = source(tmp_path, TINY)
    both = [subprocess.Popen([sys.executable, "-c", _BUILDS, str(path)], stdout=subprocess.PIPE) for _ in range(2)]
    programs = {process.communicate()[0].decode().strip() for process in both}
    assert len(programs) == 1 and all(process.returncode == 0 for process in both)
    (program,) = programs
    assert subprocess.run([program, "--describe"], check=False, capture_output=True).returncode == 0
    assert [kept.name for kept in (own_cache / "programs").iterdir()] == [Path(program).parent.name]


def test_a_sound_build_of_another_process_stays_where_it_is(
    environment: Environment, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be running; on NFS, taking it away would end it."""
    first = build(environment, source(tmp_path, TINY))
    inode = first.path.stat().st_ino
    seconds = builds._compile(first.command, first.path.parent, first.path.name, environment)
    assert seconds > 0 and first.path.stat().st_ino == inode


def test_a_source_that_does_not_compile_gives_the_words_of_the_compiler(
    environment: Environment, tmp_path: Path
) -> None:
    with pytest.raises(BuildError) as caught:
        build(environment, source(tmp_path, "int main() { return nonsense; }\n"))
    assert "nonsense" in caught.value.output


def test_a_warning_of_a_newer_compiler_stops_nobody(environment: Environment, tmp_path: Path) -> None:
    assert build(environment, source(tmp_path, TINY + "static int unused() { int nothing; return 0; }\n")).path.exists()


def test_a_cache_that_cannot_be_written_says_what_to_set(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="SEATRIAL_CACHE"):
        build(environment, source(tmp_path, TINY))


def test_the_cache_follows_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", "/a")
    assert cache_folder() == Path("/a")
    monkeypatch.delenv("SEATRIAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert cache_folder() == Path("/b/seatrial")


def test_the_target_is_spelled_out_in_the_command(environment: Environment) -> None:
    built = build(environment, PEAK.program.source)
    if environment.compiler.family == "gcc":
        assert "-march=native" not in built.command
    assert builds._FLAGS[0] in built.command


def test_headers_of_one_name_in_two_folders_both_count(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for number, where in enumerate(("", "mpi/program.hpp", "program.hpp")):
        headers = tmp_path / f"headers-{number}"
        for place in ("program.hpp", "mpi/program.hpp"):
            (headers / place).parent.mkdir(parents=True, exist_ok=True)
            (headers / place).write_text("// changed" if place == where else "")
        monkeypatch.setattr(builds, "NATIVE_HEADERS", headers)
        source = tmp_path / str(number) / "empty.cpp"
        source.parent.mkdir()
        source.write_text("int main() {}")
        keys.add(builds.program_key(environment, source))
    assert len(keys) == 3
