"""Many repeats take little memory, and are what `decode` reads."""

from __future__ import annotations

import json
import random
import tracemalloc
import zlib
from pathlib import Path

import pytest
from store.test_store import EXPERIMENT

from seatrial.errors import ProtocolError, StoreError
from seatrial.model.results.record import RepeatRecord, decode, encode
from seatrial.model.results.sample import Outcome, Sample
from seatrial.stats.ranks import SumTable, _cut
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_lines import LineDecoder
from seatrial.store.stored_samples import PartReader, RecordFile


def filled(folder: ResultsFolder, repeats: int) -> Path:
    file = folder.path / "records" / "host-1-1.jsonl"
    file.write_bytes(b"".join(encode(record(n)) for n in range(repeats)))
    return file


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


def with_checksum(body: bytes) -> bytes:
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


def fast(lines: list[bytes], folder: ResultsFolder) -> list[RepeatRecord | str]:
    """What the fast decoder reads, samples included, or its error."""
    path = folder.path / "records" / "odd.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    decoder, file = LineDecoder(), RecordFile(path.name, PartReader(folder.path))
    found: list[RepeatRecord | str] = []
    offset = 0
    for line in lines:
        try:
            one = decoder.decode(line, file, offset)
            assert list(one.samples) is not None
            found.append(one)
        except ProtocolError as error:
            found.append(error.message)
        offset += len(line) + 1
    return found


def slow(line: bytes) -> RepeatRecord | str:
    try:
        return decode(line)
    except ProtocolError as error:
        return error.message


ODD = {
    "a key twice": (b'"repeat":1,', b'"repeat":1,"repeat":1,'),
    "a key twice in what was seen": (b'"block":', b'"block":"b:1","block":'),
    "a key twice in a part": (b'"none":null', b'"none":null,"none":1'),
    "a key twice in samples": (b'"work":{', b'"work":{"bytes":{"all":1},'),
    "a key twice in checks": (b'"y":null', b'"y":null,"y":null'),
    "a key twice and a space": (b'"repeat":1,', b'"repeat":1,"repeat" :1,'),
    "spaces": (b'"repeat":1,', b' "repeat" : 1,'),
    "not a number": (b'"x":0.0', b'"x":NaN'),
    "an infinite number": (b'"x":0.0', b'"x":1e999'),
    "a large number": (b'"seed":1', b'"seed":1' + b"0" * 400),
    "a very large number": (b'"seed":1', b'"seed":1' + b"0" * 9000),
    "a large work": (b'"bytes":{"all":1000000.0}', b'"bytes":{"all":1' + b"0" * 400 + b"}"),
    "a large integer": (b'"i":[0,', b'"i":[' + b"9" * 30 + b","),
    "an index that is no integer": (b'"i":[0,', b'"i":[0.5,'),
    "half a surrogate pair": (b'"host":"h', b'"host":"\\udcff'),
    "half a pair in a point": (b'"point":{}', b'"point":{"\\ud800":1}'),
    "no UTF-8": (b'"host":"h', b'"host":"\xff'),
    "no UTF-8 in samples": (b'"series":"tri', b'"series":"\xff'),
    "a wrong type": (b'"block":"', b'"block":7,"b":"'),
    "a wrong variable": (b'"libs":{', b'"libs":{"a":7,'),
    "deep": (b'"none":null', b'"none":' + b"[" * 300 + b"]" * 300),
    "very deep": (b'"none":null', b'"none":' + b"[" * 100_000 + b"]" * 100_000),
    "a short column": (b'"n":5', b'"n":6'),
    "a negative length": (b'"n":5', b'"n":-5'),
    "many samples in a short line": (b'"n":5,"i":[0,1,2,3,4]', b'"n":4000000,"i":{"all":1}'),
    "another version": (b'"v":1', b'"v":2'),
    "no version": (b'"v":1,', b""),
    "a key more": (b'"v":1,', b'"v":1,"later":[1,{"a":2}],'),
    "an unknown outcome": (b'"outcome":"ok"', b'"outcome":"good"'),
    "an escaped key": (b'"block"', b'"bl\\u006fck"'),
    "a quoted key in a text": (b'"reason":""', b'"reason":"\\",\\"samples\\":[]"'),
    "samples seen": (b'"block":', b'"samples":[],"block":'),
    "samples seen deeper": (b'"notes":{', b'"notes":{"a":1,"samples":[],"checks":{},'),
    "samples first": (b'{"v":1,', b'{"samples":[],"v":1,'),
    "a key twice and a space in samples": (b'"n":5,', b'"n":5,"n" :5,'),
    "a key twice and a colon in samples": (b'"series":"triad"', b'"series":"a:b","series":"triad"'),
    "a colon in a series": (b'"series":"triad"', b'"series":"a:b"'),
    "a quoted key in a series": (b'"series":"triad"', b'"series":"a\\":b"'),
    "checks in samples": (b'"extra":{}', b'"extra":{"a":{"all":1},"checks":{"all":2}}'),
    "a point of many kinds": (b'"point":{}', b'"point":{"a":"x","b":true,"c":1,"d":2.5}'),
    "extra values": (b'"extra":{}', b'"extra":{"a":[1,2.5,"x",null,true],"b":{"all":[1,{"c":2}]}}'),
    "null as work": (b'"bytes":{"all":1000000.0}', b'"bytes":{"all":null}'),
}


@pytest.mark.parametrize("edit", ODD.values(), ids=ODD)
def test_the_fast_decoder_reads_what_decode_defines(edit: tuple[bytes, bytes], folder: ResultsFolder) -> None:
    usual = encode(record(1))[:-1]
    body = usual[: usual.rindex(b',"crc"')]
    assert edit[0] in body
    odd = with_checksum(body.replace(*edit, 1))
    assert fast([usual, odd, usual], folder) == [decode(usual), slow(odd), decode(usual)]


def test_keys_in_another_order_are_read(folder: ResultsFolder) -> None:
    """Also where a text and what was seen imitate the usual order, and make up for the keys that are elsewhere."""
    usual = encode(record(1))[:-1]
    for name in ("checks", "samples", "seen", "reason"):
        for extra in ({}, {"x": 0, "samples": [], "checks": 0}, {"x": '":', "samples": '":":'}):
            document = json.loads(usual)
            document.pop("crc")
            document["seen"] |= extra
            document["evidence"] = '":' * 3
            moved = {name: document.pop(name), **document}
            odd = with_checksum(json.dumps(moved, separators=(",", ":")).encode()[:-1])
            assert fast([usual, odd, usual], folder) == [decode(usual), slow(odd), decode(usual)]


def test_the_fast_decoder_refuses_what_decode_refuses(folder: ResultsFolder) -> None:
    source = random.Random(15)
    usual = encode(record(1))[:-1]
    body = usual[: usual.rindex(b',"crc"')]
    lines = []
    for _ in range(1500):
        line = bytearray(body)
        for _ in range(source.choice((1, 1, 2))):
            start = source.randrange(len(line))
            end = start + source.choice((0, 1, 1, 3))
            line[start:end] = source.choice(
                (b"", b"0", b"-", b"9", b"e9", b"null", b'"', b",", b"{", b"]", b" ", b"\\")
            )
        lines.append(with_checksum(bytes(line)))
    assert fast(lines, folder) == [slow(line) for line in lines]


def test_stored_records_share_what_is_equal_and_leave_samples_in_the_file(folder: ResultsFolder) -> None:
    file = filled(folder, 2000)
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


def test_a_file_that_changed_after_it_was_read_is_not_believed(folder: ResultsFolder) -> None:
    file = filled(folder, 2)
    first = read_contents(folder).records[EXPERIMENT.id][0]
    file.write_bytes(file.read_bytes().replace(b"0.001", b"0.002"))
    with pytest.raises(StoreError, match="changed while it was read"):
        list(first.samples)


@pytest.mark.parametrize("triangle", [False, True])
def test_arrays_cut_where_lists_do(triangle: bool) -> None:
    values = sorted((n * 37 % 101) / 7 for n in range(60))
    for bound in {x + y for x in values[::7] for y in values[::5]}:
        cut = SumTable(values, values, triangle=triangle)._cut(bound)
        assert tuple(rows.tolist() for rows in cut) == _cut(values, values, bound, triangle)
