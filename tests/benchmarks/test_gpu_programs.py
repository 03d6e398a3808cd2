"""Every benchmark of devices on PoCL, with two devices: what it measures is right, and a kernel that does not do its
work is found, whichever it is. And every kernel compiles for every generation of GPUs that we know.

PoCL runs the kernels on the processor: that tells what they compute, not how fast they are.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from engine.harness import make_ready, run_one, tampered
from one_point import prepare_point

from seatrial.benchmarks import benchmark_named, registry
from seatrial.engine.ready import Refused
from seatrial.environments.asking import NoGpuError, find_gpus
from seatrial.environments.build import build
from seatrial.environments.chosen import chosen_environment, native_environment
from seatrial.model.benchmark.benchmark import Benchmark, Native
from seatrial.model.benchmark.power import is_of_power
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("two_devices")]

BENCHMARKS = [
    b for b in registry().values() if isinstance(b.program, Native) and b.program.library == "gpu" and b.ranks == "one"
]
OF_RANKS = [
    b for b in registry().values() if isinstance(b.program, Native) and b.program.library == "gpu" and b.ranks == "mpi"
]
WITH_KERNELS = [b for b in BENCHMARKS if b.program.source.with_suffix(".cl").exists()]
REDUCTION = benchmark_named("gpu.reduction")
CAPABILITIES = (60, 70, 80, 90, 100)
FAULTS = ("nothing", "half", "nan")
WAYS = ("algorithm", "payload", "library")
"""Parameters that name how the work is done: each of their values has kernels or calls of its own."""

FAULTY_KERNELS = Path(__file__).with_name("faulty_kernels.c")
"""A layer of OpenCL: the kernel that PLANTED names does nothing, half of its work, or writes no numbers."""


@pytest.fixture(scope="module")
def faulty_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer, compiled."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    made = tmp_path_factory.mktemp("layer") / "libfaulty_kernels.so"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, FAULTY_KERNELS, "-o", made], check=True)
    return made


@dataclass(frozen=True)
class Case:
    """A benchmark in one of its ways."""

    benchmark: Benchmark
    settings: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "-".join((self.benchmark.name, *(value for _, value in self.settings)))

    def as_parameter(self) -> Any:
        """Several devices keep all CPUs busy. Two choices that meet nowhere in the code need not be tried together."""
        modes = words(self.benchmark, "mode")
        is_on_one = dict(self.settings).get("mode", modes[0] if modes else "all") == "S"
        marks = () if is_on_one else (pytest.mark.devices,)
        usual = [
            ("mode", modes[:1]),
            ("precision", precisions(self.benchmark)[:1]),
            ("host", words(self.benchmark, "host")[:1]),
            ("library", words(self.benchmark, "library")[:1]),
        ]
        unusual = sum(dict(self.settings).get(name, first[0]) != first[0] for name, first in usual if first)
        return pytest.param(self, marks=(*marks, pytest.mark.exhaustive) if unusual > 1 else marks)


def words(benchmark: Benchmark, name: str) -> tuple[str, ...]:
    """The values of a parameter that is a choice; none where there is no such parameter."""
    return next((p.words for p in benchmark.parameters if p.name == name), ())


def precisions(benchmark: Benchmark) -> tuple[str, ...]:
    """Those that a processor has; others are for GPUs."""
    return tuple(word for word in words(benchmark, "precision") if word in ("fp32", "fp64"))


def smallest(benchmark: Benchmark) -> tuple[tuple[str, str], ...]:
    """SHOC's smallest class, or what is small enough for a processor."""
    small = {"size": "1", "bodies": "4096", "options": "64", "paths": "16384", "n": "500", "nx": "16"}
    largest = {"gpu.triad": "262144", "gpu.transfer": "1024"}  # blocks of the triad have at least 64 KiB
    small["largest_B"] = largest.get(benchmark.name, "16384")
    return tuple((p.name, small[p.name]) for p in benchmark.parameters if p.name in small)


def all_ways(benchmark: Benchmark) -> list[tuple[tuple[str, str], ...]]:
    """Every combination of how the work is done; none where there is no choice."""
    named = [[(name, word) for word in words(benchmark, name) if word != "auto"] for name in WAYS]
    return list(product(*filter(None, named))) if any(named) else []


def cases(benchmark: Benchmark) -> list[Case]:
    """Every mode in the default way, and every way in S and TP."""
    found = []
    for mode in words(benchmark, "mode") or ("",):
        for precision in precisions(benchmark) or ("",):
            for host in words(benchmark, "host") or ("",):
                ways = (("mode", mode), ("precision", precision), ("host", host))
                found.append(Case(benchmark, (*(way for way in ways if way[1]), *smallest(benchmark))))
    for way in all_ways(benchmark):
        for precision in precisions(benchmark) or ("",):
            named = (*way, *((("precision", precision),) if precision else ()))
            found.append(Case(benchmark, (*named, *smallest(benchmark))))
        if "TP" in words(benchmark, "mode"):
            found.append(Case(benchmark, (*way, ("mode", "TP"), *smallest(benchmark))))
    return found


def as_gpu(benchmark: Benchmark) -> Benchmark:
    """With the kernels, the groups and the order of memory that GPUs get, which differ from a processor's."""
    program = benchmark.program
    assert isinstance(program, Native)
    own = program.arguments
    return replace(benchmark, program=replace(program, arguments=lambda params: [*own(params), "--as-gpu", "1"]))


def needs_its_library(record: RepeatRecord) -> RepeatRecord:
    """The record, where what the case wants to load is there."""
    if record.outcome.state is State.UNSUPPORTED and record.outcome.reason.startswith("library: "):
        pytest.skip(record.outcome.reason)
    return record


@pytest.mark.parametrize("case", [case.as_parameter() for b in BENCHMARKS for case in cases(b)], ids=str)
def test_it_measures(case: Case, live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(case.benchmark, live_machine, folder, backend="opencl", **dict(case.settings))
    record = needs_its_library(run_one(ready, live_machine, folder))
    assert record.outcome.is_ok, record.outcome
    own = [f for f in case.benchmark.figures if not is_of_power(f)]
    wanted = {f.series for f in own if f.is_there(ready.point.parameters)}
    assert wanted <= {sample.series for sample in record.samples}
    mode, devices = dict(case.settings).get("mode"), ready.point.parameters["devices"]
    threads = ready.point.parameters.get("cpu_threads", 0)
    assert mode is None or devices == (1 if mode == "S" else 2)
    assert len(ready.point.cpus) == devices + threads


@pytest.mark.devices
@pytest.mark.parametrize("mode", ["S", "EP", "TP"])
def test_the_work_of_a_sample_is_that_of_whole_runs(mode: str, live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(REDUCTION, live_machine, folder, backend="opencl", mode=mode, size="1")
    program, parameters = REDUCTION.program, ready.point.parameters
    assert isinstance(program, Native)
    words = program.arguments(parameters)
    of_one_run = 4 * int(words[words.index("--count") + 1])
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    for sample in record.samples:
        assert sample.work["bytes"] >= of_one_run and sample.work["bytes"] % of_one_run == 0, sample


def cases_without_optimisation(benchmark: Benchmark) -> list[Case]:
    return [Case(benchmark, (*way, *smallest(benchmark))) for way in all_ways(benchmark) or [()]]


UNOPTIMISED = [case.as_parameter() for b in WITH_KERNELS for case in cases_without_optimisation(b)]


@pytest.mark.portability
@pytest.mark.parametrize("case", UNOPTIMISED, ids=str)
def test_it_is_right_without_optimisation(case: Case, live_machine: Machine, folder: ResultsFolder) -> None:
    settings = dict(case.settings)
    ready = make_ready(case.benchmark, live_machine, folder, backend="opencl", optimised="false", **settings)
    record = needs_its_library(run_one(ready, live_machine, folder))
    assert record.outcome.is_ok, record.outcome


@pytest.mark.portability
@pytest.mark.parametrize("case", UNOPTIMISED, ids=str)
def test_it_is_right_as_on_a_gpu(case: Case, live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(as_gpu(case.benchmark), live_machine, folder, backend="opencl", **dict(case.settings))
    record = needs_its_library(run_one(ready, live_machine, folder))
    assert record.outcome.is_ok, record.outcome


def kernels(benchmark: Benchmark) -> list[str]:
    return re.findall(r"^KERNEL (\w+)\(", benchmark.program.source.with_suffix(".cl").read_text(), re.MULTILINE)


def on_all_devices(benchmark: Benchmark) -> Any:
    """A benchmark that works on several devices at once keeps all CPUs busy."""
    is_parallel = "S" not in words(benchmark, "mode") or "TP" in words(benchmark, "mode")
    return pytest.param(benchmark, marks=pytest.mark.devices if is_parallel else ())


@pytest.mark.parametrize("benchmark", [on_all_devices(b) for b in WITH_KERNELS], ids=lambda b: b.name)
def test_a_kernel_that_does_not_do_its_work_is_found(
    benchmark: Benchmark,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    faulty_kernels: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    """Every kernel of every mode: one that the planted fault does not reach in a mode must be reached in another. The
    first kernel has all faults, the others one each, in turn; all in `make exhaustive`."""
    monkeypatch.setenv("OPENCL_LAYERS", str(faulty_kernels))
    has_all = pytestconfig.getoption("--exhaustive")
    planted = {
        kernel: set(FAULTS) if n == 0 or has_all else {FAULTS[n % len(FAULTS)]}
        for n, kernel in enumerate(kernels(benchmark))
    }
    reached: dict[str, set[str]] = {}
    for number, case in enumerate(cases(benchmark)):
        of_case = dict(case.settings)
        if of_case.get("mode") == "EP" or of_case.get("precision") == "fp64":
            continue  # EP: the kernels of S, on every device; fp64: the same text and the same check
        if of_case.get("library") == "vendor":
            continue  # no kernel of ours
        if of_case.get("host", "mapped") != "mapped":
            continue  # which copies without a kernel
        ready = make_ready(benchmark, live_machine, folder, backend="opencl", **of_case)
        for kernel, faults in planted.items():
            if reached.get(kernel) == faults:
                continue
            for fault in sorted(faults):
                monkeypatch.setenv("PLANTED", f"{kernel}:{fault}")
                own = ResultsFolder.create(tmp_path / f"{number}-{kernel}-{fault}")
                record = run_one(ready, live_machine, own)
                if record.outcome.state is State.INVALID:
                    reached.setdefault(kernel, set()).add(fault)
                else:
                    assert record.outcome.is_ok, record.outcome
                    break  # this mode does without it
        monkeypatch.delenv("PLANTED", raising=False)
    assert reached == planted


def nvrtc() -> Path | None:
    """NVIDIA's compiler of the Python package nvidia-cuda-nvrtc-cu12, the last that knows sm_60."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        for path in Path(place).glob("cuda_nvrtc/lib/libnvrtc.so.12"):
            return path
    return None


@pytest.mark.portability
@pytest.mark.parametrize(
    "benchmark",
    [*WITH_KERNELS, *(b for b in OF_RANKS if b.program.source.with_suffix(".cl").exists())],
    ids=lambda b: b.name,
)
def test_it_compiles_for_every_generation(benchmark: Benchmark, live_machine: Machine) -> None:
    compiler = nvrtc()
    if compiler is None:
        pytest.skip("needs NVRTC (pip install nvidia-cuda-nvrtc-cu12)")
    environment = chosen_environment(EnvironmentChoice(), live_machine, with_mpi=benchmark.ranks == "mpi")
    program = build(environment, benchmark.program.source).path
    for capability in CAPABILITIES:
        done = subprocess.run(
            [str(program), "--compile", str(capability), str(compiler)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        compiled = [json.loads(line) for line in done.stdout.splitlines()]
        seen = {kernel["kernel"] for source in compiled for kernel in source["kernels"]}
        assert set(kernels(benchmark)) <= seen
        assert all(kernel["registers"] > 0 for source in compiled for kernel in source["kernels"])


def test_the_devices_that_a_program_finds(live_machine: Machine) -> None:
    program = build(native_environment(live_machine), REDUCTION.program.source).path
    gpus = find_gpus(program, dict(os.environ))
    assert [device.index for device in gpus.of("opencl")] == [0, 1]
    if "cuda" in gpus.absent:
        with pytest.raises(NoGpuError) as refusal:
            gpus.of("cuda")
        assert refusal.value.need in ("driver", "device")


@pytest.mark.parametrize(
    ("text", "replacement", "why"),
    [
        ("u64 n) {", "u32 n) {", "reduce takes const float*, float*, u32, not const float*, float*, u64"),
        ("GLOBAL real* RESTRICT sums", "GLOBAL u32* RESTRICT sums", "reduce takes const float*, u32*, u64, not"),
        ("BARRIER();", "BARRIERS();", "reduction.cl does not compile"),
    ],
)
def test_kernels_that_do_not_fit_are_refused(
    text: str,
    replacement: str,
    why: str,
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = tampered(REDUCTION, tmp_path, {"reduction.cl": (text, replacement)}, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, backend="opencl", size="1"), live_machine, folder)
    assert record.outcome.state is State.FAILED and why in str(record.outcome.evidence), record.outcome


def test_more_devices_than_there_are(live_machine: Machine) -> None:
    settings = {"backend": "opencl", "mode": "EP", "device": 1, "devices": 2}
    refused = prepare_point(REDUCTION, live_machine, settings)
    assert isinstance(refused, Refused) and "opencl has no devices 1 to 2: 2 found" in refused.outcome.reason
