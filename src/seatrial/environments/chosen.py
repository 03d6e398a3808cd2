"""The environments that points choose, and names in them that are probably misspelt.

Names of MPI libraries and compilers in a study that are probably misspelt.

A library or compiler that is not on this machine is not an error: the study may be for several machines. But a name
that is unknown everywhere and nearly one that is known is one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.build import Environment, kept_environments, libc_version
from seatrial.environments.compiler import DECISIVE_FEATURES, compiler_named, first_compiler, resolve_target
from seatrial.environments.mpi import NoMpiError, choose_mpi, discover_mpis, find_mpis, find_runtimes, library_for
from seatrial.environments.mpi_settings import setting_variables
from seatrial.errors import BuildError, NoCompilerError, UnknownNameError, UsageError, did_you_mean
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.environment.site import SiteEnvironment
from seatrial.model.json_object import plain
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.record import content_key
from seatrial.plan.site_in_force import first_site_environment, site_environment, site_in_force
from seatrial.processes.working_folder import on_path


def native_environment(machine: Machine) -> Environment:
    """The default environment: the first compiler, building for this machine's CPU.

    Without a compiler it is that of programs built ahead. Raises NoCompilerError, BuildError if the compiler cannot
    build for this CPU, UsageError for an invalid $CXX.
    """
    return chosen_environment(AS_IT_IS, machine)


class Environments:
    """The environments that points choose, each looked up once; an unavailable choice maps to its error.

    Only programs with ranks get an MPI library in theirs; it makes no difference to others.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._found: dict[tuple[EnvironmentChoice, bool], Environment | BuildError] = {}

    @classmethod
    def always(cls, environment: Environment | BuildError) -> Environments:
        """With this environment as the default; nothing is looked up for it."""
        environments = cls(Machine(""))
        environments._found = {(AS_IT_IS, False): environment, (AS_IT_IS, True): environment}
        return environments

    @property
    def isa(self) -> list[str]:
        """The features of this machine's CPUs; empty if unknown."""
        return isa_of(self.machine)

    def of(self, choice: EnvironmentChoice, *, with_mpi: bool = False) -> Environment | BuildError:
        """The environment of a choice. Raises UsageError for an invalid $CXX."""
        if not with_mpi:
            choice = replace(choice, mpi=None, mpi_settings=(), container_mpi=None)
        key = (choice, with_mpi)
        if key not in self._found:
            try:
                self._found[key] = chosen_environment(choice, self.machine, with_mpi=with_mpi)
            except BuildError as problem:
                self._found[key] = problem
        return self._found[key]


def chosen_environment(choice: EnvironmentChoice, machine: Machine, *, with_mpi: bool = False) -> Environment:
    """The environment of a study's choice. Raises like `native_environment`, NoMpiError, and NoSettingError for a
    setting that the library does not have."""
    isa = isa_of(machine.at(choice.vm))
    try:
        mpi = mpi_named(choice.mpi) if with_mpi else None
        site = site_environment(mpi.name) if mpi is not None else first_site_environment()
        environment = _with_compiler(choice, site, isa)
    except (NoCompilerError, NoMpiError):
        kept = _built_ahead(choice, frozenset(isa), with_mpi=with_mpi)
        if kept is None:
            raise
        environment, mpi = kept, kept.mpi
        site = None if mpi is None else site_environment(mpi.name)
    settings = choice.mpi_settings if mpi is not None else ()
    by_settings = setting_variables(mpi, settings) if mpi is not None else ()
    of_site = site.variables if site is not None and mpi is None else ()  # with MPI, they come with the library
    return replace(
        environment,
        added_flags=(*(site.flags if site is not None else ()), *choice.flags),
        variables=tuple(sorted({**dict(of_site), **dict(by_settings), **dict(choice.variables)}.items())),
        mpi=mpi,
        settings=settings,
        by_settings=tuple(name for name, _ in by_settings),
    )


def absent_environment(choice: EnvironmentChoice) -> tuple[str, Mapping[str, Any] | None]:
    """(key, document) of an unavailable environment: different choices are different experiments, although none of them
    can be measured. ("", None) if nothing was chosen."""
    if choice == AS_IT_IS:
        return "", None
    chosen = {name: value for name, value in plain(choice).items() if value}
    document = {"name": "not available here", "chosen": chosen}
    return content_key(document), document


def mpi_named(name: str | None) -> Mpi:
    """The library of that name, the first for None. Raises NoMpiError also for an unknown name: its point cannot be
    measured here, but the others can."""
    try:
        return choose_mpi(name)
    except UnknownNameError as problem:
        raise NoMpiError(problem.message, problem.todo) from problem


def _with_compiler(choice: EnvironmentChoice, site: SiteEnvironment | None, isa: list[str]) -> Environment:
    """The chosen compiler, else that of the site's environment, else the first; building for this CPU."""
    name = choice.compiler or (site.compiler if site is not None else None)
    compiler = first_compiler() if name is None else compiler_named(name)
    return Environment(compiler, resolve_target(compiler, isa), libc_version())


def isa_of(machine: Machine) -> list[str]:
    """The features of this machine's CPUs, as the first package reports them; empty if none does."""
    texts = (package.facts.text("isa") for package in machine.of_kind(DeviceKind.PACKAGE))
    return next(filter(None, texts), "").split()


def _built_ahead(choice: EnvironmentChoice, isa: frozenset[str], *, with_mpi: bool) -> Environment | None:
    """The environment of programs that `seatrial build` made for this CPU and C library, with the chosen compiler and
    MPI library (default: the first on this machine). Of several, that of the latest build."""
    found = list(_kept(choice, isa, with_mpi=with_mpi))
    libraries = [mpi.library for mpi in (*find_mpis(), *find_runtimes())] if with_mpi else []
    return min(found, key=lambda kept: libraries.index(kept.mpi.library) if kept.mpi else 0, default=None)


def _kept(choice: EnvironmentChoice, isa: frozenset[str], *, with_mpi: bool) -> Iterator[Environment]:
    for environment in kept_environments():
        if environment.target.isa != isa & DECISIVE_FEATURES or environment.libc != libc_version():
            continue
        command = environment.compiler.command[-1]
        if choice.compiler not in (None, command, Path(command).name):
            continue
        if not with_mpi and environment.mpi is None:
            yield environment
        elif with_mpi and environment.mpi is not None:
            found = library_for(environment.mpi)
            if found is not None and choice.mpi in (None, found.name, *found.aliases):
                yield replace(environment, mpi=found)


_COMPILERS = ("g++", "clang++", "icpx", "icpc", "nvc++", "amdclang++", "armclang++", "FCC", "CC", "c++", "crayCC")
_VERSION = re.compile(r"[-.]?\d[\d.]*$")
_ALIKE = 0.75
"""Letters in common: one wrong, missing or exchanged in a name of five."""


def refuse_misspelt(choices: Iterable[EnvironmentChoice]) -> None:
    """Raise UsageError for the first name that is unknown, but nearly one that is."""
    wanted = list(dict.fromkeys(choices))
    libraries = dict.fromkeys(choice.mpi for choice in wanted if choice.mpi is not None and "/" not in choice.mpi)
    if libraries:
        known = _libraries()
        for name in libraries:
            _refuse("environment.mpi", name, known)
    for compiler in dict.fromkeys(choice.compiler for choice in wanted if choice.compiler is not None):
        if "/" not in compiler and on_path(compiler) is None:
            _refuse("environment.compiler", compiler, _COMPILERS)


def _libraries() -> list[str]:
    found = discover_mpis()
    names = [name for mpi in (*found.mpis, *found.runtimes) for name in (mpi.name, *mpi.aliases)]
    own = (environment.name for environment in site_in_force().environments)
    return [*names, *(name for name, _ in found.passed_over), *own, *MpiFamily]


def _refuse(axis: str, name: str, known: Collection[str]) -> None:
    base = _VERSION.sub("", name)
    if name in known or base in known:
        return
    if near := difflib.get_close_matches(base, known, 1, _ALIKE):
        raise UsageError(f"{axis}: nothing is called {name!r}", did_you_mean(near))
