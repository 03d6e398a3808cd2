"""Planted faults: each is found, named, and nothing is published. The programs are the real ones, tampered with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_once, run_one
from engine.planted_faults import Edits, faults_of, with_fault
from made_up import with_facts, with_small_caches

from seatrial.analysis.experiment_figures import figures_of, outcome_of
from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.environments.chosen import native_environment
from seatrial.environments.compiler import Target
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import State
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.lab]

HALF_IN_PASSING = "half the work in the rounds that nobody compares"
"""Whose output is compared only where the last of them left it."""


@pytest.fixture(scope="module")
def live_machine(live_machine: Machine) -> Machine:
    """Arrays beyond the caches take seconds on a large machine, and are checked like small ones. How many FMAs a core
    can do counts as confirmed: above a limit that is not, a figure is no fault."""
    return with_facts(with_small_caches(live_machine), DeviceKind.PACKAGE, fma_confirmed=True)


FAULTS: dict[str, tuple[Benchmark, Edits, State, str]] = {
    "constant data": (
        STREAM,
        {"stream.cpp": ("values[i] = input(seed + i);", "values[i] = 0.0 * input(seed + i);")},
        State.INVALID,
        "distinct_inputs: 0",
    ),
    "every other element zero": (
        STREAM,
        {"stream.cpp": ("values[i] = input(seed + i);", "values[i] = i % 2 ? 0.0 : input(seed + i);")},
        State.INVALID,
        "distinct_inputs: 0.5",
    ),
    "one value in each page": (
        STREAM,
        {"stream.cpp": ("values[i] = input(seed + i);", "values[i] = input((seed + i) & ~511ull);")},
        State.INVALID,
        "distinct_inputs: 0.00",
    ),
    HALF_IN_PASSING: (
        STREAM,
        {
            "stream.cpp": (
                "const auto own = part(member);\n    // Each kernel",
                "const auto own = PLANTED && purpose == Purpose::measure\n"
                "    ? part(member).part(0, part(member).a.size() / 128 * 64) : part(member);\n    // Each kernel",
            )
        },
        State.INVALID,
        "triad_mismatches: ",
    ),
    "bytes that were not moved": (
        STREAM,
        {"stream.cpp": ("(kernel.arrays_read + 1)", "kernel.arrays_read + 2")},
        State.INVALID,
        "counted_bytes: ",
    ),
    "one element wrong": (
        STREAM,
        {
            "stream.cpp": (
                "  if constexpr (nontemporal)\n    drain",
                "  if (PLANTED)\n    part.c[part.c.size() / 3] = -1.0;\n  if constexpr (nontemporal)\n    drain",
            )
        },
        State.INVALID,
        "copy_mismatches: ",
    ),
    "half of the output not written": (
        STREAM,
        {"stream.cpp": ("a + part.a.size()", "a + part.a.size() / 128 * 64")},
        State.INVALID,
        "copy_mismatches: ",
    ),
    "arrays of the size of a cache": (
        STREAM,
        {"stream.cpp": ("settings.array_bytes / sizeof(double)", "settings.array_bytes / sizeof(double) / 16")},
        State.INVALID,
        "array_bytes: ",
    ),
    "half of the arithmetic left out": (
        PEAK,
        {"peak.cpp": ("for (; iterations != 0", "for (iterations /= PLANTED ? 2 : 1; iterations != 0")},
        State.INVALID,
        "state_mismatches: ",
    ),
    "arithmetic folded with the right result": (
        PEAK,
        {"peak.cpp": ("const auto flops = 2.0 *", "const auto flops = (PLANTED ? 3.8 : 2.0) *")},
        State.INVALID,
        "limit: fma is ",
    ),
    "all lanes alike": (
        PEAK,
        {
            "peak.cpp": (
                "turns - static_cast<double>(static_cast<std::size_t>(turns))",
                "0.5 + 0 * turns",
            )
        },
        State.INVALID,
        "distinct_state: ",
    ),
    "a sample that is not a number": (
        PEAK,
        {
            "peak.cpp": (
                'sample_event("fma", i, elapsed_s(intervals))',
                'sample_event("fma", i, 0.0 / (elapsed_s(intervals) * 0.0))',
            )
        },
        State.INVALID,
        "samples: ",
    ),
    "no end": (PEAK, {"program.hpp": ("program.end();", "")}, State.FAILED, "run: the program succeeded, but"),
    "a crash": (
        PEAK,
        {"program.hpp": ("program.end();", "std::raise(SIGSEGV);")},
        State.FAILED,
        "run: the program was killed by SIGSEGV",
    ),
    "a check that is not made": (
        PEAK,
        {"peak.cpp": ('program.check("distinct_state", distinct);', "static_cast<void>(distinct);")},
        State.INVALID,
        "distinct_state: the program did not report it",
    ),
    "a broken record": (
        PEAK,
        {"program.hpp": ("program.end();", 'program.add(json::Object().add("ev", "?")); program.end();')},
        State.FAILED,
        "record: ",
    ),
}


CHANCE, HANG = "two values that meet by chance", "a hang"
OTHERS: dict[str, tuple[Benchmark, Edits]] = {
    CHANCE: (
        PEAK,
        {
            "peak.cpp": (
                "final_[member] = state;",
                "final_[member] = state; if (PLANTED) final_[member].x[0][0] = final_[member].x[0][1];",
            )
        },
    ),
    HANG: (PEAK, {"program.hpp": ("program.end();", "for (;;) pause();")}),
}
"""What other tests than that of the table plant: they share its builds."""


def planted_in(benchmark: Benchmark) -> dict[str, Edits]:
    table = {name: (other, edits) for name, (other, edits, *_) in FAULTS.items()}
    return faults_of(benchmark, table | OTHERS)


def settings_of(benchmark: Benchmark) -> dict[str, str]:
    return {"cores": "one"} if benchmark is PEAK else {}


RATES = {"arithmetic folded with the right result"}
"""What is found by how fast it is: beside other work it would not be."""


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=pytest.mark.quiet if fault in RATES else ()) for fault in FAULTS]
)
def test_a_planted_fault_is_named_and_not_published(
    fault: str, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark, _, state, reason = FAULTS[fault]
    if fault in RATES and live_machine.fma_unit(live_machine.allowed_cpus[0]) is None:
        pytest.skip("this processor's FMA units are unknown, and so is its limit")
    folder = ResultsFolder.create(tmp_path / "results")
    broken = with_fault(benchmark, fault, planted_in(benchmark), tmp_path, monkeypatch)
    ready = make_ready(broken, live_machine, folder, **settings_of(benchmark))
    record = run_once(ready, live_machine, folder)
    assert (record.outcome.state, record.outcome.reason[: len(reason)]) == (state, reason), record.outcome
    records = read_contents(folder).records[ready.experiment.id]
    assert outcome_of(records)[0].state is state
    # The first that is wrong ends the experiment; a rate need not be beyond its limit while the CPU is slow.
    assert [one.outcome.is_ok for one in records] == [True] * (len(records) - 1) + [False]
    assert len(records) == 1 or fault in RATES
    assert not figures_of(benchmark, live_machine, ready.point.parameters, records)


@pytest.mark.parametrize("kernel", ["copy", "scale", "add", "triad"])
def test_half_the_work_is_detected_for_each_kernel_alone(
    kernel: str, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    sound = make_ready(STREAM, live_machine, folder, **settings_of(STREAM), kernel=kernel)
    record = run_one(sound, live_machine, folder)
    assert record.outcome.is_ok and {sample.series for sample in record.samples} == {kernel}
    broken = with_fault(STREAM, HALF_IN_PASSING, planted_in(STREAM), tmp_path, monkeypatch)
    folder = ResultsFolder.create(tmp_path / "broken")
    ready = make_ready(broken, live_machine, folder, **settings_of(STREAM), kernel=kernel)
    record = run_once(ready, live_machine, folder)
    assert record.outcome.reason.startswith(f"{kernel}_mismatches: "), record.outcome


def test_untampered_programs_pass(live_machine: Machine, tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "results")
    for benchmark in (STREAM, PEAK):
        record = run_one(make_ready(benchmark, live_machine, folder, **settings_of(benchmark)), live_machine, folder)
        assert record.outcome.is_ok, record.outcome


def test_two_values_that_meet_by_chance_are_no_fault(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lanes with different addends, which no compiler can compute once."""
    program = with_fault(PEAK, CHANCE, planted_in(PEAK), tmp_path, monkeypatch)
    folder = ResultsFolder.create(tmp_path / "results")
    record = run_one(make_ready(program, live_machine, folder, cores="one"), live_machine, folder)
    assert record.outcome.is_ok and record.checks["distinct_state"] == 1.0, record.outcome


def test_a_library_in_the_working_folder_is_not_loaded(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To which an empty entry of LD_LIBRARY_PATH leads, as `$LD_LIBRARY_PATH:/opt/lib` has one where it was unset."""
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(PEAK, live_machine, folder, cores="one")
    for name in ready.program.built.hello.libs:
        if name.startswith(("libstdc++", "libgcc_s")):
            (tmp_path / name).write_text("not a library")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/opt/lib")
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome


def test_threads_on_other_cpus(live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(PEAK, live_machine, folder, cores="one")
    elsewhere = replace(ready, point=replace(ready.point, cpus=(live_machine.allowed_cpus[1],)))
    # The judge expects CPU 0 while the program is told another: as when a batch system binds behind our back.
    import seatrial.engine.repeat as repeat

    original = repeat.command_of
    monkeypatch.setattr(repeat, "command_of", lambda item, directory: original(elsewhere, directory))
    record = run_once(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("affinity: ")


def test_a_program_for_a_lesser_cpu(live_machine: Machine, tmp_path: Path) -> None:
    environment = native_environment(live_machine)
    if not {"avx2"} <= environment.target.isa:
        pytest.skip("this CPU has no AVX2 to leave out")
    lesser = replace(environment, target=Target(("-march=x86-64",), frozenset({"sse2"}), "planted"))
    folder = ResultsFolder.create(tmp_path / "results")
    record = run_once(make_ready(PEAK, live_machine, folder, lesser, cores="one"), live_machine, folder)
    assert record.outcome.state is State.INVALID
    assert record.outcome.reason.startswith("target: ") and "avx2" in record.outcome.reason


def test_a_library_that_shadows_the_one_it_was_built_with(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, need: Callable[[str, str], str]
) -> None:
    objcopy = need("objcopy", "apt install binutils")
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(PEAK, live_machine, folder, cores="one")
    real = ready.program.built.hello.lib_paths["libstdc++.so.6"]
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    shutil.copy(real, shadow / "libstdc++.so.6")
    subprocess.run([objcopy, "--remove-section", ".note.gnu.build-id", str(shadow / "libstdc++.so.6")], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(shadow))
    record = run_once(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID
    assert record.outcome.reason.startswith("library: libstdc++.so.6 was loaded from " + str(shadow))
    assert record.seen["variables"]["LD_LIBRARY_PATH"] == str(shadow)


def test_a_program_that_hangs_is_killed(live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import seatrial.engine.repeat as repeat

    monkeypatch.setattr(repeat, "_LEAST_LIMIT_S", 1.0)
    monkeypatch.setattr(repeat, "_LIMIT_TIMES", 0.0)
    folder = ResultsFolder.create(tmp_path / "results")
    hanging = with_fault(PEAK, HANG, planted_in(PEAK), tmp_path, monkeypatch)
    record = run_once(make_ready(hanging, live_machine, folder, cores="one"), live_machine, folder)
    assert record.outcome.state is State.TIMED_OUT and record.samples == ()


def test_a_program_that_cannot_write_its_record(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import seatrial.engine.repeat as repeat

    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(PEAK, live_machine, folder, cores="one")
    original = repeat.command_of
    monkeypatch.setattr(repeat, "command_of", lambda item, directory: original(item, Path("/proc/nowhere")))
    record = run_once(ready, live_machine, folder)
    assert record.outcome.state is State.FAILED and record.outcome.reason.startswith("record: ")
