"""Secrets in arguments reach no record, page, message or identity; what a program prints is private."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cli.in_process import seatrial_here

SECRETS = ("hunter2verysecret", "s3cretword9", "urlsecret77", "qtok8888")
WORDS = ["--password=hunter2verysecret", "-p", "s3cretword9", "https://u:urlsecret77@h/?token=qtok8888"]
STUDY = """
study: private
question: Does a secret stay private?
benchmarks:
  command: {argv: %s, expected_s: 1}
repeat: {max: 6, budget: 20s}
"""


def study(folder: Path, *commands: list[str]) -> None:
    argv = commands[0] if len(commands) == 1 else list(commands)
    (folder / "study.yaml").write_text(STUDY % json.dumps(argv))


@pytest.mark.real
@pytest.mark.lab
def test_no_file_and_no_message_of_ours_has_a_secret(tmp_path: Path) -> None:
    says = ["sh", "-c", "exit 0", "x", *WORDS]
    fails = ["sh", "-c", 'echo "wrong: $@" >&2; exit 3', "x", *WORDS]
    study(tmp_path, says, fails)
    shown = [seatrial_here("plan", "study.yaml", *how, cwd=tmp_path) for how in ((), ("--format", "json"))]
    shown += [seatrial_here("run", "study.yaml", *how, cwd=tmp_path) for how in ((), ("--format", "json"))]
    shown.append(seatrial_here("report", "seatrial-results", "-o", "page.html", cwd=tmp_path))
    (tmp_path / "study.yaml").unlink()
    assert [one.returncode for one in shown] == [0, 0, 3, 3, 0], [one.stderr for one in shown]
    texts = {one.args[1]: one.stdout + one.stderr for one in shown}
    outputs = {path for path in tmp_path.rglob("*") if path.name in ("stdout", "stderr")}
    texts |= {str(p): p.read_text() for p in tmp_path.rglob("*") if p.is_file() and p not in outputs}
    for place, text in texts.items():
        if not place.endswith("rank-000000.jsonl"):  # of the failed repeats, in a folder that only its owner opens
            assert not any(secret in text for secret in SECRETS), place
    assert outputs and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in outputs)
    assert all(stat.S_IMODE(path.parent.stat().st_mode) == 0o700 for path in outputs)
    assert "arguments that look like secrets are masked" in shown[2].stdout
    assert "--password=***" in (tmp_path / "page.html").read_text()


@pytest.mark.real
@pytest.mark.lab
def test_another_secret_is_the_same_experiment(tmp_path: Path) -> None:
    experiments = []
    for secret in ("first", "second"):
        study(tmp_path, ["true", f"--password={secret}"])
        planned = json.loads(seatrial_here("plan", "study.yaml", "--format", "json", cwd=tmp_path).stdout)
        experiments.append([one["id"] for one in planned["experiments"]])
    assert experiments[0] == experiments[1]


def test_points_that_only_a_secret_distinguishes_are_refused(tmp_path: Path) -> None:
    study(tmp_path, ["true", "-p", "fast"], ["true", "-p", "slow"])
    for command in ("plan", "run"):
        refused = seatrial_here(command, "study.yaml", cwd=tmp_path)
        assert refused.returncode == 2 and "differ only in an argument that is masked" in refused.stderr, refused.stderr
    assert not (tmp_path / "seatrial-results" / "records").exists()
