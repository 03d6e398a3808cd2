"""`seatrial import`: exit status, JSON, what is written and what is not."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from applications.result_texts import as_bytes, babelstream, fio, google_benchmark, hpl, hpl_row, stream
from cli.in_process import seatrial_here
from conftest import SHARED_DATA
from made_up import made_up_machine
from published_schemas import check

from seatrial.benchmarks import benchmark_named
from seatrial.cli.import_ import _import
from seatrial.cli.output import Format, Output
from seatrial.engine.importing import Given, ResultFile, read_repeats
from seatrial.errors import ParseError, UnknownNameError, UsageError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

OUTPUTS = SHARED_DATA / "outputs"
JSON = Output(output_format=Format.JSON)

Import = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def do_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Import:
    """`do_import("stream=a.txt", settings=("threads=2",))`: (exit status, the answer)."""

    def run(*files: str, settings: tuple[str, ...] = (), results: str = "r", live: bool = False) -> tuple[int, Any]:
        named = [file.replace("=", f"={tmp_path}/", 1) for file in files]
        status = _import(named, live=live, settings=list(settings), results=tmp_path / results, out=JSON)
        document = json.loads(capsys.readouterr().out)
        check(document, "results-1")
        return status, document

    return run


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def contents(tmp_path: Path, results: str = "r") -> Contents:
    found = read_contents(ResultsFolder.existing(tmp_path / results))
    assert found.damaged == ()
    return found


def records(tmp_path: Path, results: str = "r") -> list[RepeatRecord]:
    return [record for own in contents(tmp_path, results).records.values() for record in own]


def figure(document: dict[str, Any], name: str, experiment: int = 0) -> dict[str, Any]:
    return next(f for f in document["experiments"][experiment]["figures"] if f["name"] == name)


def test_files_are_repeats_of_one_experiment(tmp_path: Path, put: Any, do_import: Import) -> None:
    put("a.txt", stream())
    put("b.txt", stream(rates_MBps=(38000.0, 43000.0, 39000.0, 38000.5)))
    status, document = do_import("stream=a.txt", "stream=b.txt")
    assert status == 0 and len(document["experiments"]) == 1
    experiment = document["experiments"][0]
    assert (experiment["benchmark"], experiment["outcome"], experiment["reused"]) == ("memory.stream", "ok", False)
    assert experiment["parameters"]["threads"] == 2 and experiment["parameters"]["array_B"] == 640_000_000
    triad = figure(document, "triad")
    assert (triad["min"], triad["max"], triad["n_repeats"]) == (38000.5e6, 38487e6, 2)
    assert triad["limit"] is None and triad["unit"] == "B/s" and triad["ci95"] is None
    environment = document["environments"][experiment["environment"]]
    assert environment == {"name": "STREAM 5.10 (imported)", "tool": "STREAM", "version": "5.10", "kind": "stream"}


def test_the_record_states_its_source_and_date(tmp_path: Path, put: Any, do_import: Import) -> None:
    path = put("deep.txt", stream())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    do_import("stream=deep.txt")
    (record,) = records(tmp_path)
    assert record.seen["source"] == {
        "file": "deep.txt",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "kind": "stream",
        "tool": "STREAM",
        "version": "5.10",
    }
    assert record.t0 == 1_700_000_000
    assert str(tmp_path) not in json.dumps(dict(record.seen))
    assert "nontemporal" in record.seen["parameters_not_told"]


def test_a_date_in_the_file_becomes_that_of_the_record(tmp_path: Path, put: Any, do_import: Import) -> None:
    put("f.json", as_bytes(fio()))
    do_import("fio-json=f.json")
    assert records(tmp_path)[0].t0 == 1795293280.212


def test_the_same_file_is_recorded_once(tmp_path: Path, put: Any, do_import: Import) -> None:
    put("a.txt", stream())
    _, first = do_import("stream=a.txt", "stream=a.txt")
    assert figure(first, "copy")["n_repeats"] == 1
    status, again = do_import("stream=a.txt")
    assert status == 0 and again["experiments"][0]["reused"] is True
    assert figure(again, "copy")["n_repeats"] == 1 and len(records(tmp_path)) == 1
    _, other = do_import("stream=a.txt", settings=("nontemporal=true",))
    assert other["experiments"][0]["reused"] is False and len(records(tmp_path)) == 2


def test_a_machine_named_only_by_a_file_is_not_this_one(tmp_path: Path, put: Any, do_import: Import) -> None:
    put("g.json", as_bytes(google_benchmark()))
    put("a.txt", stream())
    do_import("google-benchmark-json=g.json", "stream=a.txt")
    machines = contents(tmp_path).machines
    assert sorted(document["name"] for document in machines.values()) == ["node7", "not told"]
    _, live = do_import("stream=a.txt", live=True)
    assert live["experiments"][0]["machine"] not in machines


@pytest.mark.parametrize(
    ("settings", "status", "outcome"),
    [
        (("peak_flops=1.18e11",), 0, "ok"),
        (("peak_flops=55Gflop/s",), 0, "ok"),
        (("peak_flops=54e9",), 3, "invalid"),
        (("peak_Bps=1",), 0, "ok"),
        ((), 0, "ok"),
    ],
)
def test_a_rate_above_the_given_peak_is_invalid(
    put: Any, do_import: Import, settings: tuple[str, ...], status: int, outcome: str
) -> None:
    put("hpl.txt", hpl())  # 55.5 GFLOP/s
    got, document = do_import("hpl=hpl.txt", settings=settings)
    experiment = document["experiments"][0]
    assert (got, experiment["outcome"]) == (status, outcome)
    if outcome == "invalid":
        assert experiment["figures"] == [] and "physically possible" in experiment["reason"]
    else:
        limit = figure(document, "rate")["limit"]
        assert (limit is None) == (not settings or "flops" not in settings[0])


def test_a_stream_rate_above_the_given_memory_is_invalid(put: Any, do_import: Import) -> None:
    put("a.txt", stream())
    assert do_import("stream=a.txt", settings=("peak_Bps=40GB/s",))[0] == 3  # scale: 43.2 GB/s
    status, document = do_import("stream=a.txt", settings=("peak_Bps=50GB/s",))
    assert status == 0 and figure(document, "scale")["fraction_of_limit"] == pytest.approx(0.864778)


def test_a_peak_applies_to_one_import_only(put: Any, do_import: Import) -> None:
    put("a.txt", stream())
    put("b.txt", stream(rates_MBps=(38000.0, 43000.0, 39000.0, 38000.5)))
    assert do_import("stream=a.txt", settings=("peak_Bps=40GB/s",))[0] == 3
    status, document = do_import("stream=b.txt")
    assert status == 0 and figure(document, "copy")["limit"] is None


def judged(file: ResultFile, machine: Machine) -> tuple[str, str]:
    (repeat,) = read_repeats([file], Given(machine))
    return repeat.outcome.state.value, repeat.outcome.reason


def test_the_limits_and_caches_of_a_known_machine_hold() -> None:
    file = ResultFile("stream", "a.txt", stream().encode())
    assert judged(file, made_up_machine(channels=2))[0] == "ok"
    state, reason = judged(file, made_up_machine(channels=1))  # 25.6 GB/s
    assert state == "invalid" and "physically possible" in reason
    state, reason = judged(file, made_up_machine(l3_bytes=512 << 20))
    assert state == "invalid" and "array_bytes" in reason
    assert judged(file, made_up_machine(l3_bytes=None))[0] == "ok"


def test_more_processes_than_the_machine_has_cpus_ran_on_several() -> None:
    from dataclasses import replace

    from seatrial.model.machine.limit import Basis, Limit
    from seatrial.model.machine.machine import NamedLimit

    peak = NamedLimit("cpu.fp64", Limit(1e10, "flop/s", "made up", Basis.PHYSICAL))
    machine = replace(made_up_machine(cores=2), limits=(peak,))
    many = ResultFile("hpl", "hpl.txt", hpl().encode())  # 2 x 2 processes
    few = ResultFile("hpl", "hpl.txt", hpl(((hpl_row(20000, 55.5, p=1), True),)).encode())
    assert judged(many, machine)[0] == "ok"
    assert judged(few, machine)[0] == "invalid"


def test_wrong_results_are_invalid_and_keep_their_samples(tmp_path: Path, put: Any, do_import: Import) -> None:
    put("bad.txt", stream(validation="Failed Validation on array b[], AvgRelAbsErr > epsilon (1.000000e-13)"))
    put("hpl.txt", hpl(((hpl_row(20000, 55.5), True), (hpl_row(30000, 60.0), False))))
    status, document = do_import("stream=bad.txt", "hpl=hpl.txt")
    assert status == 3
    assert [experiment["outcome"] for experiment in document["experiments"]] == ["invalid", "ok", "invalid"]
    assert "array b[]" in document["experiments"][0]["reason"]
    assert all(record.samples for record in records(tmp_path))


def test_one_invalid_file_among_valid_ones_sets_the_exit_status(put: Any, do_import: Import) -> None:
    os.utime(put("bad.txt", stream(validation="Failed Validation on array b[]")), (1e9, 1e9))
    put("good.txt", stream())
    assert do_import("stream=bad.txt", "stream=good.txt")[0] == 3


@pytest.mark.parametrize(
    ("file", "settings", "error", "words"),
    [
        ("stream=cut.txt", (), ParseError, "cut.txt"),
        ("stream=good.txt", ("runs=3",), UsageError, "runs=repeats"),
        ("stream=two.txt", (), ParseError, "Copy here"),
        ("stream=absent.txt", (), UsageError, "absent.txt"),
        ("stream=", (), UsageError, "directory"),
        ("stream", (), UsageError, "KIND=FILE"),
        ("strem=good.txt", (), UnknownNameError, "stream"),
        ("stream=good.txt", ("thread=2",), UnknownNameError, "threads"),
        ("stream=good.txt", ("threads=3",), UsageError, "contradicts"),
        ("stream=good.txt", ("threads=1,2",), UsageError, "separate commands"),
        ("stream=good.txt", ("nontemporal=perhaps",), UsageError, "true or false"),
        ("stream=good.txt", ("peak_flops=fast",), UsageError, "quantity"),
        ("stream=good.txt", ("peak_flops=0",), UsageError, "above 0"),
        ("stream=good.txt", ("peak_Bps=5s",), UsageError, "above 0"),
        ("stream=good.txt", ("peak_Bps=1e999",), UsageError, "above 0"),
    ],
)
def test_bad_usage_writes_nothing(
    tmp_path: Path, put: Any, do_import: Import, file: str, settings: tuple[str, ...], error: type, words: str
) -> None:
    put("good.txt", stream())
    put("cut.txt", stream()[:900])
    put("two.txt", stream().replace("Copy:", "Kopie:") + stream())
    with pytest.raises(error, match=words):
        do_import("stream=good.txt", file, settings=settings)
    assert not (tmp_path / "r").exists()


def test_settings_add_what_a_file_does_not_state(put: Any, do_import: Import) -> None:
    put("serial.txt", stream(threads=None))
    _, document = do_import("stream=serial.txt", settings=("threads=8", "nontemporal=true"))
    assert document["experiments"][0]["parameters"]["threads"] == 8, "one thread was an assumption"
    assert document["experiments"][0]["parameters"]["nontemporal"] is True


def test_a_setting_applies_to_the_benchmarks_that_have_it(put: Any, do_import: Import) -> None:
    put("a.txt", stream())
    put("b.txt", babelstream())
    status, document = do_import("stream=a.txt", "babelstream=b.txt", settings=("nontemporal=true",))
    assert status == 0 and "nontemporal" not in document["experiments"][1]["parameters"]


def test_two_results_with_the_same_settings_in_one_file_are_rejected(put: Any, do_import: Import) -> None:
    text = hpl(((hpl_row(20000, 55.5), True), (hpl_row(20000, 56.5), True)))
    put("hpl.txt", text)
    _, document = do_import("hpl=hpl.txt")  # the same setting twice: samples of one repeat
    assert figure(document, "rate")["n_repeats"] == 1 and figure(document, "rate")["n_samples"] == 2
    assert figure(document, "rate")["median"] == 56e9


def test_imports_at_the_same_time_do_not_lose_each_other(tmp_path: Path, put: Any) -> None:
    names = [f"{i}.txt" for i in range(4)]
    for i, name in enumerate(names):
        put(name, stream(rates_MBps=(38000.0 + i, 43000.0, 39000.0, 38000.0)))
    command = [sys.executable, "-m", "seatrial", "import", "--results", "r"]
    running = [
        subprocess.Popen([*command, f"stream={name}"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for name in names
    ]
    assert [process.communicate()[1] and process.returncode for process in running] == [0] * 4
    assert len(records(tmp_path)) == 4
    assert not list((tmp_path / "r" / "artefacts").glob("*/*"))


def test_the_command_line(tmp_path: Path, put: Any) -> None:
    put("a.txt", stream())
    put("cut.txt", stream()[:900])
    done = seatrial_here("import", "stream=a.txt", cwd=tmp_path)
    assert done.returncode == 0 and "memory.stream" in done.stdout and "38.9 GB/s" in done.stdout
    assert "nontemporal" in done.stderr and "--set" in done.stderr
    done = seatrial_here("import", "stream=cut.txt", "--format", "json", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr and "cut.txt" in done.stderr
    done = seatrial_here("import", "stream=-", cwd=tmp_path, stdin=stream().encode())
    assert done.returncode == 0, done.stderr
    assert len(records(tmp_path, "seatrial-results")) == 1, "the same bytes, from standard input"


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the third-party samples (shared/data/outputs) are not here")
def test_real_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {
        "hpcc": "hpcc_n2000.txt",
        "hpcg": "hpcg_openmpi_2x64.txt",
        "thebandwidthbenchmark": "thebandwidthbenchmark_avx512_run1.txt",
        "babelstream": "babelstream_omp_run1.txt",
        "fio-json": "fio_seqread_128k.json",
        "stream": "stream_run1.txt",
    }
    files = [f"{kind}={OUTPUTS / name}" for kind, name in kinds.items()]
    assert _import(files, results=tmp_path / "r", out=JSON) == 0
    document = json.loads(capsys.readouterr().out)
    found = {
        (experiment["benchmark"], f["name"]): f["median"]
        for experiment in document["experiments"]
        for f in experiment["figures"]
    }
    assert found[("imported.hpcc", "hpl")] == 1.77404e10
    assert found[("imported.hpcc", "star_stream_copy")] == 6.63936e10
    assert found[("imported.hpcc", "ping_pong_latency_avg")] == 3.60403e-7
    assert found[("imported.hpcc", "mpi_random_access")] == 7775340.0
    assert found[("imported.hpcg", "rating")] == 3.45821e9
    assert found[("imported.thebandwidthbenchmark", "striad")] == 56.82e9
    assert found[("imported.babelstream", "dot")] == 38110374000.0
    assert found[("imported.fio-json", "read")] == 706810455.0
    assert found[("imported.fio-json", "read_iops")] == 5392.535821
    assert found[("memory.stream", "copy")] == 38853.9e6
    notes = [record.seen["notes"] for record in records(tmp_path) if record.seen["source"]["kind"] == "hpcg"]
    assert notes[0]["submission_valid"] is False


STATED = {
    "osu_latency_openmpi_run1.txt": ("osu", {"ranks", "buffers", "datatype"}),
    "osu_bw_openmpi_run1.txt": ("osu", {"ranks", "buffers", "datatype"}),
    "osu_allreduce_openmpi_run1.txt": ("osu", {"buffers", "datatype", "call", "operation", "start"}),
    "imb_pingpong_openmpi_run1.txt": ("imb", {"ranks", "buffers", "datatype"}),
    "stream_run1.txt": ("stream", {"threads", "array_B", "kernel"}),
}


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the third-party samples (shared/data/outputs) are not here")
@pytest.mark.parametrize("name", sorted(STATED))
def test_what_a_file_does_not_state_is_unknown(name: str, put: Any, do_import: Import) -> None:
    """A default would claim what nobody knows, as that STREAM had huge pages."""
    kind, stated = STATED[name]
    _, document = do_import(f"{kind}={put(name, (OUTPUTS / name).read_bytes()).name}")
    ours = [e for e in document["experiments"] if not e["benchmark"].startswith("imported.")]
    assert ours
    for experiment in ours:
        own = experiment["parameters"]
        assert {key for key, value in own.items() if value != "unknown"} == stated, own


def test_stream_whose_places_are_unknown_may_have_used_several_sockets() -> None:
    machine = made_up_machine(packages=2, cores=8, channels=8)
    whole = machine.named_limit("dram.bandwidth")
    limit = benchmark_named("memory.stream").figure("triad").limit
    assert limit is not None and whole is not None and whole.value is not None
    for threads, share in ((1, 0.5), (2, 1.0), (8, 1.0)):
        point = {"threads": threads, "node": "unknown", "memory": "unknown"}
        assert limit(machine, point, ()).value == whole.value * share


def test_what_no_figure_shows_is_reported_and_recorded(
    tmp_path: Path, put: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    put("g.json", as_bytes(google_benchmark(cache_misses=12.5)))
    _import([f"google-benchmark-json={tmp_path / 'g.json'}"], results=tmp_path / "r", out=Output())
    shown = capsys.readouterr()
    assert "no figure of cache_misses: the unit is unknown" in shown.out
    assert "g.json: imported.google-benchmark-json: no figure of cache_misses" in shown.err
    assert any("cache_misses" in remark for record in records(tmp_path) for remark in record.seen.get("remarks", ()))


def test_a_text_counts_once_under_any_name(
    tmp_path: Path, put: Any, do_import: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.txt", "b.txt"):
        put(name, stream())
    _, document = do_import("stream=a.txt", "stream=b.txt")
    assert figure(document, "triad")["n_repeats"] == 1
    _import([f"stream={tmp_path / 'b.txt'}"], results=tmp_path / "r", out=Output())
    assert "1 file not counted again (the same text as another): b.txt" in capsys.readouterr().err
    put("a.txt", stream(rates_MBps=(38000.0, 43000.0, 39000.0, 38000.5)))
    _, document = do_import("stream=a.txt")
    assert figure(document, "triad")["n_repeats"] == 2, "the same path with another text is another result"
    assert not any(str(tmp_path) in str(record.seen["source"]) for record in records(tmp_path))


def allreduce(time_us: float) -> str:
    return f"# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)\n4 {time_us:26.2f}\n"


def test_jobs_of_unknown_size_stay_apart(tmp_path: Path, put: Any, do_import: Import) -> None:
    for name, time_us in (("64.txt", 908.3), ("256.txt", 4162.54)):
        put(name, allreduce(time_us))
    _, document = do_import("osu=64.txt", "osu=256.txt")
    assert [e["figures"][0]["n_repeats"] for e in document["experiments"]] == [1, 1]
    sizes = ("ranks=64", "nodes=64", "buffers=host")
    _, document = do_import("osu=64.txt", "osu=256.txt", settings=sizes, results="stated")
    assert [e["figures"][0]["n_repeats"] for e in document["experiments"]] == [2], "the user states that they are equal"
