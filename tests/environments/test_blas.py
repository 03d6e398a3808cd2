"""Finding the BLAS: what a library is, from its file, and which is taken, from made-up files in made-up places."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from environments.made_up_elf import AARCH64, X86_64, shared_object

from seatrial.environments import blas as finder
from seatrial.environments import loader
from seatrial.environments.blas import (
    Kernels,
    NoBlasError,
    choose_blas,
    find_blas,
    kernels_of,
    vectors_of_kernels,
    why_chosen,
)
from seatrial.environments.compiler import first_compiler
from seatrial.errors import UnknownNameError, UsageError

GEMM = ("dgemm_", "sgemm_")
OPENBLAS = shared_object((*GEMM, "openblas_get_config"), ("pthread_create",), soname="libopenblas.so.0")
REFERENCE = shared_object(GEMM, ("lsame_",), ("libc.so.6",), "libblas.so.3")
MKL = shared_object((*GEMM, "MKL_Get_Version_String"), soname="libmkl_rt.so.2")


@pytest.fixture(autouse=True)
def made_up_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No BLAS of this machine: only what a test puts down."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(loader, "_in_loader_cache", lambda: [])
    monkeypatch.setattr(loader, "_usual_folders", lambda: iter((tmp_path / "lib",)))
    monkeypatch.setattr(finder, "_wheels", lambda: iter(()))
    monkeypatch.setattr(finder, "kernels_of", lambda path, prefix, suffix: Kernels())
    monkeypatch.setattr(finder, "flags_of_this_cpu", lambda: frozenset({"sse2", "avx", "avx2", "fma", "avx512f"}))


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def wheel(put: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    symbols = ("scipy_dgemm_64_", "scipy_sgemm_64_", "scipy_openblas_get_config64_")
    path = put("site/scipy_openblas64/lib/libscipy_openblas64_.so", shared_object(symbols, ("pthread_create",)))
    library = finder._examine(path)
    assert library is not None
    named = replace(library, name="scipy-openblas64")
    monkeypatch.setattr(finder, "_wheels", lambda: iter((named,)))
    return path


RECOGNISED = {
    "OpenBLAS with threads": (OPENBLAS, "openblas", False),
    "OpenBLAS with OpenMP": (shared_object((*GEMM, "openblas_get_config"), ("GOMP_parallel",)), "openblas", False),
    "OpenBLAS without threads": (shared_object((*GEMM, "openblas_get_config")), "openblas", True),
    "what stands before OpenBLAS": (shared_object(GEMM, (), ("libopenblas.so.0",), "libblas.so.3"), "openblas", False),
    "BLIS": (shared_object((*GEMM, "bli_info_get_version_str"), ("pthread_create",)), "blis", False),
    "BLIS as libblas": (shared_object(GEMM, ("pthread_create",), soname="libblas.so.3"), "other", False),
    "MKL": (MKL, "mkl", False),
    "FlexiBLAS": (shared_object((*GEMM, "flexiblas_get_version")), "flexiblas", False),
    "ATLAS": (shared_object(GEMM, (), ("libatlas.so.3",), "libblas.so.3"), "atlas", True),
    "the reference": (REFERENCE, "reference", True),
    "an unknown one": (shared_object(GEMM, soname="libfast.so.1"), "other", False),
}


@pytest.mark.parametrize("case", RECOGNISED)
def test_a_library_is_recognised(case: str, put: Callable[[str, bytes], Path]) -> None:
    content, family, is_slow = RECOGNISED[case]
    library = finder._examine(put("some.so", content))
    assert library is not None and (library.family, library.is_slow) == (family, is_slow)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (shared_object(("cblas_dgemm",)), "no Fortran interface"),
        (shared_object((), GEMM), "it uses one, and is none"),
        (shared_object(GEMM, machine=AARCH64), "of another processor"),
        (b"GROUP ( libopenblas.so.0 )\n", "a linker script"),
    ],
)
def test_what_is_no_blas_is_not_taken(content: bytes, why: str, put: Callable[[str, bytes], Path]) -> None:
    assert finder._examine(put("lib/libblas.so.3", content)) is None
    assert find_blas({}) == ()


@pytest.mark.parametrize(
    ("prefix", "suffix"), [("", ""), ("", "64_"), ("scipy_", ""), ("scipy_", "64_")], ids=lambda part: part or "plain"
)
def test_adorned_symbols_are_found_and_told_to_the_program(
    prefix: str, suffix: str, put: Callable[[str, bytes], Path]
) -> None:
    library = finder._examine(put("a.so", shared_object((f"{prefix}dgemm_{suffix}",))))
    assert library is not None and (library.prefix, library.suffix) == (prefix, suffix)
    told = library.arguments()
    assert told[:2] == ["--blas", str(library.path)]
    assert told[2:] == (["--blas-prefix", prefix] if prefix else []) + (["--blas-suffix", suffix] if suffix else [])


def test_the_reference_is_never_preferred(put: Callable[[str, bytes], Path], wheel: Path) -> None:
    put("lib/libblas.so.3", REFERENCE)
    assert [blas.name for blas in find_blas({})] == ["scipy-openblas64", "reference"]
    put("lib/libopenblas.so.0", OPENBLAS)
    assert [blas.name for blas in find_blas({})] == ["openblas", "scipy-openblas64", "reference"]


def test_a_build_without_threads_comes_after_the_wheel(put: Callable[[str, bytes], Path], wheel: Path) -> None:
    put("lib/openblas-serial/libopenblas.so.0", RECOGNISED["OpenBLAS without threads"][0])
    assert [blas.name for blas in find_blas({})] == ["scipy-openblas64", "openblas"]


def test_what_the_user_loaded_comes_first(put: Callable[[str, bytes], Path], wheel: Path, tmp_path: Path) -> None:
    put("lib/libopenblas.so.0", OPENBLAS)
    put("module/lib/libmkl_rt.so.2", MKL)
    put("own/libopenblas.so.0", OPENBLAS)
    assert choose_blas("auto", {"MKLROOT": str(tmp_path / "module")})[0].family == "mkl"
    first, *others = choose_blas("auto", {"LD_LIBRARY_PATH": f":{tmp_path / 'own'}:/nowhere"})
    assert first.path == tmp_path / "own" / "libopenblas.so.0" and first.name == "openblas"
    assert [blas.name for blas in others] == [str(tmp_path / "lib/libopenblas.so.0"), "scipy-openblas64"]


def test_links_to_one_file_are_one_library(put: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    target = put("lib/openblas-pthread/libblas.so.3", OPENBLAS)
    (tmp_path / "lib" / "libblas.so.3").symlink_to(target)
    (found,) = find_blas({})
    assert found.path == tmp_path / "lib" / "libblas.so.3"


def test_the_administrators_choice_comes_first_on_the_system(
    put: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = put("alternatives/libblas.so.3", RECOGNISED["what stands before OpenBLAS"][0])
    other = put("system/libmkl_rt.so.2", MKL)
    monkeypatch.setattr(loader, "_in_loader_cache", lambda: [str(other), str(chosen)])
    assert [blas.path for blas in find_blas({})] == [chosen, other]


def test_one_can_be_named(put: Callable[[str, bytes], Path], wheel: Path, tmp_path: Path) -> None:
    put("lib/libblas.so.3", REFERENCE)
    put("lib/libopenblas.so.0", OPENBLAS)
    (named,) = choose_blas("reference", {})
    assert named.family == "reference" and named.is_slow
    (by_path,) = choose_blas(str(tmp_path / "lib" / "libopenblas.so.0"), {})
    assert by_path.name == "openblas", "the same library is the same experiment, however it was named"
    elsewhere = put("elsewhere/mine.so", MKL)
    (unknown,) = choose_blas(str(elsewhere), {})
    assert (unknown.name, unknown.family) == (str(elsewhere), "mkl")


def test_a_name_that_is_taken_does_not_stand_for_another_file(put: Callable[[str, bytes], Path]) -> None:
    put("lib/libopenblas.so.0", OPENBLAS)
    mine = put("elsewhere/mine.so", OPENBLAS)
    (named,) = choose_blas(str(mine), {})
    assert named.name == str(mine)


def test_nothing_there_says_how_to_get_one() -> None:
    with pytest.raises(NoBlasError, match="no BLAS found on this machine") as raised:
        choose_blas("auto", {})
    assert "scipy-openblas64" in raised.value.todo
    with pytest.raises(NoBlasError, match="BLAS mkl not found; found: none"):
        choose_blas("mkl", {})


def test_bad_choices_are_refused(put: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="openblass"):
        choose_blas("openblass", {})
    with pytest.raises(UsageError, match="No such file"):
        choose_blas(str(tmp_path / "missing.so"), {})
    with pytest.raises(UsageError, match="Is a directory"):
        choose_blas(str(tmp_path), {})
    with pytest.raises(UsageError, match="not a program or shared library"):
        choose_blas(str(put("text.so", b"text")), {})
    with pytest.raises(UsageError, match="has no dgemm_"):
        choose_blas(str(put("libm.so", shared_object(("sin",), machine=X86_64))), {})


@pytest.fixture
def select(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """`select(mine="Prescott")`: libraries in a folder of that name select these kernels."""

    def ask(**cores: str) -> None:
        def answer(path: Path, prefix: str, suffix: str) -> Kernels:
            return Kernels("1.0", cores.get(path.relative_to(tmp_path).parts[0], ""))

        monkeypatch.setattr(finder, "kernels_of", answer)

    return ask


def test_kernels_for_an_older_cpu_come_after_the_wheel(
    put: Callable[[str, bytes], Path], wheel: Path, select: Callable[..., None]
) -> None:
    put("lib/libblas.so.3", OPENBLAS)
    select(lib="Prescott")
    first, second = find_blas({})
    assert (first.name, second.name) == ("scipy-openblas64", "openblas")
    assert second.remark == "its kernels use SSE; this CPU has AVX-512"
    why = why_chosen(first, "auto", {})
    assert "passed over: " in why and "lib/libblas.so.3 (Prescott: its kernels use SSE; this CPU has AVX-512)" in why
    select(lib="SkylakeX")
    assert [blas.name for blas in find_blas({})] == ["openblas", "scipy-openblas64"]


def test_kernels_decide_before_the_place_and_slow_builds_stay_last(
    put: Callable[[str, bytes], Path], select: Callable[..., None], tmp_path: Path
) -> None:
    put("old/libopenblas.so.0", OPENBLAS)
    put("module/lib/libmkl_rt.so.2", MKL)
    put("new/libopenblas.so.0", OPENBLAS)
    put("serial/libopenblas.so.0", RECOGNISED["OpenBLAS without threads"][0])
    select(old="Haswell", new="Cooperlake", serial="Cooperlake")
    paths = ":".join(str(tmp_path / name) for name in ("serial", "old", "new"))
    found = find_blas({"LD_LIBRARY_PATH": paths, "MKLROOT": str(tmp_path / "module")})
    assert [blas.path.relative_to(tmp_path).parts[0] for blas in found] == ["new", "module", "old", "serial"]
    assert found[1].remark == "it does not report which vectors its kernels use"


def test_kernels_that_this_cpu_cannot_run_are_not_preferred(
    put: Callable[[str, bytes], Path], wheel: Path, select: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "flags_of_this_cpu", lambda: frozenset({"sse2", "avx", "avx2", "fma"}))
    put("static/libopenblas.so.0", OPENBLAS)
    select(static="SkylakeX")
    found = find_blas({"LD_LIBRARY_PATH": str(wheel.parents[3] / "static")})
    assert [blas.name for blas in found] == ["scipy-openblas64", "openblas"]
    assert found[1].remark == "its kernels need AVX-512; this CPU has only AVX2 and FMA"


@pytest.mark.parametrize(
    ("core", "vectors"),
    [
        ("Prescott", "SSE"),
        ("Sandybridge", "AVX"),
        ("Zen", "AVX2 and FMA"),
        ("zen4", "AVX-512"),
        ("Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512) enabled processors", "AVX-512"),
        ("Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled processors", "AVX2 and FMA"),
        ("Intel(R) Architecture processors", None),
        ("neoversev1", None),
        ("", None),
    ],
)
def test_the_vectors_of_kernels(core: str, vectors: str | None) -> None:
    found = vectors_of_kernels(core)
    assert (None if found is None else found.name) == vectors


REPORTING = """
#include <stdlib.h>
void dgemm_(void) {}
#ifdef MKL
typedef struct { int a, b, c; char *status, *build, *processor, *platform; } Version;
void MKL_Get_Version(Version* v) { v->processor = "Intel(R) Streaming SIMD Extensions 4.2 enabled processors"; }
#elif defined BLIS
int bli_arch_query_id(void) { return 3; }
const char* bli_arch_string(int id) { return id == 3 ? "zen3" : "generic"; }
#else
const char* openblas_get_config64_(void) { return "OpenBLAS 1.0"; }
const char* openblas_get_corename64_(void) { return getenv("OPENBLAS_CORETYPE") ? "Forced" : "Prescott"; }
#endif
"""


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "kernels"),
    [
        ("OPENBLAS", Kernels("OpenBLAS 1.0", "Prescott")),
        ("BLIS", Kernels("", "zen3")),
        ("MKL", Kernels("", "Intel(R) Streaming SIMD Extensions 4.2 enabled processors")),
    ],
)
def test_a_library_reports_its_kernels(
    kind: str, kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "HASWELL")  # left out: kernels=own is the default
    (tmp_path / "a.c").write_text(REPORTING)
    library = tmp_path / "liba.so"
    words = [*first_compiler().command, "-x", "c", "-w", f"-D{kind}", "-shared", "-fPIC", str(tmp_path / "a.c")]
    subprocess.run([*words, "-o", str(library)], check=True)
    assert kernels_of(library, "", "64_") == kernels
    library.write_bytes(b"text")
    assert kernels_of(library, "", "64_") == Kernels()
