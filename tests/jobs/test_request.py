"""What a command asks of a batch system: how it is cut into jobs, their limits and scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.engine.planned import ExpectedTimes
from seatrial.errors import UsageError
from seatrial.jobs import request as job_request
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.jobs.folder import JobFolder
from seatrial.jobs.queue import CLUSTER, Where, where_jobs_go
from seatrial.jobs.request import Command, Portion, batch_request, portion_again, portions_of, request_document
from seatrial.jobs.submitted import refuse_too_much
from seatrial.machine.live import discover_live
from seatrial.model.environment.site import JobOptions, Partition, Place, System
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

NAMES = ("cpu.peak", "cpu.linebounce", "memory.latency", "memory.stream")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return discover_live()


@pytest.fixture(autouse=True)
def _known_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeat of each takes 2 s: 20 s for its repeats."""

    def times(points: Any, machine: Machine) -> ExpectedTimes:
        return ExpectedTimes({id(point): 2.0 for point in points}, 0.0)

    monkeypatch.setattr(job_request, "expected_times", times)


def command(*names: str, **settings: Any) -> Command:
    return Command(names, settings, Path("results"), names=names, study=None)


def where(**options: Any) -> Where:
    partition = Partition("compute", job=JobOptions(**options))
    return Where(Place(System("tera", (partition,), "slurm"), partition), SYSTEMS["slurm"], "tera:compute")


def targets(portions: list[Portion]) -> list[tuple[str, ...]]:
    return [portion.targets for portion in portions]


def test_all_in_one_job_without_a_limit(machine: Machine) -> None:
    (one,) = portions_of(command(*NAMES), machine, None)
    assert one.targets == NAMES
    assert one.limit_s % 60 == 0 and one.limit_s >= one.expected_s > 0
    assert one.node_hours == one.limit_s / 3600


def test_as_few_jobs_as_the_limit_allows(machine: Machine) -> None:
    (one,) = portions_of(command(NAMES[0]), machine, None)
    found = portions_of(command(*NAMES), machine, one.limit_s)
    assert 1 < len(found) <= 4 and sorted(name for portion in found for name in portion.targets) == sorted(NAMES)
    assert all(portion.limit_s <= one.limit_s for portion in found)
    (all_in_one,) = portions_of(command(*NAMES), machine, 36000.0)
    assert sorted(all_in_one.targets) == sorted(NAMES)


def test_a_budget_is_for_one_job_and_a_limit_is_kept(machine: Machine) -> None:
    (one,) = portions_of(replace(command(*NAMES), budget_s=7200.0), machine, 600.0)
    assert one.limit_s == 600.0


def test_the_fewest_repeats_are_expected_beyond_a_small_budget(machine: Machine) -> None:
    (one,) = portions_of(replace(command(*NAMES), budget_s=0.5), machine, None)
    (usual,) = portions_of(command(*NAMES), machine, None)
    assert 0.5 < one.expected_s <= usual.expected_s <= one.limit_s


def test_a_job_gets_the_settings_that_its_benchmarks_have(machine: Machine) -> None:
    asked = command("cpu.peak", "memory.latency", cores=["one"], huge_pages=[False])
    (one,) = portions_of(command("cpu.peak", cores=["one", "all"]), machine, None)
    assert one.settings == {"cores": ["one", "all"]} and len(one.points) == 2
    apart = {portion.targets[0]: portion.settings for portion in portions_of(asked, machine, 120.0)}
    assert apart == {"cpu.peak": {"cores": ["one"]}, "memory.latency": {"huge_pages": [False]}}


def test_what_needs_several_nodes_gets_them(machine: Machine) -> None:
    (one,) = portions_of(command("mpi.latency", nodes=[2, 4]), machine, None)
    assert one.nodes == 4 and one.limit_s >= 40
    assert one.node_hours == 4 * one.limit_s / 3600


def test_a_job_is_submitted_again_as_it_was(machine: Machine, tmp_path: Path) -> None:
    asked = command(*NAMES)
    portion = portions_of(asked, machine, 120.0)[0]
    folder = ResultsFolder.create(tmp_path / "results")
    job = JobFolder.create(folder, request_document(asked, portion, where(), "k"), lambda job: "")
    assert portion_again(asked, job, machine, 120.0) == portion


def test_the_key_is_that_of_what_is_measured_and_where(tmp_path: Path) -> None:
    asked, here = command("cpu.peak", "memory.latency", cores=["one"]), where()
    assert replace(asked, names=("memory.latency", "cpu.peak")).key(here) == asked.key(here)
    others = [
        replace(asked, names=("cpu.peak",)),
        replace(asked, settings={"cores": ["all"]}),
        replace(asked, budget_s=5.0),
        replace(asked, again=True),
    ]
    keys = {one.key(here) for one in others} | {asked.key(replace(here, text="tera:fat")), asked.key(here)}
    assert len(keys) == len(others) + 2
    file = tmp_path / "mine.yaml"
    file.write_text("a")
    named = replace(asked, targets=(str(file),))
    before = named.key(here)
    file.write_text("b")
    assert named.key(here) != before


def test_the_script_has_what_the_site_needs(machine: Machine, tmp_path: Path) -> None:
    (portion,) = portions_of(command("cpu.peak"), machine, None)
    place = where(account="proj1", qos="high", modules=("openmpi/5.0",), extra=("#SBATCH --mail-type=NONE",))
    request = batch_request(place, JobFolder(tmp_path, "J"), portion)
    script = place.batch.script(request).splitlines()
    for line in ("--partition=compute", "--account=proj1", "--qos=high", "--exclusive", "--mail-type=NONE"):
        assert f"#SBATCH {line}" in script
    assert script[-3:] == [
        "module load openmpi/5.0",
        f"cd -- {tmp_path}/jobs/J",
        f"exec /bin/sh {tmp_path}/jobs/J/job.sh",
    ]
    assert "ntasks" not in "".join(script)
    with_cpus = replace(place, place=replace(place.place, partition=replace(place.place.partition, cpus_per_node=64)))
    assert batch_request(with_cpus, JobFolder(tmp_path, "J"), portion).tasks_per_node == 64
    for other in (where(exclusive=False), replace(place, batch=SYSTEMS["pbs"])):
        with pytest.raises(UsageError, match="how many CPUs"):
            batch_request(other, JobFolder(tmp_path, "J"), portion)
    with pytest.raises(UsageError, match="cannot be in a job script"):
        batch_request(place, JobFolder(tmp_path / "a b", "J"), portion)


def test_too_many_node_hours_are_refused(machine: Machine) -> None:
    portions = portions_of(command("cpu.peak"), machine, None)
    refuse_too_much(portions, 100.0)
    refuse_too_much(portions, None)
    with pytest.raises(UsageError, match=r"node-hours, more than --max-node-hours 0.01"):
        refuse_too_much(portions, 0.01)


SITE = (
    "systems:\n  tera:\n    batch: slurm\n    partitions: {compute: , fat: {queue: big}}\n  old: {partitions: {a: }}\n"
)


@pytest.mark.parametrize(
    ("system", "environment", "found"),
    [
        ("tera", {}, "tera:compute"),
        ("tera:fat", {}, "tera:fat"),
        ("old", {}, None),  # chooses environments only, as before
        (None, {}, None),
        ("tera", {"SLURM_JOB_ID": "7"}, None),
        ("tera", {"SEATRIAL_JOB": "x/y"}, None),
        (None, {"SEATRIAL_CLUSTER": "/run/c", "SLURM_CONF": "/run/c/slurm.conf"}, f"{CLUSTER}:all"),
        (CLUSTER, {"SEATRIAL_CLUSTER": "/run/c", "SLURM_CONF": "/run/c/slurm.conf"}, f"{CLUSTER}:all"),
        ("tera", {"SEATRIAL_CLUSTER": "/run/c", "SLURM_CONF": "/run/c/slurm.conf"}, "tera:compute"),
        (None, {"SEATRIAL_CLUSTER": "/run/c"}, None),  # names the folder of a cluster, outside of it
    ],
)
def test_where_jobs_go(tmp_path: Path, system: str | None, environment: dict[str, str], found: str | None) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(SITE)
    where = where_jobs_go(site, system, environment)
    assert (None if where is None else where.text) == found
    if where is not None:
        assert where.options.queue == {"tera:compute": "compute", "tera:fat": "big"}.get(where.text, "all")


def test_options_of_jobs_without_jobs_are_refused(tmp_path: Path) -> None:
    for option in (("--detach",), ("--cancel",), ("--max-node-hours", "1")):
        done = seatrial_here("run", "cpu.peak", *option, cwd=tmp_path)
        assert done.returncode == 2 and "batch: slurm" in done.stderr
    site = tmp_path / "site.yaml"
    site.write_text(SITE)
    here = ("--site", str(site), "--system", "tera")
    for words, said in (
        (("--detach", "--cancel"), "--detach and --cancel"),
        (("--cancel", "--again"), "--cancel and --again"),
        (("--versus",), "--versus does not submit"),
    ):
        done = seatrial_here("run", "cpu.peak", *here, *words, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not list(tmp_path.glob("seatrial-results"))


def test_a_plan_shows_the_jobs(tmp_path: Path) -> None:
    import json

    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "s.yaml").write_text("study: s\nquestion: q\nbenchmarks: {cpu.peak: {}}\nrepeat: {budget: 10min}\n")
    here = ("plan", "s.yaml", "--site", "site.yaml", "--system", "tera:fat")
    done = seatrial_here(*here, "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    check(document, "plan-1")
    (job,) = document["jobs"]
    assert document["system"] == "tera:fat" and job["limit_s"] >= 600
    assert document["node_hours"] == job["node_hours"] == pytest.approx(job["limit_s"] / 3600)
    assert "#SBATCH --partition=big\n" in job["script"]
    assert "#SBATCH --partition=big" in seatrial_here(*here, cwd=tmp_path).stdout
    assert seatrial_here(*here, "--max-node-hours", "0.1", cwd=tmp_path).returncode == 2
    done = seatrial_here("plan", "s.yaml", "--max-node-hours", "0.1", cwd=tmp_path)
    assert done.returncode == 2 and "are for jobs" in done.stderr
