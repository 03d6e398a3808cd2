"""Every recorded output of a batch system, whole and damaged, is read right or refused with one clear error.

SEATRIAL_MUTATIONS=2000 in the environment makes so many mutants, in place of 200, over all recordings together.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

import pytest
from jobs.requests import SAMPLES, sample, states_of
from machine.mutations import damaged

from seatrial.errors import ParseError
from seatrial.jobs.batch.flux import Flux
from seatrial.jobs.batch.lsf import Lsf
from seatrial.jobs.batch.pbs import Pbs
from seatrial.jobs.batch.slurm import Slurm, read_nodes, read_topology
from seatrial.jobs.batch.system import JobState, JobStatus
from seatrial.jobs.batch.systems import SYSTEMS

MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "200"))
FORMS: Mapping[str, str] = {
    "squeue": "4711|PENDING||(Priority)|1700000000|N/A|N/A|\n4712|RUNNING||None|1700000000|1700000010|N/A|n[01-04,7]\n",
    "scontrol": "JobId=7 JobName=a JobState=FAILED Reason=NonZeroExitCode ExitCode=1:0 NodeList=n[1-3]\n",
    "bjobs": "JOBID|STAT|EXIT_CODE|EXIT_REASON|EXEC_HOST|PEND_REASON\n7|EXIT|140|TERM_RUNLIMIT: killed|8*n1:8*n2|-\n",
    "flux": "fA|F|32512|exec|task 1: a | b: No such file|1.5|2.0|3.0|n[1-2]|16\n",
    "qstat": "Job Id: 5.server\n    job_state = F\n    Exit_status = 265\n    exec_host = n1/0*4+n2/0*4\n\tand on\n",
}
"""What our own commands make their programs print: no recording has just these columns."""


def texts() -> list[tuple[str, str]]:
    """Name and text of all recordings, and of `FORMS`."""
    files = sorted(path for path in SAMPLES.glob("*") if path.name != "INDEX.md") if SAMPLES.is_dir() else []
    recorded = [(path.name, path.read_text(errors="replace")) for path in files]
    return [*recorded, *FORMS.items()]


READERS: dict[str, Callable[[str], object]] = {
    **{f"{name} states": system.statuses for name, system in SYSTEMS.items()},
    **{f"{name} submitted": system.submitted for name, system in SYSTEMS.items()},
    "nodes": read_nodes,
    "topology": read_topology,
}


def read_or_refused(name: str, text: str) -> set[str]:
    """The readers that did not refuse it."""
    read: set[str] = set()
    for reader, reads in READERS.items():
        try:
            found = reads(text)
        except ParseError as error:
            assert str(error).strip() and "\n" not in error.message.strip()
            continue
        except Exception as error:
            pytest.fail(f"{name} by {reader}: {type(error).__name__}: {error}")
        read.add(reader)
        if isinstance(found, tuple):
            assert all(len(one.nodes) <= 1 << 20 for one in found if isinstance(one, JobStatus))
    return read


def test_every_recording_is_read_by_its_own_reader_only() -> None:
    """A text of another program or format is refused, never taken for jobs. No reader takes another system's states."""
    for name, text in texts():
        systems = {reader.partition(" ")[0] for reader in read_or_refused(name, text) if reader.endswith(" states")}
        jobs = [one for one in systems if SYSTEMS[one].statuses(text)]
        assert len(jobs) <= 1, f"{name} is read as jobs of {jobs}"


def test_mutants_are_read_or_refused() -> None:
    every = texts()
    for number in range(MUTANTS):
        name, text = every[number % len(every)]
        data = damaged(text.encode(), Random(f"{name} {number}"), "lspci-tree")
        read_or_refused(f"mutant {number} of {name}", data.decode("utf-8", "replace"))


def test_reasons_of_aurora_are_kept_and_such_jobs_wait() -> None:
    comments = [line.strip() for line in sample("pbspro-comments-aurora-not-running.txt").splitlines() if line.strip()]
    text = "".join(f"Job Id: {n}.a\n    job_state = Q\n    {line}\n" for n, line in enumerate(comments))
    jobs = Pbs().statuses(text)
    assert states_of(jobs) == {"pending": 9} and all(job.reason.startswith("Not Running: ") for job in jobs)


QSTAT = """\
Job Id: 7.server
    Job_Name = a
    job_state = R
    exec_host = n1/0-23+n2/0,2-5+n
\t3/0*4
    sched_hint = Post job file processing error; job 7 on host n1

U
\tnable to copy file 7.OU
*** error from copy
/bin/cp: cannot stat `7.OU': No suc
\th file or directory
    Variable_List = HOME=/home/a,NOTE=two
    job_state = C
lines,PATH=/bin
    comment = Job started

Job Id: 8.server
    job_state = F
"""


def test_values_with_line_breaks() -> None:
    """Messages of the server and the job's environment may have them, and lines that look like attributes."""
    running, ended = Pbs().statuses(QSTAT)
    assert (running.state, running.nodes, running.reason) == (JobState.RUNNING, ("n1", "n2", "n3"), "Job started")
    assert (ended.state, ended.reason, ended.exit_status) == (JobState.UNKNOWN, "job_state F", None)
    with pytest.raises(ParseError, match="nor one of its attributes"):
        Pbs().statuses(QSTAT.replace("sched_hint", "queue"))


def test_a_damaged_list_of_hosts_is_not_a_shorter_one() -> None:
    (job, _) = Pbs().statuses(QSTAT.replace("23+n2", "23n2"))
    assert job.state is JobState.RUNNING and job.nodes == ()


def test_text_of_the_user_is_no_state() -> None:
    text = "JobId=7 JobName=a JobState=CANCELLED Reason=None NodeList=n1 Command=/bin/x JobState=COMPLETED WorkDir=/"
    (job,) = Slurm().statuses(f"{text}\n")
    assert (job.state, job.nodes) == (JobState.CANCELLED, ("n1",))


def test_a_reason_has_spaces_or_underscores() -> None:
    for reason in ("launch_failed_requeued_held", "launch failed requeued held", "JobHeldUser"):
        (job,) = Slurm().statuses(f"7|PENDING||{reason}|N/A|N/A|N/A|\n")
        assert job.state is JobState.HELD


def test_states_that_nobody_knows_are_unknown_and_named() -> None:
    rows = [line.split("|") for line in sample("slurm-sacct-pipe-unknown-state.txt").splitlines() if line]
    jobs = Slurm().statuses("".join(f"{r[0]}|{r[16]}|{r[15]}||{r[11]}|{r[12]}|{r[13]}|{r[24]}\n" for r in rows))
    assert [(job.state, job.reason) for job in jobs] == [(JobState.UNKNOWN, "FOO"), (JobState.UNKNOWN, "BAR")]


def test_nodes_of_a_large_cluster() -> None:
    lines = [line.strip() for line in sample("slurm-sinfo-nodes-states.txt").splitlines() if line.strip()]
    usable, others = read_nodes("".join(f"{line.replace(',', '|')}\n" for line in lines))
    words = Counter(line.partition(",")[2] for line in lines)
    assert words["idle"] == 319 and words["down*"] == 66
    assert not set(usable) & set(others) and {"down*", "drained"} <= set(others.values())


def test_refusals_of_submissions_are_no_ids() -> None:
    text = sample("slurm-submit-errors.txt")
    assert all(system.submitted(text) is None for system in (Slurm(), Pbs(), Lsf(), Flux()))


def test_a_fatal_exception_is_a_failure_although_the_job_ended_with_0() -> None:
    """flux-core issue 5307: what `flux jobs` says of it; its event log is no list of jobs."""
    (job,) = Flux().statuses("fA|F|0|alloc-check|resources already allocated|1.5|2.0|3.0|n1|16\n")
    assert job.state is JobState.FAILED and job.reason == "alloc-check: resources already allocated"
    with pytest.raises(ParseError):
        Flux().statuses(sample("flux-attach-fatal-exception-status0-5307.txt"))


def test_lists_of_other_columns_are_refused() -> None:
    for text in sample("lsf-bjobs-W-ood.txt"), sample("lsf-bjobs-w-14jobs-all-states.txt"):
        with pytest.raises(ParseError):
            Lsf().statuses(text)
    for name in ("slurm-squeue-fallback-jsonlines-bad-lines.txt", "slurm-squeue-json-21.08.json",
                 "slurm-squeue-ctrlsep-non-utf8-name.txt", "slurm-sacct-pipe-utf8.txt"):  # fmt: skip
        with pytest.raises(ParseError):
            Slurm().statuses(sample(name))
