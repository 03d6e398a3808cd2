"""The engine on a real program: repeats, stopping, resuming, taking over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from engine.harness import make_ready, run_experiments, run_once, tampered

from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.engine.listener import Listener, Progress
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import command_of
from seatrial.environments.cached_files import origins
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.plan.points import Point
from seatrial.stats.interval import MINIMUM_REPEATS, StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.lab]

LEAST = StoppingRule(budget_s=0.0)


@pytest.fixture
def ready(live_machine: Machine, folder: ResultsFolder) -> Ready:
    return make_ready(PEAK, live_machine, folder, cores="one")


def records(folder: ResultsFolder, ready: Ready) -> tuple[RepeatRecord, ...]:
    return read_contents(folder).records.get(ready.experiment.id, ())


@dataclass
class Watching(Listener):
    order: list[str] = field(default_factory=list)
    stop_at: int = 10**9

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        assert progress.remaining_s >= 0
        if len(self.order) >= self.stop_at:
            raise KeyboardInterrupt

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        self.order.append(str(point.parameters["precision"]))


def test_a_small_budget_still_gets_the_minimum_number_of_repeats(
    live_machine: Machine, folder: ResultsFolder, ready: Ready
) -> None:
    made = run_experiments([ready], live_machine, folder, LEAST, Listener())
    assert made == {ready.experiment.id}
    found = records(folder, ready)
    assert len(found) == MINIMUM_REPEATS
    seen = found[0].seen
    assert seen["affinity"] == [[ready.point.cpus[0]]] and seen["libs"]
    assert seen["command"][0] == origins([str(ready.program.path)])[0]
    assert {"load_1m", "variables", "host", "program_s", "notes"} <= set(seen)
    assert found[0].wall_s >= seen["program_s"]


def test_a_finished_experiment_is_skipped_and_again_adds_repeats(
    live_machine: Machine, folder: ResultsFolder, ready: Ready
) -> None:
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    assert run_experiments([ready], live_machine, folder, LEAST, Listener()) == frozenset()
    assert run_experiments([ready], live_machine, folder, LEAST, Listener(), again=True) == {ready.experiment.id}
    assert [record.repeat for record in records(folder, ready)] == list(range(2 * MINIMUM_REPEATS))


def test_another_budget_neither_reopens_nor_finishes_an_experiment(
    live_machine: Machine, folder: ResultsFolder, ready: Ready
) -> None:
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    more = StoppingRule(precision=0.0, budget_s=4.0)
    assert run_experiments([ready], live_machine, folder, more, Listener()) == frozenset()
    with pytest.raises(KeyboardInterrupt):
        run_experiments([ready], live_machine, folder, more, Watching(stop_at=2), again=True)
    assert run_experiments([ready], live_machine, folder, more, Listener()) == {ready.experiment.id}


def test_a_failure_after_good_repeats_is_tried_again(
    live_machine: Machine, folder: ResultsFolder, ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    import seatrial.engine.repeat as repeat

    run_experiments([ready], live_machine, folder, LEAST, Listener())
    with monkeypatch.context() as patch:
        patch.setattr(repeat, "command_of", lambda item, directory: ["/nowhere/program"])
        run_experiments([ready], live_machine, folder, LEAST, Listener(), again=True)
    assert [record.outcome.is_ok for record in records(folder, ready)] == [True] * MINIMUM_REPEATS + [False]
    assert run_experiments([ready], live_machine, folder, LEAST, Listener()) == {ready.experiment.id}
    assert records(folder, ready)[-1].outcome.is_ok
    assert run_experiments([ready], live_machine, folder, LEAST, Listener()) == frozenset()


def test_a_clock_that_is_set_back_does_not_hide_the_newest_repeats(
    live_machine: Machine, folder: ResultsFolder, ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    import seatrial.engine.repeat as repeat

    now = time.time()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now + 86_400)  # and set right after this failure
        patch.setattr(repeat, "command_of", lambda item, directory: ["/nowhere/program"])
        run_experiments([ready], live_machine, folder, LEAST, Listener())
    assert run_experiments([ready], live_machine, folder, LEAST, Listener()) == {ready.experiment.id}
    made = records(folder, ready)
    assert not made[0].outcome.is_ok and made[0].t0 > made[-1].t0 and made[-1].outcome.is_ok
    assert run_experiments([ready], live_machine, folder, LEAST, Listener()) == frozenset()
    run_experiments([ready], live_machine, folder, LEAST, Listener(), again=True)
    assert len(records(folder, ready)) == 1 + 2 * MINIMUM_REPEATS


def test_every_block_holds_each_experiment_once_in_an_order_that_varies(
    live_machine: Machine, folder: ResultsFolder
) -> None:
    both = [make_ready(PEAK, live_machine, folder, cores="one", precision=p) for p in ("fp64", "fp32")]
    watching = Watching()
    run_experiments(both, live_machine, folder, LEAST, watching)
    blocks = [tuple(watching.order[k : k + 2]) for k in range(0, len(watching.order), 2)]
    assert len(blocks) == MINIMUM_REPEATS and all(set(block) == {"fp64", "fp32"} for block in blocks)
    orders = [r.order for key in {b.experiment.id for b in both} for r in read_contents(folder).records[key]]
    assert sorted(orders) == list(range(len(orders)))


def test_an_interrupted_run_keeps_finished_repeats_and_resumes(
    live_machine: Machine, folder: ResultsFolder, ready: Ready
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiments([ready], live_machine, folder, LEAST, Watching(stop_at=2))
    assert len(records(folder, ready)) == 2
    assert not list(folder.path.glob("artefacts/*/[0-9]*"))
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    assert len(records(folder, ready)) == MINIMUM_REPEATS


def test_a_failure_ends_the_experiment_keeps_its_output_and_is_tried_again_when_asked(
    live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = {"program.hpp": ("program.end();", 'std::fputs("it broke\\n", stderr); std::raise(SIGABRT);')}
    with monkeypatch.context() as patch:
        broken = tampered(PEAK, tmp_path, fault, patch)
        ready = make_ready(broken, live_machine, folder, cores="one")
        record = run_once(ready, live_machine, folder)
    assert not record.outcome.is_ok and record.outcome.evidence == "it broke"
    assert (folder.artefacts(ready.experiment.id, 0) / "stderr").read_text() == "it broke\n"
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    assert [r.repeat for r in records(folder, ready)] == [0, 1]


_CLAIMS_AND_DIES = """
import sys
from pathlib import Path
from seatrial.store.claim import claim
from seatrial.store.folder import ResultsFolder
import platform
noted = {"order": 5, "t0": 1234.5, "variables": {}}
claim(ResultsFolder.existing(Path(sys.argv[1])), platform.node(), sys.argv[2], 0, noted)
"""


@pytest.mark.parametrize("program_ended", [True, False])
def test_a_repeat_of_a_killed_run_is_recovered_if_its_program_had_ended(
    program_ended: bool, live_machine: Machine, folder: ResultsFolder, ready: Ready
) -> None:
    subprocess.run([sys.executable, "-c", _CLAIMS_AND_DIES, str(folder.path), ready.experiment.id], check=True)
    claimed = folder.artefacts(ready.experiment.id, 0)
    subprocess.run(command_of(ready, claimed), check=True)
    written = claimed / "rank-000000.jsonl"
    if not program_ended:
        written.write_bytes(written.read_bytes().rpartition(b'{"ev":"end"}')[0])
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    found = records(folder, ready)
    assert len(found) == MINIMUM_REPEATS and all(record.outcome.is_ok for record in found)
    assert [record.t0 == 1234.5 for record in found].count(True) == int(program_ended)
    assert bool(found[0].seen.get("recovered")) is program_ended
    assert not list(folder.path.glob("artefacts/*/[0-9]*"))


def test_a_kill_between_record_and_release_of_the_claim_repeats_nothing(
    live_machine: Machine, folder: ResultsFolder, ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    subprocess.run([sys.executable, "-c", _CLAIMS_AND_DIES, str(folder.path), ready.experiment.id], check=True)
    run_experiments([ready], live_machine, folder, LEAST, Listener())
    assert [record.repeat for record in records(folder, ready)] == list(range(MINIMUM_REPEATS))
    assert not list(folder.path.glob("artefacts/*/[0-9]*"))


def test_keep_keeps_the_output_of_every_repeat(live_machine: Machine, folder: ResultsFolder, ready: Ready) -> None:
    run_experiments([ready], live_machine, folder, LEAST, Listener(), keep=True)
    kept = sorted(int(path.name) for path in (folder.path / "artefacts" / ready.experiment.id).iterdir())
    assert kept == list(range(MINIMUM_REPEATS))
    lines = (folder.artefacts(ready.experiment.id, 0) / "rank-000000.jsonl").read_text().splitlines()
    events = [json.loads(line)["ev"] for line in lines]
    assert events[0] == "hello" and events[-1] == "end"


def test_a_program_does_not_outlive_a_killed_run(ready: Ready, tmp_path: Path) -> None:
    """The program gets its parent's id; if the parent has ended, it exits at once instead of measuring."""
    arguments = command_of(ready, tmp_path)
    arguments[arguments.index("--parent") + 1] = str(os.getpid() + 1_000_000)
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode != 0 and "parent" in done.stderr


def test_the_point_of_a_refused_experiment_is_not_run(live_machine: Machine) -> None:
    from seatrial.engine.prepare import prepare
    from seatrial.engine.ready import Refused
    from seatrial.environments.chosen import Environments, native_environment
    from seatrial.plan.points import plan_points

    (point,) = plan_points(["memory.stream"], {"threads": ["100000"]}, live_machine)
    (item,) = prepare([point], Environments.always(native_environment(live_machine)), "machine", Listener())
    assert isinstance(item, Refused)
    assert "100000 threads" in item.outcome.reason
