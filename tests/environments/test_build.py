"""Building and keeping programs, with the real compiler."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.environments import build as builds
from seatrial.environments.build import Environment, build, program_key
from seatrial.environments.cached_files import KeptFile, make_file
from seatrial.environments.chosen import native_environment
from seatrial.environments.compiled import standard_headers, units_of, with_headers
from seatrial.errors import BuildError
from seatrial.model.machine.machine import Machine
from seatrial.store.cache import cache_folder

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


def unlike_others(tmp_path: Path) -> Path:
    """The source of a program that no other test builds; of its parts, which take seconds, most are there."""
    return source(tmp_path, f"{TINY}// {tmp_path}\n")


def test_source_that_is_not_timed_is_optimised_less(environment: Environment, own_cache: Path, tmp_path: Path) -> None:
    """Only the source itself, after our flags and before those of the user; its key is another."""
    with_flags = replace(environment, added_flags=("-O2",))
    text = "int main() { return 0; }\n"
    timed = source(tmp_path, text)
    assert {unit.optimisation for unit in units_of(timed, builds.NATIVE_HEADERS)} == {""}
    first = program_key(with_flags, timed)
    units_of.cache_clear()
    own, *parts = units_of(source(tmp_path, f"// untimed: -O1\n{text}"), builds.NATIVE_HEADERS)
    command = builds._Object.of(with_flags, own).command
    assert [word for word in command if word.startswith("-O")] == ["-O3", "-O1", "-O2"]
    assert program_key(with_flags, own.source) != first
    assert parts == []


def half_made(program: Path) -> list[Path]:
    return list(program.parent.parent.glob(f".{program.parent.name}*"))


def test_a_program_is_built_once_and_describes_itself(
    environment: Environment, program_cache: Path, tmp_path: Path
) -> None:
    first = build(environment, unlike_others(tmp_path))
    second = build(environment, unlike_others(tmp_path))
    assert not first.from_cache and second.from_cache and first.path == second.path
    assert first.hello.build == first.key and "libc.so.6" in first.hello.libs
    kept = json.loads((first.kept.parent / "build.json").read_text())
    assert kept["command"][0] == environment.compiler.command[0]  # links what was made of each source
    made = json.loads((program_cache / "objects" / first.key / "build.json").read_text())
    assert str(tmp_path / "tiny.cpp") in made["command"]
    headers = [
        word for word in made["command"] if word.endswith("/standard.hpp.gch")
    ]  # read already, if GCC built much
    assert [word for word in made["command"] if word not in ("-include", *headers)] == list(first.command)
    assert str(program_cache / "objects" / first.key / "tiny.o") in kept["command"]


def test_another_source_or_another_environment_is_another_key(environment: Environment, tmp_path: Path) -> None:
    first = source(tmp_path, TINY)
    key = program_key(environment, first)
    assert program_key(replace(environment, libc="glibc 1.0"), first) != key
    changed = tmp_path / "other" / "tiny.cpp"
    changed.parent.mkdir()
    changed.write_text(TINY + "// changed\n")
    assert program_key(environment, changed) != key


def test_a_binary_that_was_damaged_is_built_again(environment: Environment, tmp_path: Path) -> None:
    first = build(environment, unlike_others(tmp_path))
    first.kept.write_bytes(first.kept.read_bytes()[:-100])
    again = build(environment, unlike_others(tmp_path))
    assert not again.from_cache and again.hello.build == first.key and not half_made(again.kept)


_BUILDS = """
import sys
import time
from pathlib import Path
from seatrial.environments.chosen import native_environment
from seatrial.environments.build import build
from seatrial.machine.live import discover_live
print(build(native_environment(discover_live()), Path(sys.argv[1])).kept)
"""


def test_two_processes_at_once_get_one_whole_program(tmp_path: Path) -> None:
    path = unlike_others(tmp_path)
    both = [subprocess.Popen([sys.executable, "-c", _BUILDS, str(path)], stdout=subprocess.PIPE) for _ in range(2)]
    programs = {process.communicate()[0].decode().strip() for process in both}
    assert len(programs) == 1 and all(process.returncode == 0 for process in both)
    (program,) = programs
    assert subprocess.run([program, "--describe"], check=False, capture_output=True).returncode == 0
    assert not half_made(Path(program))


COUNTING = """#!/bin/sh
case "$*" in *" -c "*) echo "$*" >> {log}; sleep 0.5;; esac
exec {compiler} "$@"
"""


def test_a_build_in_progress_in_another_process_is_waited_for(
    environment: Environment, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, wrapper = tmp_path / "log", tmp_path / "g++"
    wrapper.write_text(COUNTING.format(log=log, compiler=environment.compiler.command[0]))
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    path = source(tmp_path, TINY)
    first = subprocess.Popen([sys.executable, "-c", _BUILDS, str(path)], stdout=subprocess.DEVNULL)
    while not log.exists():
        time.sleep(0.02)
    second = subprocess.Popen([sys.executable, "-c", _BUILDS, str(path)], stdout=subprocess.DEVNULL)
    assert [first.wait(), second.wait()] == [0, 0]
    assert len(log.read_text().splitlines()) == len(list((own_cache / "objects").iterdir()))


def test_what_a_killed_compiler_leaves_is_removed_with_its_folder(
    own_cache: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Killed compilers leave files in $TMPDIR, which is the folder of the build."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = own_cache / "tried" / "key" / "made"
    make_file(("sh", "-c", 'touch "$TMPDIR/cc1.s"; echo "$TMPDIR" >"$2"', "sh"), made, environment.document())
    assert Path(made.read_text().strip()).parent == made.parent.parent
    assert list(tmp_path.glob("cc*")) == []


def test_a_valid_build_of_another_process_is_not_replaced(environment: Environment, tmp_path: Path) -> None:
    """It may be running; on NFS, taking it away would end it."""
    first = build(environment, unlike_others(tmp_path))
    inode = first.kept.stat().st_ino
    linking = json.loads((first.kept.parent / "build.json").read_text())["command"]
    make_file(linking, first.kept, environment.document())
    assert first.kept.stat().st_ino == inode


def test_a_source_that_does_not_compile_gives_the_compilers_message(environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        build(environment, source(tmp_path, "int main() { return nonsense; }\n"))
    assert "nonsense" in caught.value.output


def test_a_compiler_warning_is_stored_and_does_not_fail_the_build(
    environment: Environment, program_cache: Path, tmp_path: Path
) -> None:
    text = TINY + "static int unused() { int nothing; return 0; }\n"
    built = build(environment, source(tmp_path, text))
    kept = json.loads((program_cache / "objects" / built.key / "build.json").read_text())
    assert built.kept.exists() and "unused variable" in kept["warnings"]


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
    assert builds.BASE_FLAGS[0] in built.command


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


INCLUDING = '#include "mpi/program.hpp"\n#include "program.hpp"\nint main() {}\n'


def test_headers_of_one_name_in_two_folders_both_count(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for number, where in enumerate(("", "mpi/program.hpp", "program.hpp")):
        texts = {place: "// changed" if place == where else "" for place in ("program.hpp", "mpi/program.hpp")}
        monkeypatch.setattr(builds, "NATIVE_HEADERS", written(tmp_path / f"headers-{number}", texts))
        keys.add(builds.program_key(environment, written(tmp_path / str(number), {"a.cpp": INCLUDING}) / "a.cpp"))
    assert len(keys) == 3


SHARED = {
    "a.hpp": '#include "b.hpp"\nint a();\n',
    "a.cpp": '#include "a.hpp"\n#include "c.hpp"\nint a() { return b() + c(); }\n',
    "b.hpp": "int b();\n",
    "b.cpp": "int b() { return 1; }\n",
    "c.hpp": "int c();\n",
    "c.cpp": "int c() { return 2; }\n",
    "unused.hpp": "int unused();\n",
    "unused.cpp": "this is not compiled\n",
}


def test_a_part_is_a_source_beside_an_included_header(tmp_path: Path) -> None:
    headers = written(tmp_path / "native", SHARED)
    source = written(tmp_path, {"own.cpp": '#include "a.hpp"\nint main() { return a(); }\n'}) / "own.cpp"
    own, *parts = units_of(source, headers)
    assert [part.source.name for part in parts] == ["a.cpp", "b.cpp", "c.cpp"]  # c: of a.cpp alone
    assert [name for name, _ in own.digests] == ["native/a.hpp", "native/b.hpp", "own.cpp"]
    assert [name for name, _ in parts[0].digests] == ["native/a.cpp", "native/a.hpp", "native/b.hpp", "native/c.hpp"]


def test_a_source_and_a_part_of_one_name_both_count(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for number, (of_own, of_part) in enumerate((("", ""), ("// changed", ""), ("", "// changed"))):
        headers = written(tmp_path / f"headers-{number}", {"a.hpp": "int a();\n", "a.cpp": of_part})
        monkeypatch.setattr(builds, "NATIVE_HEADERS", headers)
        own = written(tmp_path / str(number), {"a.cpp": f'#include "a.hpp"\nint main() {{}}\n{of_own}\n'}) / "a.cpp"
        keys.add(program_key(environment, own))
    assert len(keys) == 3


def test_two_programs_share_their_parts_and_a_change_builds_what_it_reaches(
    environment: Environment, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "_describe", lambda program, start: None)  # they know nothing of our protocol
    headers = written(tmp_path / "native", SHARED)
    monkeypatch.setattr(builds, "NATIVE_HEADERS", headers)
    one = written(tmp_path, {"one.cpp": '#include "a.hpp"\nint main() { return a(); }\n'}) / "one.cpp"
    two = written(tmp_path, {"two.cpp": '#include "b.hpp"\nint main() { return b(); }\n'}) / "two.cpp"
    assert subprocess.run([build(environment, one).path]).returncode == 3
    objects = own_cache / "objects"
    assert sorted(path.name for path in objects.glob("*/*.o")) == ["a.o", "b.o", "c.o", "one.o"]
    assert subprocess.run([build(environment, two).path]).returncode == 1
    assert sorted(path.name for path in objects.glob("*/*.o")) == ["a.o", "b.o", "c.o", "one.o", "two.o"]

    changed = written(tmp_path / "changed", {**SHARED, "c.hpp": "int c(); // changed\n"})
    monkeypatch.setattr(builds, "NATIVE_HEADERS", changed)
    assert not build(environment, one).from_cache and build(environment, two).from_cache
    assert sorted(path.name for path in objects.glob("*/*.o")) == [
        "a.o",
        "a.o",
        "b.o",
        "c.o",
        "one.o",
        "one.o",
        "two.o",
    ]


def test_a_part_that_does_not_compile_gives_the_compilers_message(
    environment: Environment, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = written(tmp_path / "native", {**SHARED, "b.cpp": "int b() { return nonsense; }\n"})
    monkeypatch.setattr(builds, "NATIVE_HEADERS", headers)
    own = written(tmp_path, {"own.cpp": '#include "a.hpp"\nint main() { return a(); }\n'}) / "own.cpp"
    with pytest.raises(BuildError) as caught:
        build(environment, own)
    assert "nonsense" in caught.value.output and "b.cpp" in caught.value.output
    assert not list(own_cache.rglob(".*")) and not list(own_cache.glob("programs/*"))


_INTERRUPTED = """
import signal, sys
from seatrial.environments.asking import ask, side_by_side
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
side_by_side(lambda started: ask(["sleep", "47.25"], started=started) for _ in range(3))
"""


def test_an_interruption_kills_parallel_tools() -> None:
    with subprocess.Popen([sys.executable, "-c", _INTERRUPTED], stderr=subprocess.DEVNULL) as process:
        tasks = Path(f"/proc/{process.pid}/task")

        def started() -> list[str]:
            return [pid for task in tasks.glob("*/children") for pid in task.read_text().split()]

        while not started():
            time.sleep(0.02)
        running = started()
        process.terminate()
        assert process.wait(timeout=20) == 9
    assert not any(Path(f"/proc/{pid}").exists() for pid in running)


def test_headers_that_were_read_change_no_instruction(environment: Environment, tmp_path: Path) -> None:
    """The code is the same as without them."""
    if environment.compiler.family != "gcc":
        pytest.skip("needs g++")
    text = "#include <string>\n#include <vector>\nstd::string joined(const std::vector<std::string>& words) {\n"
    text += "  std::string all;\n  for (const auto& word : words)\n    all += word;\n  return all;\n}\n"
    unit = units_of(source(tmp_path, text), builds.NATIVE_HEADERS)[0]
    item = builds._Object.of(environment, unit)
    words = environment.compiler.command
    read = standard_headers(
        builds.NATIVE_HEADERS / "standard.hpp", builds._compiler_words(environment), environment.document(), 9
    )
    assert read is not None
    codes = []
    for command in (item.command, with_headers(item.command, read, len(words))):
        given = [word.removesuffix(".gch") for word in command if word != "-c"]
        codes.append(subprocess.run([*given, "-S", "-o", "-"], check=True, capture_output=True, text=True).stdout)
    first, second = (re.sub(r"\.L[A-Z]*\d+", ".L", code) for code in codes)  # labels are numbered as they are read
    assert first == second and "joined" in first


def test_few_compilations_do_not_wait_for_them(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    text = builds.NATIVE_HEADERS / "standard.hpp"
    assert standard_headers(text, environment.compiler.command, environment.document(), 1) is None
    assert not (tmp_path / "cache" / "headers").exists()


def test_what_the_compiler_does_not_take_is_compiled_without(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GCC refuses headers that were read with other macros."""
    made = tmp_path / "headers" / "standard.hpp.gch"
    made.parent.mkdir()
    made.write_bytes(b"gpch")
    monkeypatch.setattr(builds, "standard_headers", lambda *given: KeptFile(made, b"gpch", 0.0))
    built = build(environment, unlike_others(tmp_path))
    assert built.hello.build == built.key
