"""A misspelt name in a study is refused; a library that is not here is not."""

from __future__ import annotations

import pytest

from seatrial.environments import chosen as misspelt
from seatrial.environments.chosen import refuse_misspelt
from seatrial.environments.mpi import Discovery
from seatrial.errors import UsageError
from seatrial.model.environment.choice import EnvironmentChoice


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misspelt, "discover_mpis", lambda: Discovery((), (), ()))


@pytest.mark.parametrize(("name", "near"), [("mpihc", "mpich"), ("opnempi", "openmpi"), ("mvapch", "mvapich")])
def test_the_nearest_library_is_named(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=name) as error:
        refuse_misspelt([EnvironmentChoice(mpi="openmpi"), EnvironmentChoice(mpi=name)])
    assert error.value.todo == f"did you mean {near}?"


def test_the_nearest_compiler_is_named() -> None:
    with pytest.raises(UsageError, match=r"environment\.compiler"):
        refuse_misspelt([EnvironmentChoice(compiler="clnag++-16")])


def test_what_may_be_elsewhere_is_accepted() -> None:
    for name in ("mpich", "openmpi-4.1.6", "mvapich-4", "spectrum", "production", "/opt/mpi", "nompi"):
        refuse_misspelt([EnvironmentChoice(mpi=name)])
    for name in ("g++-99", "clang++-21", "no-such-compiler++", "/opt/bin/clnag++"):
        refuse_misspelt([EnvironmentChoice(compiler=name)])
