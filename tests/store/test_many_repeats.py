"""Many repeats take little memory, and are what `decode` reads."""

from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path

import pytest

from seatrial.errors import StoreError
from seatrial.model.experiment import Experiment
from seatrial.model.outcome import Outcome
from seatrial.model.record import RepeatRecord, decode, encode
from seatrial.model.sample import Sample
from seatrial.stats.sums import _cut
from seatrial.stats.sums_many import Table
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

EXPERIMENT = Experiment("memory.stream", {"threads": 2}, "", "program", "")


def folder_of(path: Path, repeats: int) -> tuple[ResultsFolder, Path]:
    folder = ResultsFolder.create(path)
    folder.put("experiments", EXPERIMENT.id, EXPERIMENT.document())
    file = folder.path / "records" / "host-1-1.jsonl"
    file.write_bytes(b"".join(encode(record(n)) for n in range(repeats)))
    return folder, file


def record(n: int) -> RepeatRecord:
    seen = {
        "host": "h\u00e9",
        "block": f"b:{n}",
        "libs": {f"lib{k}.so": "0" * 40 for k in range(20)},
        "command": ["prog", "--record", f"/r/artefacts/0123456789abcdef/{n}"],
        "notes": {"seed": n, "huge": 2**70, "none": None},
    }
    samples = tuple(Sample("triad", k, 1e-3 + n * 1e-9 + k * 1e-8, {"bytes": 1e6}) for k in range(5))
    return RepeatRecord(EXPERIMENT.id, n, n, 1e9 + n, 0.3, Outcome.ok(), samples, {"x": 0.0, "y": None}, seen)


def test_the_fast_decoder_reads_what_decode_defines(tmp_path: Path) -> None:
    folder, file = folder_of(tmp_path / "r", 3)
    odd = encode(record(3)).replace(b'"host":"h\\u00e9"', b'"host":"\\udcff"')[:-1]  # a name that is not UTF-8
    body = odd[: odd.rindex(b',"crc"')]

    file.write_bytes(file.read_bytes() + body + b',"crc":"%08x"}\n' % zlib.crc32(body))
    expected = tuple(decode(line) for line in file.read_bytes().splitlines())
    assert read_contents(folder).records[EXPERIMENT.id] == expected


def test_stored_records_share_what_is_equal_and_leave_samples_in_the_file(tmp_path: Path) -> None:
    folder, file = folder_of(tmp_path / "r", 2000)
    lines = file.read_bytes().splitlines()
    tracemalloc.start()
    decoded = [decode(line) for line in lines]
    whole = tracemalloc.get_traced_memory()[1]
    del decoded
    tracemalloc.clear_traces()
    contents = read_contents(folder)
    streamed = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(contents.records[EXPERIMENT.id]) == 2000
    assert streamed < whole / 2


def test_a_file_that_changed_after_it_was_read_is_not_believed(tmp_path: Path) -> None:
    folder, file = folder_of(tmp_path / "r", 2)
    first = read_contents(folder).records[EXPERIMENT.id][0]
    file.write_bytes(file.read_bytes().replace(b"0.001", b"0.002"))
    with pytest.raises(StoreError, match="changed while it was read"):
        list(first.samples)


@pytest.mark.parametrize("triangle", [False, True])
def test_arrays_cut_where_lists_do(triangle: bool) -> None:
    values = sorted((n * 37 % 101) / 7 for n in range(60))
    for bound in {x + y for x in values[::7] for y in values[::5]}:
        cut = Table(values, values, triangle=triangle)._cut(bound)
        assert tuple(rows.tolist() for rows in cut) == _cut(values, values, bound, triangle)
