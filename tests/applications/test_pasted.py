"""Results as people paste them: quoted, indented, labelled, compressed; right, or refused."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable

import pytest
from applications.result_texts import as_bytes, dcgm_json, fio, google_benchmark, hpl, iperf3, stream
from applications.test_network_tools import json_job
from applications.test_nvbandwidth import json_document
from conftest import SHARED_DATA
from fabric.fabric_texts import DUMPS as FABRIC_TEXTS
from hostile.file_damage import samples
from machine.mutations import KINDS
from machine.mutations import reader as dump_reader
from machine.mutations import samples as dumps
from msgspec.structs import replace

from seatrial.applications.readers import reader_of, readers
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.fabric.dumps import FABRIC_READERS, read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.machine.dumps import READERS
from seatrial.model.benchmark.parameter import UNKNOWN
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.record import readings

PASTED = SHARED_DATA / "pasted"
needs_pasted = pytest.mark.skipif(
    not PASTED.is_dir(), reason="the third-party samples (shared/data/pasted) are not here"
)
Altered = Callable[[str], bytes]


def before_each(label: str) -> Altered:
    return lambda text: "".join(f"{label}{line}\n" for line in text.splitlines()).encode()


FORMS: dict[str, Altered] = {
    "srun --label": before_each(" 0: "),
    "MPICH": before_each("[0] "),
    "mpirun --tag-output": before_each("[1,0]<stdout>:"),
    "tag-output, indented": before_each("    [1,0]<stdout>:"),
    "date and tag": before_each("Sun Dec 24 09:52:05 2017[1,0]<stdout>:"),
    "kubectl": before_each("2024-05-07T12:00:01.123456789Z "),
    "clush": before_each("node01: "),
    "quoted": before_each("> "),
    "quoted twice": before_each(">> "),
    "a block of code": before_each("    "),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "colours": before_each("\x1b[0m\x1b[32m"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
}


def plain(file: ImportedFile) -> list[ImportedExperiment]:
    """The experiments without the remark on what was taken off."""
    return [
        replace(e, remarks=tuple(remark for remark in e.remarks if not remark.startswith("read without")))
        for e in file.experiments
    ]


@pytest.mark.parametrize("kind", readers())
def test_every_form_of_a_text_has_its_figures(kind: str) -> None:
    contents = samples(f"import {kind}")
    if not contents:
        pytest.skip(f"no sample of {kind}: the third-party samples (shared/data) are not here")
    text = min(contents, key=len).decode("utf-8-sig").replace("\r\n", "\n")
    wanted = plain(reader_of(kind).read(text.encode()))
    wrong = []
    for name, altered in FORMS.items():
        try:
            found = plain(reader_of(kind).read(altered(text)))
        except ParseError as error:
            wrong.append(f"{name}: {error}")
        else:
            if found != wanted:
                wrong.append(f"{name}: other figures")
    assert not wrong


def json_documents() -> dict[str, bytes]:
    """A document of each kind of JSON."""
    found = {
        "fio-json": as_bytes(fio()), "iperf3": as_bytes(iperf3()),
        "google-benchmark-json": as_bytes(google_benchmark()),
        "dcgm-diag": as_bytes(dcgm_json()), "sacct": as_bytes({"jobs": [json_job(1)]}),
        "nvbandwidth": as_bytes(json_document()),
    }  # fmt: skip
    real = {
        "dlio": "applications/dlio/summary.json.txt", "hoomd": "applications/hoomd/hoomd2.x-hexagon-metadata.txt",
        "nccl-tests": "collectives/SYNTHETIC-nccl-tests-2.19-per-iter.json",
    }  # fmt: skip
    return found | {kind: path.read_bytes() for kind, name in real.items() if (path := SHARED_DATA / name).is_file()}


@pytest.mark.parametrize("kind", json_documents())
def test_a_document_is_found_in_other_text(kind: str) -> None:
    """Prompts, warnings, a structured log and what a shell prints are beside the document."""
    data = json_documents()[kind].strip()
    log = b'{"level": "info", "ts": 1724369978.4, "msg": "starting"}\n'
    event = b'START OF EVENTLOG\n{"timestamp":1724369978.449337,"name":"init"}\n'
    wanted = plain(reader_of(kind).read(data))
    lines = (log + data).splitlines()
    wrong = []
    for name, text in {
        "prompts": b"$ tool --json\n" + data + b"\n$ exit\nlogout\n",
        "a prompt without line break": data + b"[user@host ~]$ \n",
        "a warning": b"WARNING: no GPU {0} found\n" + data + b"\n",
        "a structured log": log + log + data + b"\n" + log + event,
        "kubectl": b"".join(b"2024-05-07T12:00:01.123456789Z " + line + b"\n" for line in lines),
        "one line of a log": b"12:00:01 INFO: " + json.dumps(json.loads(data)).encode() + b"\n12:00:02 INFO done\n",
    }.items():
        try:
            found = plain(reader_of(kind).read(text))
        except ParseError as error:
            wrong.append(f"{name}: {error}")
        else:
            if found != wanted:
                wrong.append(f"{name}: other figures")
    part = data[: 2 * len(data) // 3]
    for name, text in {
        "two documents": data + b"\n" + data + b"\n",
        "a document and a cut one": data + b"\n" + part,
        "a cut one and a document": part + b"\n" + data,
        "the end of one after it": data + b"\n" + data[len(data) // 2 :],
        "more on its last line": data + b", 1]\n",
    }.items():
        try:
            file = reader_of(kind).read(text)
        except ParseError:
            continue
        remarks = [remark for e in file.experiments for remark in e.remarks]
        if not any("is not read" in remark or "the same results again" in remark for remark in remarks):
            wrong.append(f"{name}: not refused, and no remark")
    assert not wrong


def figures(kind: str, name: str) -> dict[str, float]:
    """Every figure of a text, as "benchmark figure point"."""
    found = {}
    for experiment in reader_of(kind).read((PASTED / name).read_bytes()).experiments:
        benchmark = benchmark_named(experiment.benchmark)
        defaults = benchmark.point({k: v for k, v in experiment.parameters.items() if v != UNKNOWN})
        point = {name: experiment.parameters.get(name, UNKNOWN) for name in defaults}
        for reading in readings(benchmark, Machine("m"), point, experiment.samples):
            own = " ".join(map(str, reading.point.values()))
            where = next(
                (
                    str(experiment.parameters[k])
                    for k in ("job", "test", "implementation")
                    if k in experiment.parameters
                ),
                "",
            )
            found[" ".join(filter(None, (where, reading.figure.name, own)))] = reading.value
    return found


TRUE: dict[tuple[str, str], dict[str, float]] = {
    ("osu", "osu/ucx2111_latency_mt_tag-output_timestamps.txt"): {
        "time 0": 2.35e-6, "time 4": 2113.56e-6, "time 8": 1.25e-6,
    },
    ("osu", "min/osu_quoted.txt"): {"one_way 4194304": 1148.80e-6},
    ("osu", "osu/libfabric-cray859_latency_v5.0_hashes.txt"): {"one_way 0": 1.84e-6, "one_way 4194304": 497.37e-6},
    ("imb", "imb/pkb_barrier.txt"): {"Multi-Barrier time_mean": 80.90e-6, "Barrier time_mean": 91.24e-6},
    ("babelstream", "babelstream/uob_v2.0_power8_raja-xl.txt"): {
        "RAJA copy": 257796.702e6, "RAJA mul": 218399.746e6, "RAJA add": 269553.023e6, "RAJA triad": 279022.596e6,
    },
    ("hpcg-nvidia", "hpcg-nvidia/pkb_k80_8ranks.txt"): {"rating": 202.6e9, "spmv": 178.3e9},
    ("fio-json", "fio/pkb_parser-sample.json"): {
        "sequential_write write": 68118 * 1024, "sequential_write write_iops": 133,
        "sequential_read read": 129836 * 1024, "random_write_test write": 6443 * 1024,
        "random_write_test write_iops": 1610,
        "random_read_test read": 1269 * 1024, "random_read_test read_iops": 317,
    },
    ("fio-json", "fio/metrics-operator_readme.txt"): {"test read": 680302 * 1024, "test write": 227358 * 1024},
    ("fio-json", "min/fio2_duplicate_percentile_key.json"): {
        "rand_16k_read read": 129386 * 1024, "rand_16k_read read_iops": 8086.67,
    },
    ("nccl-tests", "nccl-tests/rccl1490_srun-label_allgather.txt"): {
        "busbw 4294967296 False": 92.66e9, "busbw 4294967296 True": 92.74e9,
    },
    ("gromacs", "gromacs/nomad_cgwater_mdrun.log.txt"): {"ns_time": 86400 / 61.276},
    ("hpl-mxp", "hpl-mxp/scc25_result_block.txt"): {"rate": 4.3468e14, "lu_rate": 2.4940e15},
    ("stream", "min/stream_indented.txt"): {"triad": 363208.7e6},
    ("osu", "osu/osu_allreduce_12288ranks_flux-jobspec_eks.txt"): {
        "time_mean 4": 1843.35e-6, "time_mean 1048576": 7660.03e-6,
    },
    ("osu", "osu/osu_4_DD_gce.txt"): {"time_mean 4": 2073.79e-6},
    ("osu", "osu/pkb_acc_latency.txt"): {"time 4": 63.7e-6},
    ("imb", "imb/pkb_latencies.txt"): {"PingPong time_mean 0": 1.17e-6, "PingPong time_mean 1024": 1.80e-6},
    ("hpcc", "hpcc/pkb_hpcc1.4.2_4ranks.txt"): {"hpl": 33.18e9, "ptrans": 0.3386e9, "mpi_fft": 2.494e9},
    ("stream", "stream/superbench_neo_4t_head-cut.txt"): {"triad": 105256.0e6},
    ("fio-json", "fio/superbench_disk_performance.txt"): {"rand_read_write read": 340570 * 1024},
    ("gromacs", "gromacs/nomad_water_md.log.txt"): {"ns_time": 86400 / 118.802},
    ("nccl-tests", "nccl-tests/gcm_a100_16ranks_2nodes.txt"): {"busbw 1073741824 False": 182.80e9},
    ("nccl-tests", "nccl-tests/awsome_batch_tag-output.txt"): {"busbw 17179869184 True": 483.35e9},
    ("nvbandwidth", "nvbandwidth/nvb50_a6000_ellipsis.txt"): {
        "device_to_device_memcpy_read_ce bandwidth 0 1": 26.34e9,
    },
    ("nccl-tests", "../collectives/h100-dgx-8gpu-allreduce.txt"): {"busbw 17179869184 False": 479.90e9},
}  # fmt: skip
"""(kind, text) -> figures that it states, in SI (INDEX.md there)."""


@needs_pasted
@pytest.mark.parametrize(("kind", "name"), TRUE, ids=str)
def test_a_text_as_pasted_has_the_figures_that_it_states(kind: str, name: str) -> None:
    found = figures(kind, name)
    assert {key: found.get(key) for key in TRUE[kind, name]} == pytest.approx(TRUE[kind, name], rel=2e-4)


@needs_pasted
def test_a_file_of_HPL_with_24_results() -> None:
    file = reader_of("hpl").read((PASTED / "hpl/ulhpc_e-cluster1-2_result_HPL_01h48m14.txt").read_bytes())
    assert len(file.experiments) == 24
    assert [s.work for s in file.experiments[0].samples if s.series == "rate"] == [{"amount": 478.2e9}]


@needs_pasted
def test_ambiguous_statistics_of_mdtest_are_refused() -> None:
    with pytest.raises(ParseError, match="one iteration, but maximum, minimum and mean differ"):
        reader_of("mdtest").read((PASTED / "mdtest/io500-2019_easy_delete_3.3.0+dev.txt").read_bytes())


@needs_pasted
def test_one_rank_has_no_bandwidth_between_devices() -> None:
    found = figures("nccl-tests", "nccl-tests/ncclt287_1gpu_alltoall_avg0.txt")
    assert found and all(name.startswith("time") for name in found)


@needs_pasted
def test_fio_without_options_states_no_record_size() -> None:
    (first, *_) = reader_of("fio-json").read((PASTED / "fio/pkb_parser-sample.json").read_bytes()).experiments
    assert first.parameters == {"job": "sequential_write", "clone": 0}


@needs_pasted
def test_no_table_of_IMB_is_lost() -> None:
    file = reader_of("imb").read((PASTED / "imb/pkb_allgather.txt").read_bytes())
    assert [(e.parameters["test"], e.parameters["ranks"], e.parameters.get("groups")) for e in file.experiments] == [
        *(("Multi-Allgather", ranks, groups) for ranks, groups in ((2, 60), (4, 30), (8, 15), (16, 7), (32, 3))),
        ("Allgather", 64, None), ("Allgather", 120, None),
    ]  # fmt: skip


def test_rows_of_several_ranks_are_refused() -> None:
    lines = [
        "# OSU MPI Latency Test v7.4",
        "# Size          Latency (us)",
        *(f"{2**k:<18d}{1.5 + k:.2f}" for k in range(8)),
    ]
    mixed = "\n".join(f"[{k % 2 if k > 1 else 0}] {line}" for k, line in enumerate(lines)) + "\n"
    with pytest.raises(ParseError, match="mixed"):
        reader_of("osu").read(mixed.encode())
    both = "".join(f"[{rank}] {line}\n" for rank in (0, 1) for line in lines)
    (only,) = reader_of("osu").read(both.encode()).experiments
    assert "2 ranks or nodes printed the same results" in only.remarks[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_a_dump_shows_its_machine(kind: str) -> None:
    contents = [data for _, data in dumps(kind) if data.count(b"\n") > 8 and data.isascii()]
    if not contents:
        pytest.skip(f"no sample of {kind}")
    text = min(contents, key=len).decode().replace("\r\n", "\n")
    wanted = dump_reader(kind)(text.encode(), 1)
    wrong = [name for name, altered in FORMS.items() if dump_reader(kind)(altered(text), 1) != wanted]
    assert not wrong


@pytest.mark.parametrize("form", FABRIC_TEXTS)
def test_every_form_of_a_dump_shows_its_fabric(form: str) -> None:
    kind, text = form.split()[0], FABRIC_TEXTS[form]
    wanted = read_fabric(kind, [FabricText("file", text.encode(), 1)])
    wrong = [
        name for name, altered in FORMS.items() if read_fabric(kind, [FabricText("file", altered(text), 1)]) != wanted
    ]
    assert not wrong


def test_every_kind_of_dump_is_tested_in_every_form() -> None:
    assert set(KINDS) == set(READERS)
    assert {form.split()[0] for form in FABRIC_TEXTS} == set(FABRIC_READERS)


COLLECTIVES = SHARED_DATA / "collectives"


@pytest.mark.skipif(not COLLECTIVES.is_dir(), reason="the third-party samples (shared/data/collectives) are not here")
def test_text_and_JSON_of_the_newest_nccl_tests_agree() -> None:
    text, document = (
        reader_of("nccl-tests").read((COLLECTIVES / f"SYNTHETIC-nccl-tests-2.19-per-iter.{end}").read_bytes())
        for end in ("txt", "json")
    )
    (by_text,), (by_json,) = text.experiments, document.experiments
    assert by_text.parameters == by_json.parameters and by_text.parameters["ranks"] == 2
    assert [(s.series, s.point) for s in by_text.samples] == [(s.series, s.point) for s in by_json.samples]
    for one, other in zip(by_text.samples, by_json.samples, strict=True):
        assert one.elapsed_s == pytest.approx(other.elapsed_s, rel=1e-4)
        assert one.work == pytest.approx(other.work, rel=1e-4)


def test_the_block_of_a_result_of_HPL_is_read_without_its_title() -> None:
    lines = hpl().splitlines(keepends=True)
    (header,) = [k for k, line in enumerate(lines) if line.startswith("T/V")]
    (residual,) = [k for k, line in enumerate(lines) if "PASSED" in line]
    block = "".join(lines[header - 1 : residual + 1])
    (experiment,) = reader_of("hpl").read(block.encode()).experiments
    assert experiment.samples == reader_of("hpl").read(hpl().encode()).experiments[0].samples
    assert "other tests may be missing" in experiment.remarks[0]
    with pytest.raises(ParseError, match="no residual below this row"):
        reader_of("hpl").read("".join(lines[header - 1 : residual - 1]).encode())
    with pytest.raises(ParseError, match="cut off"):
        reader_of("hpl").read("".join(lines[: residual + 1]).encode())


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: *** JOB 4711 ON n1 CANCELLED AT 2024-05-07T12:00:01 DUE TO TIME LIMIT ***",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.0",
        "=>> PBS: job killed: walltime 3605 exceeded limit 3600",
    ],
)
def test_a_job_that_was_stopped_is_a_caution(line: str) -> None:
    (experiment, *_) = reader_of("stream").read(f"{stream()}{line}\n".encode()).experiments
    assert experiment.remarks[0].endswith(f"the job was stopped ({line}): results may be missing or disturbed")


@pytest.mark.parametrize(
    "line",
    [
        '==PROF== Profiling "triad_kernel": 0%....50%....100% - 18 passes',
        "==4711== Memcheck, a memory error detector",
        "[Thread debugging using libthread_db enabled]",
        "Generating '/tmp/nsys-report-1.qdstrm'",
    ],
)
def test_a_profiler_or_debugger_is_a_caution(line: str) -> None:
    (experiment,) = reader_of("stream").read(f"{line}\n{stream()}".encode()).experiments
    assert (
        experiment.remarks[0] == f"line 1: it ran under a profiler or debugger ({line}): that may have made it slower"
    )
