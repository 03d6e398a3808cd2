"""Which BLAS and FFT library of an image a program loads: nothing is started."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.environments.blas import NoBlasError
from seatrial.environments.build import Built
from seatrial.environments.loaded_libraries import NoFftwError
from seatrial.errors import UnknownNameError
from seatrial.model.benchmark.program import Hello
from seatrial.places.contained import Contained
from seatrial.places.containers import fitted
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.images.programs_inside import ImageLibraries

CONTAINER = Contained(Image("/images/a", ImageKind.FOLDER, "sha256:1"), RUNTIMES["charliecloud"], "")
BUILT = Built(Path("/cache/1/gemm"), "key", (), Hello("gemm", "key", "", libs={"libc.so.6": "c"}), 0.0, from_cache=True)

Loads = Callable[[dict[str, list[str]]], ImageLibraries]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    def with_libraries(there: dict[str, list[str]]) -> ImageLibraries:
        """Name that is asked for -> libraries that are loaded then."""

        def run(container: Contained, words: Sequence[str], variables: Any) -> str:
            if words[-1] not in there:
                raise ContainerError("cannot open shared object file")
            libs = {name: f"id of {name}" for name in ("libc.so.6", *there[words[-1]])}
            hello = {"ev": "hello", "v": 1, "program": "gemm", "build": "key", "rank": 0, "ranks": 1, "host": "n"}
            return json.dumps({**hello, "cpus": [[0]], "libs": libs}) + '\n{"ev":"end"}\n'

        monkeypatch.setattr(fitted, "run_inside", run)
        return ImageLibraries()

    return with_libraries


def test_libblas_is_what_it_loads(loads: Loads) -> None:
    found = loads({"libblas.so.3": ["libblas.so.3", "libopenblas.so.0"]}).blas("auto", BUILT, CONTAINER, ())
    assert found.name == "openblas" and found.arguments[:2] == ("--blas", "libblas.so.3")
    assert found.identity["libopenblas.so.0"] == "id of libopenblas.so.0" and "/images/a" in found.arguments[3]


def test_the_reference_blas_comes_last(loads: Loads) -> None:
    there = {"libblas.so.3": ["libblas.so.3"], "libblis.so.4": ["libblis.so.4"]}
    assert loads(there).blas("auto", BUILT, CONTAINER, ()).name == "blis"
    assert loads(there).blas("reference", BUILT, CONTAINER, ()).arguments[1] == "libblas.so.3"
    with pytest.raises(NoBlasError, match="no BLAS openblas that loads; it has: reference, blis"):
        loads(there).blas("openblas", BUILT, CONTAINER, ())
    with pytest.raises(UnknownNameError):
        loads(there).blas("opnblas", BUILT, CONTAINER, ())


def test_an_image_without_blas(loads: Loads) -> None:
    with pytest.raises(NoBlasError, match="has no BLAS that loads; it has: none"):
        loads({}).blas("auto", BUILT, CONTAINER, ())


def test_fftw(loads: Loads) -> None:
    libraries = loads({"libfftw3.so.3": ["libfftw3.so.3"]})
    assert libraries.fft("auto", "fp64", BUILT, CONTAINER, ()).name == "fftw"
    assert libraries.fft("auto", "fp32", BUILT, CONTAINER, ()).name == "own"
    assert libraries.fft("own", "fp64", BUILT, CONTAINER, ()).arguments == ()
    with pytest.raises(NoFftwError, match=r"has no libfftw3f\.so\.3 that loads"):
        libraries.fft("fftw", "fp32", BUILT, CONTAINER, ())
    assert loads({"/opt/l.so": []}).fft("/opt/l.so", "fp64", BUILT, CONTAINER, ()).arguments[1] == "/opt/l.so"
