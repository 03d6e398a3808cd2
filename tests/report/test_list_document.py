from __future__ import annotations

from dataclasses import replace

import jsonschema
from made_up import made_up_machine

from seatrial.benchmarks import registry
from seatrial.report.list_document import list_document
from seatrial.report.schemas import schema
from seatrial.report.text import list_text


def test_it_follows_its_schema_and_names_every_state():
    stream, *others = registry().values()
    asked = (stream, replace(others[0], verified=False), replace(others[-1], needs=lambda machine: "root: run as root"))
    document = list_document(asked, made_up_machine(), ["gcc 12.2.0"], {})
    jsonschema.validate(document, schema("list-1"), cls=jsonschema.Draft202012Validator)
    states = [(entry["state"], entry["need"]) for entry in document["benchmarks"]]
    assert states == [("ready", None), ("unverified", None), ("unsupported", "root: run as root")]


def test_without_a_compiler_nothing_can_be_measured():
    missing = dict.fromkeys(registry(), "compiler: install g++")
    document = list_document(registry().values(), made_up_machine(), ["gcc 12.2.0"], missing)
    assert {entry["need"] for entry in document["benchmarks"]} == {"compiler: install g++"}
    assert "needs compiler: install g++" in list_text(document["benchmarks"], document["compilers"])


def test_a_benchmark_whose_program_is_missing_says_so_alone():
    document = list_document(registry().values(), made_up_machine(), [], {"io.file": "fio: install it"})
    needs = {entry["name"]: entry["need"] for entry in document["benchmarks"]}
    assert needs["io.file"] == "fio: install it" and needs["cpu.peak"] is None


def test_defaults_are_written_as_on_the_command_line():
    (stream,) = (b for b in registry().values() if b.name == "memory.stream")
    (entry,) = list_document([stream], made_up_machine(), ["gcc 12.2.0"], {})["benchmarks"]
    assert {p["name"]: p["default"] for p in entry["parameters"]} == {
        "threads": "all",
        "nontemporal": "false",
        "huge_pages": "true",
        "array_B": "auto",
        "kernel": "all",
        "node": "auto",
        "memory": "local",
    }
