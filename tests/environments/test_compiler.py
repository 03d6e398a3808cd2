"""Finding compilers and choosing what to build for, with the compilers of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.environments import compiler as compilers
from seatrial.environments.compiler import find_compilers, first_compiler
from seatrial.environments.target import resolve_target
from seatrial.errors import BuildError, NoCompilerError

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def forgotten_answers() -> Iterator[None]:
    """Compilers are asked once a process; these tests change what they answer."""
    compilers._examine.cache_clear()
    yield
    compilers._examine.cache_clear()


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_each_compiler_is_found_once_and_says_what_it_is() -> None:
    found = find_compilers()
    assert found, "these tests need a C++ compiler"
    assert len({Path(c.path).resolve() for c in found}) == len(found)
    for one in found:
        assert one.family in ("gcc", "clang") and one.name.startswith(one.family) and "." in one.name


def test_none_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match="apt install"):
        first_compiler()


def test_a_compiler_that_cannot_is_passed_over_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "g++", 'echo "error: unrecognized option -std=c++20" >&2; exit 1')
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match="unrecognized option"):
        first_compiler()


def test_an_old_standard_is_not_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "g++", 'echo "#define __cplusplus 201402L"')
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match=r"no C\+\+20"):
        first_compiler()


def test_cxx_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = find_compilers()[0].path
    wrapper = script(tmp_path / "my-wrapper", f'exec {real} "$@"')
    monkeypatch.setenv("CXX", str(wrapper))
    assert first_compiler().path == str(wrapper)


def cpu_features() -> frozenset[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    pytest.skip("/proc/cpuinfo names no CPU features")


def test_every_compiler_builds_for_all_vector_features_of_this_cpu() -> None:
    wanted = cpu_features() & {"sse2", "avx", "avx2", "fma", "avx512f"}
    for one in find_compilers():
        target = resolve_target(one, cpu_features())
        assert wanted <= target.isa, f"{one.name}: {target.resolution}"


def test_a_compiler_that_takes_the_cpu_for_a_lesser_one_is_corrected() -> None:
    """A CPU with AVX-512 behind a compiler whose `native` knows none: what an old compiler makes of a new CPU."""
    features = cpu_features()
    if "avx2" not in features:
        pytest.skip("this CPU has no AVX2")
    real = find_compilers()[0]
    # The same compiler, but blind to -march=native.
    blind = compilers.Compiler(real.path, "clang", real.version)
    import seatrial.environments.target as target_module

    original = target_module._native
    target_module._native = lambda compiler: ("-march=x86-64",)
    try:
        target = resolve_target(blind, features)
    finally:
        target_module._native = original
    assert features & {"avx2", "fma", "avx512f"} <= target.isa
    assert "lacks" in target.resolution and target.flags[0].startswith("-march=x86-64-v")


def test_a_cpu_that_no_flags_reach_is_refused() -> None:
    with pytest.raises(BuildError, match="cannot build for this CPU"):
        resolve_target(find_compilers()[0], {"sse2", "sve"})


def test_features_that_the_cpu_lacks_are_never_used() -> None:
    """A hypervisor hides features of the CPU whose name it gives."""
    if not {"avx2", "fma"} <= cpu_features():
        pytest.skip("this CPU has no AVX2")
    target = resolve_target(find_compilers()[0], {"sse2", "avx"})
    assert target.isa <= {"sse2", "avx"}
    assert os.path.sep not in target.resolution
