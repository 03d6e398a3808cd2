"""PBS, LSF and Flux, which were not run here: scripts, commands, and recorded outputs of their commands."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest
from jobs.requests import REQUEST, sample, states_of

from seatrial.errors import ParseError, UsageError
from seatrial.jobs.batch.flux import Flux
from seatrial.jobs.batch.lsf import Lsf
from seatrial.jobs.batch.pbs import Pbs
from seatrial.jobs.batch.system import BatchSystem, JobState
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.model.environment.site import ALL_MEMORY, JobOptions

PBS, LSF, FLUX = Pbs(), Lsf(), Flux()
BASH = shutil.which("bash")


def test_pbs_text_and_json() -> None:
    jobs = PBS.statuses(sample("pbspro-qstat-f-mycluster-6jobs.txt"))
    assert states_of(jobs) == {"pending": 4, "running": 2}  # two wait for others to end
    assert jobs[0].id == "68350.mycluster"
    assert jobs[0].reason == "Not Running: Node is in an ineligible state: offline"
    text = sample("pbspro-qstat-json-baw-status.txt")
    (ended,) = PBS.statuses(text[text.index("{") :])
    assert (ended.state, ended.exit_status, ended.nodes) == (JobState.ENDED, 0, ("725ccdf1a5fb",))
    assert ended.ended_s is not None and ended.started_s is not None and ended.ended_s - ended.started_s == 2


@pytest.mark.parametrize(
    ("attributes", "state", "exit_status"),
    [
        ({"job_state": "C", "exit_status": "0"}, JobState.ENDED, 0),
        ({"job_state": "F", "Exit_status": "3"}, JobState.FAILED, 3),
        ({"job_state": "F", "Exit_status": "265"}, JobState.FAILED, 137),
        ({"job_state": "F", "Exit_status": "-29"}, JobState.TIMED_OUT, -29),
        ({"job_state": "F", "Exit_status": "-28"}, JobState.TIMED_OUT, -28),
        ({"job_state": "F", "Exit_status": "-4"}, JobState.NODE_FAILED, -4),
        ({"job_state": "F", "Exit_status": "271", "substate": "91"}, JobState.CANCELLED, 143),
        ({"job_state": "Q", "comment": "Can Never Run: Insufficient amount of resource: ncpus"},
         JobState.NEVER_STARTS, None),
        ({"job_state": "Q", "run_count": "2"}, JobState.REQUEUED, None),
        ({"job_state": "Z"}, JobState.UNKNOWN, None),
    ],
)  # fmt: skip
def test_pbs_states(attributes: dict[str, str], state: JobState, exit_status: int | None) -> None:
    text = "Job Id: 5.server\n" + "".join(f"    {name} = {value}\n" for name, value in attributes.items())
    (status,) = PBS.statuses(text)
    assert (status.state, status.exit_status) == (state, exit_status)


def test_lsf() -> None:
    heads = "JOBID|STAT|EXIT_REASON|EXEC_HOST|A|B|C|D|E|F|G|H|I|J\n"
    jobs = LSF.statuses(heads + sample("lsf-bjobs-pipe-exit-pend-run.txt"))
    assert states_of(jobs) == {"timed out": 1, "pending": 2, "running": 3, "ended": 1}
    assert jobs[0].reason.startswith("TERM_RUNLIMIT") and jobs[3].nodes == ("lxbsu2710",)
    words = [line.split()[2] for line in sample("lsf-bjobs-w-14jobs-all-states.txt").splitlines()[1:] if line]
    text = "JOBID|STAT\n" + "".join(f"{number}|{word}\n" for number, word in enumerate(words, start=1))
    assert states_of(LSF.statuses(text)) == {
        "running": 8, "pending": 1, "held": 1, "failed": 1, "unknown": 2, "ended": 1,
    }  # fmt: skip
    (job,) = LSF.statuses("JOBID|STAT|EXIT_CODE|EXEC_HOST\n7|EXIT|140|8*n1:8*n2\n")
    assert (job.exit_status, job.nodes) == (140, ("n1", "n2"))
    assert LSF.submitted("Job <123> is submitted to queue <normal>.\n") == "123"


def test_flux() -> None:
    lines = [line.split() for line in sample("flux-jobs-console-tutorial.txt").splitlines()]
    words = {cells[3] for cells in lines if len(cells) > 7 and cells[0].startswith("f2")}
    rows = "".join(f"f2TRD37vP|{word}|0|||1.5||2.5|n[1-2]|16\n" for word in sorted(words))
    assert JobState.UNKNOWN not in {job.state for job in FLUX.statuses(rows)} and len(words) >= 4
    failed, never = FLUX.statuses(
        "fA|F|32512|exec|task 1: a | b: No such file|1.5|2.0|3.0|n[1-2]|16\n"
        "fB|F||alloc|unsatisfiable request|1.5||3.0||16\n"
    )
    assert (failed.state, failed.exit_status, failed.ended_s) == (JobState.FAILED, 127, 3.0)
    assert failed.reason == "exec: task 1: a | b: No such file" and failed.nodes == ("n1", "n2")
    assert (never.state, never.reason) == (JobState.NEVER_STARTS, "alloc: unsatisfiable request")
    assert FLUX.submitted("f2RYAVwjM\n") == "f2RYAVwjM"


@pytest.mark.parametrize(
    ("word", "urgency", "state"),
    [
        ("S", "16", JobState.PENDING),
        ("D", "0", JobState.PENDING),
        ("S", "0", JobState.HELD),
        ("P", "0", JobState.HELD),
    ],
)
def test_flux_holds(word: str, urgency: str, state: JobState) -> None:
    """A job with urgency 0 waits for somebody to raise it; one with a dependency first for other jobs."""
    (status,) = FLUX.statuses(f"fA|{word}||||1.5||||{urgency}\n")
    assert status.state is state


@pytest.mark.parametrize(
    ("depend", "holds", "state"),
    [
        ("afterok:1.s@s", "s", JobState.PENDING),
        ("afterany:1.s@s", "us", JobState.HELD),
        ("", "u", JobState.HELD),
        ("", "s", JobState.HELD),
        ("beforeok:9.s@s", "s", JobState.HELD),
    ],
)
def test_pbs_holds(depend: str, holds: str, state: JobState) -> None:
    depends = f"    depend = {depend}\n" if depend else ""
    (status,) = PBS.statuses(f"Job Id: 5.server\n    job_state = H\n{depends}    Hold_Types = {holds}\n")
    assert status.state is state


@pytest.mark.parametrize(
    ("system", "table"),
    [
        (LSF, "JOBID|STAT\n7|RUN\n8|PEND\n"),
        (FLUX, "fA|R||||1.5|2.0|||16\nfB|S||||1.5||||16\n"),
        (PBS, "Job Id: 7.s\n    job_state = R\n\nJob Id: 8.s\n    job_state = Q\n"),
        (PBS, '{\n"Jobs": {"7.s": {"job_state": "R"}, "8.s": {"job_state": "Q"}}\n}\n'),
        (SYSTEMS["slurm"], "7|RUNNING||None|1|2|N/A|n1\n8|PENDING||Priority|1|N/A|N/A|\n"),
    ],
)
def test_messages_before_a_table(system: BatchSystem, table: str) -> None:
    """Of the commands while a daemon does not answer, and of the shells of sites."""
    before = "LSF is processing your request. Please wait ...\nWelcome to tera, which is down on Monday\n\n"
    assert system.statuses(before + table) == system.statuses(table) and len(system.statuses(table)) == 2
    with pytest.raises(ParseError):
        system.statuses(before)


def test_lsf_says_please_wait_within_a_table() -> None:
    wait = "LSF is processing your request. Please wait ...\n"
    jobs = LSF.statuses(f"{wait}JOBID|STAT\n{wait}7|RUN\nbatch system daemon not responding ... still trying\n8|DONE\n")
    assert [job.state for job in jobs] == [JobState.RUNNING, JobState.ENDED]


@pytest.mark.parametrize(
    ("cells", "state"),
    [
        ("PEND|-|Job dependency condition not satisfied;", JobState.PENDING),
        ("PEND|-|Dependency condition invalid or never satisfied;", JobState.NEVER_STARTS),
        ("EXIT|TERM_ORPHAN_SYSTEM: terminated|-", JobState.CANCELLED),
        ("EXIT|TERM_BUCKET_KILL: killed with bkill -b|-", JobState.CANCELLED),
        ("EXIT|TERM_RC_RECLAIM: host reclaimed|-", JobState.REQUEUED),
    ],
)
def test_lsf_reasons(cells: str, state: JobState) -> None:
    (job,) = LSF.statuses(f"JOBID|STAT|EXIT_REASON|PEND_REASON\n7|{cells}\n")
    assert job.state is state


def test_flux_asks_for_the_gpus_of_a_node() -> None:
    """-c and -g are those of a slot (flux-batch(1)): with a slot a node, 2 nodes of 4 GPUs are 8 GPUs, not 128."""
    script = FLUX.script(replace(REQUEST, tasks_per_node=64, cpus_per_task=1, options=JobOptions(gpus_per_node=4)))
    lines = script.splitlines()
    assert [f"#flux: -{text}" for text in ("N2", "n2", "c64", "g4")] == [
        line for line in lines if line[7:9] in ("-N", "-n", "-c", "-g")
    ]


@pytest.mark.parametrize("system", [PBS, LSF, FLUX])
def test_damage_is_refused(system) -> None:
    for text in ("something else\n", "{\n"):
        with pytest.raises(ParseError):
            system.statuses(text)
    assert system.submitted("error: no such queue\n") is None and not system.is_verified
    assert system.statuses("") == ()


@pytest.mark.parametrize("name", SYSTEMS)
def test_scripts_are_shell_and_quote_the_command(name: str) -> None:
    script = SYSTEMS[name].script(REQUEST)
    assert "exec seatrial run 'a b' '$HOME; rm -rf x'\n" in script and "module load openmpi/5.0\n" in script
    marks = {"slurm": "#SBATCH", "pbs": "#PBS", "lsf": "#BSUB", "flux": "#flux:"}
    assert sum(line.startswith(marks[name]) for line in script.splitlines()) >= 7
    if BASH:
        assert subprocess.run([BASH, "-n"], input=script, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        JobOptions(account="a\n#SBATCH --uid=0"),
        JobOptions(queue="a b"),
        JobOptions(constraint="$(id)"),
        JobOptions(modules=("",)),
        JobOptions(extra=("one\ntwo",)),
    ],
)
def test_values_that_would_change_the_script_are_refused(options: JobOptions) -> None:
    with pytest.raises(UsageError):
        replace(REQUEST, options=options)


def test_memory_and_resources_of_a_node() -> None:
    wanted = replace(REQUEST, options=JobOptions(memory=64 << 30, gres=("nvme:2", "fpga")))
    assert ":mem=65536mb:nvme=2:fpga=1\n" in PBS.script(wanted)
    used = [line for line in LSF.script(wanted).splitlines() if "rusage" in line]
    assert used == [f'#BSUB -R "rusage[{text}/host]"' for text in ("mem=65536MB", "nvme=2", "fpga=1")]
    for system, options in (
        (FLUX, JobOptions(memory=1 << 30)),
        (FLUX, JobOptions(gres=("nvme:1",))),
        (PBS, JobOptions(memory=ALL_MEMORY)),
        (LSF, JobOptions(memory=ALL_MEMORY)),
        (PBS, JobOptions(gres=("gpu:a100:1",))),
    ):
        with pytest.raises(UsageError):
            system.script(replace(REQUEST, options=options))


@pytest.mark.parametrize(
    "said",
    [
        # OpenPBS: max_queued and queued_jobs_threshold, of a user, a group, a project, all, and of a resource
        "qsub: would exceed queue generic's per-user limit of jobs in 'Q' state",
        "qsub: would exceed complex's per-project limit",
        "qsub: Maximum number of jobs for user ann already in complex",
        "qsub: Maximum number of jobs in 'Q' state for group chem already in queue workq",
        "qsub: Maximum number of jobs already in complex",
        "qsub: would exceed user ann's limit on resource ncpus in queue workq for jobs in 'Q' state",
        "qsub: would exceed per-user limit on resource ncpus in complex",
        # Torque: max_user_queuable
        "qsub: Maximum number of jobs already in queue for user MSG=total number of current user's jobs exceeds the "
        "queue limit: user ann@master, queue batch",
    ],
)
def test_pbs_refuses_for_now(said: str) -> None:
    assert PBS.refused_for_now(f"qsub did not accept the job: {said}")
    assert not LSF.refused_for_now(said) and not FLUX.refused_for_now(said)


def test_lsf_refuses_for_now() -> None:
    """MAX_PEND_JOBS; without LSB_NTRIES, bsub tries for ever."""
    assert LSF.refused_for_now("User <ann>: Pending job threshold reached. Retrying in 60 seconds...")
    assert LSF.refused_for_now("Group <chem>: Pending job threshold reached. Retrying in 60 seconds...")
    assert LSF.variables["LSB_NTRIES"] == "2"


@pytest.mark.parametrize(
    "said",
    [
        "qsub: Job violates queue and/or server resource limits",
        "qsub: Unauthorized Request",
        "qsub: Unknown queue",
        "qsub: submit error (Job exceeds queue resource limits MSG=cannot locate feasible nodes)",
        "Request aborted by esub. Job not submitted.",
        "normal: No such queue. Job not submitted.",
    ],
)
def test_other_refusals_do_not_pass(said: str) -> None:
    assert not any(batch.refused_for_now(said) for batch in (PBS, LSF, FLUX))
