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
from seatrial.jobs.batch.system import JobState
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.model.environment.site import JobOptions

PBS, LSF, FLUX = Pbs(), Lsf(), Flux()
BASH = shutil.which("bash")


def test_pbs_text_and_json() -> None:
    jobs = PBS.statuses(sample("pbspro-qstat-f-mycluster-6jobs.txt"))
    assert states_of(jobs) == {"pending": 2, "running": 2, "held": 2}
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
    rows = "".join(f"f2TRD37vP|{word}|0|||1.5||2.5|n[1-2]\n" for word in sorted(words))
    assert JobState.UNKNOWN not in {job.state for job in FLUX.statuses(rows)} and len(words) >= 4
    failed, never = FLUX.statuses(
        "fA|F|32512|exec|task 1: a | b: No such file|1.5|2.0|3.0|n[1-2]\nfB|F||alloc|unsatisfiable request|1.5||3.0|\n"
    )
    assert (failed.state, failed.exit_status, failed.ended_s) == (JobState.FAILED, 127, 3.0)
    assert failed.reason == "exec: task 1: a | b: No such file" and failed.nodes == ("n1", "n2")
    assert (never.state, never.reason) == (JobState.NEVER_STARTS, "alloc: unsatisfiable request")
    assert FLUX.submitted("f2RYAVwjM\n") == "f2RYAVwjM"


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
