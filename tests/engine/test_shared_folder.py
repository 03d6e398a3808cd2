"""Eight processes that measure into one folder at once, as on eight hosts: each repeat is made once, and all are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import one_point
import pytest

from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.store import claim as claims
from seatrial.store.claim import abandoned, claim, claim_next, claimed_elsewhere
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWatch, RecordWriter

REPEATS, EXPERIMENTS, PROCESSES = 5, 3, 8

_EIGHT = f"""
import os, platform, signal, sys, time
from pathlib import Path
from seatrial.engine.engine import StudyWork, run_work
from seatrial.engine.policy import Alone
from seatrial.engine.listener import Listener
from one_point import keep_point, prepare_point
from seatrial.machine.live import discover_live
from seatrial.stats.interval import StoppingRule
from seatrial.store.folder import ResultsFolder

folder, killed, has_names = ResultsFolder.create(Path(sys.argv[1])), int(sys.argv[2]), bool(int(sys.argv[3]))
machine = discover_live()
ready = [prepare_point("command", machine, {{"argv": [("sleep", f"0.0{{k}}")]}}) for k in range({EXPERIMENTS})]
for item in ready:
    keep_point(item, machine, folder)
rule, pids = StoppingRule(budget_s=0.0, maximum={REPEATS}, minimum={REPEATS}), []
for k in range({PROCESSES}):
    if (pid := os.fork()) == 0:
        os.environ["SEATRIAL_HOST"] = f"node{{k}}"  # a lock of its own: nothing keeps them apart but the claims
        if has_names:
            platform.node = lambda: f"node{{k}}"
        work = StudyWork(tuple((item,) for item in ready), Alone(rule))
        run_work([work], machine, folder, Listener())
        os._exit(0)
    pids.append(pid)
for pid in pids[:killed]:
    time.sleep(0.15)
    os.kill(pid, signal.SIGKILL)
assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids][killed:] == [0] * ({PROCESSES} - killed)
"""


@pytest.mark.real
@pytest.mark.parametrize(("killed", "has_names"), [(0, True), (3, False)])
def test_eight_processes_make_each_repeat_once_and_all(killed: int, has_names: bool, tmp_path: Path) -> None:
    results = tmp_path / "results"
    command = [sys.executable, "-c", _EIGHT, str(results), str(killed), str(int(has_names))]
    path = os.pathsep.join((str(Path(one_point.__file__).parent), os.environ.get("PYTHONPATH", "")))
    variables = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    lines = [line for path in (results / "records").iterdir() for line in path.read_bytes().splitlines()]
    made = Counter((record["experiment"], record["repeat"]) for record in map(json.loads, lines))
    assert set(made.values()) == {1} and set(Counter(key for key, _ in made).values()) == {REPEATS}
    assert len(made) == EXPERIMENTS * REPEATS and read_contents(ResultsFolder.existing(results)).damaged == ()
    assert not list(results.glob("artefacts/*/[0-9]*"))


def record(repeat: int) -> RepeatRecord:
    return RepeatRecord("experiment", repeat, 0, time.time(), 0.1, Outcome.ok())


def test_a_repeat_that_was_recorded_and_released_since_the_folder_was_read_is_not_made_again(
    folder: ResultsFolder,
) -> None:
    watch = RecordWatch(folder)
    other = RecordWriter(folder, "node2")
    for repeat in range(2):
        other.append(record(repeat))  # whose claim has ended
    known: set[int] = set()
    claimed = claim_next(folder, "node1", "experiment", lambda: watch.numbers("experiment", known), {})
    assert claimed.repeat == 2
    other.append(record(2))  # by one that broke the rules: the number is never given twice
    claimed.release()
    assert claim_next(folder, "node1", "experiment", lambda: watch.numbers("experiment", known), {}).repeat == 3
    other.close()


def test_records_of_others_are_read_once_and_torn_lines_when_they_are_whole(folder: ResultsFolder) -> None:
    before, own = RecordWriter(folder, "node1"), RecordWriter(folder, "node3")
    before.append(record(0))
    watch = RecordWatch(folder, own.path.name)
    own.append(record(5))
    before.append(record(1))
    whole = before.path.read_bytes()
    with (folder.path / "records" / "node2-1-1.jsonl").open("wb", buffering=0) as torn:
        torn.write(whole[:40])
        assert [one.repeat for one in watch.new()] == [1]
        torn.write(whole[40:])
        assert [one.repeat for one in watch.new()] == [0, 1]
    assert watch.new() == []
    (folder.path / "records" / "loop.jsonl").symlink_to("loop.jsonl")
    assert watch.new() == []
    for writer in (before, own):
        writer.close()


_CLAIMS = """
import os, sys
from pathlib import Path
from seatrial.store.claim import claim
from seatrial.store.folder import ResultsFolder
claim(ResultsFolder.existing(Path(sys.argv[1])), "node2", "experiment", 0, {"limit_s": float(sys.argv[2])})
"""


@pytest.mark.parametrize(("limit_s", "is_awaited"), [(600.0, True), (-1e6, False)])
def test_a_claim_of_another_host_is_awaited_until_its_time_limit_is_over_and_never_removed(
    limit_s: float, is_awaited: bool, folder: ResultsFolder
) -> None:
    subprocess.run([sys.executable, "-c", _CLAIMS, str(folder.path), str(limit_s)], check=True)
    assert claimed_elsewhere(folder, "node1", "experiment", ()) == ({0: "node2"} if is_awaited else {})
    assert claimed_elsewhere(folder, "node1", "experiment", {0}) == {}
    assert abandoned(folder, "node1", "experiment") == []
    assert claim(folder, "node1", "experiment", 0, {}) is None


def test_an_abandoned_claim_is_taken_over_by_one_process_only(folder: ResultsFolder) -> None:
    subprocess.run([sys.executable, "-c", _CLAIMS, str(folder.path), "600"], check=True)
    (left,) = abandoned(folder, "node2", "experiment")
    assert abandoned(folder, "node2", "experiment") == []
    assert json.loads((left.path / "claim.json").read_text())["noted"] == {"limit_s": 600.0}


@pytest.mark.parametrize(("machine", "is_dead"), [("another", False), (None, True)])
def test_a_host_of_the_same_name_is_another_host_unless_it_has_the_same_machine_id(
    machine: str | None, is_dead: bool, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "machine_id", lambda: "this")
    claimed = claim(folder, "localhost", "experiment", 0, {})
    assert claimed is not None
    path = claimed.path / "claim.json"
    owner = {**json.loads(path.read_text()), "boot": "an earlier one"}
    path.write_text(json.dumps(owner if machine is None else {**owner, "machine": machine}))
    assert bool(abandoned(folder, "localhost", "experiment")) is is_dead


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"host": "node2", "pid": "../1", "noted": 1}', "[" * 100_000])
def test_a_damaged_claim_is_neither_awaited_nor_taken(text: str, folder: ResultsFolder) -> None:
    damaged = folder.artefacts("experiment", 0)
    damaged.mkdir(parents=True)
    (damaged / "claim.json").write_text(text)
    assert abandoned(folder, "node2", "experiment") == []
    assert len(claimed_elsewhere(folder, "node1", "experiment", ())) == (1 if "node2" in text else 0)
