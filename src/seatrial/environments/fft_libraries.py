"""The FFT library that a program loads when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.environments.blas_libraries import LoadedLibrary
from seatrial.environments.build import Built, describe_with
from seatrial.environments.fftw import AUTO, OWN, choose_fft
from seatrial.environments.file_contents import digest
from seatrial.environments.once import Once
from seatrial.model.environment_choice import EnvironmentChoice


class FftLibraries:
    """The libraries loaded so far: one test per program build, choice, precision and environment."""

    def __init__(self) -> None:
        self._loaded: Once[tuple[str, EnvironmentChoice, str, str], LoadedLibrary] = Once()

    def of(
        self, wanted: str, precision: str, built: Built, choice: EnvironmentChoice, variables: Mapping[str, str]
    ) -> LoadedLibrary:
        """What the program will load for this choice; nothing for its own transform. Raises NoFftwError, and BuildError
        for a library that cannot be loaded."""
        key = (built.key, choice, wanted, precision)
        return self._loaded.get(key, lambda: _load(wanted, precision, built, variables))


def _load(wanted: str, precision: str, built: Built, variables: Mapping[str, str]) -> LoadedLibrary:
    chosen = choose_fft(wanted, precision, variables)
    if chosen is None:
        why = ("--fft-why", "no FFTW found") if wanted == AUTO else ()
        return LoadedLibrary(OWN, why, built.hello, {})
    hello = describe_with(built.path, chosen.path, variables)
    libraries = {name: build_id or digest(hello.lib_paths[name]) for name, build_id in hello.libs.items()}
    arguments = ("--fft", str(chosen.path), "--fft-why", chosen.found)
    return LoadedLibrary(chosen.name, arguments, hello, libraries)
