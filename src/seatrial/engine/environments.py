"""The environments that points choose: what the machine gives, with what a study varies of it."""

from __future__ import annotations

from dataclasses import replace

from seatrial.environments.build import Environment, kept_environments, libc_version
from seatrial.environments.compiler import compiler_named, first_compiler
from seatrial.environments.mpi import choose_mpi
from seatrial.environments.target import DECISIVE_FEATURES, resolve_target
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.environment_choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.machine import DeviceKind, Machine


def native_environment(machine: Machine) -> Environment:
    """The environment that is used when nobody chooses: the first compiler, building for this machine's CPU.

    Without a compiler it is that of the programs that were built ahead. Raises NoCompilerError, BuildError where the
    compiler cannot build for this CPU, UsageError for a wrong $CXX.
    """
    isa = _isa(machine)
    try:
        compiler = first_compiler()
    except NoCompilerError:
        kept = _built_ahead(frozenset(isa))
        if kept is None:
            raise
        return kept
    return Environment(compiler, resolve_target(compiler, isa), libc_version())


def _isa(machine: Machine) -> list[str]:
    """The features of this machine's CPUs, as its first package tells them."""
    packages = machine.of_kind(DeviceKind.PACKAGE)
    return (packages[0].facts.text("isa") or "").split() if packages else []


def _built_ahead(isa: frozenset[str]) -> Environment | None:
    """The environment of programs that `seatrial build` made for such a CPU and C library, or None."""
    return next(
        (
            environment
            for environment in kept_environments()
            if environment.target.isa == isa & DECISIVE_FEATURES and environment.libc == libc_version()
        ),
        None,
    )


class Environments:
    """The environments that points choose, each found once; a choice that cannot be met is the error that says why.

    Programs of many ranks have one with an MPI library in it; for all others it is nothing that can make a difference.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._found: dict[tuple[EnvironmentChoice, bool], Environment | BuildError] = {}

    @classmethod
    def always(cls, environment: Environment | BuildError) -> Environments:
        """Those of somebody who has one already: it is the answer to the choice of nothing."""
        environments = cls(Machine(""))
        environments._found = {(AS_IT_IS, False): environment, (AS_IT_IS, True): environment}
        return environments

    def of(self, choice: EnvironmentChoice, *, with_mpi: bool = False) -> Environment | BuildError:
        """The environment of a choice. Raises UsageError for a wrong $CXX."""
        if not with_mpi:
            choice = replace(choice, mpi=None, mpi_settings=())
        key = (choice, with_mpi)
        if key not in self._found:
            try:
                self._found[key] = chosen_environment(choice, self._machine, with_mpi=with_mpi)
            except BuildError as problem:
                self._found[key] = problem
        return self._found[key]


def chosen_environment(choice: EnvironmentChoice, machine: Machine, *, with_mpi: bool = False) -> Environment:
    """The environment with what a study chose of it. Raises as `native_environment` does, and NoMpiError."""
    if choice.compiler is None:
        environment = native_environment(machine)
    else:
        compiler = compiler_named(choice.compiler)
        environment = Environment(compiler, resolve_target(compiler, _isa(machine)), libc_version())
    mpi = choose_mpi(choice.mpi) if with_mpi else None
    return replace(environment, added_flags=choice.flags, variables=choice.variables, mpi=mpi)
