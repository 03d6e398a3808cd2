"""Applications of an image, found and asked for their version inside, by the container's PATH and loader; its BLAS and
FFT libraries, found by its loader, under the names that programs ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.blas import AUTO, BEHIND, FAMILIES, NoBlasError
from seatrial.environments.build import Built
from seatrial.environments.installed import (
    INTERPRETERS,
    Installed,
    module_question,
    modules_in,
    version_in,
    version_with,
)
from seatrial.environments.loaded_libraries import FFTW, FFTW_FILES, OWN, LoadedLibrary, NoFftwError, Once
from seatrial.environments.loader import listed_libraries
from seatrial.environments.modules import Changes
from seatrial.environments.mpi_identity import of_text
from seatrial.environments.mpi_library import is_mpi_library
from seatrial.errors import ProtocolError, UnknownNameError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.program import Hello, parse_record
from seatrial.model.benchmark.python_script import PythonScript
from seatrial.model.environment.container import OUTSIDE
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.frozen import Frozen
from seatrial.places.contained import Contained
from seatrial.places.containers.fitted import answer_inside, hello_inside, run_inside
from seatrial.places.containers.image import ContainerError
from seatrial.places.rank_helpers import inside_probe


class ProgramInside(Frozen):
    """An application of an image; family, name and path of the MPI library that it is linked with, None and "" if it is
    linked with none."""

    declared: External
    installed: Installed
    family: MpiFamily | None = None
    library: str = ""
    library_path: str = ""

    def mpi(self, starter: Mpi, container: Contained) -> Mpi:
        """Its library, with the launcher of `starter`: as the ranks of the trial reported it."""
        ranks = container.facts.get("ranks", {})
        seen = of_text(str(ranks.get("library", "")))
        return replace(
            starter,
            version="unknown" if seen is None else seen.version,
            library=Path(self.library_path),
            build_id=next(iter(ranks.get("libraries", {}).get(self.library, ())), ""),
            compile_flags=(),
            link_flags=(),
            found="brought from the host" if container.brought is not None else "the image",
        )


class NotInImageError(ContainerError):
    """The image does not have the program."""

    need = "program"


def find_in_image(container: Contained, program: External, variables: Changes) -> ProgramInside:
    """The first program of a declaration and its alternatives that the image has. Raises NotInImageError if it has
    none, ContainerError if it does not start."""
    declared = (program, *program.alternatives)
    names = dict.fromkeys(name for one in declared for name in (one.name, *one.companions))
    found = _found(container, list(names), variables)
    for one in declared:
        if found[one.name]["path"]:
            return _described(container, one, found, variables)
    raise NotInImageError(
        f"{container.image.given} has no {' or '.join(one.name for one in declared)} on the PATH of the container",
        "install it in the image, or set environment.PATH to its folder there",
    )


def find_interpreter_in_image(
    container: Contained, program: PythonScript, python: str | None, variables: Changes
) -> ProgramInside:
    """The interpreter `python`, or of the virtual environment in that folder, else the first one on the PATH of the
    container, that can import what a script needs. Raises NotInImageError, ContainerError."""
    names = INTERPRETERS if python is None else (python, f"{python}/bin/python")
    paths = [path for one in _found(container, names, variables).values() if (path := one["path"])]
    for path in paths:
        output = answer_inside(container.bare, [path, *module_question()], variables).stdout
        try:
            modules, _ = modules_in(output)
        except (ValueError, KeyError, TypeError) as error:
            raise ContainerError(f"{path} in {container.image.given} is not an interpreter of Python") from error
        if program.module in modules:
            image = container.image.digest or container.image.given
            version = version_with(program.module, modules)
            return ProgramInside(program, Installed(Path(path), version, "", image=image))
    image = container.image.given
    where = f"{' and '.join(paths)} in {image} cannot import {program.module}"
    if not paths:
        where = f"{image} has no {' or '.join(names)}" + (" on the PATH of the container" if python is None else "")
    raise NotInImageError(
        where,
        f"install {program.package} in the image, or mount a Python that has it (environment.container_mounts) and set "
        "environment.python to its path inside",
    )


def _found(container: Contained, names: Sequence[str], variables: Changes) -> Mapping[str, Mapping[str, str]]:
    try:
        output = run_inside(container.bare, [str(inside_probe()), "--find", *names], variables)
        found: Any = parse_record(output.encode()).notes.get("found", {})
    except ProtocolError as error:
        raise ContainerError(f"a program in {container.image.given} printed something else: {error}") from error
    return {name: {part: str(found.get(name, {}).get(part, "")) for part in ("path", "loader")} for name in names}


def _described(
    container: Contained, program: External, found: Mapping[str, Mapping[str, str]], variables: Changes
) -> ProgramInside:
    companions: dict[str, Path] = {}
    for name in program.companions:
        if not found[name]["path"]:
            raise NotInImageError(f"{container.image.given} has no {name}, which {program.name} needs", program.install)
        companions[name] = Path(found[name]["path"])
    path, loader = found[program.name]["path"], found[program.name]["loader"]
    version = answer = ""
    if program.version:
        reply = answer_inside(container.bare, [path, *program.version], variables)
        version, answer = version_in(reply), reply.stdout or reply.stderr
    image = container.image.digest or container.image.given
    known = ProgramInside(program, Installed(Path(path), version or program.name, "", companions, image, answer=answer))
    if loader:
        listed = listed_libraries(run_inside(container.bare, [loader, "--list", path], variables, of_image=True))
        for name, where in listed.items():
            if is_mpi_library(name):
                return replace(known, family=_family(name, where), library=name, library_path=where)
    return known


def _family(name: str, path: str) -> MpiFamily:
    """By the name of the file: MPICH, Intel MPI and MVAPICH share one (the MPICH ABI initiative: libmpi.so.12)."""
    if name.startswith("libmpich"):
        return MpiFamily.MPICH
    if name.startswith("libmpi_"):
        return MpiFamily.CRAY
    if name.startswith("libmpi.so.12"):
        return MpiFamily.INTEL if "intel" in path or "impi" in path else MpiFamily.MPICH
    return MpiFamily.OPENMPI


def for_program(container: Contained) -> Contained:
    """The container for an application of the image, whose programs are not ours."""
    image = replace(container, build=OUTSIDE)
    return replace(image, facts={**container.facts, **image.document()})


_BLAS = (
    *("libblas.so.3", "libflexiblas.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libopenblas.so.0", "libopenblasp.so.0"),
    *("libblis.so.4", "libblis-mt.so.4", "libblis.so.3", "libarmpl_lp64_mp.so", "libnvpl_blas_lp64_gomp.so.0"),
)
"""The first is the choice of who made the image."""
_REFERENCE = "reference"


class ImageLibraries:
    """The libraries loaded so far: one trial for each build, image and name."""

    def __init__(self) -> None:
        self._hellos: Once[tuple[str, str, str, Changes, str], Hello] = Once()

    def blas(self, wanted: str, built: Built, container: Contained, variables: Changes) -> LoadedLibrary:
        """The BLAS of the image for this choice; for `auto`, the first that is more than the reference BLAS. Raises
        NoBlasError, UnknownNameError."""
        if "/" not in wanted and wanted not in (AUTO, *FAMILIES):
            raise UnknownNameError("BLAS", wanted, (AUTO, *FAMILIES))
        names = (wanted,) if "/" in wanted else _BLAS
        loaded = list(self._loaded(names, built, container, variables))
        found = [(name, hello, _blas_family(name, hello, built.hello)) for name, hello in loaded]
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

    def fft(self, wanted: str, precision: str, built: Built, container: Contained, variables: Changes) -> LoadedLibrary:
        """The FFTW of the image for this choice, or our own transform. Raises NoFftwError, UnknownNameError."""
        if "/" not in wanted and wanted not in (AUTO, FFTW, OWN):
            raise UnknownNameError("FFT library", wanted, (AUTO, FFTW, OWN))
        if wanted == OWN:
            return LoadedLibrary(OWN, (), built.hello, {})
        name = wanted if "/" in wanted else FFTW_FILES[precision]
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
        self, names: Sequence[str], built: Built, container: Contained, variables: Changes
    ) -> Iterable[tuple[str, Hello]]:
        """(name, description of the program with it) of those libraries that the loader inside finds."""
        for name in names:
            image = f"{container.image.digest} {container.image.given}"
            key = (built.key, image, container.runtime.name, variables, name)
            try:
                hello = self._hellos.get(key, partial(hello_inside, container, built.path, variables, name))
            except ContainerError:
                continue
            yield name, hello


def _blas_family(name: str, hello: Hello, before: Hello) -> str:
    """Of a library: by what it loads, since libblas.so.3 stands for any."""
    for loaded in (name.rpartition("/")[2], *(set(hello.libs) - set(before.libs))):
        if behind := BEHIND.match(loaded):
            return behind[1]
    return _REFERENCE if name == _BLAS[0] else "other"


def _ids(hello: Hello) -> dict[str, str]:
    """What identifies the loaded libraries; the image is identified by its digest."""
    return {name: build_id or hello.lib_paths.get(name, "") for name, build_id in hello.libs.items()}
