"""Asking a batch system whose commands print what the real ones print."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.jobs.batch.slurm import Slurm
from seatrial.jobs.batch.system import JobState
from seatrial.jobs.queue import Queue, QueueError, Where, with_job_settings
from seatrial.jobs.screen_links import in_turn
from seatrial.jobs.submitted import Sent
from seatrial.model.environment.site import Partition, Place, System

_COMPUTE = Partition("compute")
PLACE = Where(Place(System("tera", (_COMPUTE,), "slurm"), _COMPUTE), Slurm(), "tera:compute")


def queue(path: Path, **scripts: str) -> Queue:
    """Slurm with these scripts as its commands."""
    for name, text in scripts.items():
        (path / name).write_text(f"#!/bin/sh\n{text}\n")
        (path / name).chmod(0o755)
    return Queue(Slurm(), {"PATH": f"{path}:/usr/bin:/bin"})


def test_the_script_reaches_the_command(tmp_path: Path) -> None:
    asked = queue(tmp_path, sbatch=f'cat >{tmp_path}/got; echo "4711;tera"')
    assert asked.submit("#!/bin/bash\necho x\n") == "4711"
    assert (tmp_path / "got").read_text() == "#!/bin/bash\necho x\n"


@pytest.mark.parametrize(
    ("sbatch", "said"),
    [
        ("echo 'sbatch: error: Invalid account' >&2; exit 1", "Invalid account"),
        ("echo 12; exit 1", "did not accept the job: 12"),
        ("echo submitted", "did not accept the job: submitted"),
    ],
)
def test_a_refusal_has_the_words_of_the_batch_system(tmp_path: Path, sbatch: str, said: str) -> None:
    with pytest.raises(QueueError, match=said):
        queue(tmp_path, sbatch=sbatch).submit("")


def test_a_command_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(QueueError, match="sbatch of slurm is not on PATH"):
        Queue(Slurm(), {"PATH": str(tmp_path)}).submit("")


_INVALID = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
_NO_ACCOUNTING = "echo 'Slurm accounting storage is disabled' >&2; exit 1"
_SILENT = "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"


def test_one_command_for_all_jobs(tmp_path: Path) -> None:
    listed = f"echo x >>{tmp_path}/asked; echo '1|RUNNING||None|1|2|3|n1'; echo '2|PENDING||Priority|1|N/A|N/A|'"
    found = queue(tmp_path, squeue=listed).statuses(["1", "2"])
    assert [status.state for status in found.values()] == [JobState.RUNNING, JobState.PENDING]
    assert (tmp_path / "asked").read_text() == "x\n"


def test_what_squeue_has_forgotten_accounting_may_know(tmp_path: Path) -> None:
    asked = queue(tmp_path, squeue=_INVALID, scontrol=_INVALID, sacct="echo '7|TIMEOUT|0:0|TimeLimit|1|2|3|n1'")
    assert asked.statuses(["7"])["7"].state is JobState.TIMED_OUT
    asked = queue(tmp_path, squeue=_INVALID, scontrol=_INVALID, sacct=_NO_ACCOUNTING)
    assert asked.statuses(["7"])["7"].state is JobState.UNKNOWN


def test_no_answer_is_not_an_unknown_job(tmp_path: Path) -> None:
    asked = queue(tmp_path, squeue=_SILENT, scontrol=_SILENT, sacct=_SILENT)
    with pytest.raises(QueueError, match=r"does not answer: squeue: .*Unable to contact"):
        asked.statuses(["7"])


def test_damaged_output_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(QueueError, match="does not answer"):
        queue(tmp_path, squeue="echo garbage", scontrol="exit 1", sacct="exit 1").statuses(["7"])


def test_nothing_more_is_submitted_than_the_site_allows() -> None:
    """Of 9 nodes: with the limit that was stated, and with what refusals say where none is."""

    def order(most: int | None, accepted: int) -> tuple[list[str], int]:
        open_jobs: set[str] = set()
        seen: list[str] = []
        largest = 0

        def submit(where: Where) -> bool:
            nonlocal largest
            if len(open_jobs) >= accepted:
                return False
            open_jobs.add(str(where.node))
            largest = max(largest, len(open_jobs))
            return True

        def wait(where: Where) -> Sent:
            open_jobs.discard(str(where.node))
            return Sent(())

        nodes = [replace(PLACE, node=f"n{number}") for number in range(9)]
        seen += [str(at.node) for at, _ in in_turn(nodes, submit, wait, most)]
        return seen, largest

    every = [f"n{number}" for number in range(9)]
    assert order(None, 100) == (every, 9)
    assert order(4, 100) == (every, 4)
    assert order(None, 3) == (every, 3)
    assert order(1, 3) == (every, 0), "the wait submits it"
    assert order(None, 0) == (every, 0)


def test_settings_of_jobs() -> None:
    (found,) = with_job_settings([PLACE], {"memory": ["64GiB"], "gres": ["nvme:1", "fpga:2"]})
    assert (found.options.memory, found.options.gres) == (64 << 30, ("nvme:1", "fpga:2"))
    wrong: list[tuple[list[Where], dict[str, list[str]]]] = [
        ([PLACE], {"colour": ["red"]}),
        ([], {"memory": ["1GiB"]}),
        ([PLACE], {"memory": ["1GiB", "2GiB"]}),
        ([PLACE], {"gres": ["a b"]}),
    ]
    for places, settings in wrong:
        with pytest.raises(UsageError):
            with_job_settings(places, settings)


@pytest.mark.parametrize(
    "said",
    [
        "slurm_load_jobs error: Invalid job id specified",
        "qstat: Unknown Job Id 7.server",
        "qstat: 7.server Job has finished, use -x or -H to obtain historical job information",
        "Job <7> is not found",
        "flux-jobs: ERROR: JobID f2TRD37vP unknown",
        "Slurm accounting storage is disabled",
    ],
)
def test_what_they_say_of_unknown_jobs(said: str, tmp_path: Path) -> None:
    asked = queue(tmp_path, squeue=f"echo '{said}' >&2; exit 1", scontrol="exit 1", sacct="exit 1")
    assert asked.statuses(["7", "8"])["7"].state is JobState.UNKNOWN
