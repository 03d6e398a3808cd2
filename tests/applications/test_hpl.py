"""apps.hpl: its input, the order that time and memory allow, its limits, real runs, and a false HPL for each check."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from applications.result_texts import hpl, hpl_row
from cli.in_process import seatrial_here
from engine.harness import run_one
from made_up import facts, made_up_machine
from one_point import prepare_point

from seatrial.applications.hpl import BENCHMARK as HPL
from seatrial.applications.hpl import blocks, grids
from seatrial.applications.hpl_input import grids_of, hpl_dat, matrix_B
from seatrial.benchmarks import benchmark_named, benchmark_of
from seatrial.engine.ready import Refused
from seatrial.errors import NoCompilerError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine, NamedLimit
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

NO_COMPILER = NoCompilerError("none")
GIB = 1 << 30


def machine(memory_B: int | None = 24 * GIB, cores: int = 2, packages: int = 1) -> Machine:
    made_up = made_up_machine(packages=packages, cores=cores, fma_vector_bits=512)
    return made_up if memory_B is None else replace(made_up, facts=facts(memory_total=memory_B))


def resolved(on: Machine | None = None, **settings: str) -> Params:
    (point,) = plan_points(
        ["apps.hpl"], {**{"ranks": ["all"]}, **{k: [v] for k, v in settings.items()}}, on or machine()
    )
    assert point.refusal is None, point.refusal
    return point.parameters


def refusal(on: Machine | None = None, **settings: str) -> str:
    (point,) = plan_points(
        ["apps.hpl"], {**{"ranks": ["all"]}, **{k: [v] for k, v in settings.items()}}, on or machine()
    )
    assert point.refusal is not None and point.refusal.state is State.SKIPPED
    return point.refusal.reason


def program(name: str) -> External:
    xhpl = HPL.program
    assert isinstance(xhpl, External)
    return next(one for one in (xhpl, *xhpl.alternatives) if one.name == name)


def read_as_hpl_does(text: str) -> Mapping[str, list[int]]:
    """The lists of N, NB, P and Q at the lines where HPL_pdinfo.c reads them."""
    lines = text.splitlines()
    found = {}
    for name, count_line, value_line in (("n", 4, 5), ("nb", 6, 7), ("p", 9, 10), ("q", 9, 11)):
        count = int(lines[count_line].split()[0])
        found[name] = [int(word) for word in lines[value_line].split()[:count]]
    assert lines[12].split()[0] == "16.0"  # the threshold: without one HPL checks nothing
    assert len(lines) == 36  # hpcc reads to line 36
    return found


def test_the_input_has_the_lists_where_hpl_reads_them() -> None:
    text = hpl_dat(12000, (128, 192, 256), ((1, 2), (2, 1))).decode()
    assert read_as_hpl_does(text) == {"n": [12000], "nb": [128, 192, 256], "p": [1, 2], "q": [2, 1]}
    assert max(map(len, text.splitlines())) < 80  # hpcc reads lines of 81 characters


def test_grids_are_near_square_and_flat_ones_come_first() -> None:
    assert grids_of(1) == ((1, 1),)
    assert grids_of(2) == ((1, 2), (2, 1))
    assert grids_of(4) == ((2, 2), (1, 4))
    assert grids_of(6) == ((2, 3), (3, 2))
    assert grids_of(7) == ((1, 7), (7, 1))
    assert grids_of(64) == ((8, 8), (4, 16))


def test_hpcc_finds_a_small_matrix_first_and_the_real_one_for_hpl() -> None:
    params = resolved(n="12000", nb="192", grid="1x2")
    hpcc = program("hpcc")
    first = read_as_hpl_does(hpcc.inputs(params)["hpccinf.txt"].decode())
    assert hpcc.input_exchange is not None
    real = read_as_hpl_does(hpcc.input_exchange.inputs(params)["hpccinf.txt"].decode())
    assert first["n"][0] <= 500
    assert real == {"n": [12000], "nb": [192], "p": [1], "q": [2]}
    assert read_as_hpl_does(program("xhpl").inputs(params)["HPL.dat"].decode()) == real


def test_time_bounds_n_where_memory_is_plenty_and_memory_where_it_is_short() -> None:
    plenty = resolved()
    assert plenty["bound"] == "time"
    short = resolved(machine(256 << 20))
    assert short["bound"] == "memory"
    assert 0.7 * (256 << 20) < matrix_B(whole(short["n"])) <= 0.8 * (256 << 20)
    assert whole(short["n"]) < whole(plenty["n"])
    assert resolved(bound="memory")["bound"] == "memory"
    assert 0.74 * 24 * GIB < matrix_B(whole(resolved(bound="memory")["n"])) <= 0.8 * 24 * GIB
    assert resolved(n="4000")["bound"] == "given"


@pytest.mark.parametrize("memory_B", [64 << 20, 300 << 20, 1 * GIB, 24 * GIB, 1 << 42])
@pytest.mark.parametrize("cores", [1, 2, 8, 128])
def test_auto_never_takes_more_than_80_percent_of_memory(memory_B: int, cores: int) -> None:
    for bound in ("auto", "memory", "time"):
        params = resolved(machine(memory_B, cores), bound=bound)
        assert 0 < matrix_B(whole(params["n"])) <= 0.8 * memory_B


def test_the_smaller_of_two_accounts_of_memory_holds() -> None:
    limited = replace(machine(), facts=facts(memory_total=24 * GIB, cgroup_memory_limit=GIB))
    assert matrix_B(whole(resolved(limited, bound="memory")["n"])) <= 0.8 * GIB
    assert resolved(machine(None))["bound"] == "time"
    assert "give n" in refusal(machine(None), bound="memory")
    assert "does not fit" in refusal(machine(GIB), n="20000")


def test_all_layouts_of_the_default_sweep_solve_the_same_system() -> None:
    points = plan_points(["apps.hpl"], {}, machine(cores=8, packages=1))
    assert [(point.parameters["ranks"], point.parameters["threads"]) for point in points] == [(8, 1), (1, 8)]
    assert len({point.parameters["n"] for point in points}) == 1
    assert all(sorted(point.cpus) == list(range(8)) for point in points)


def test_the_default_sweep_is_planned_for_less_than_four_minutes() -> None:
    points = plan_points(["apps.hpl"], {}, machine())
    assert len(points) == 2
    params = points[0].parameters
    flops = (
        sum(len(blocks(p.parameters)) * len(grids(p.parameters)) for p in points) * 6 * 2 / 3 * whole(params["n"]) ** 3
    )
    assert 5e12 < flops < 240 * 8e10  # a core of this machine makes 80 GFLOP/s at most at the clock that is assumed


def test_layouts_fill_the_cores() -> None:
    eight = machine(cores=8)
    assert (resolved(eight)["ranks"], resolved(eight)["threads"]) == (8, 1)
    assert (resolved(eight, threads="4")["ranks"], resolved(eight, threads="4")["threads"]) == (2, 4)
    assert (resolved(eight, ranks="2")["ranks"], resolved(eight, ranks="2")["threads"]) == (2, 4)
    assert "16 CPUs" in refusal(eight, ranks="16")
    assert "needs 4 ranks" in refusal(eight, ranks="8", grid="2x2")


@pytest.mark.parametrize("grid", ["2", "2x", "0x2", "x", "2X1", "2x2x2", "-1x2", "2x1; rm"])
def test_a_grid_that_is_none_is_bad_usage(grid: str) -> None:
    with pytest.raises(UsageError):
        resolved(grid=grid)


def test_the_blas_gets_the_threads_of_the_rank_and_kernels_of_its_choice() -> None:
    params = resolved(machine(cores=8), ranks="2")
    for name in ("xhpl", "hpcc"):
        variables = program(name).variables(params)
        assert variables["OPENBLAS_NUM_THREADS"] == variables["OMP_NUM_THREADS"] == "4"
        assert variables["OPENBLAS_CORETYPE"] is None and variables["OMP_PROC_BIND"] is None
        assert "OPENBLAS_CORETYPE" not in program(name).variables({**params, "kernels": "forced"})
        assert "OPENBLAS_CORETYPE" in program(name).sensitive_to


def test_the_nominal_peak_is_that_of_the_cores_in_use() -> None:
    peak = Limit(8e11, "flop/s", "8 cores x 100 GFLOP/s", Basis.PHYSICAL)
    eight = replace(machine(cores=8), limits=(NamedLimit("cpu.fp64", peak),))
    limit = HPL.figure("rate").limit
    assert limit is not None
    assert limit(eight, resolved(eight), []) == peak
    half = limit(eight, resolved(eight, ranks="4", threads="1"), [])
    assert half.value == 4e11 and half.is_physical and half.derivation.startswith("4 of 8 cores")
    unknown = limit(machine(), resolved(), [])
    assert unknown.value is None and not unknown.is_physical


@pytest.mark.parametrize(("figure", "source"), [("rate", "cpu.peak"), ("sustained", "cpu.gemm")])
def test_the_measured_ceilings_name_what_is_there(figure: str, source: str) -> None:
    declared = HPL.figure(figure).ceiling
    assert declared is not None
    ceiling = declared(resolved())
    assert ceiling is not None and [benchmark_of(role) for role in ceiling.roles] == [source]
    benchmark = benchmark_named(source)
    assert all(figure.unit == "flop/s" for figure in benchmark.figures if figure.role in ceiling.roles)
    known = {parameter.name for parameter in benchmark.parameters}
    assert {*ceiling.parameters, *ceiling.ignored} == known  # nothing is taken from HPL's own n or kernels


def measured(results_folder: Path, on: Machine, benchmark: Benchmark = HPL, **settings: str) -> RepeatRecord:
    """One record of a real run; no compiler is needed for it."""
    item = prepare_point(benchmark, on, settings, NO_COMPILER)
    if isinstance(item, Refused):
        pytest.skip(str(item.outcome.reason))
    return run_one(item, on, ResultsFolder.create(results_folder))


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("ranks", "grid"), [("2", "auto"), ("1", "1x1")])
def test_hpcc_solves_what_was_asked_and_nothing_else_for_long(
    ranks: str, grid: str, tmp_path: Path, need, live_machine: Machine
) -> None:
    need("hpcc", "apt install hpcc")
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")
    record = measured(tmp_path, live_machine, n="1200", nb="96", grid=grid, ranks=ranks)
    assert record.outcome.is_ok, record.outcome
    wanted = ["1x2", "2x1"] if grid == "auto" else [grid]
    solved = [dict(s.point) for s in record.samples if s.point]  # the time of the whole job has none
    assert solved == [{"n": 1200, "nb": 96, "grid": one} for one in wanted]
    assert 0 < (record.checks["residual"] or 0) < 16


def pretend(folder: Path, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program called xhpl that leaves this answer. It is linked with no MPI, so it runs as one process."""
    answer = folder / "answer"
    answer.write_text(told)
    false = folder / "bin" / "xhpl"
    false.parent.mkdir()
    false.write_text(f'#!/bin/sh\ngrep -q " Ns$" HPL.dat && cp "{answer}" HPL.out\n')
    false.chmod(false.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{false.parent}{os.pathsep}{os.environ['PATH']}")


def row(n: int = 20000, rate: float = 55.5, nb: int = 192, p: int = 1, q: int = 1) -> str:
    return hpl_row(n, rate, nb=nb, p=p, q=q)


PEAK = Limit(1e11, "flop/s", "made up", Basis.PHYSICAL)
GOOD = hpl(((row(), True),))
FAULTS = {
    "nothing": (GOOD, State.OK, ""),
    "a solution is wrong": (hpl(((row(), False),)), State.INVALID, "residual: "),
    "a residual overflowed": (
        hpl(((row(), False),)).replace("2.51360000e+09", "nan"),
        State.INVALID,
        "residual: not a number",
    ),
    "a solution is called right beyond the threshold": (
        GOOD.replace("3.21360000e-03", "1.70000000e+01"),
        State.INVALID,
        "residual: 17",
    ),
    "a system was skipped": (
        GOOD.replace("Finished      1", "Finished      2").replace("     0 tests skipped", "     1 tests skipped"),
        State.INVALID,
        "wrong_solutions: ",
    ),
    "the small system": (hpl(((row(n=500, rate=5.55), True),)), State.INVALID, "systems: "),
    "another block size": (hpl(((row(nb=128), True),)), State.INVALID, "systems: "),
    "another grid": (hpl(((row(q=2), True),)), State.INVALID, "systems: "),
    "one more": (hpl(((row(), True), (row(), True))), State.INVALID, "systems: "),
    "more than the peak": (hpl(((row(rate=110.0), True),)), State.INVALID, "limit: "),
    "no check of the residual": (
        GOOD.replace("tests completed and passed residual checks,", "tests completed without checking,"),
        State.FAILED,
        "",
    ),
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, state, reason = FAULTS[fault]
    pretend(tmp_path, told, monkeypatch)
    on = replace(machine(cores=1), limits=(NamedLimit("cpu.fp64", PEAK),))
    settings = {"n": "20000", "nb": "192", "ranks": "1", "threads": "1"}
    record = measured(tmp_path / "results", on, **settings)
    assert (record.outcome.state, record.outcome.reason[: len(reason)]) == (state, reason), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_an_exchange_that_never_comes_is_found(tmp_path: Path, need, live_machine: Machine) -> None:
    """hpcc with the small input in both readings: a sound run of the wrong system."""
    need("hpcc", "apt install hpcc")
    hpcc = program("hpcc")
    assert hpcc.input_exchange is not None
    never = replace(hpcc, input_exchange=replace(hpcc.input_exchange, after=b"what hpcc never says"))
    broken = replace(HPL, program=replace(never, alternatives=()))
    record = measured(tmp_path, live_machine, broken, n="1200", nb="96", ranks="1", threads="1")
    assert (record.outcome.state, record.outcome.reason[:8]) == (State.INVALID, "systems:"), record.outcome


@pytest.mark.parametrize("percent", [-2, 2])
def test_the_order_is_the_same_when_memory_varies(percent: int) -> None:
    """MemTotal differs between boots and grows on some guests: the experiment must keep its parameters."""
    usable = int(0.98 * 24 * GIB)
    assert resolved(machine(usable), bound="memory")["n"] == resolved(
        machine(usable * (100 + percent) // 100), bound="memory"
    )["n"]  # fmt: skip


@pytest.mark.parametrize("settings", [("threads=auto", "nodes=2"), ("threads=auto", "nodes=2", "copies=2")])
def test_words_of_a_run_that_does_not_fit_are_no_error(settings: tuple[str, ...], tmp_path: Path) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    done = seatrial_here("plan", "apps.hpl", *words, cwd=tmp_path)
    assert "Traceback" not in done.stderr and done.returncode in (0, 2, 3), done.stderr
