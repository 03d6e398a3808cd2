"""What is taken from the answers of compiler wrappers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environments.mpi_library import ask_wrapper, parse_answer
from seatrial.errors import BuildError
from tests.environments.made_up_mpi import ANSWERS, program


def paths(*texts: str) -> tuple[Path, ...]:
    return tuple(map(Path, texts))


@pytest.mark.parametrize("family", ["openmpi", "mpich", "mvapich"])
def test_only_folders_and_libraries_are_used(family: str) -> None:
    words = parse_answer(ANSWERS[family].format(p="/opt/mpi") + " -O3 -march=skylake -std=c++98 -g -DNDEBUG -flto")
    assert words.includes == paths("/opt/mpi/include")
    assert words.folders == words.run_folders == paths("/opt/mpi/lib")
    assert words.libraries == ("-lmpi",)


def test_debian_open_mpi() -> None:
    words = parse_answer(
        "gcc -I/usr/lib/x86_64-linux-gnu/openmpi/include -I/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi "
        "-L/usr/lib/x86_64-linux-gnu/openmpi/lib -lmpi_cxx -lmpi"
    )
    assert words.includes == paths(
        "/usr/lib/x86_64-linux-gnu/openmpi/include", "/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi"
    )
    assert words.libraries == ("-lmpi",) and words.run_folders == ()


def test_intel_passes_options_to_the_linker_with_xlinker() -> None:
    words = parse_answer(ANSWERS["intel"].format(p="/opt/intel/mpi 2021"))
    assert words.folders == words.run_folders == paths("/opt/intel/mpi 2021/lib/release", "/opt/intel/mpi 2021/lib")
    assert words.libraries == ("-lmpi", "-lrt", "-lpthread", "-ldl"), "without the binding for Fortran"


def test_only_the_mpi_libraries_of_cray_are_used(tmp_path: Path) -> None:
    answer = ANSWERS["cray"].format(p="/opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3")
    words = ask_wrapper(program(tmp_path / "cc", f'[ "$1" = --cray-print-opts=all ] && echo "{answer}"'))
    assert words.libraries == ("-lmpi_gnu_123", "-lmpi_gtl_hsa")
    assert words.includes[0] == Path("/opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3/include")


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("-Wl,-rpath,/a -lmpi", ["/a"]),
        ("-Wl,-rpath=/a:/b -lmpi", ["/a", "/b"]),
        ("-Wl,--rpath,/a,-z,relro -lmpi", ["/a"]),
        ("-Wl,-R,/a -lmpi", ["/a"]),
        ("-Wl,-rpath-link,/a -lmpi", []),
        ("-Wl,-rpath,relative -Wl,-rpath -lmpi", []),
        ("-lmpi -Wl,-rpath", []),
    ],
)
def test_each_spelling_of_a_search_path(text: str, folders: list[str]) -> None:
    assert parse_answer(text).run_folders == paths(*folders)


def test_other_lines_are_ignored() -> None:
    words = parse_answer("Warning: licence ends in 3 days\ngcc -I /opt/m/include -L /opt/m/lib -lmpi\n")
    assert words.includes == paths("/opt/m/include") and words.folders == paths("/opt/m/lib")


@pytest.mark.parametrize(
    "hostile",
    ["-lmpi;rm", "-l/etc/passwd", "-l../../x", "-Wl,--plugin,/tmp/x.so", "-fplugin=/tmp/x.so", "@/tmp/x", "-Brelative"],
)
def test_other_options_are_ignored(hostile: str) -> None:
    words = parse_answer(f"gcc -I/i -L/l -lmpi {hostile}")
    assert words == parse_answer("gcc -I/i -L/l -lmpi")


def test_output_that_is_not_a_command_line_is_refused() -> None:
    with pytest.raises(BuildError, match="not a command line"):
        parse_answer("gcc -I/a 'b -lmpi")


def test_a_wrapper_that_fails_or_prints_nothing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="licence"):
        ask_wrapper(program(tmp_path / "a/mpicc", "echo 'error: no licence' >&2; exit 3"))
    with pytest.raises(BuildError, match="lists no libraries"):
        ask_wrapper(program(tmp_path / "b/mpicc", "echo hello"))


def test_the_option_of_open_mpi_is_used_if_the_common_one_fails(tmp_path: Path) -> None:
    wrapper = program(tmp_path / "mpicc", '[ "$1" = --showme ] && echo gcc -L/opt/o/lib -lmpi')
    assert ask_wrapper(wrapper).folders == paths("/opt/o/lib")


@given(st.text(max_size=300))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        words = parse_answer(text)
    except BuildError:
        return
    assert all(folder.is_absolute() for folder in (*words.includes, *words.folders, *words.run_folders))
    assert all(word.startswith("-l") and "/" not in word for word in words.libraries)
