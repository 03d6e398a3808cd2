"""The BLAS that a program loads when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.environments.blas import HOW_TO_GET_ONE, Blas, NoBlasError, better_than, choose_blas, why_chosen
from seatrial.environments.build import Built, describe_with
from seatrial.environments.file_contents import digest
from seatrial.environments.once import Once
from seatrial.errors import BuildError
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.protocol import Hello


class LoadedLibrary(Frozen):
    """A library that a program will load: its name as a parameter value, the program's arguments for it, what the
    program then reports about itself, the build ids, or hashes, of all loaded libraries, and notes on the choice:
    `blas_family`, `blas_own_core` (the kernels that it selects itself), and `blas_better`, a library here whose kernels
    suit this CPU better."""

    name: str
    arguments: tuple[str, ...]
    hello: Hello
    identity: Mapping[str, str]
    notes: Mapping[str, str] = {}


class BlasLibraries:
    """The libraries loaded so far: one test per program build, choice and environment."""

    def __init__(self) -> None:
        self._loaded: Once[tuple[str, EnvironmentChoice, str], LoadedLibrary] = Once()

    def of(self, wanted: str, built: Built, choice: EnvironmentChoice, variables: Mapping[str, str]) -> LoadedLibrary:
        """What the program will load for this choice. Another version, or another forced kernel, is another
        experiment. Raises NoBlasError if none of the candidates can be loaded."""
        return self._loaded.get((built.key, choice, wanted), lambda: _load(wanted, built, variables))


def _load(wanted: str, built: Built, variables: Mapping[str, str]) -> LoadedLibrary:
    refused: list[str] = []
    for blas in choose_blas(wanted):
        try:
            hello = describe_with(built.path, blas.path, variables)
        except BuildError as problem:
            refused.append(f"{blas.path}: {problem.message}")
            continue
        libraries = {name: build_id or digest(hello.lib_paths[name]) for name, build_id in hello.libs.items()}
        why = why_chosen(blas, wanted) + (f"; not loaded: {'; '.join(refused)}" if refused else "")
        return LoadedLibrary(blas.name, (*blas.arguments(), "--blas-why", why), hello, libraries, _notes(blas))
    raise NoBlasError(f"no BLAS can be loaded ({'; '.join(refused)})", HOW_TO_GET_ONE)


def _notes(blas: Blas) -> Mapping[str, str]:
    better = better_than(blas)
    notes = {"blas_family": blas.family, "blas_own_core": blas.kernels.core}
    if better is not None:
        core = f" ({better.kernels.core})" if better.kernels.core else ""
        notes["blas_better"] = f"{better.path}{core}"
    return {name: text for name, text in notes.items() if text}
