"""Heads of records: the same repeats as reading the whole folder, in a small part of the time."""

from __future__ import annotations

from contextlib import suppress

import pytest

from seatrial.errors import ProtocolError
from seatrial.model.results.record import RepeatRecord, crc_tail, decode, encode
from seatrial.model.results.sample import Outcome, Sample, Stage
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads

OTHER = "b" * 16
MINE = "a" * 16


def record(repeat: int, experiment: str = MINE, outcome: Outcome | None = None) -> RepeatRecord:
    seen = {"block": f"w:{repeat}", "study": "s", "budget_s": 2, "load_1m": None, "notes": {"block": "not this one"}}
    samples = (Sample("fma", 0, 0.5, {"flops": 2.0}),)
    return RepeatRecord(experiment, repeat, repeat, 100.0 + repeat, 0.5, outcome or Outcome.ok(), samples, {}, seen)


def write(folder: ResultsFolder, name: str, *lines: bytes) -> None:
    (folder.path / "records" / name).write_bytes(b"".join(lines))


def test_heads_have_what_a_run_needs_and_lead_to_the_whole_record(folder: ResultsFolder) -> None:
    failed = Outcome.failed(Stage.RUN, "it stopped", "line")
    write(folder, "one.jsonl", encode(record(1)), encode(record(0)), encode(record(0, OTHER)))
    write(folder, "two.jsonl", encode(record(1, outcome=failed)), encode(record(2, outcome=failed)))
    heads = read_heads(folder, {MINE})
    assert list(heads) == [MINE]
    assert [(head.repeat, head.t0, head.wall_s, head.outcome) for head in heads[MINE]] == [
        (0, 100.0, 0.5, Outcome.ok()),
        (1, 101.0, 0.5, Outcome.ok()),
        (2, 102.0, 0.5, failed),
    ]
    seen = heads[MINE][0].seen
    assert [seen.get(name) for name in ("block", "study", "budget_s", "load_1m")] == ["w:0", "s", 2.0, None]
    assert heads[MINE][0].full() == record(0)


def test_damaged_lines_are_left_out(folder: ResultsFolder) -> None:
    no_head = b'{"v":1,"experiment":"' + MINE.encode() + b'","repeat":"5"'
    huge = b'{"v":1,"experiment":"' + MINE.encode() + b'","repeat":-1,"t0":{'
    whole = encode(record(0))
    lines = [
        whole[:-20] + b"\n",
        whole.replace(b'"t0":100', b'"t0":200'),
        b"\n",
        b"[]\n",
        b"\xff\xfe\n",
        b'{"v":1,"experiment":"\n',
    ]
    lines += [body + crc_tail(body) + b"\n" for body in (no_head, huge)]
    write(folder, "one.jsonl", *lines, encode(record(3)), encode(record(4))[:-1])
    assert [head.repeat for head in read_heads(folder, {MINE})[MINE]] == [3]


def test_a_line_in_another_form_is_read_too(folder: ResultsFolder) -> None:
    body = (
        encode(record(7))[: -len(crc_tail(b"")) - 1]
        .replace(b'{"v":1,"exp', b'{ "v":1,"exp')
        .replace(b'"w:7"', b' "w:7"')
    )
    write(folder, "one.jsonl", body + crc_tail(body) + b"\n")
    assert [head.repeat for head in read_heads(folder, {MINE, OTHER, "longer than those"})[MINE]] == [7]


def test_what_the_whole_folder_accepts_has_a_head(folder: ResultsFolder) -> None:
    """A repeat without one would be made again, under a number that is taken."""
    tail = len(crc_tail(b"")) + 1
    empty_stage = encode(record(0))[:-tail].replace(b'"stage":null', b'"stage":""')
    null_block = encode(record(1))[:-tail].replace(b'"block":"w:1"', b'"other":null')
    later_version = encode(record(2))[:-tail].replace(b'"v":1', b'"v":2')
    lines = [body + crc_tail(body) for body in (empty_stage, null_block, later_version)]
    write(folder, "one.jsonl", *(line + b"\n" for line in lines))
    accepted = []
    for line in lines:
        with suppress(ProtocolError):
            accepted.append(decode(line).repeat)
    assert accepted == [0, 1] == [head.repeat for head in read_heads(folder, {MINE})[MINE]]


def test_a_folder_without_records_has_no_heads(folder: ResultsFolder) -> None:
    (folder.path / "records").rmdir()
    assert read_heads(folder, {MINE}) == {MINE: []}


def test_a_rest_that_is_no_record_is_an_error_once_it_is_read(folder: ResultsFolder) -> None:
    body = encode(record(0))[: -len(crc_tail(b"")) - 1].replace(b'"samples":[', b'"samples":["x",')
    write(folder, "one.jsonl", body + crc_tail(body) + b"\n")
    (head,) = read_heads(folder, {MINE})[MINE]
    with pytest.raises(ProtocolError):
        head.full()


def test_a_file_that_changes_between_is_an_error(folder: ResultsFolder) -> None:
    write(folder, "one.jsonl", encode(record(0)), encode(record(1)))
    first, _ = read_heads(folder, {MINE})[MINE]
    write(folder, "one.jsonl", encode(record(1)), encode(record(0)))
    with pytest.raises(ProtocolError, match="changed while it was read"):
        first.full()
