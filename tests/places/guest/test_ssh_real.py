"""A guest that is reached by ssh, with a real sshd: here it is this machine, which is reached like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_server import SshPlace, free_port, prepared, serving

import seatrial
from seatrial.environments.mpi import lacking_mpi
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.lab]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshPlace]:
    place = prepared(tmp_path_factory.mktemp("ssh"), free_port())
    site = "guests:\n  local: {ssh: root@127.0.0.1}\n  gone: {ssh: root@127.0.0.2}\n"
    (place.folder / "site.yaml").write_text(site)
    with serving(place):
        yield place


@pytest.fixture(autouse=True)
def _path(server: SshPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", server.variables()["PATH"])


def left() -> set[Path]:
    """Folders of agents."""
    return {path for path in Path("/tmp").glob("seatrial-??????") if (path / "agent").exists()}


def test_programs_run_there_and_nothing_of_them_stays(server: SshPlace, tmp_path: Path) -> None:
    before = left()
    settings = {"environment.vm": ["none", "local"], "cores": "one", "precision": "fp64"}
    found = seatrial.run("cpu.peak", set=settings, results=tmp_path / "r", repeats=1, site=server.folder / "site.yaml")
    here, there = found.experiments
    assert here.outcome.is_ok and there.outcome.is_ok, there.outcome
    assert there.emulated is None and there.figures[0].limit is not None
    contents = read_contents(ResultsFolder.existing(tmp_path / "r"))
    (record,) = contents.records[there.id]
    assert record.seen["vm"]["reached"] == "ssh root@127.0.0.1" and record.seen["steal_s"] >= 0.0
    assert record.seen["not_observed"] and "load_1m" not in record.seen
    assert contents.environments[there.experiment.environment]["vm"] == {"name": "local"}
    assert "load_1m" in contents.records[here.id][0].seen
    assert left() == before


def test_a_host_that_does_not_answer_is_unsupported(server: SshPlace, tmp_path: Path) -> None:
    (server.folder / "site2.yaml").write_text("guests:\n  gone: {ssh: root@no-such-host.invalid}\n")
    found = seatrial.run(
        "cpu.peak", set={"environment.vm": "gone"}, results=tmp_path / "r", repeats=1, site=server.folder / "site2.yaml"
    )
    (one,) = found.experiments
    assert one.outcome.state.value == "unsupported" and "no-such-host.invalid" in one.outcome.reason


@pytest.mark.parallel
def test_ranks_meet_there(server: SshPlace, tmp_path: Path) -> None:
    if (need := lacking_mpi()) is not None:
        pytest.skip(need)
    settings = {"environment.vm": "local", "size_B": 8, "ranks": 2, "oversubscribe": "true"}
    found = seatrial.run(
        "mpi.latency", set=settings, results=tmp_path / "r", repeats=1, site=server.folder / "site.yaml"
    )
    (one,) = found.experiments
    assert one.outcome.is_ok, one.outcome
    record = read_contents(ResultsFolder.existing(tmp_path / "r")).records[one.id][0]
    assert record.seen["vm"]["ranks"]["world"] == 2
