"""A folder that is read from its index: nothing differs from reading its records, whatever they are, and after any
change."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy
from msgspec.structs import replace

from seatrial.analysis.folder import contents_in
from seatrial.analysis.index import known
from seatrial.analysis.results import all_results, trials_of
from seatrial.model.results.figure_result import RepeatValues
from seatrial.model.results.record import crc_tail, decode, encode
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_blocks import KeptRepeats


@pytest.fixture(autouse=True)
def all_folders_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("seatrial.analysis.index.known.LARGE_B", 0)


@pytest.fixture
def made(tmp_path: Path) -> MadeUpFolder:
    """Every outcome, and observations of every form."""
    made = MadeUpFolder(tmp_path / "r")
    observed = [{"load_1m": 0.5 + n, "notes": {"fma": "fused", "n": n % 2}, "kernel_events": []} for n in range(8)]
    observed[3] = {"notes": {}, "command": ["/x/é\u202e", 'a "b"\\'], "load_1m": None, "big": 2**70, "small": -0.0}
    made.add(noisy(1e9, 8), each=observed)
    made.add(noisy(2e9, 3), label="few", seen={"kernel_events": ["EDAC"], "hosts": ["n1", "n2"]})
    made.add(noisy(1e18, 6), label="impossible")
    made.add(noisy(1e9, 6), label="emulated", host="n2", emulated=True)
    made.add(noisy(1e9, 6), label="turns", seen={"together": 2})
    made.add([1e9], label="failed", outcome=Outcome.failed(Stage.RUN, "it ended", "killed"))
    made.add([], label="none")
    made.add(noisy(1e9, 6), label="stated", seen={"": "a name that is empty"})
    made.add(noisy(1e9, 7), label="unordered", starts=[5, 4, 3, 2, 1, 0, 6], blocks=[f"b{n}" for n in range(7)])
    return made


def from_index(folder: ResultsFolder) -> Contents:
    found = known.known_contents(folder)
    assert found is not None
    return found


def assert_same(folder: ResultsFolder) -> None:
    """The records are compared as text, too: an index must not change the order of names, nor 0 to 0.0."""
    direct, indexed = read_contents(folder), from_index(folder)
    assert list(direct.experiments.items()) == list(indexed.experiments.items())
    assert list(direct.records) == list(indexed.records)
    for key, own in direct.records.items():
        assert own == indexed.records[key]
        assert [encode(one) for one in own] == [encode(one) for one in indexed.records[key]]
        assert list(direct.places.of(key).items()) == list(indexed.places.of(key).items())
    for name in ("machines", "environments", "studies", "damaged"):
        assert getattr(direct, name) == getattr(indexed, name)
    assert all_results(direct) == all_results(indexed)
    for one, other in zip(trials_of(direct), trials_of(indexed), strict=True):
        assert (one.findings, list(one.seen.items()), list(one.places.items())) == (
            other.findings, list(other.seen.items()), list(other.places.items())
        )  # fmt: skip


def test_a_folder_read_from_its_index_is_the_same(made: MadeUpFolder) -> None:
    assert_same(made.folder)
    states = {one.outcome.state for one in all_results(from_index(made.folder))}
    assert states == {State.OK, State.INVALID, State.FAILED}


def test_an_index_gives_no_object_for_each_repeat(made: MadeUpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """300,000 numbers as objects take 7 MB more for each column, and as rows of a sort several times that."""
    monkeypatch.setattr("seatrial.analysis.index.records._PART", 2)
    assert_same(made.folder)
    contents = from_index(made.folder)
    for result in contents.results.values():
        for figure in result.shown:
            assert isinstance(figure.repeats, RepeatValues)
            columns = [
                getattr(figure.repeats, name) for name in ("orders", "repeats", "resolutions", "starts", "values")
            ]
            assert all(isinstance(column, array) or not column for column in columns)
    kept = next(iter(contents.records.values()))
    assert isinstance(kept, KeptRepeats)
    columns = kept._kept._columns
    bytes_of_a_repeat = sum(getattr(columns, name).itemsize for name in columns.__struct_fields__)
    assert bytes_of_a_repeat <= 64, "times have 8 bytes each; numbers as few as hold them"


def test_many_repeats_of_an_experiment_are_the_same(made: MadeUpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.record_blocks._MANY", 2)
    monkeypatch.setattr("seatrial.store.reading.SPAN_B", 1500)
    assert_same(made.folder)


def rewritten(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))


def spaced(line: bytes) -> bytes:
    """The same record, not as it is usually written."""
    document = json.loads(line)
    del document["crc"]
    body = json.dumps(document, separators=(", ", ": ")).encode()[:-1]
    return body + crc_tail(body)


def test_no_change_of_a_folder_is_missed(made: MadeUpFolder) -> None:
    records = made.folder.path / "records"
    assert_same(made.folder)
    first, *_, last = sorted(records.glob("*.jsonl"))
    kept = last.read_bytes()

    made.add(noisy(3e9, 2), label="later")
    assert_same(made.folder)
    (records / "a-before-all.jsonl").write_bytes(
        encode(replace(decode(first.read_bytes().splitlines()[0]), repeat=50, order=50, t0=1e9))
    )
    assert_same(made.folder)
    with last.open("ab") as file:
        file.write(encode(replace(decode(kept.splitlines()[0]), repeat=60))[:-20])
    assert_same(made.folder)
    with last.open("ab") as file:
        file.write(b"\n")
    assert known.known_contents(made.folder) is None, "a line is damaged: the folder is read, and names the line"
    assert contents_in(made.folder.path).damaged == read_contents(made.folder).damaged != ()
    last.write_bytes(kept)
    assert_same(made.folder)
    rewritten(first, lambda lines: [spaced(lines[0]), *lines[1:]])
    assert_same(made.folder)
    rewritten(
        first, lambda lines: [encode(replace(decode(lines[0]), outcome=Outcome.invalid("x", "y")))[:-1], *lines[1:]]
    )
    assert_same(made.folder)
    rewritten(first, lambda lines: lines[1:])
    assert_same(made.folder)
    last.unlink()
    assert_same(made.folder)


def test_an_addition_computes_only_what_it_concerns(made: MadeUpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    from_index(made.folder)
    from seatrial.analysis.index import build

    original, asked = build.result_of, list[str]()
    monkeypatch.setattr(build, "result_of", lambda key, *rest: asked.append(key) or original(key, *rest))
    added = made.add(noisy(3e9, 2), label="later")
    assert_same(made.folder)
    assert asked == [added]


def test_a_reader_of_the_index_reads_no_line(made: MadeUpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    from_index(made.folder)
    for name in ("seatrial.store.contents.LineDecoder", "seatrial.analysis.results.computed"):
        monkeypatch.setattr(name, lambda *_: pytest.fail("it is read"))
    assert len(all_results(contents_in(made.folder.path))) == 8


def test_a_folder_whose_index_cannot_be_read_is_read_itself(
    made: MadeUpFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    def fail(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(known, "kept_results", fail)
    assert all_results(contents_in(made.folder.path)) == all_results(read_contents(made.folder))
