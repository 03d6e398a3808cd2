"""Finding compilers and choosing what to build for, with the compilers of this machine."""

from __future__ import annotations

import platform
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.environments import compiler as compilers
from seatrial.environments.compiler import DECISIVE_FEATURES, Compiler, find_compilers, first_compiler, resolve_target
from seatrial.errors import BuildError, NoCompilerError, UsageError
from seatrial.model.machine.machine import DeviceKind, Machine

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


def test_each_compiler_is_found_once_and_identified() -> None:
    found = find_compilers()
    assert found, "these tests need a C++ compiler"
    assert len({Path(c.command[0]).resolve() for c in found}) == len(found)
    for one in found:
        assert one.family in ("gcc", "clang") and one.name.startswith(one.family) and "." in one.name


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match="apt install"):
        first_compiler()


def test_a_compiler_that_fails_is_skipped_and_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "g++", 'echo "error: unrecognized option -std=c++20" >&2; exit 1')
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match="unrecognized option"):
        first_compiler()


def test_an_old_standard_is_not_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "g++", 'echo "#define __cplusplus 201709L"')
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match=r"older than C\+\+20"):
        first_compiler()


def test_cxx_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = find_compilers()[0].command[0]
    wrapper = script(tmp_path / "my-wrapper", f'exec {real} "$@"')
    monkeypatch.setenv("CXX", str(wrapper))
    assert first_compiler().command == (str(wrapper),)
    launcher = script(tmp_path / "launcher", 'exec "$@"')
    monkeypatch.setenv("CXX", f"{launcher} {real}")
    assert first_compiler().command == (str(launcher), real)


def test_a_missing_or_failing_cxx_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(UsageError, match="/nowhere"):
        first_compiler()
    broken = script(tmp_path / "broken", "echo 'error: no licence'; exit 1")
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(UsageError, match="no licence"):
        first_compiler()


def test_a_toolset_off_the_path_is_found_the_newest_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = find_compilers()[0].command[0]
    for number in ("9", "12", "11"):
        folder = tmp_path / f"rh/gcc-toolset-{number}/root/usr/bin"
        folder.mkdir(parents=True)
        script(folder / "g++", f'exec {real} "$@"')
    monkeypatch.setattr(compilers, "_TOOLSETS", tmp_path / "rh")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "gcc-toolset-12" in first_compiler().command[0]


def cpu_features(machine: Machine) -> frozenset[str]:
    """The features that discovery reports, which builds are based on."""
    return frozenset((machine.of_kind(DeviceKind.PACKAGE)[0].facts.text("isa") or "").split())


def test_every_compiler_builds_for_all_decisive_features_of_this_cpu(live_machine: Machine) -> None:
    wanted = cpu_features(live_machine) & DECISIVE_FEATURES
    assert wanted
    for one in find_compilers():
        target = resolve_target(one, cpu_features(live_machine))
        assert target.isa == wanted, f"{one.name}: {target.resolution}"
        assert "native" not in " ".join(target.flags) or target.cpu, "a flag that means another thing elsewhere"


def old_compiler(folder: Path, known: str) -> Compiler:
    """A compiler that takes every CPU for one of `known`: what an old compiler makes of a new CPU."""
    real = find_compilers()[0]
    text = f'for a in "$@"; do shift; case $a in -march=native) a=-march={known};; esac; set -- "$@" "$a"; done'
    wrapper = script(folder / "old-g++", f'{text}\nexec {real.command[0]} "$@"')
    return Compiler((str(wrapper),), real.family, real.version)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels are those of x86-64")
def test_a_compiler_that_takes_the_cpu_for_a_lesser_one_is_corrected(live_machine: Machine, tmp_path: Path) -> None:
    features = cpu_features(live_machine)
    if "avx2" not in features:
        pytest.skip("this CPU has no AVX2")
    target = resolve_target(old_compiler(tmp_path, "x86-64"), features)
    assert target.isa == features & DECISIVE_FEATURES
    assert "lacks" in target.resolution and target.flags[0].startswith("-march=x86-64-v")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the features are those of x86-64")
def test_without_a_level_the_features_are_named_one_by_one(live_machine: Machine, tmp_path: Path) -> None:
    features = cpu_features(live_machine) - {"movbe", "avx512cd"}  # a hypervisor hides these: no level fits
    if "avx2" not in features:
        pytest.skip("this CPU has no AVX2")
    target = resolve_target(old_compiler(tmp_path, "x86-64"), features)
    assert "-mavx2" in target.flags and target.isa == features & DECISIVE_FEATURES


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this compiler knows SVE elsewhere")
def test_a_cpu_without_matching_flags_is_an_error_that_lists_the_attempts() -> None:
    with pytest.raises(BuildError, match=r"cannot build for this CPU \(.*lacks sve"):
        resolve_target(find_compilers()[0], {"sse2", "sve"})


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the features are those of x86-64")
def test_features_that_the_cpu_lacks_are_never_used(tmp_path: Path) -> None:
    """A hypervisor hides features of the CPU whose name it gives."""
    target = resolve_target(old_compiler(tmp_path, "haswell"), {"sse2", "avx"})
    assert target.isa == {"sse2", "avx"} and "goes too far" in target.resolution


_ARM_MACROS = "#define __ARM_NEON 1\n#define __cpp_lib_atomic_wait 201907L"


@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_on_arm_the_names_of_both_sides_meet(family: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What /proc/cpuinfo calls asimd is __ARM_NEON to compilers; a scripted compiler stands for an Arm one."""
    stage = "cc1plus -E -mcpu=neoverse-n1" if family == "gcc" else "-cc1 -target-cpu neoverse-n1 -target-feature +neon"
    text = f'case "$*" in *-###*) echo "{stage}" >&2 ;; *) printf "{_ARM_MACROS}\\n" ;; esac'
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    compiler = Compiler((str(script(tmp_path / "g++", text)),), family, "13.2.0")
    target = resolve_target(compiler, ["aes", "asimd", "atomics", "crc32", "fp", "sha1"])
    assert target.isa == {"asimd"}
    assert target.flags == (("-mcpu=neoverse-n1",) if family == "gcc" else ("-mcpu=native",))
    assert ("neoverse-n1" in target.cpu) == (family == "clang")
