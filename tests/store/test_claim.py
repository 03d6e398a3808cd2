from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.store.claim import _private, abandoned, claim, claimed_elsewhere, settle
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

_CLAIMS_AND_DIES = """
import sys
from pathlib import Path
from seatrial.store.claim import claim
from seatrial.store.folder import ResultsFolder
claim(ResultsFolder.existing(Path(sys.argv[1])), "host", "experiment", 0, {"t0": 5.0})
"""


def claimed_by_a_dead_process(folder: ResultsFolder) -> None:
    subprocess.run([sys.executable, "-c", _CLAIMS_AND_DIES, str(folder.path)], check=True)


def test_a_repeat_is_claimed_by_one_only(folder: ResultsFolder) -> None:
    first = claim(folder, "host", "experiment", 0, {})
    assert first is not None and first.path.is_dir()
    assert claim(folder, "host", "experiment", 0, {}) is None
    assert claim(folder, "host", "experiment", 1, {}) is not None


def test_a_released_repeat_can_be_claimed_again(folder: ResultsFolder) -> None:
    first = claim(folder, "host", "experiment", 0, {})
    assert first is not None
    first.release()
    assert not first.path.exists()
    first.release()  # what is gone is gone
    assert claim(folder, "host", "experiment", 0, {}) is not None


def test_a_living_process_keeps_its_claims(folder: ResultsFolder) -> None:
    claim(folder, "host", "experiment", 0, {})
    assert abandoned(folder, "host", "experiment") == []


def test_the_claim_of_a_dead_process_is_abandoned_and_comes_with_its_notes(folder: ResultsFolder) -> None:
    claimed_by_a_dead_process(folder)
    (left,) = abandoned(folder, "host", "experiment")
    assert left.repeat == 0 and left.noted == {"t0": 5.0}


def test_a_process_id_that_somebody_else_has_now_does_not_keep_a_claim(folder: ResultsFolder) -> None:
    mine = claim(folder, "host", "experiment", 0, {})
    assert mine is not None
    owner = json.loads((mine.path / "claim.json").read_text())
    assert owner["pid"] == os.getpid()
    (mine.path / "claim.json").write_text(json.dumps({**owner, "started": owner["started"] - 1}))
    assert len(abandoned(folder, "host", "experiment")) == 1


@pytest.mark.parametrize(("changed", "is_abandoned"), [({"boot": "another"}, True), ({"namespace": "another"}, False)])
def test_another_boot_is_surely_dead_and_another_container_may_live(
    folder: ResultsFolder, changed: dict[str, str], is_abandoned: bool
) -> None:
    claimed_by_a_dead_process(folder)
    owned = folder.artefacts("experiment", 0) / "claim.json"
    owned.write_text(json.dumps({**json.loads(owned.read_text()), **changed}))
    assert bool(abandoned(folder, "host", "experiment")) is is_abandoned


def test_the_claims_of_other_hosts_are_left_alone(folder: ResultsFolder) -> None:
    claimed_by_a_dead_process(folder)
    assert abandoned(folder, "another", "experiment") == []


def test_kept_artefacts_are_no_claim(folder: ResultsFolder) -> None:
    claimed_by_a_dead_process(folder)
    (left,) = abandoned(folder, "host", "experiment")
    settle(left)
    assert left.path.is_dir() and abandoned(folder, "host", "experiment") == []


def test_what_a_dead_process_was_preparing_is_swept(folder: ResultsFolder) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    room = folder.path / "artefacts" / "experiment"
    here = _private("", "host", "").split("-")[3]
    leftover, removed = room / f".new-0-host-{here}-{dead.pid}-ab", room / f".gone-3-host-{here}-{dead.pid}-ab"
    mine, foreign = room / f".new-1-host-{here}-{os.getpid()}-ab", room / f".new-0-host-0123abcd-{dead.pid}-ab"
    for path in (leftover, removed, mine, foreign):
        path.mkdir(parents=True)
    abandoned(folder, "host", "experiment")
    assert sorted(room.iterdir()) == sorted([mine, foreign])


@pytest.mark.parametrize("limit", ["9" * 400, "1e999", "[" * 5000 + "]" * 5000, '"\\ud800"'])
def test_a_claim_with_impossible_numbers_is_damaged(limit: str, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "r")
    made = claim(folder, "n1", "0123456789abcdef", 0, {"limit_s": 5.0})
    assert made is not None
    file = next(path for path in made.path.iterdir())
    file.write_text(file.read_text().replace("5.0", limit))
    assert abandoned(folder, "n1", "0123456789abcdef") == []
    assert claimed_elsewhere(folder, "n2", "0123456789abcdef", ()) == {}


@pytest.mark.parametrize("host", ["../../x", "-rf", "..", "a;$(touch x)\n<b>\x1b[31m", "/"])
def test_a_host_with_any_name_claims_and_records(host: str, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    claimed = claim(folder, host, "e" * 64, 0, {})
    assert claimed is not None
    claimed.release()
    writer = RecordWriter(folder, host)
    assert writer.path.parent == folder.path / "records"
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.jsonl", writer.path.name)
    assert [path.name for path in tmp_path.iterdir()] == ["results"] and not list(folder.path.glob("artefacts/*/*"))
