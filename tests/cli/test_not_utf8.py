"""Paths, arguments and home folders that are not UTF-8: what is measured with them is stored, read and shown."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from cli.in_process import seatrial_here

from seatrial.model.json_object import as_utf8, json_of
from seatrial.model.results.record import Experiment, RepeatRecord, decode, encode
from seatrial.model.results.sample import Outcome, State
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

ODD = os.fsdecode(b"a\xffb")


def test_a_record_and_its_experiment_are_read_by_their_own_reader(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / ODD)
    experiment = Experiment("command", {"argv": (f"./{ODD}",)}, "", "", "m")
    folder.put("experiments", experiment.id, experiment.document())
    found = folder.get("experiments", experiment.id)
    assert found["parameters"]["argv"] == [r"./a\xffb"] and Experiment.from_document(found).id == experiment.id
    record = RepeatRecord(experiment.id, 0, 0, 1.0, 2.0, Outcome(State.OK), seen={"command": [ODD], "é": float("nan")})
    assert decode(encode(record)[:-1]).seen == {"command": [r"a\xffb"], "é": None}


def test_other_characters_stay() -> None:
    assert as_utf8("é\N{PILE OF POO}\\xff") == "é\N{PILE OF POO}\\xff"
    assert json.loads(json_of({ODD: [ODD, "\N{PILE OF POO}"]})) == {r"a\xffb": [r"a\xffb", "\N{PILE OF POO}"]}


@pytest.mark.lab
def test_nothing_measured_is_lost(tmp_path: Path) -> None:
    work, home = tmp_path / ODD, tmp_path / f"{ODD}-home"
    work.mkdir()
    home.mkdir()
    shutil.copy("/bin/true", work / ODD)

    def say(*words: str) -> str:
        done = seatrial_here(*words, cwd=work, HOME=str(home))
        assert done.returncode == 0 and "ignored" not in done.stderr, done.stderr
        return done.stdout

    say("run", "command", "--budget", "200ms", "--results", f"r{ODD}", "--", f"./{ODD}", ODD)
    contents = read_contents(ResultsFolder.existing(work / f"r{ODD}"))
    assert contents.damaged == () and [len(own) >= 3 for own in contents.records.values()] == [True]
    rows = list(csv.DictReader(io.StringIO(say("export", f"r{ODD}"))))
    assert json.loads(rows[0]["parameters"])["argv"] == [r"./a\xffb", r"a\xffb"]
    say("report", f"r{ODD}")
    assert r"a\xffb" in (work / f"r{ODD}" / "report.html").read_text(encoding="utf-8")
    assert r"a\xffb" in say("query", f"r{ODD}", "select parameters->'argv'->>0 as a from experiments")
