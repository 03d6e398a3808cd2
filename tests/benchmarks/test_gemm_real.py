"""cpu.gemm for real: the OpenBLAS that comes with seatrial, and made-up libraries whose faults must be found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.made_up_blas import made_up_blas
from engine.harness import run_one
from engine.planted_faults import Edits, with_fault
from one_point import prepare_point

from seatrial.benchmarks.cpu.gemm import BENCHMARK, KERNEL_VARIABLES
from seatrial.engine.kinds import native
from seatrial.engine.listener import Listener
from seatrial.engine.prepare import lacking, prepare
from seatrial.engine.ready import Ready, Refused
from seatrial.environments import blas as finder
from seatrial.environments import loaded_libraries as blas_libraries
from seatrial.environments.blas import Blas
from seatrial.environments.chosen import Environments, native_environment
from seatrial.environments.compiler import first_compiler
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real

SMALL = {"n": "256", "threads": "1"}


@pytest.fixture(autouse=True)
def nothing_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have kernels forced on every BLAS."""
    for name in KERNEL_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`libraries("HALF_K")`: the made-up BLAS with that fault, built once."""
    place = tmp_path_factory.mktemp("blas")
    built: dict[tuple[str, ...], Path] = {}

    def get(*faults: str) -> Path:
        if faults not in built:
            built[faults] = made_up_blas(place, *faults, compiler=first_compiler().command)
        return built[faults]

    return get


@pytest.fixture
def own() -> Blas:
    """The OpenBLAS that comes with seatrial."""
    found = next((blas for blas in finder.find_blas() if blas.name in finder.WHEELS), None)
    if found is None:
        pytest.skip("needs scipy-openblas64 (pip install scipy-openblas64)")
    return found


def prepared(machine: Machine, blas: Path | str, benchmark: Benchmark = BENCHMARK, **settings: str) -> Ready | Refused:
    return prepare_point(benchmark, machine, {**settings, "blas": blas})


def ran(
    machine: Machine, folder: ResultsFolder, blas: Path | str, benchmark: Benchmark = BENCHMARK, **settings: str
) -> RepeatRecord:
    item = prepared(machine, blas, benchmark, **settings)
    assert isinstance(item, Ready), item.outcome
    return run_one(item, machine, folder)


def need_cpus(machine: Machine, count: int) -> None:
    if len(machine.allowed_cpus) < count:
        pytest.skip(f"needs {count} CPUs")


FAULTS: dict[str, tuple[str, str]] = {
    "ONE_WRONG": ("fp64", "row_error: "),
    "UNWRITTEN": ("fp64", "row_error: not a number"),
    "READS_C": ("fp64", "row_error: not a number"),
    "HALF_K": ("fp64", "row_error: "),
    "SWAPPED": ("fp64", "row_error: "),
    "EVERY_OTHER": ("fp64", "row_error: "),
    "NARROW": ("fp32", "row_error: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_product_is_found_and_not_published(
    fault: str, libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    precision, reason = FAULTS[fault]
    outcome = ran(live_machine, folder, libraries(fault), precision=precision, **SMALL).outcome
    assert outcome.state is State.INVALID and outcome.reason.startswith(reason), outcome


@pytest.mark.parametrize("fault", ["ONE_WRONG", "UNWRITTEN", "HALF_K"])
def test_single_precision_is_checked_as_well(
    fault: str, libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    outcome = ran(live_machine, folder, libraries(fault), precision="fp32", **SMALL).outcome
    assert outcome.state is State.INVALID and outcome.reason.startswith("row_error: "), outcome


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("faults", [(), ("SLOW=20",)], ids=["right", "right but slow"])
def test_a_right_product_is_not_called_wrong(
    precision: str,
    faults: tuple[str, ...],
    libraries: Callable[..., Path],
    live_machine: Machine,
    folder: ResultsFolder,
) -> None:
    record = ran(live_machine, folder, libraries(*faults), precision=precision, **SMALL)
    assert record.outcome.is_ok, record.outcome
    assert record.seen["notes"]["blas_version"] == "Made up 1.0"


@pytest.mark.parametrize("n", ["64", "65", "127", "500"])
def test_any_size_is_verified(
    n: str, libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    for precision in ("fp64", "fp32"):
        record = ran(live_machine, folder, libraries(), n=n, threads="1", precision=precision)
        assert record.outcome.is_ok, record.outcome


def test_a_blas_that_takes_too_long_says_so(
    libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    outcome = ran(live_machine, folder, libraries("SLOW=400"), n="2048", threads="1").outcome
    assert outcome.state is State.SKIPPED and "with this BLAS; set a smaller n" in outcome.reason, outcome


def test_a_size_of_auto_is_measured_however_slow_the_blas(
    libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    record = ran(live_machine, folder, libraries("SLOW=1000"), n="1472", threads="1")  # 1472: auto of one thread
    assert record.outcome.is_ok, record.outcome
    assert len(record.samples) == 1
    assert record.seen["notes"]["blas_why"].startswith("blas=/")


@pytest.mark.quiet
@pytest.mark.parametrize("binding", ["bound", "none"])
@pytest.mark.parametrize("faults", [(), ("ANEW",)], ids=["a pool", "new threads each time"])
def test_threads_are_counted_and_bound(
    binding: str, faults: tuple[str, ...], libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    need_cpus(live_machine, 2)
    item = prepared(live_machine, libraries(*faults), n="512", threads="2", binding=binding)
    assert isinstance(item, Ready)
    record = run_one(item, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.checks["blas_threads"] == 2
    masks = record.seen["notes"]["cpus_of_blas"]
    everywhere = list(live_machine.allowed_cpus)
    if binding == "none":
        assert all(mask == everywhere for mask in masks)
    elif faults:
        assert masks == [sorted(item.point.cpus)]
    else:
        assert masks == [[cpu] for cpu in item.point.cpus]


THREAD_FAULTS = {
    "ALONE": (State.SKIPPED, "this BLAS uses one thread, not 2"),
    "ONE_MORE": (State.INVALID, "blas_threads: 3, must be 2"),
    "ON_ONE_CPU": (State.INVALID, "crowded_threads: 1, must be 0"),
}


@pytest.mark.quiet
@pytest.mark.parametrize("fault", THREAD_FAULTS)
def test_threads_that_are_not_as_asked_for_are_found(
    fault: str, libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder
) -> None:
    need_cpus(live_machine, 2)
    state, reason = THREAD_FAULTS[fault]
    outcome = ran(live_machine, folder, libraries(fault), n="512", threads="2", binding="none").outcome
    assert (outcome.state, outcome.reason[: len(reason)]) == (state, reason), outcome


PROGRAM_FAULTS: dict[str, tuple[Edits, str]] = {
    "constant input": (
        {"matrix_product.hpp": ("* 0x1p-53 - 0.5);", "* (PLANTED ? 0.0 : 0x1p-53) + (PLANTED ? 0.25 : -0.5));")},
        "row_error: |distinct_inputs: ",
    ),
    "a flop too many": ({"gemm.cpp": ("return 2 * n * n * n;", "return 2 * n * n * (n + 1);")}, "counted_flop: "),
    "threads left where they were": (
        {
            "gemm.cpp": (
                "allow_cpus(workers_.ids()[i], {program_.cpus[i + 1]});",
                "allow_cpus(workers_.ids()[i], program_.cpus);",
            )
        },
        "unbound_threads: 1, must be 0",
    ),
    "a check that is not made": (
        {"gemm.cpp": ('program_.check("element_error", element_error_);', "")},
        "element_error: the program did not report it",
    ),
}


@pytest.mark.parametrize("fault", PROGRAM_FAULTS)
def test_a_fault_of_the_program_is_found(
    fault: str,
    libraries: Callable[..., Path],
    live_machine: Machine,
    folder: ResultsFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need_cpus(live_machine, 2)
    reasons = PROGRAM_FAULTS[fault][1]
    faults = {name: edits for name, (edits, _) in PROGRAM_FAULTS.items()}
    broken = with_fault(BENCHMARK, fault, faults, tmp_path, monkeypatch)
    outcome = ran(live_machine, folder, libraries(), broken, n="512", threads="2").outcome
    assert outcome.state is State.INVALID and outcome.reason.startswith(tuple(reasons.split("|"))), outcome


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("binding", ["bound", "none"])
def test_openblas(precision: str, binding: str, own: Blas, live_machine: Machine, folder: ResultsFolder) -> None:
    record = ran(live_machine, folder, own.name, precision=precision, binding=binding, n="768")
    assert record.outcome.is_ok, record.outcome
    assert record.checks["blas_threads"] == len(live_machine.cpus_one_per_core)
    notes = record.seen["notes"]
    assert notes["blas_version"].startswith("OpenBLAS") and notes["blas_core"]
    assert notes["blas_path"] == str(own.path)
    assert any("openblas" in name for name in record.seen["libs"])
    assert "added_libs" not in record.seen, "they are known beforehand"


def test_kernels_of_another_processor_are_left_out_and_said(
    libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    record = ran(live_machine, folder, libraries(), **SMALL)
    assert record.outcome.is_ok, record.outcome
    assert record.seen["notes"]["blas_core"] == "own"
    assert record.seen["notes"]["left_out"] == "OPENBLAS_CORETYPE=Prescott"
    forced = ran(live_machine, folder, libraries(), kernels="forced", **SMALL)
    assert forced.seen["notes"]["blas_core"] == "Prescott" and "left_out" not in forced.seen["notes"]


def test_another_library_or_variable_is_another_experiment(
    libraries: Callable[..., Path],
    live_machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "libmine.so"
    shutil.copy(libraries(), place)
    first = prepared(live_machine, place, **SMALL).experiment
    assert prepared(live_machine, place, **SMALL).experiment == first
    assert first.parameters["blas"] == str(place)
    shutil.copy(libraries("SLOW=20"), place)
    assert prepared(live_machine, place, **SMALL).experiment.id != first.id
    shutil.copy(libraries(), place)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    assert prepared(live_machine, place, **SMALL).experiment.id != first.id


def test_a_library_that_is_replaced_behind_our_back_is_found(
    libraries: Callable[..., Path], live_machine: Machine, folder: ResultsFolder, tmp_path: Path
) -> None:
    place = tmp_path / "libmine.so"
    shutil.copy(libraries(), place)
    item = prepared(live_machine, place, **SMALL)
    assert isinstance(item, Ready)
    if not item.program.built.hello.libs["libmine.so"]:
        pytest.skip("the linker writes no build ids")
    shutil.copy(libraries("SLOW=20"), place)
    outcome = run_one(item, live_machine, folder).outcome
    assert outcome.state is State.INVALID and outcome.reason.startswith("library: libmine.so was loaded from"), outcome


def test_no_blas_is_unsupported_and_says_how_to_get_one(live_machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "find_blas", lambda variables=None: ())
    monkeypatch.setattr(native, "find_blas", lambda: ())
    item = prepared(live_machine, "auto", **SMALL)
    assert isinstance(item, Refused)
    assert item.outcome.state is State.UNSUPPORTED and item.outcome.reason.startswith("blas: no BLAS found")
    assert "scipy-openblas64" in item.outcome.reason
    need = lacking(BENCHMARK, native_environment(live_machine))
    assert need is not None and need.startswith("a BLAS: ") and "scipy-openblas64" in need


def test_what_cannot_be_loaded_is_passed_over(
    libraries: Callable[..., Path],
    live_machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    damaged = tmp_path / "libdamaged.so"
    damaged.write_bytes(libraries().read_bytes()[:4096])
    candidates = (Blas("damaged", "other", damaged), Blas("sound", "other", libraries()))
    monkeypatch.setattr(blas_libraries, "choose_blas", lambda choice: candidates)
    item = prepared(live_machine, "auto", **SMALL)
    assert isinstance(item, Ready) and item.experiment.parameters["blas"] == "sound"
    monkeypatch.setattr(blas_libraries, "choose_blas", lambda choice: candidates[:1])
    refused = prepared(live_machine, "auto", **SMALL)
    assert isinstance(refused, Refused) and refused.outcome.state is State.UNSUPPORTED
    assert refused.outcome.reason.startswith(f"blas: no BLAS can be loaded ({damaged}: ")


def test_auto_and_what_it_stands_for_are_one_experiment(own: Blas, live_machine: Machine) -> None:
    (first, *_) = finder.find_blas()
    points = plan_points(["cpu.gemm"], {"blas": ["auto", first.name], "n": ["256"], "threads": ["1"]}, live_machine)
    assert len(points) == 2
    (item,) = prepare(points, Environments.always(native_environment(live_machine)), "machine", Listener())
    assert item.experiment.parameters["blas"] == first.name
