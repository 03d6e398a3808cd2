"""Which environment a point gets: the MPI library and settings that it chooses, and what was built ahead elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.environments import chosen
from seatrial.environments.build import Environment, program_key
from seatrial.environments.chosen import Environments, chosen_environment
from seatrial.environments.compiler import DECISIVE_FEATURES, Compiler, Target
from seatrial.environments.mpi import NoMpiError
from seatrial.environments.mpi_settings import NoSettingError
from seatrial.errors import NoCompilerError, UnknownNameError
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.environment.site import SiteEnvironment

MACHINE = made_up_machine()
ISA = frozenset(["sse2", "avx", "avx2", "fma"]) & DECISIVE_FEATURES
OPENMPI = Mpi("openmpi", MpiFamily.OPENMPI, "4.1.4", Path("/a/libmpi.so"), "aa", ("-I/a",), ("-la",), Path("/a/mpirun"))
MPICH = replace(OPENMPI, name="mpich", family=MpiFamily.MPICH, version="4.0.2", library=Path("/b/libmpi.so"))
ENVIRONMENT = Environment(
    Compiler(("/usr/bin/g++",), "gcc", "g++ 12.2.0"), Target(("-march=x",), ISA, "", ""), "libc 1"
)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two libraries, one compiler, no site."""

    def choose(name: str | None) -> Mpi:
        found = {None: OPENMPI, "openmpi": OPENMPI, "mpich": MPICH}.get(name)
        if found is None:
            raise UnknownNameError("MPI", str(name), ("openmpi", "mpich"))
        return found

    monkeypatch.setattr(chosen, "choose_mpi", choose)
    monkeypatch.setattr(chosen, "find_mpis", lambda: (OPENMPI, MPICH))
    monkeypatch.setattr(chosen, "find_runtimes", lambda: ())
    monkeypatch.setattr(chosen, "site_environment", lambda name: None)
    monkeypatch.setattr(chosen, "first_site_environment", lambda: None)
    monkeypatch.setattr(chosen, "_with_compiler", lambda choice, site, isa: ENVIRONMENT)
    monkeypatch.setattr(chosen, "libc_version", lambda: "libc 1")
    monkeypatch.setattr(chosen, "kept_environments", list)
    monkeypatch.setattr(chosen, "setting_variables", lambda mpi, settings: tuple((f"V_{n}", v) for n, v in settings))


def test_a_missing_mpi_refuses_only_its_points() -> None:
    environments = Environments(MACHINE)
    missing = environments.of(EnvironmentChoice(mpi="mpcih"), with_mpi=True)
    assert isinstance(missing, NoMpiError) and "did you mean mpich" in str(missing)
    assert environments.of(EnvironmentChoice(mpi="mpich"), with_mpi=True) == replace(ENVIRONMENT, mpi=MPICH)
    assert environments.of(EnvironmentChoice(mpi="mpcih")) == ENVIRONMENT  # a program of one process has none


def test_a_setting_that_a_library_does_not_have_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(mpi: Mpi, settings: object) -> tuple[()]:
        raise NoSettingError("it has none")

    monkeypatch.setattr(chosen, "setting_variables", lacks)
    choice = EnvironmentChoice(mpi_settings=(("transport", "tcp"),))
    assert isinstance(Environments(MACHINE).of(choice, with_mpi=True), NoSettingError)


def test_settings_become_variables_and_the_study_overrides_them() -> None:
    settings = (("transport", "tcp"),)
    found = chosen_environment(EnvironmentChoice(mpi_settings=settings), MACHINE, with_mpi=True)
    assert found.variables == (("V_transport", "tcp"),) and found.settings == settings
    choice = EnvironmentChoice(mpi_settings=settings, variables=(("V_transport", "other"), ("A", None)))
    assert chosen_environment(choice, MACHINE, with_mpi=True).variables == (("A", None), ("V_transport", "other"))


def test_two_settings_are_two_environments_and_one_build() -> None:
    found = [
        chosen_environment(EnvironmentChoice(mpi_settings=(("transport", transport),)), MACHINE, with_mpi=True)
        for transport in ("tcp", "shm")
    ]
    assert found[0].key != found[1].key
    assert program_key(found[0], Path(__file__)) == program_key(found[1], Path(__file__))
    document = found[0].document()
    assert document["settings"] == {"transport": "tcp"} and document["variables"] == {"V_transport": "tcp"}
    assert document["name"].startswith("Open MPI 4.1.4 gcc") and document["name"].endswith("transport=tcp")


def test_the_sites_environment_gives_compiler_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    site = SiteEnvironment("openmpi", compiler="icpx", flags=("-qx",), variables=(("I", "1"),))
    asked: list[str | None] = []
    monkeypatch.setattr(chosen, "site_environment", lambda name: site if name == "openmpi" else None)
    monkeypatch.setattr(chosen, "first_site_environment", lambda: site)

    def with_compiler(choice: EnvironmentChoice, site: SiteEnvironment | None, isa: object) -> Environment:
        asked.append(choice.compiler or (site.compiler if site else None))
        return ENVIRONMENT

    monkeypatch.setattr(chosen, "_with_compiler", with_compiler)
    with_ranks = chosen_environment(EnvironmentChoice(flags=("-g",)), MACHINE, with_mpi=True)
    assert with_ranks.added_flags == ("-qx", "-g") and with_ranks.variables == ()  # they are the library's already
    alone = chosen_environment(EnvironmentChoice(), MACHINE)
    assert alone.added_flags == ("-qx",) and alone.variables == (("I", "1"),)
    chosen_environment(EnvironmentChoice(mpi="mpich"), MACHINE, with_mpi=True)
    assert asked == ["icpx", "icpx", None]


class TestWithoutACompiler:
    """What `seatrial build` made ahead."""

    @pytest.fixture(autouse=True)
    def no_compiler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(choice: EnvironmentChoice, site: object, isa: object) -> Environment:
            raise NoCompilerError("there is none")

        monkeypatch.setattr(chosen, "_with_compiler", none)
        monkeypatch.setattr(chosen, "library_for", lambda kept: {MPICH.library: MPICH}.get(kept.library))
        self.keep(monkeypatch, replace(ENVIRONMENT, mpi=OPENMPI), replace(ENVIRONMENT, mpi=MPICH), ENVIRONMENT)

    @staticmethod
    def keep(monkeypatch: pytest.MonkeyPatch, *kept: Environment) -> None:
        monkeypatch.setattr(chosen, "kept_environments", lambda: list(kept))

    def test_ranks_get_a_library_that_is_here(self) -> None:
        assert chosen_environment(EnvironmentChoice(), MACHINE, with_mpi=True).mpi == MPICH
        assert chosen_environment(EnvironmentChoice(mpi="mpich-4.0.2"), MACHINE, with_mpi=True).mpi == MPICH
        assert chosen_environment(EnvironmentChoice(), MACHINE).mpi is None
        with pytest.raises(NoCompilerError):
            chosen_environment(EnvironmentChoice(mpi="openmpi"), MACHINE, with_mpi=True)

    def test_the_default_library_is_preferred(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keep(monkeypatch, replace(ENVIRONMENT, mpi=MPICH), replace(ENVIRONMENT, mpi=OPENMPI))
        monkeypatch.setattr(chosen, "library_for", lambda kept: kept)
        assert chosen_environment(EnvironmentChoice(), MACHINE, with_mpi=True).mpi == OPENMPI
        assert chosen_environment(EnvironmentChoice(mpi="mpich"), MACHINE, with_mpi=True).mpi == MPICH

    def test_for_this_cpu_this_libc_and_this_compiler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert chosen_environment(EnvironmentChoice(compiler="g++"), MACHINE) == ENVIRONMENT
        with pytest.raises(NoCompilerError):
            chosen_environment(EnvironmentChoice(compiler="clang++"), MACHINE)
        for other in (
            replace(ENVIRONMENT, libc="libc 2"),
            replace(ENVIRONMENT, target=replace(ENVIRONMENT.target, isa=frozenset())),
        ):
            self.keep(monkeypatch, other)
            with pytest.raises(NoCompilerError):
                chosen_environment(EnvironmentChoice(), MACHINE)

    def test_without_mpi_h_ranks_run_what_was_built(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(name: str | None) -> Mpi:
            raise NoMpiError("runtime only")

        monkeypatch.setattr(chosen, "_with_compiler", lambda choice, site, isa: ENVIRONMENT)
        monkeypatch.setattr(chosen, "choose_mpi", none)
        assert chosen_environment(EnvironmentChoice(), MACHINE, with_mpi=True).mpi == MPICH
