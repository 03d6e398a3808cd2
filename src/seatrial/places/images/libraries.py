"""The BLAS and FFT libraries of an image: found by its loader, under the names that programs ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

from seatrial.environments.blas import AUTO, FAMILIES, NoBlasError
from seatrial.environments.build import Built
from seatrial.environments.fftw import FFTW, OWN, NoFftwError
from seatrial.environments.loaded_libraries import LoadedLibrary, Once
from seatrial.errors import ProtocolError, UnknownNameError
from seatrial.model.benchmark.program import Hello, parse_record
from seatrial.places.contained import Contained
from seatrial.places.containers.fitted import run_inside
from seatrial.places.containers.image import ContainerError

_Variables = tuple[tuple[str, str | None], ...]

_BLAS = (
    "libblas.so.3",
    "libflexiblas.so.3",
    "libmkl_rt.so.2",
    "libmkl_rt.so.1",
    "libopenblas.so.0",
    "libopenblasp.so.0",
    "libblis.so.4",
    "libblis-mt.so.4",
    "libblis.so.3",
    "libarmpl_lp64_mp.so",
    "libnvpl_blas_lp64_gomp.so.0",
)
"""The first is the choice of who made the image."""
_FFTW = {"fp64": "libfftw3.so.3", "fp32": "libfftw3f.so.3"}
_BEHIND = re.compile(r"lib(openblas|blis|mkl|flexiblas|armpl|nvpl|atlas)")
_REFERENCE = "reference"


class ImageLibraries:
    """The libraries loaded so far: one trial for each build, image and name."""

    def __init__(self) -> None:
        self._hellos: Once[tuple[str, str, str, _Variables, str], Hello] = Once()

    def blas(self, wanted: str, built: Built, container: Contained, variables: _Variables) -> LoadedLibrary:
        """The BLAS of the image for this choice; for `auto`, the first that is more than the reference BLAS. Raises
        NoBlasError, UnknownNameError."""
        if "/" not in wanted and wanted not in (AUTO, *FAMILIES):
            raise UnknownNameError("BLAS", wanted, (AUTO, *FAMILIES))
        names = (wanted,) if "/" in wanted else _BLAS
        loaded = list(self._loaded(names, built, container, variables))
        found = [(name, hello, _family(name, hello, built.hello)) for name, hello in loaded]
        for name, hello, family in sorted(found, key=lambda one: one[2] == _REFERENCE):
            if "/" not in wanted and wanted not in (AUTO, family):
                continue
            why = f"found by the loader of {container.image.given}" if "/" not in wanted else "given by its path"
            words = ("--blas", name, "--blas-why", why)
            return LoadedLibrary(
                wanted if "/" in wanted else family, words, hello, _ids(hello), {"blas_family": family}
            )
        there = ", ".join(dict.fromkeys(family for _, _, family in found)) or "none"
        raise NoBlasError(
            f"{container.image.given} has no BLAS {'' if wanted == AUTO else f'{wanted} '}that loads; it has: {there}",
            "install one in the image (Debian: libopenblas0)",
        )

    def fft(
        self, wanted: str, precision: str, built: Built, container: Contained, variables: _Variables
    ) -> LoadedLibrary:
        """The FFTW of the image for this choice, or our own transform. Raises NoFftwError, UnknownNameError."""
        if "/" not in wanted and wanted not in (AUTO, FFTW, OWN):
            raise UnknownNameError("FFT library", wanted, (AUTO, FFTW, OWN))
        if wanted == OWN:
            return LoadedLibrary(OWN, (), built.hello, {})
        name = wanted if "/" in wanted else _FFTW[precision]
        for found, hello in self._loaded((name,), built, container, variables):
            why = f"found by the loader of {container.image.given}" if "/" not in wanted else "given by its path"
            title = wanted if "/" in wanted else FFTW
            return LoadedLibrary(title, ("--fft", found, "--fft-why", why), hello, _ids(hello))
        if wanted == AUTO:
            return LoadedLibrary(OWN, ("--fft-why", "no FFTW found in the image"), built.hello, {})
        raise NoFftwError(
            f"{container.image.given} has no {name} that loads",
            "install it in the image (Debian: libfftw3-double3 libfftw3-single3), or use fft=own",
        )

    def _loaded(
        self, names: Sequence[str], built: Built, container: Contained, variables: _Variables
    ) -> Iterable[tuple[str, Hello]]:
        """(name, description of the program with it) of those libraries that the loader inside finds."""
        for name in names:
            image = f"{container.image.digest} {container.image.given}"
            key = (built.key, image, container.runtime.name, variables, name)
            try:
                hello = self._hellos.get(key, partial(_with, name, built, container, variables))
            except ContainerError:
                continue
            yield name, hello


def _with(name: str, built: Built, container: Contained, variables: _Variables) -> Hello:
    """How a program describes itself with a library. Raises ContainerError."""
    try:
        hello = parse_record(run_inside(container, [str(built.path), "--describe", name], variables).encode()).hello
    except ProtocolError as error:
        raise ContainerError(f"{built.path.name} does not describe itself with {name}: {error}") from error
    if hello is None:
        raise ContainerError(f"{built.path.name} does not describe itself with {name}")
    return hello


def _family(name: str, hello: Hello, before: Hello) -> str:
    """Of a library: by what it loads, since libblas.so.3 stands for any."""
    for loaded in (name.rpartition("/")[2], *(set(hello.libs) - set(before.libs))):
        if behind := _BEHIND.match(loaded):
            return behind[1]
    return _REFERENCE if name == _BLAS[0] else "other"


def _ids(hello: Hello) -> dict[str, str]:
    """What identifies the loaded libraries; the image is identified by its digest."""
    return {name: build_id or hello.lib_paths.get(name, "") for name, build_id in hello.libs.items()}
