"""`seatrial list --references`: text that hides no contradiction, JSON that follows its schema."""

from __future__ import annotations

import copy
import json

import jsonschema
import published_schemas
import pytest

from seatrial.cli.list import _list, print_references
from seatrial.cli.output import Format, Output
from seatrial.references.loader import all_references, shipped_references
from seatrial.report.documents.list import references_document
from seatrial.report.text.list import references_text

JSON = Output(output_format=Format.JSON)
LIST = {"schema": "seatrial.list/1", "benchmarks": []}


@pytest.fixture(autouse=True)
def no_own_file(monkeypatch, tmp_path):
    monkeypatch.delenv("SEATRIAL_REFERENCES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def check(document) -> None:
    published_schemas.check(document, "list-1")


def test_the_document_follows_its_schema_and_holds_every_value():
    document = {**LIST, "references": references_document(all_references())}
    check(json.loads(json.dumps(document, allow_nan=False)))
    check(LIST)
    entries = {entry["id"]: entry for entry in document["references"]}
    assert entries.keys() == {reference.id for reference in shipped_references()}
    assert entries["s2.hpl-4-v100"]["value"] == 20e12 and entries["s2.hpl-4-v100"]["qualifier"] == "more than"
    assert entries["s2.p2p-v100"]["qualifier"] is None and entries["s9.hpl-container"]["year"] is None
    assert entries["s4.transfer-k-printed"]["contradicts"] == ["s4.copy-time-k", "s4.copy-rate-k"]


@pytest.mark.parametrize("change", [{"value": 0}, {"unit": "a furlong"}, {"qualifier": "roughly"}, {"ci95": None}])
def test_the_schema_refuses_what_is_no_reference(change):
    document = {**LIST, "references": copy.deepcopy(references_document(shipped_references()[:1]))}
    check(document)
    document["references"][0].update(change)
    with pytest.raises(jsonschema.ValidationError):
        check(document)


def test_the_text_names_every_value_its_source_and_what_contradicts_it():
    text = references_text(shipped_references())
    lines = text.splitlines()
    for reference in shipped_references():
        marked = [line for line in lines if line[2:].startswith(f"{reference.id} ")]
        assert len(marked) == 1 and marked[0].startswith("!" if reference.contradicts else " "), reference.id
        if reference.contradicts:
            assert f"      contradicts {', '.join(reference.contradicts)}" in lines
        assert reference.source in text and reference.remark in text
    assert "another machine, no interval" in lines[0]


def test_the_command_says_which_own_file_takes_part(capsys, monkeypatch, tmp_path):
    print_references()
    assert "own file: none" in capsys.readouterr().out
    own = tmp_path / "ours.toml"
    own.write_text(
        'study = "site"\n[[reference]]\nid = "a"\nbenchmark = "b"\nfigure = "c"\nvalue = 2\n', encoding="utf-8"
    )
    monkeypatch.setenv("SEATRIAL_REFERENCES", str(own))
    print_references()
    out = capsys.readouterr().out
    assert f"own file: {own}" in out and "site.a" in out and "no source given" in out


def test_the_command_keeps_what_can_be_measured_in_json_and_leaves_it_out_of_the_text(capsys):
    _list(references=True, out=JSON)
    document = json.loads(capsys.readouterr().out)
    check(document)
    assert document["benchmarks"] and len(document["references"]) == len(shipped_references())
    _list(out=JSON)
    assert "references" not in json.loads(capsys.readouterr().out)
    _list(references=True, out=Output())
    assert "compilers:" not in capsys.readouterr().out
