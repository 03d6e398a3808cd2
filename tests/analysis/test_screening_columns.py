"""Records read by column give a screen what whole records give."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from analysis.ordinary_screen import ordinary_input
from made_up import made_up_machine

from seatrial.analysis.screening import columns
from seatrial.analysis.screening.gathered import screen_folder
from seatrial.analysis.screening.inputs import screen_input
from seatrial.model.machine.document import machine_document
from seatrial.model.results.record import Experiment, RepeatRecord, content_key, encode
from seatrial.model.results.sample import Outcome, Sample, Stage
from seatrial.model.study.screen import ScreenInput
from seatrial.store import reading
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

DECLARED = {
    "name": "mine",
    "question": "?",
    "parameters": [],
    "figures": [{"name": "rate", "unit": "1", "better": "higher"}],
}
OUTCOMES = (
    Outcome.invalid("residual", "too large"),
    Outcome.failed(Stage.RUN, "exit status 1", "the end of its output"),
    Outcome.timed_out(20.0),
)
RATE = "rate [1, higher is better]"
HOSTS = ("n1", "n2", "n10", "n01", "n3")
CHAINS = {"chain_fmas": 1000, "chain_s": [[1e-9, 2e-9]], "add_ops": 1000, "add_s": [2.5e-10], "vector_bits": 512}


class Varied:
    """A folder with records of many kinds, good and bad."""

    def __init__(self, path: Path, seed: int) -> None:
        self.folder = ResultsFolder.create(path)
        self.source = random.Random(seed)
        self.folder.put("environments", "env", {"name": "gcc 12 -O3", "flags": ["-O3"]})
        self.folder.put("environments", "own", {"name": "none", "declaration": DECLARED})
        self.lines: dict[str, list[bytes]] = {host: [] for host in HOSTS}

    def experiment(self, benchmark: str, host: str, environment: str = "env", **parameters: object) -> str:
        """The id of an experiment on a machine of its own; every third machine is like that of others."""
        name = f"machine-{host}" if host != "n3" else "machine-n1"
        self.folder.put(
            "machines", content_key({"host": name}), {"identity": name, **machine_document(made_up_machine())}
        )
        experiment = Experiment(benchmark, dict(parameters), environment, "program", name)  # type: ignore[arg-type]
        self.folder.put("experiments", experiment.id, experiment.document())
        return experiment.id

    def add(self, key: str, host: str, repeat: int, samples: list[Sample], **more: Any) -> bytes:
        """Add a record to the file of a host; its line."""
        outcome = more.pop("outcome", Outcome.ok())
        seen = {"host": host, "clock_step_s": self.source.choice((0.0, 1e-9)), **more}
        t0 = 1.7e9 + self.source.randrange(4)
        record = RepeatRecord(key, repeat, self.source.randrange(3), t0, 0.3, outcome, tuple(samples), {"c": 0.0}, seen)
        self.lines[host].append(encode(record))
        return self.lines[host][-1]

    def time(self) -> float:
        """A time in seconds."""
        return self.source.choice((0.001, self.source.uniform(0.9e-3, 1.1e-3)))

    def write(self) -> ResultsFolder:
        """Write the files."""
        for host, lines in self.lines.items():
            (self.folder.path / "records" / f"{host}-1-1.jsonl").write_bytes(b"".join(lines))
        return self.folder


def with_checksum(line: bytes, old: bytes, new: bytes) -> bytes:
    body = line[: line.rindex(b',"crc"')]
    assert old in body
    body = body.replace(old, new, 1)
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def varied(path: Path, seed: int) -> ResultsFolder:
    made = Varied(path, seed)
    source, time = made.source, made.time
    repeats = {host: [7 * place + k for k in range(7)] for place, host in enumerate(HOSTS)}
    for host in HOSTS:
        for numbers in repeats.values():
            source.shuffle(numbers)
        peak = made.experiment("cpu.peak", host, precision="fp64", cores="one")
        surface = made.experiment("io.file", host, pattern="sequential", direct=False)
        latency = made.experiment("memory.latency", host, cpu=0, deep=source.choice((True, 1)))
        gpu = made.experiment("gpu.max-flops", host, device=source.randrange(2), precision="fp32")
        declared = made.experiment("local.mine", host, "own")
        for n in repeats[host]:
            each = [Sample("fma", k, time(), {"flops": source.choice((1e6, 1.5e6))}, extra=CHAINS) for k in range(3)]
            ends = source.choice(OUTCOMES) if source.random() < 0.15 else Outcome.ok()
            line = made.add(peak, host, n, each, outcome=ends)
            kind = source.randrange(12)
            if kind == 0:
                made.lines[host].append(line)  # twice
            elif kind == 1:
                made.lines[host][-1] = line.replace(b'"repeat"', b'"Repeat"')  # its checksum is wrong
            elif kind == 2:
                made.lines[host][-1] = with_checksum(line, b'"order":', b' "order" : ')  # not as usual
            elif kind == 3:
                made.lines[host][-1] = with_checksum(line, b'"n":3', b'"n":4')
            elif kind == 4:
                empty = b'[{"series":"fma","point":{"x":1},"rank":0,"n":0,"i":[],"elapsed_s":[],"work":{},"extra":{}},{'
                made.lines[host][-1] = with_checksum(line, b'"samples":[{', b'"samples":' + empty)
            elif kind == 5:
                made.lines[host][-1] = with_checksum(line, b'"v":1,', b'"v":1,"later":2,')
            files = [
                Sample(
                    call,
                    0,
                    time(),
                    {"bytes": 1e6 + k, "ops": 10.0},
                    0,
                    {"file_B": 1 << k, "record_B": 8},
                    {"resolution": 0.01},
                )
                for call in ("write", "read")
                for k in range(3)
            ]
            made.add(surface, host, n, files)
            sets = [
                Sample(
                    "load",
                    k,
                    time(),
                    {"ops": 1000},
                    rank,
                    {"working_set_B": source.choice((size, float(size)))},
                    {"add_s": [[time()]]},
                )
                for size in source.sample((4096, 8192, 16384), 3)
                for rank in (0, 1)
                for k in range(2)
            ]
            made.add(latency, host, n, sets)
            made.add(gpu, host, n, [Sample("add", 0, time(), {"flops": 1e9})], affinity=[[0]])
            rate = Sample(RATE, 0, 1.0, {"value": source.choice((3, 2.5))})
            made.add(
                declared,
                host,
                n,
                [rate],
                links=[{"port": "mlx5_0/1", "counter": "symbol_error", "kind": "error", "grew_by": n}],
            )
    broken = made.experiment("memory.stream", "n1", threads=1)
    for n in range(3):
        made.add(broken, "n1", n, [Sample("triad", 0, time(), {} if n == 1 else {"bytes": 1e6})])
    failed = made.experiment("memory.stream", "n2", threads=2)
    made.add(failed, "n2", 0, [Sample("triad", 0, time(), {"bytes": 1e6})], outcome=OUTCOMES[0])
    lost = Experiment("memory.stream", {"threads": 3}, "env", "program", "machine-n1")
    made.add(lost.id, "n1", 0, [Sample("triad", 0, time(), {"bytes": 1e6})])
    without_machine = Experiment("memory.stream", {"threads": 4}, "env", "program", "nowhere")
    made.folder.put("experiments", without_machine.id, without_machine.document())
    made.add(without_machine.id, "n1", 0, [Sample("triad", 0, time(), {"bytes": 1e6})])
    unknown = made.experiment("memory.other", "n1")
    made.add(unknown, "n1", 0, [])
    of_nodes(made)
    folder = made.write()
    with (folder.path / "records" / "n1-1-1.jsonl").open("ab") as file:
        file.write(b'{"v":1,"experiment":"torn')
    (folder.path / "records" / "n4-1-1.jsonl").symlink_to("n1-1-1.jsonl")
    return folder


def of_nodes(made: Varied) -> None:
    """Pairs of ranks on three nodes, and the halves of a bisection."""
    time, hosts = made.time, ["n1", "n1", "n2", "n10"]
    pairs = made.experiment("mpi.pairs", "n1", at_once=made.source.choice((1, 0)))
    half = made.experiment("mpi.bisection", "n1", half="n1+n2")
    for n in range(4):
        each = [
            Sample(series, 0, time(), {"ops": 10.0, "bytes": 1e6}, a, {"a": a, "b": b}, {"best_s": time()})
            for series in ("latency", "bandwidth")
            for b in range(4)
            for a in range(b)
        ]
        made.add(pairs, "n1", n, each if n else [], hosts=hosts)
        bandwidth = [Sample("bandwidth", k, time(), {"bytes": 1e6}, 0, {"bisection": k}) for k in range(2)]
        made.add(half, "n1", n, bandwidth, hosts=hosts)


def whole(folder: ResultsFolder) -> Contents:
    """The contents, with an object for each sample."""
    found = read_contents(folder)
    records = {
        key: tuple(replace(one, samples=tuple(one.samples)) for one in own) for key, own in found.records.items()
    }
    return replace(found, records=records)


def plain(given: ScreenInput) -> object:
    """Everything in it, with values as lists and the types of numbers, in order."""
    figures = tuple(
        (replace(one, values=()), [list(own) for own in one.values], list(one.parameters.items()))
        for one in given.figures
    )
    results = sorted((node, sorted(names)) for node, names in given.results.items())  # a set has no order
    return repr((replace(given, figures=(), results={}), figures, results))


def test_columns_give_what_whole_records_give(tmp_path: Path) -> None:
    switches: Mapping[str, str] = {"n1": "s1", "n2": "s1", "n10": "s2"}
    said: list[str] = []
    for seed in range(8):
        folder = varied(tmp_path / f"r{seed}", seed)
        contents, by_column = whole(folder), screen_folder(folder)
        expected = ordinary_input([contents], switches)
        assert plain(screen_input([by_column], switches)) == plain(expected)
        assert list(by_column.damaged) == list(contents.damaged)
        assert len(expected.figures) > 14 and expected.link_counts and expected.failed
        assert expected.halves and any(len(one.pairs) == 3 for one in expected.pairs)
        said += contents.damaged
    for text in ("duplicate repeat", "checksum", "torn", "experiment", "is a link", "is missing", "version 1"):
        assert any(text in one for one in said) is (text != "torn"), text


def test_folders_of_one_node_each_are_one_cluster(tmp_path: Path) -> None:
    folders = [varied(tmp_path / f"r{seed}", seed) for seed in (20, 21)]
    expected = ordinary_input([whole(folder) for folder in folders])
    assert plain(screen_input([screen_folder(folder) for folder in folders])) == plain(expected)


@pytest.mark.real
def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = varied(tmp_path / "r", 30)
    alone = screen_folder(folder)
    for module, name, value in (
        (reading, "LARGE_B", 1),
        (reading, "SPAN_B", 9000),
        (columns, "TASK_B", 20_000),
    ):
        monkeypatch.setattr(module, name, value)
    assert len(columns.tasks_of(folder)[0]) > 5
    in_parts = screen_folder(folder)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    found = screen_folder(folder)
    assert plain(screen_input([found])) == plain(screen_input([alone])) == plain(screen_input([in_parts]))
    # A file that cannot be read is named by each part of it.
    assert found.damaged == in_parts.damaged == alone.damaged


def test_an_empty_folder_and_one_without_records(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "r")
    found = screen_folder(folder)
    assert screen_input([found]).nodes == () and not found.experiments and not found.damaged
    (folder.path / "records").rmdir()
    assert screen_folder(folder).damaged == []
    (folder.path / "records").write_text("no folder")
    assert list(screen_folder(folder).damaged) == list(read_contents(folder).damaged) != []


def test_whole_numbers_are_as_in_whole_records(tmp_path: Path) -> None:
    made = Varied(tmp_path / "r", 1)
    key = made.experiment("local.mine", "n1", "own")
    for n in range(2):
        made.add(key, "n1", n, [Sample(RATE, 0, 1.0, {"value": 3 if n else 2.5})])
    folder = made.write()
    (figure,) = screen_input([screen_folder(folder)]).figures
    assert json.dumps(sorted(figure.values[0])) == json.dumps(
        sorted(ordinary_input([whole(folder)]).figures[0].values[0])
    )


def test_messages_between_nodes_that_share_a_cpu_are_no_figure_of_a_link(tmp_path: Path) -> None:
    made = Varied(tmp_path / "r", 1)
    pairs, hosts = made.experiment("mpi.pairs", "n1", at_once=1), ["n1", "n2", "n3", "n4"]
    for n in range(3):
        each = [
            Sample(series, 0, 1e-3, {"ops": 10.0, "bytes": 1e6}, a, {"a": a, "b": b}, {"best_s": 1e-3, "worst_s": 0.3})
            for series in ("latency", "bandwidth")
            for b in range(4)
            for a in range(b)
        ]
        made.add(pairs, "n1", n, each, hosts=hosts, shared_cpus=[["n1", "n3"], ["n2", "n4"]])
    given = screen_input([screen_folder(made.write())])
    assert {one.pairs for one in given.pairs} == {(("n1", "n2"), ("n1", "n4"), ("n2", "n3"), ("n3", "n4"))}
    assert {count.grew_by for count in given.link_counts} == {3 * 2 * 2}, "of two partners each"
