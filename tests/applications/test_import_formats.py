"""Readers of other tools' result files: what each tells, in SI, and what it refuses."""

from __future__ import annotations

import json

import pytest
from applications.result_texts import (
    as_bytes,
    babelstream,
    babelstream_csv,
    fio,
    google_benchmark,
    hpl,
    hpl_row,
    stream,
    stream_mpi,
)
from conftest import SHARED_DATA

from seatrial.applications.readers import reader_of, readers
from seatrial.applications.reading.text import last_digit
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError, UnknownNameError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.record import readings

OUTPUTS = SHARED_DATA / "outputs"
needs_samples = pytest.mark.skipif(
    not OUTPUTS.is_dir(), reason="the third-party samples (shared/data/outputs) are not here"
)


def read(kind: str, text: str | bytes) -> ImportedFile:
    return reader_of(kind).read(text if isinstance(text, bytes) else text.encode())


def values(experiment: ImportedExperiment) -> dict[str, float]:
    """Figure -> its value, as the benchmark reads it from the samples."""
    benchmark = benchmark_named(experiment.benchmark)
    parameters = benchmark.point(experiment.parameters)
    return {r.figure.name: r.value for r in readings(benchmark, Machine("m"), parameters, experiment.samples)}


def only(file: ImportedFile) -> ImportedExperiment:
    assert len(file.experiments) == 1
    return file.experiments[0]


def refused(kind: str, text: str | bytes) -> ParseError:
    with pytest.raises(ParseError) as error:
        read(kind, text)
    return error.value


def test_the_kinds_of_the_contract_that_have_a_reader_here() -> None:
    here = {
        "stream",
        "babelstream",
        "thebandwidthbenchmark",
        "hpl",
        "hpcc",
        "hpcg",
        "fio-json",
        "google-benchmark-json",
    }
    assert here <= readers().keys()
    with pytest.raises(UnknownNameError, match="stream"):
        reader_of("strem")


@pytest.mark.parametrize("kind", sorted(readers()))
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"\0" * 100,
        bytes(range(256)) * 40,
        b"hello\n" * 1000,
        b"{" * 100_000,
        b'{"a": ' * 50_000,
        b"nan\n",
    ],
    ids=["empty", "blank", "nul", "bytes", "prose", "braces", "deep", "nan"],
)
def test_what_is_no_result_file_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(ParseError):
        reader_of(kind).read(data)


def test_a_file_beyond_the_size_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.applications.reading.text.MAX_BYTES", 100)
    assert "larger" in str(refused("stream", stream()))


def test_a_million_lines_of_noise_round_a_result_cost_no_result() -> None:
    noise = "Array sizes do not matter here\n" * 500_000
    assert values(only(read("stream", noise + stream() + noise)))["copy"] == 38853.9e6


@pytest.mark.parametrize("version", ["5.9", "5.10"])
def test_stream_is_our_benchmark_and_its_best_rate_alone_gives_the_figure(version: str) -> None:
    file = read("stream", stream(version=version))
    found = only(file)
    assert (file.tool, file.version, file.failed, found.benchmark) == ("STREAM", version, "", "memory.stream")
    assert values(found) == {"copy": 38853.9e6, "scale": 43238.9e6, "add": 39045.0e6, "triad": 38487.0e6}
    assert found.parameters == {"threads": 2, "array_B": 640_000_000, "kernel": "all"}
    assert [sample.work["bytes"] for sample in found.samples] == pytest.approx([1.28e9, 1.28e9, 1.92e9, 1.92e9])
    assert "best of 19" in str(found.notes["best_of"])


def test_stream_without_openmp_assumes_one_thread() -> None:
    found = only(read("stream", stream(threads=None)))
    assert found.parameters["threads"] == 1 and found.notes["assumed"] == ["threads"]


def test_stream_over_mpi_is_not_the_memory_of_one_machine() -> None:
    found = only(read("stream", stream_mpi()))
    assert found.benchmark == "imported.stream"
    assert found.parameters == {"ranks": 4, "threads": 8, "precision": "fp64", "array_B": 640_000_000}
    assert values(found)["copy"] == 38853.9e6


@pytest.mark.parametrize(
    "validation",
    ["Failed Validation on array a[], AvgRelAbsErr > epsilon (1.000000e-13)", "", "Solution Valid"],
)
def test_a_stream_that_does_not_validate_is_wrong(validation: str) -> None:
    assert read("stream", stream(validation=validation)).failed


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("38853.9", "98853.9", "is not the"),
        ("38853.9", "38,853.9", "not a plain number"),
        ("38853.9", "nan", "not a plain number"),
        ("38853.9", "inf", "not a plain number"),
        ("38853.9", "-38853.9", "impossible"),
        ("38853.9", "1e999", "not a plain number"),
        ("38853.9", "0.0", "above zero"),
        ("Copy:", "Kopy:", "row of Copy"),
        ("counted = 2", "counted = 3", "threads"),
        ("80000000 (elements), O", "90000000 (elements), O", "is not the"),
        ("Best Rate MB/s", "Best Rate GB/s", "no table"),
        ("uses 8 bytes", "uses 4 bytes", "is not the"),
    ],
)
def test_stream_that_contradicts_itself_is_refused(old: str, new: str, why: str) -> None:
    assert old in stream()
    assert why in str(refused("stream", stream().replace(old, new, 1)))


@pytest.mark.parametrize(
    ("unit", "scale"), [("MB/s", 1e6), ("MBytes/sec", 1e6), ("MiB/s", 2.0**20), ("MiBytes/sec", 2.0**20)]
)
@pytest.mark.parametrize("double", [True, False])
def test_babelstream_text(unit: str, scale: float, double: bool) -> None:
    file = read("babelstream", babelstream(unit, double=double))
    found = only(file)
    assert file.version == "5.0"
    assert values(found) == {n: (37000 + 100 * i) * scale for i, n in enumerate(("copy", "mul", "add", "triad", "dot"))}
    assert found.parameters == {
        "implementation": "OpenMP",
        "precision": "fp64" if double else "fp32",
        "array_B": 640_000_000 if double else 320_000_000,
    }


def test_babelstream_3_has_no_number_of_elements() -> None:
    assert only(read("babelstream", babelstream(with_elements=False))).parameters["array_B"] == 640_000_000


@pytest.mark.parametrize(("unit", "scale"), [("mbytes", 1e6), ("mibytes", 2.0**20)])
def test_babelstream_csv(unit: str, scale: float) -> None:
    found = only(read("babelstream", babelstream_csv(unit)))
    assert values(found)["dot"] == 37400 * scale and found.parameters["array_B"] == 33554432 * 8


@pytest.mark.parametrize("text", [babelstream(), babelstream_csv()])
def test_babelstream_damaged(text: str) -> None:
    lines = text.splitlines(keepends=True)
    refused("babelstream", "".join(lines[:-1]))
    refused("babelstream", text.rstrip())
    refused("babelstream", text.replace("37000", "87000"))
    refused("babelstream", "".join([*lines[:-2], lines[-1]]))


def test_hpl_each_setting_is_an_experiment_and_equal_rows_are_samples() -> None:
    rows = ((hpl_row(20000, 55.5), True), (hpl_row(20000, 56.5), True), (hpl_row(30000, 60.25, nb=256), True))
    file = read("hpl", hpl(rows))
    first, second = file.experiments
    assert file.version == "2.3"
    assert [s.work["amount"] for s in first.samples if s.series == "rate"] == [55.5e9, 56.5e9]
    assert second.parameters == {"n": 30000, "nb": 256, "p": 2, "q": 2, "ranks": 4, "variant": "WR11C2R4"}
    assert values(second)["rate"] == 60.25e9 and values(second)["time"] == pytest.approx(298.8, abs=0.1)


def test_hpl_a_failed_residual_spoils_its_own_experiment_only() -> None:
    file = read("hpl", hpl(((hpl_row(20000, 55.5), True), (hpl_row(30000, 60.0), False))))
    assert [bool(experiment.failed) for experiment in file.experiments] == [False, True]


def test_hpl_as_nvidia_prints_it() -> None:
    text = hpl().replace("Gflops", "Gflops ( per GPU)").replace("5.5500e+01", "5.5500e+01 ( 1.388e+01)")
    assert values(only(read("hpl", text)))["rate"] == 55.5e9


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("5.5500e+01", "5.5500e+02"),
        ("20000", "21000"),
        ("PASSED", "FAILED"),
        ("PASSED", "SKIPPED"),
        ("1 tests completed and passed", "2 tests completed and passed"),
        ("End of Tests.", ""),
        ("Finished", ""),
        ("WR11", "XX11"),
    ],
)
def test_hpl_that_contradicts_itself_is_refused(old: str, new: str) -> None:
    assert old in hpl()
    refused("hpl", hpl().replace(old, new, 1))


def test_google_benchmark() -> None:
    file = read("google-benchmark-json", as_bytes(google_benchmark()))
    copy, sort = file.experiments
    assert file.host == "node7" and file.date_s == 1795287600.0
    assert copy.parameters == {"name": "BM_Copy/4096", "threads": 1, "executable": "bench"}
    assert values(copy) == {"real_time": 126e-9, "cpu_time": 125e-9, "bytes_per_second": 3.2e10 + 1}
    assert len([s for s in copy.samples if s.series == "real_time"]) == 3, "the mean is no repetition"
    assert values(sort) == {"real_time": 2.5e-3, "cpu_time": 2.4e-3, "items_per_second": 4e5}


def test_google_benchmark_with_an_error_is_wrong_and_gives_no_number() -> None:
    document = google_benchmark(error_occurred=True, error_message="no device")
    copy, sort = read("google-benchmark-json", as_bytes(document)).experiments
    assert "no device" in copy.failed and not copy.samples and not sort.failed


@pytest.mark.parametrize(
    "change", [{"real_time": -1.0}, {"real_time": 0}, {"time_unit": "min"}, {"real_time": "5"}, {"cpu_time": None}]
)
def test_google_benchmark_with_numbers_that_cannot_be(change: dict[str, object]) -> None:
    refused("google-benchmark-json", as_bytes(google_benchmark(**change)))


def test_google_benchmark_without_its_unit_is_refused_and_counters_of_a_program_are_reported() -> None:
    document = google_benchmark(cache_misses=12.5)
    assert any(
        "cache_misses" in remark
        for e in read("google-benchmark-json", as_bytes(document)).experiments
        for remark in e.remarks
    )
    renamed = as_bytes(google_benchmark()).replace(b'"time_unit"', b'"unit_of_time"')
    assert "time unit" in refused("google-benchmark-json", renamed).message


def test_fio_without_a_latency_reports_it() -> None:
    assert not any(experiment.remarks for experiment in read("fio-json", as_bytes(fio())).experiments)
    renamed = as_bytes(fio()).replace(b'"lat_ns"', b'"latency_ns"')
    assert any("no latency" in r for experiment in read("fio-json", renamed).experiments for r in experiment.remarks)


def test_google_benchmark_that_lacks_a_repetition_or_has_aggregates_only() -> None:
    document = google_benchmark()
    refused("google-benchmark-json", as_bytes({**document, "benchmarks": document["benchmarks"][1:]}))
    refused("google-benchmark-json", as_bytes({**document, "benchmarks": document["benchmarks"][3:4]}))


def test_fio() -> None:
    file = read("fio-json", as_bytes(fio()))
    found = only(file)
    assert (file.version, file.date_s) == ("3.33", 1795293280.212)
    assert values(found) == {
        "read": 706_810_455.0,
        "read_iops": pytest.approx(5392.2, abs=1),
        "read_latency": 184475.7e-9,
    }
    assert found.parameters == {
        **{"job": "seqread", "clone": 0, "rw": "read", "direct": True, "numjobs": 1, "iodepth": 1},
        **{"record_B": 131072, "file_B": 134217728},
    }


def test_fio_prints_warnings_before_its_json() -> None:
    text = b"fio: both iodepth >= 1 and synchronous I/O engine are selected\n" + as_bytes(fio())
    assert values(only(read("fio-json", text)))["read"] == 706_810_455.0


def test_fio_2_counts_in_KiB_and_microseconds() -> None:
    document = fio(bw_bytes=1024 * 690_000)
    document["fio version"] = "fio-2.16"
    group = document["jobs"][0]["read"]
    del group["bw_bytes"], group["total_ios"]
    group["io_bytes"] //= 1024
    group["lat"] = {**group.pop("lat_ns"), "mean": 184.0, "min": 120, "max": 3000}
    found = values(only(read("fio-json", as_bytes(document))))
    assert found["read"] == 1024 * 690_000 and found["read_latency"] == 184e-6


def test_fio_jobs_of_one_name_are_not_repeats_of_each_other() -> None:
    document = fio()
    document["jobs"] *= 2
    assert [e.parameters["clone"] for e in read("fio-json", as_bytes(document)).experiments] == [0, 1]


def test_fio_that_ended_with_an_error_gives_no_number() -> None:
    found = only(read("fio-json", as_bytes(fio(error=5))))
    assert "error 5" in found.failed and not found.samples


@pytest.mark.parametrize("key", ["bw_bytes", "bw", "io_bytes", "iops", "runtime"])
def test_fio_with_one_number_changed_is_refused(key: str) -> None:
    document = fio()
    document["jobs"][0]["read"][key] *= 3
    refused("fio-json", as_bytes(document))


@pytest.mark.parametrize(
    "text",
    [
        as_bytes(fio()) * 2,
        as_bytes(fio())[:-3],
        as_bytes(fio()).replace(b"706810455", b"NaN"),
        as_bytes(fio()).replace(b'"bw_bytes": 706810455', b'"bw_bytes": 706810455, "bw_bytes": 1'),
        as_bytes(fio()).replace(b"706810455", b"1e400"),
        as_bytes(fio()).replace(b"706810455", b"9" * 5000),
        json.dumps([fio()]).encode(),
        as_bytes({"fio version": "fio-3.33", "jobs": []}),
        as_bytes({"fio version": "another program", "jobs": []}),
    ],
)
def test_fio_damaged(text: bytes) -> None:
    refused("fio-json", text)


def test_google_benchmark_before_1_5_marks_aggregates_by_name_only() -> None:
    document = google_benchmark()
    for entry in document["benchmarks"]:
        for key in ("run_type", "aggregate_name", "repetition_index", "repetitions", "run_name"):
            entry.pop(key, None)
    copy, sort = read("google-benchmark-json", as_bytes(document)).experiments
    assert values(copy)["real_time"] == 126e-9 and sort.parameters["name"] == "BM_Sort"


@needs_samples
def test_hpcg_long_enough_for_the_list_short_and_invalid() -> None:
    text = (OUTPUTS / "hpcg_openmpi_2x64.txt").read_text()
    short = only(read("hpcg", text))
    assert short.notes["submission_valid"] is False and values(short)["rating"] == 3.45821e9
    above, _, _ = text.partition("Final Summary::Results are valid")
    upload = "Final Summary::Please upload results from the YAML file contents to=http://hpcg-benchmark.org\n"
    grown = []
    for line in above.splitlines():  # 1000 times the work in 1000 times the time
        key, _, value = line.partition("=")
        if key.startswith(("Benchmark Time Summary::", "Floating Point Operations Summary::")):
            line = f"{key}={float(value) * 1000:g}"
        grown.append(line)
    long = only(read("hpcg", "\n".join(grown) + "\n" + upload))
    assert long.notes["submission_valid"] is True and values(long)["rating"] == 3.45821e9
    refused("hpcg", "\n".join(grown) + "\n")
    rating = "HPCG result is VALID with a GFLOP/s rating of=3.45821"
    file = read("hpcg", text.replace(rating, "HPCG result is INVALID.="))
    assert "INVALID" in file.failed and not only(file).samples
    assert "Symmetry" in read("hpcg", text.replace("epsilon::Result=PASSED", "epsilon::Result=FAILED")).failed


@needs_samples
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("StarDGEMM_Gflops=21.1261", "StarDGEMM_Gflops=91.1261"),
        ("HPL_Tflops=0.0177404", "HPL_Tflops=0.0277404"),
        ("MPIRandomAccess_GUPs=0.00777534", "MPIRandomAccess_GUPs=0.0777534"),
        ("StarSTREAM_Triad=56.1791", "StarSTREAM_Triad=56,1791"),
        ("StarSTREAM_Triad=56.1791", "StarSTREAM_Triad=nan"),
        ("MinPingPongLatency_usec=0.358861", "MinPingPongLatency_usec=3.58861"),
        ("MPIFFT_Gflops=1.00802", "MPIFFT_Gflops=-1.00802"),
        ("SingleSTREAM_Copy=66.3936\n", ""),
        ("HPL_N=2000", "HPL_N=2000\nHPL_N=2000"),
    ],
)
def test_hpcc_that_contradicts_itself_is_refused(old: str, new: str) -> None:
    text = (OUTPUTS / "hpcc_n2000.txt").read_text()
    assert text.count(old) == 1
    refused("hpcc", text.replace(old, new))


@needs_samples
def test_hpcc_reports_figures_that_its_summary_does_not_have() -> None:
    data = (OUTPUTS / "hpcc_n2000.txt").read_bytes()
    renamed = data.replace(b"AvgPingPongLatency_usec=", b"MeanPingPongLatency_usec=")
    assert any("no AvgPingPongLatency_usec" in remark for remark in only(read("hpcc", renamed)).remarks)


@needs_samples
def test_hpcc_that_fails_or_leaves_a_part_out() -> None:
    text = (OUTPUTS / "hpcc_n2000.txt").read_text()
    assert "Success=0" in read("hpcc", text.replace("Success=1", "Success=0")).failed
    assert "FAILED" in read("hpcc", text.replace("...... PASSED", "...... FAILED")).failed
    summary = text[text.index("Begin of Summary") :].replace("MPIFFT_Gflops=1.00802", "MPIFFT_Gflops=-1")
    file = read("hpcc", summary)
    assert "mpi_fft" not in values(only(file)) and file.host is None and not file.failed


def resolutions(experiment: ImportedExperiment) -> dict[str, float]:
    benchmark = benchmark_named(experiment.benchmark)
    parameters = benchmark.point(experiment.parameters)
    return {r.figure.name: r.resolution for r in readings(benchmark, Machine("m"), parameters, experiment.samples)}


def test_printed_digits_are_the_resolution() -> None:
    """One unit of the last printed place, as a share of the value; six digits where a tool omits trailing zeros."""
    assert resolutions(only(read("stream", stream())))["copy"] == pytest.approx(0.1 / 38853.9)
    assert resolutions(only(read("babelstream", babelstream())))["copy"] == pytest.approx(0.001 / 37000.0)
    of_hpl = resolutions(only(read("hpl", hpl(((hpl_row(2000, 55.5), True),)))))
    assert of_hpl["rate"] == pytest.approx(0.001 / 55.5)
    assert of_hpl["time"] == pytest.approx(0.01 / 0.1), "0.096 s is printed as 0.10"
    in_full, *_ = read("google-benchmark-json", as_bytes(google_benchmark())).experiments
    assert set(resolutions(in_full).values()) == {0.0}
    for token, share in (("0.05", 0.2), ("1.50", 0.01 / 1.5), ("1.234e+02", 0.1 / 123.4), ("7", 1 / 7), ("0.00", 0.0)):
        assert last_digit(token) == pytest.approx(share)
    of_fio = resolutions(only(read("fio-json", as_bytes(fio()))))
    assert of_fio["read"] == of_fio["read_iops"] == pytest.approx(1e-3 / 3.001), "whole milliseconds"
