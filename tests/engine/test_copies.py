"""Copies of a job at once: their shares of the node, how they are started and judged, and what is recorded of them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine.harness import make_ready, run_one
from made_up import facts, made_up_machine

from seatrial.analysis.experiment_figures import figures_of
from seatrial.applications.hpl import BENCHMARK as HPL
from seatrial.applications.hpl_output import SERIES
from seatrial.applications.lammps import BENCHMARK as LAMMPS
from seatrial.applications.running.copies import with_copies
from seatrial.benchmarks import declare, registry
from seatrial.benchmarks.nodes import NODES
from seatrial.benchmarks.placement import RANKS, THREADS_OF_RANK, placement, resolved
from seatrial.engine.judge import impossible_figure
from seatrial.engine.listener import Listener
from seatrial.engine.prepare import Preparation
from seatrial.engine.ready import Refused
from seatrial.engine.starting import completed_together, outcome_together, overlap
from seatrial.environments.chosen import Environments
from seatrial.errors import NoCompilerError
from seatrial.launch.local import Completed
from seatrial.launch.ranks import rank_layout
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.model.benchmark.benchmark import Benchmark, Better, External, Figure, Skip
from seatrial.model.benchmark.copies import (
    COPIES,
    COPY,
    COPY_DEVICES,
    DIVIDED,
    SELECTING,
    all_of,
    devices_of,
    shares_of,
)
from seatrial.model.benchmark.parameter import Params
from seatrial.model.benchmark.program import BINDING, UNBOUND, ProgramRecord
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Device, DeviceKind, Machine, NamedLimit
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import Outcome, Sample, Stage, State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder


def point(name: str, machine: Machine, **settings: str) -> Point:
    (found,) = plan_points([name], {key: [value] for key, value in settings.items()}, machine)
    return found


def test_every_application_has_copies() -> None:
    """A new adapter is not forgotten."""
    programs = [one for name, one in registry().items() if name.startswith("apps.")]
    external = [one for one in programs if isinstance(one.program, External)]
    assert len(external) > 30
    assert all(one.parameter(COPIES).default == 1 for one in external)


def test_shares_are_disjoint_and_hold_whole_cores_of_one_socket() -> None:
    machine = made_up_machine(packages=2, cores=4, threads=2)
    shares = shares_of(machine, 4)
    taken = [cpu for share in shares for cpu in share.allowed_cpus]
    assert sorted(taken) == list(machine.allowed_cpus)
    pus = machine.pus
    for share in shares:
        assert len({pus[cpu].parent for cpu in share.allowed_cpus}) == 2
        assert len({str(machine.package_of(cpu)) for cpu in share.allowed_cpus}) == 1


def test_what_is_left_over_stays_idle() -> None:
    shares = shares_of(made_up_machine(cores=7), 3)
    assert [len(share.allowed_cpus) for share in shares] == [2, 2, 2]


def test_more_copies_than_cores_are_skipped() -> None:
    with pytest.raises(Skip) as caught:
        shares_of(made_up_machine(cores=2), 3)
    assert caught.value.reason == "3 copies need 3 cores; this process may use 2"
    refusal = point("apps.lammps", made_up_machine(cores=2), copies="2", ranks="2").refusal
    assert refusal is not None
    assert refusal.reason == "each of 2 copies: 2 ranks of 1 threads need 2 CPUs; this process may use 1"


def test_the_ranks_of_a_point_are_those_of_one_copy() -> None:
    """Containers are tried with them before anything is measured."""
    layout = rank_layout(point("apps.lammps", made_up_machine(cores=4), copies="2"))
    assert (layout.ranks, layout.cpus) == (2, ((0,), (1,)))


def test_copies_share_one_node() -> None:
    refusal = point("apps.lammps", made_up_machine(cores=4), copies="2", nodes="2").refusal
    assert refusal is not None and refusal.reason == "copies share one node; nodes=2 is for a single job"


@pytest.mark.parametrize("name", ["apps.gromacs", "apps.lammps", "apps.qe", "apps.openfoam", "apps.calculix"])
def test_the_job_is_the_same_whatever_the_number_of_copies(name: str) -> None:
    machine = made_up_machine(cores=64)
    layout = {COPIES, "ranks", "threads"}
    alone, several = (point(name, machine, copies=copies).parameters for copies in ("1", "8"))
    assert {k: v for k, v in alone.items() if k not in layout} == {k: v for k, v in several.items() if k not in layout}
    assert (several[COPIES], several.get("ranks", several.get("threads"))) == (8, 8)


def test_each_copy_has_its_part_of_the_memory() -> None:
    machine = made_up_machine(cores=8)
    machine = replace(machine, facts=Facts({**machine.facts, **facts(memory_total=64e9)}))
    alone, several = (
        point("apps.hpl", machine, copies=copies, bound="memory", ranks="all").parameters for copies in ("1", "4")
    )
    assert isinstance(alone["n"], int) and isinstance(several["n"], int)
    assert several["n"] ** 2 == pytest.approx(alone["n"] ** 2 / 4, rel=0.1)  # the same memory in all
    assert several["bound"] == "memory"


def test_ranks_of_all_copies_fill_the_node_in_turn() -> None:
    machine = made_up_machine(packages=2, cores=4)
    found = point("apps.lammps", machine, copies="2")
    assert (found.parameters["ranks"], found.cpus) == (4, (0, 1, 2, 3, 4, 5, 6, 7))


def solved(rates: list[float]) -> list[Sample]:
    """A system that each copy of HPL solved at this rate."""
    system = {"n": 100, "nb": 128, "grid": "1x2"}
    return [Sample(SERIES, 0, 1.0, {"flops": rate}, point={**system, COPY: n}) for n, rate in enumerate(rates)]


def test_rates_are_summed_and_the_limit_is_that_of_all_cores() -> None:
    machine = replace(
        made_up_machine(cores=4), limits=(NamedLimit("cpu.fp64", Limit(100.0, "flop/s", "made up", Basis.PHYSICAL)),)
    )
    params = point("apps.hpl", machine, copies="2", ranks="1", threads="1").parameters
    assert all_of(params)["ranks"] == 2
    (found,) = (r for r in readings(HPL, machine, params, solved([30.0, 19.0])) if r.figure.name == "rate")
    assert (found.value, found.point, found.n_samples) == (49.0, {"n": 100, "nb": 128, "grid": "1x2"}, 2)
    assert found.limit is not None and found.limit.value == 50.0  # 2 of 4 cores
    assert impossible_figure(HPL, machine, params, solved([30.0, 19.0])) is None
    too_fast = impossible_figure(HPL, machine, params, solved([30.0, 22.0]))
    assert too_fast is not None and too_fast.reason.startswith("limit: rate is 1.04 x what is physically possible")


def test_of_times_the_slowest_copy_counts() -> None:
    machine = made_up_machine(cores=2)
    params = point("apps.lammps", machine, copies="2").parameters
    samples = [
        Sample("run", 0, elapsed_s, {"steps": 100, "atom_steps": 4e5}, point={COPY: n})
        for n, elapsed_s in enumerate((1.0, 4.0))
    ]
    found = {r.figure.name: r.value for r in readings(LAMMPS, machine, params, samples)}
    assert found == {"atom_steps": pytest.approx(4e5 + 1e5), "step": pytest.approx(0.04)}


def test_a_copy_without_a_figure_leaves_none() -> None:
    machine = made_up_machine(cores=2)
    params = point("apps.lammps", machine, copies="2").parameters
    lonely = [Sample("run", 0, 1.0, {"steps": 100, "atom_steps": 4e5}, point={COPY: 1})]
    outcome = impossible_figure(LAMMPS, machine, params, lonely)
    assert outcome is not None and "there for 1 of 2 copies" in outcome.reason


def test_a_job_that_failed_makes_the_repeat_invalid() -> None:
    good, bad = Outcome.ok(), Outcome.failed(Stage.RUN, "the program was killed by SIGKILL", "out of memory")
    one = outcome_together([good, bad, good])
    assert (one.state, one.check, one.evidence) == (State.INVALID, COPIES, "out of memory")
    assert one.reason == "copies: copy 1 of 3 (from 0) is failed: run: the program was killed by SIGKILL"
    assert outcome_together([bad, bad]) == bad
    late = Outcome.timed_out(30.0)
    assert outcome_together([good, late]) == late
    assert outcome_together([good, good]).is_ok


def ended(start_s: float, wall_s: float, cpu_s: float = 1.0, largest_B: float = 1.0) -> Completed:
    used = {"cpu_s": cpu_s, "max_resident_B": largest_B}
    return Completed(0, wall_s, 60.0, timed_out=False, evidence="", io={"rchar": 3}, used=used, start_s=start_s)


def test_jobs_that_did_not_run_at_the_same_time_are_invalid() -> None:
    assert overlap([ended(0.0, 2.0), ended(1.0, 3.0)]) is None
    apart = overlap([ended(0.0, 1.0), ended(1.5, 3.0)])
    assert apart is not None
    assert apart.reason == "copies: one had ended after 1 s, the last was started after 1.5 s"


def test_what_all_jobs_used_is_summed() -> None:
    made = completed_together([ended(0.0, 2.0, 1.5, 7.0), ended(0.1, 3.0, 2.0, 5.0)])
    assert (made.wall_s, made.io) == (3.0, {"rchar": 6})
    assert made.used == {"cpu_s": 3.5, "max_resident_B": 7.0}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"probes": ("mpi",)}, "copies: the MPI profile is of one job; leave out the probe mpi"),
        (
            {"environment": EnvironmentChoice(mpi_settings=((BINDING, UNBOUND),))},
            "copies: each copy is bound to its share of the CPUs; leave out environment.binding=none",
        ),
        (
            {
                "environment": EnvironmentChoice(variables=(("CUDA_VISIBLE_DEVICES", "0"),)),
                "parameters": {COPIES: 2, COPY_DEVICES: DIVIDED},
            },
            "copies: copy_devices=divided selects the GPUs of each copy, but CUDA_VISIBLE_DEVICES is set; unset it",
        ),
    ],
)
def test_what_cannot_be_done_with_copies_is_unsupported(changes: dict[str, Any], reason: str) -> None:
    machine = made_up_machine(cores=2)
    planned = replace(point("apps.lammps", machine, copies="2"), **changes)
    environments = Environments.always(NoCompilerError("none"))
    refused = Preparation(environments, "", Listener(), builds=False).of(planned)
    assert isinstance(refused, Refused)
    assert (refused.outcome.state, refused.outcome.reason) == (State.UNSUPPORTED, reason)


_SCRIPT = """\
#!/bin/sh
read -r failing status < ./input
while read -r key value; do
  [ "$key" = Cpus_allowed_list: ] && echo "cpus $value"
done < /proc/self/status
echo "devices ${CUDA_VISIBLE_DEVICES-all}"
touch started
[ ! -d ../copy-1 ] || until [ -e ../copy-0/started ] && [ -e ../copy-1/started ]; do sleep 0.05; done
sleep 0.1
[ "${PWD##*/}" = "$failing" ] && exit "$status"
echo "done"
"""


def _read(data: bytes) -> ProgramRecord:
    lines = data.decode().splitlines()
    said = dict(line.split(" ", 1) for line in lines if " " in line)
    sample = Sample("run", 0, 0.3, {"jobs": 1.0}, extra=said)
    return ProgramRecord(samples=(sample,), ended="done" in lines)


MakeUp = Callable[..., Benchmark]


@pytest.fixture
def made_up_application(tmp_path: Path) -> Iterator[MakeUp]:
    """Makes an application known: a script that prints its CPUs, and fails in the folder of the name `failing`."""

    def make(failing: str = "none", *, has_ranks: bool = False) -> Benchmark:
        benchmark = _application(tmp_path, failing, has_ranks=has_ranks)
        declare([benchmark])
        return benchmark

    yield make
    declare([])


def _application(folder: Path, failing: str, *, has_ranks: bool) -> Benchmark:
    script = folder / "application"
    script.write_text(_SCRIPT)
    script.chmod(stat.S_IRWXU)
    return with_copies(
        Benchmark(
            "apps.made-up",
            "How fast does it sleep?",
            External(
                name=str(script),
                install="",
                output="stdout",
                arguments=lambda params, directory: [],
                parse=_read,
                version=(),
                inputs=lambda params: {"input": f"{failing} 3\n".encode()},
            ),
            (RANKS, NODES, THREADS_OF_RANK) if has_ranks else (),
            (Figure("rate", "op/s", Better.HIGHER, lambda sample: 1.0 / sample.elapsed_s, "sleeping", series="run"),),
            (),
            placement=placement if has_ranks else lambda machine, params: (),
            prepare=(lambda machine, params: resolved(machine, params))
            if has_ranks
            else lambda machine, params: params,
            ranks="mpi" if has_ranks else "one",
        )
    )


@pytest.fixture(autouse=True)
def no_selected_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SELECTING.values():
        monkeypatch.delenv(name, raising=False)


def run_copies(benchmark: Benchmark, machine: Machine, folder: Path, **settings: str) -> tuple[Params, RepeatRecord]:
    results = ResultsFolder.create(folder)
    ready = make_ready(benchmark, machine, results, NoCompilerError("none"), **settings)
    return ready.point.parameters, run_one(ready, machine, results)


def with_gpus(machine: Machine, count: int, vendor: str = "10de") -> Machine:
    gpus = (Device(f"gpu-{n}", DeviceKind.GPU, "GPU", facts=facts(vendor_id=vendor)) for n in range(count))
    return replace(machine, devices=(*machine.devices, *gpus))


def test_gpus_are_divided_in_the_order_of_their_numbers() -> None:
    params = {COPIES: 2, COPY_DEVICES: DIVIDED}
    machine = made_up_machine(cores=4)
    assert devices_of(with_gpus(machine, 4), params) == (
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("CUDA_VISIBLE_DEVICES", "2,3"),
    )
    assert devices_of(with_gpus(machine, 2, "1002"), params)[1] == ("ROCR_VISIBLE_DEVICES", "1")
    assert devices_of(with_gpus(machine, 4), {COPIES: 2}) == ()


@pytest.mark.parametrize("count", [0, 3])
def test_gpus_that_cannot_be_divided_are_skipped(count: int) -> None:
    refusal = point("apps.namd", with_gpus(made_up_machine(), count), copies="2", copy_devices="divided").refusal
    assert refusal is not None
    assert refusal.reason == f"copy_devices=divided: {count} GPUs of one vendor cannot be divided among 2 copies"


def two_cores(machine: Machine) -> None:
    if len(machine.cpus_one_per_core) < 2:
        pytest.skip("needs two cores")


@pytest.mark.real
def test_each_copy_runs_in_its_folder_on_its_share(
    live_machine: Machine, tmp_path: Path, made_up_application: MakeUp
) -> None:
    two_cores(live_machine)
    benchmark = made_up_application()
    machine = with_gpus(live_machine, 2)
    params, record = run_copies(benchmark, machine, tmp_path / "results", copies="2", copy_devices="divided")
    assert record.outcome.is_ok, record.outcome
    ran = [sample for sample in record.samples if sample.series == "run"]
    assert [sample.point for sample in ran] == [{COPY: 0}, {COPY: 1}]
    assert [sample.extra["devices"] for sample in ran] == ["0", "1"]
    allowed = [set(read_cpu_list(sample.extra["cpus"])) for sample in ran]
    assert allowed == [set(share.allowed_cpus) for share in shares_of(live_machine, 2)]
    found = {figure.name: figure for figure in figures_of(benchmark, live_machine, params, [record])}
    assert found["rate"].median == pytest.approx(2 / 0.3)
    times = [sample.elapsed_s for sample in record.samples if sample.series == "job"]
    assert found["slowest_job"].median == max(times)
    assert found["throughput"].median == pytest.approx(2 / max(times))
    assert found["throughput"].customary == f"{2 / max(times) * 86400:.0f} jobs/day"


@pytest.mark.real
def test_one_job_has_its_throughput_too(live_machine: Machine, tmp_path: Path, made_up_application: MakeUp) -> None:
    benchmark = made_up_application()
    params, record = run_copies(benchmark, live_machine, tmp_path / "results")
    assert {figure.name for figure in figures_of(benchmark, live_machine, params, [record])} == {"rate", "throughput"}
    assert all(COPY not in sample.point for sample in record.samples)


@pytest.mark.real
def test_a_copy_that_fails_is_named_and_its_output_is_kept(
    live_machine: Machine, tmp_path: Path, made_up_application: MakeUp
) -> None:
    two_cores(live_machine)
    benchmark = made_up_application(failing="copy-1")
    _, record = run_copies(benchmark, live_machine, tmp_path / "results", copies="2")
    assert record.outcome.state is State.INVALID
    assert record.outcome.reason.startswith("copies: copy 1 of 2 (from 0) is failed: run: the program ended with exit")
    (kept,) = (tmp_path / "results" / "artefacts").glob("*/*/copy-1/stdout")
    assert kept.read_text().startswith("cpus ")


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("mpi", "wrapper"), [("openmpi", "mpicc.openmpi"), ("mpich", "mpicc.mpich")])
def test_two_jobs_of_ranks_run_at_once(
    mpi: str,
    wrapper: str,
    live_machine: Machine,
    tmp_path: Path,
    made_up_application: MakeUp,
    need: Callable[[str, str], str],
) -> None:
    """Each has a launcher of its own, with either library; ranks are bound as in a single job."""
    need(wrapper, "apt install libopenmpi-dev libmpich-dev")
    two_cores(live_machine)
    benchmark = made_up_application(has_ranks=True)
    params, record = run_copies(benchmark, live_machine, tmp_path / "results", copies="2", **{"environment.mpi": mpi})
    assert record.outcome.is_ok, record.outcome
    assert params["ranks"] == len(live_machine.cpus_one_per_core) // 2
    shares = shares_of(live_machine, 2)
    wanted = [[cpu] for share in shares for cpu in share.cpus_one_per_core]
    assert record.seen["affinity"] == wanted
    found = {figure.name: figure.median for figure in figures_of(benchmark, live_machine, params, [record])}
    assert found["rate"] == pytest.approx(2 / 0.3)
