"""Slurm: scripts, commands, and what its commands print."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from jobs.requests import REQUEST, sample, states_of

from seatrial.errors import ParseError
from seatrial.jobs.batch.slurm import (
    Slurm,
    limit_commands,
    read_limits,
    read_nodes,
    read_topology,
)
from seatrial.jobs.batch.system import JobState
from seatrial.model.environment.site import ALL_MEMORY, JobOptions

SLURM = Slurm()


def row(state: str, reason: str = "None", code: str = "0:0") -> str:
    return f"7|{state}|{code}|{reason}|100|200|300|n[1-2]"


def test_the_script() -> None:
    assert SLURM.script(REQUEST).splitlines() == [
        "#!/bin/bash",
        "#SBATCH --job-name=sweep",
        "#SBATCH --output=/scratch/out.txt",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --time=01:01:01",
        "#SBATCH --partition=batch",
        "#SBATCH --account=proj1",
        "#SBATCH --constraint=gpu&a100",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --exclusive",
        "#SBATCH --mail-type=NONE",
        "set -e",
        "module load openmpi/5.0",
        "cd -- /scratch",
        "exec seatrial run 'a b' '$HOME; rm -rf x'",
    ]


def test_a_step_on_each_node_sees_no_other_node() -> None:
    first, second = SLURM.step_script({"n1": Path("/r/jobs/a"), "n2": Path("/r/jobs/b c")}).splitlines()[1:3]
    assert first.startswith("srun --nodes=1 --ntasks=1 --nodelist=n1 ") and "SLURM_JOB_NODELIST=n1 " in first
    assert first.endswith("/bin/sh /r/jobs/a/job.sh </dev/null >>/r/jobs/a/output 2>&1 &")
    assert second.endswith("/bin/sh '/r/jobs/b c/job.sh' </dev/null >>'/r/jobs/b c/output' 2>&1 &")


def test_commands_are_argument_lists() -> None:
    assert SLURM.submits == ("sbatch", "--parsable") and SLURM.cancels == ("scancel",)
    assert [query[0] for query in SLURM.queries(["7"])] == ["squeue", "scontrol", "sacct"]
    assert SLURM.submitted("sbatch: note\n4103947;tera\n") == "4103947" and SLURM.submitted("error\n") is None


@pytest.mark.parametrize(
    ("line", "state", "exit_status"),
    [
        (row("PENDING", "Priority"), JobState.PENDING, None),
        (row("PENDING", "JobHeldUser"), JobState.HELD, None),
        (row("PENDING", "PartitionTimeLimit"), JobState.NEVER_STARTS, None),
        (row("PENDING", "(QOSMaxNodePerJobLimit)"), JobState.NEVER_STARTS, None),
        (row("RUNNING"), JobState.RUNNING, None),
        (row("COMPLETED"), JobState.ENDED, 0),
        (row("FAILED", code="3:0"), JobState.FAILED, 3),
        (row("FAILED", code="0:9"), JobState.FAILED, 137),
        (row("OUT_OF_MEMORY", code="0:125"), JobState.FAILED, 253),
        (row("CANCELLED by 1000"), JobState.CANCELLED, 0),
        (row("TIMEOUT"), JobState.TIMED_OUT, 0),
        (row("PREEMPTED"), JobState.PREEMPTED, 0),
        (row("REQUEUED"), JobState.REQUEUED, None),
        (row("NODE_FAIL"), JobState.NODE_FAILED, 0),
        (row("FOO"), JobState.UNKNOWN, None),
        (row("LAUNCH_FAILED", "JobLaunchFailure"), JobState.NODE_FAILED, 0),
        (row("FAILED,LAUNCH_FAILED", code="1:0"), JobState.FAILED, 1),
        (row("PENDING,LAUNCH_FAILED", "launch_failed_requeued_held"), JobState.HELD, None),
        (row("PENDING,POWER_UP_NODE", "None"), JobState.PENDING, None),
        (row("COMPLETED,COMPLETING"), JobState.RUNNING, None),
        (row("PENDING,REQUEUED"), JobState.REQUEUED, None),
        (row("RECONFIG_FAIL"), JobState.NODE_FAILED, 0),
        (row("PENDING", "Dependency"), JobState.PENDING, None),
        (row("PENDING", "JobHoldMaxRequeue"), JobState.HELD, None),
        (row("PENDING", "PartitionNodeLimit"), JobState.PENDING, None),
        (row("PENDING", "QOSJobLimit"), JobState.PENDING, None),
        (row("PENDING", "MaxMemPerLimit"), JobState.NEVER_STARTS, None),
    ],
)
def test_states(line: str, state: JobState, exit_status: int | None) -> None:
    (status,) = SLURM.statuses(line + "\n")
    assert (status.id, status.state, status.exit_status, status.nodes) == ("7", state, exit_status, ("n1", "n2"))
    assert (status.ended_s == 300.0) == state.is_over and status.submitted_s == 100.0


def test_what_the_batch_system_said_is_kept() -> None:
    held, never, unknown = SLURM.statuses(
        "\n".join([row("PENDING", "JobHeldAdmin"), row("PENDING", "BadConstraints"), row("BAR")])
    )
    assert (held.reason, never.reason, unknown.reason) == ("JobHeldAdmin", "BadConstraints", "BAR")


@pytest.mark.parametrize("text", ["7|RUNNING\n", "squeue: error: Invalid user\n", "7 RUNNING\n", "JobId=7 Name=x\n"])
def test_damage_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        SLURM.statuses(text)


def test_recorded_outputs(tmp_path: Path) -> None:
    (pending,) = SLURM.statuses(sample("slurm-scontrol-show-job-pending.txt"))
    assert (pending.id, pending.state, pending.reason) == ("23608796", JobState.PENDING, "Priority")
    rows = [line.split("|") for line in sample("slurm-sacct-pipe-xdmod.txt").splitlines() if line]
    ours = "\n".join("|".join([r[0], r[16], r[15], "None", r[11], r[12], r[13], r[24]]) for r in rows)
    assert states_of(SLURM.statuses(ours)) == {"timed out": 1, "cancelled": 1, "ended": 2}
    assert len(SLURM.statuses(ours)[0].nodes) == 32
    rows = [line.split("^^^") for line in sample("slurm-squeue-caret-mixed.txt").splitlines() if line]
    ours = "\n".join("|".join([r[0], r[1], "", r[2], "", "", "", r[7]]) for r in rows)
    assert states_of(SLURM.statuses(ours)) == {"pending": 3, "held": 1, "running": 4}


def test_memory_and_resources_of_a_node() -> None:
    def lines(**options: object) -> list[str]:
        script = SLURM.script(replace(REQUEST, options=JobOptions(**options)))
        return [line for line in script.splitlines() if "--mem" in line or "--gres" in line]

    assert lines() == []
    assert lines(memory=ALL_MEMORY) == ["#SBATCH --mem=0M"]
    assert lines(memory=(180 << 30) + 1, gres=("nvme:1", "shard:a100:2")) == [
        "#SBATCH --mem=184321M",
        "#SBATCH --gres=nvme:1,shard:a100:2",
    ]


CONFIG = "Configuration data as of 2026-01-01\nMaxArraySize            = 1001\nMaxJobCount             = 10000\n"


@pytest.mark.parametrize(
    ("outputs", "most"),
    [
        (("", "", ""), None),
        ((CONFIG, "", ""), 10000),
        ((CONFIG, "1000|\n500|\n", "7\n8_1\n8_[2-4]\n"), 497),
        ((CONFIG, "|\n", "100|2000\n", "1\n2\n"), 99),
        ((CONFIG, "1|\n", "7\n9\n"), 0),
    ],
)
def test_how_many_jobs_may_be_submitted(outputs: tuple[str, ...], most: int | None) -> None:
    """Of 1 that is of this command, and others."""
    assert read_limits(outputs, without=["1"]) == most
    assert [command[0] for command in limit_commands("ann", "high")] == ["scontrol", "sacctmgr", "sacctmgr", "squeue"]


def test_a_refusal_that_passes() -> None:
    said = sample("slurm-submit-errors.txt").splitlines()
    assert [SLURM.refused_for_now(line) for line in said if line.startswith("sbatch")] == [
        False,
        False,
        True,
        False,
    ]


def test_planned_nodes_are_up() -> None:
    nodes, others = read_nodes("Welcome to tera\nn1|idle\nn2|plnd\nn3|drain*\n")
    assert (nodes, others) == (("n1", "n2"), {"n3": "drain*"})


def test_blocks_of_nodes() -> None:
    text = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n3 BlockSize=2\n"
    assert read_topology(text) == {"n1": "b1", "n2": "b1", "n3": "b2"}
    switches = "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n1\nSwitchName=top Level=1 LinkSpeed=1 Nodes=n1 Switches=s1\n"
    assert read_topology(switches) == {"n1": "s1"}
