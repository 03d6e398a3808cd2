"""Applications of an image: found and asked for their version inside, by the container's PATH and loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.installed import Installed, version_in
from seatrial.environments.loader import listed_libraries
from seatrial.environments.mpi_identity import of_text
from seatrial.environments.mpi_library import is_mpi_library
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.program import parse_record
from seatrial.model.environment.container import OUTSIDE
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.frozen import Frozen
from seatrial.places.contained import Contained
from seatrial.places.containers.fitted import answer_inside, run_inside
from seatrial.places.containers.image import ContainerError
from seatrial.places.rank_helpers import inside_probe

_Variables = tuple[tuple[str, str | None], ...]


class ImageProgram(Frozen):
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


def find_in_image(container: Contained, program: External, variables: _Variables) -> ImageProgram:
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


def _found(container: Contained, names: Sequence[str], variables: _Variables) -> Mapping[str, Mapping[str, str]]:
    try:
        output = run_inside(container.bare, [str(inside_probe()), "--find", *names], variables)
        found: Any = parse_record(output.encode()).notes.get("found", {})
    except ProtocolError as error:
        raise ContainerError(f"a program in {container.image.given} printed something else: {error}") from error
    return {name: {part: str(found.get(name, {}).get(part, "")) for part in ("path", "loader")} for name in names}


def _described(
    container: Contained, program: External, found: Mapping[str, Mapping[str, str]], variables: _Variables
) -> ImageProgram:
    companions: dict[str, Path] = {}
    for name in program.companions:
        if not found[name]["path"]:
            raise NotInImageError(f"{container.image.given} has no {name}, which {program.name} needs", program.install)
        companions[name] = Path(found[name]["path"])
    path, loader = found[program.name]["path"], found[program.name]["loader"]
    version = ""
    if program.version:
        version = version_in(answer_inside(container.bare, [path, *program.version], variables))
    known = ImageProgram(program, Installed(Path(path), version or program.name, "", companions, _id(container)))
    if loader:
        listed = listed_libraries(run_inside(container.bare, [loader, "--list", path], variables, of_image=True))
        for name, where in listed.items():
            if is_mpi_library(name):
                return replace(known, family=_family(name, where), library=name, library_path=where)
    return known


def _id(container: Contained) -> str:
    return container.image.digest or container.image.given


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
