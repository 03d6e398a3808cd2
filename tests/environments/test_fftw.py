"""Finding FFTW: which library is taken, from made-up files in made-up places."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from environments.made_up_elf import AARCH64, shared_object

from seatrial.environments import loader
from seatrial.environments.loaded_libraries import FftLibrary, NoFftwError, choose_fft
from seatrial.errors import UnknownNameError, UsageError

DOUBLE = shared_object(("fftw_plan_many_dft", "fftw_execute_dft", "fftw_destroy_plan"), soname="libfftw3.so.3")
SINGLE = shared_object(("fftwf_plan_many_dft", "fftwf_execute_dft", "fftwf_destroy_plan"), soname="libfftw3f.so.3")


@pytest.fixture(autouse=True)
def made_up_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No FFTW of this machine: only what a test puts down."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(loader, "_in_loader_cache", lambda: [])
    monkeypatch.setattr(loader, "_usual_folders", lambda: iter((tmp_path / "lib",)))


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_without_fftw_the_transform_is_seatrials_own() -> None:
    assert choose_fft("auto", "fp64", {}) is None and choose_fft("own", "fp64", {}) is None
    with pytest.raises(NoFftwError, match="no FFTW for fp32"):
        choose_fft("fftw", "fp32", {})
    with pytest.raises(UnknownNameError):
        choose_fft("mkl", "fp64", {})


def test_each_precision_has_its_library(tmp_path: Path) -> None:
    double = put(tmp_path / "lib" / "libfftw3.so.3", DOUBLE)
    single = put(tmp_path / "lib" / "libfftw3f.so.3", SINGLE)
    where = f"found in {tmp_path / 'lib'}"
    assert choose_fft("auto", "fp64", {}) == FftLibrary("fftw", double, where)
    assert choose_fft("fftw", "fp32", {}) == FftLibrary("fftw", single, where)


def test_the_users_folder_comes_before_the_system_and_a_library_for_another_processor_is_passed_over(
    tmp_path: Path,
) -> None:
    system = put(tmp_path / "lib" / "libfftw3.so.3", DOUBLE)
    module = put(tmp_path / "fftw" / "lib" / "libfftw3.so.3", DOUBLE)
    foreign = shared_object(("fftw_plan_many_dft", "fftw_execute_dft", "fftw_destroy_plan"), machine=AARCH64)
    put(tmp_path / "mine" / "libfftw3.so.3", foreign)
    variables = {"LD_LIBRARY_PATH": str(tmp_path / "mine"), "FFTW_ROOT": str(tmp_path / "fftw")}
    assert choose_fft("auto", "fp64", variables) == FftLibrary("fftw", module, "found in FFTW_ROOT")
    by_path = choose_fft(str(system), "fp64", {})
    assert by_path is not None and by_path.name == "fftw", "the same library is the same experiment, however named"
    elsewhere = choose_fft(str(module), "fp64", {})
    assert elsewhere is not None and elsewhere.name == str(module)


@pytest.mark.parametrize(
    ("content", "why"), [(SINGLE, "it has no fftw_plan_many_dft"), (b"text", "fft="), (None, "No such")]
)
def test_a_file_that_is_not_one_is_refused(content: bytes | None, why: str, tmp_path: Path) -> None:
    path = tmp_path / "some.so"
    if content is not None:
        put(path, content)
    with pytest.raises(UsageError, match=why):
        choose_fft(str(path), "fp64", {})
