"""`kill -9` at random system calls of a run: no finished repeat is lost or run twice, and the command completes.

SEATRIAL_KILLS sets how many runs are killed (docs/results/README.md has a run with 100).
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.model.benchmark.program import parse_record
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.lab]

KILLS = int(os.environ.get("SEATRIAL_KILLS", "4"))
_RUN = ["run", "cpu.peak", "--set", "cores=one", "--budget", "1s", "--results"]


def command(results: Path) -> list[str]:
    return [sys.executable, "-m", "seatrial", *_RUN, str(results)]


def calls_of_a_run(strace: str, folder: Path) -> list[tuple[str, int]]:
    """Every system call of the main process of a whole run, in order: its name, and the how-manieth of that name.

    strace counts for each name apart, so that is how a call has to be named to it.
    """
    log = folder / "strace.log"
    subprocess.run(command(folder / "warm"), check=True, capture_output=True)  # builds the program
    subprocess.run([strace, "-qq", "-o", str(log), *command(folder / "traced")], check=True, capture_output=True)
    seen: Counter[str] = Counter()
    calls: list[tuple[str, int]] = []
    for name in re.findall(r"^(\w+)\(", log.read_text(errors="replace"), re.MULTILINE):
        seen[name] += 1
        calls.append((name, seen[name]))
    return calls


def finished(results: Path) -> list[float]:
    """The start times of all repeats that were recorded, or whose program wrote its end."""
    if not (results / "FORMAT").exists():
        return []
    contents = read_contents(ResultsFolder.existing(results))
    assert contents.damaged == ()
    recorded = {(key, r.repeat): r.t0 for key, records in contents.records.items() for r in records}
    for claim in results.glob("artefacts/*/[0-9]*/rank-000000.jsonl"):
        if parse_record(claim.read_bytes()).ended:
            noted = json.loads((claim.parent / "claim.json").read_text())["noted"]
            recorded.setdefault((claim.parent.parent.name, int(claim.parent.name)), noted["t0"])
    return sorted(recorded.values())


def test_a_run_that_is_killed_anywhere_resumes(tmp_path: Path, need: Callable[[str, str], str]) -> None:
    strace = need("strace", "apt install strace")
    try:
        calls = calls_of_a_run(strace, tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"strace cannot trace here: {error.stderr.decode(errors='replace')[-200:]}")
    measuring = next(k for k, (name, _) in enumerate(calls) if name in ("vfork", "wait4", "waitid"))
    source = random.Random(int(os.environ.get("SEATRIAL_KILL_SEED", "1")))
    recovered = killed = 0
    for number in range(KILLS):
        results = tmp_path / f"killed-{number}"
        # Half of the kills fall on the measuring part, which has few calls beside those that load Python.
        name, count = source.choice(calls if number % 2 else calls[measuring:])
        inject = f"inject={name}:signal=SIGKILL:when={count}"
        traced = subprocess.run(
            [strace, "-qq", "-o", "/dev/null", "-e", inject, *command(results)], capture_output=True
        )
        killed += traced.returncode != 0
        before = finished(results)
        again = subprocess.run(command(results), capture_output=True, text=True, timeout=120)
        assert again.returncode == 0, f"after a kill at {name} number {count}: {again.stderr}"
        contents = read_contents(ResultsFolder.existing(results))
        assert contents.damaged == ()
        records = [record for kept in contents.records.values() for record in kept]
        times = [record.t0 for record in records]
        assert set(before) <= set(times), f"after a kill at {name} number {count} a finished repeat was lost"
        assert len(times) == len(set(times)) and len(records) >= 6
        assert all(record.outcome.is_ok for record in records)
        assert not list(results.glob("artefacts/*/[0-9]*")), "a claim was left behind"
        recovered += sum(1 for record in records if record.seen.get("recovered"))
    print(f"{killed} of {KILLS} runs killed within {len(calls)} system calls; {recovered} repeats were taken over")
    assert killed > KILLS // 2
