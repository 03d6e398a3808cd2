"""Jobs on nodes that share no file system bring their files along, and what comes back is not trusted."""

from __future__ import annotations

import base64
import gzip
import io
import os
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.errors import StoreError
from seatrial.jobs.batch.system import JobRequest
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.jobs.folder import JobFolder
from seatrial.jobs.queue import Fetching, Queue, QueueError, Where, bringing, folder_on_node
from seatrial.model.environment.site import Partition, Place, System
from seatrial.store.folder import ResultsFolder

SLURM = SYSTEMS["slurm"]


def place(scratch: Path) -> Where:
    partition = Partition("compute", has_python=False, is_shared=False, scratch=scratch)
    return Where(Place(System("tera", (partition,), "slurm", 1.0), partition), SLURM, "tera:compute")


class Node(Queue):
    """A node whose commands run here, or that answers with this text."""

    answer: str | None = None

    def ask(self, command: Sequence[str]) -> str:
        if self.answer is not None:
            return self.answer
        assert command[0] == "srun" and "--nodelist=n3" in command and "--partition=compute" in command
        done = subprocess.run(command[-3:], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise QueueError(done.stderr.strip())
        return done.stdout


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    return JobFolder.create(ResultsFolder.create(tmp_path / "results"), {}, lambda job: "")


def archive(*members: tuple[str, bytes, bytes]) -> str:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(data), "../../../studies"
            tar.addfile(member, io.BytesIO(data))
    return base64.encodebytes(gzip.compress(packed.getvalue(), mtime=0)).decode()


def test_a_job_brings_its_files_and_they_come_back(job: JobFolder, tmp_path: Path) -> None:
    where, big = place(tmp_path / "node"), os.urandom(300_000)
    there = folder_on_node(where, job.id)
    there.parent.mkdir()
    text = 'echo "$(./programs/ab/x)" "$(cat plan)" >started; mkdir repeats repeats/0-0; echo 1 >repeats/0-0/stdout\n'
    first = bringing(
        there, {"job.sh": text, "plan": "EOF\n$HOME `x`\n"}, {"ab/x": b"#!/bin/sh\necho ran\n", "cd/y": big}
    )
    request = JobRequest("j", ("/bin/sh", str(there / "job.sh")), there, Path(os.devnull), 1, 60.0, first=first)
    done = subprocess.run(["/bin/bash"], input=SLURM.script(request), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (there / "programs/cd/y").read_bytes() == big and there.stat().st_mode & 0o777 == 0o700
    fetching = Fetching(where, Node(SLURM, os.environ))
    fetching.fetch(job, ("n3",))
    assert (job.path / "started").read_text() == "ran EOF\n$HOME `x`\n"
    assert (job.path / "repeats/0-0/stdout").read_text() == "1\n" and not (job.path / "programs").exists()
    fetching.remove(job, ("n3",))
    assert not there.exists()
    with pytest.raises(QueueError, match="it has no folder"):
        fetching.fetch(job, ("n3",))


def test_only_files_of_a_job_are_taken(job: JobFolder) -> None:
    names = (
        "../x",
        "/x",
        "request.json",
        "over.json",
        "repeats/0-0/../../x",
        "repeats/0-0/.x",
        "repeats/a-b/x",
        "job.sh",
    )
    hostile = [(name, tarfile.REGTYPE, b"bad") for name in names]
    started = ("started", tarfile.REGTYPE, b"job=1\n")
    links = [("repeats", tarfile.SYMTYPE, b""), ("ended", tarfile.LNKTYPE, b""), ("output", tarfile.FIFOTYPE, b"")]
    before = (job.path / "request.json").read_text()
    Fetching(place(Path("/x")), Node(SLURM, os.environ, archive(*hostile, *links, started))).fetch(job, ["n"])
    assert {path.name for path in job.path.rglob("*")} == {"job.sh", "request.json", "started"}
    assert (job.path / "request.json").read_text() == before


@pytest.mark.parametrize("answer", ["", "no base64!", "AAAA", archive(("started", tarfile.REGTYPE, b"x" * 9999))[:90]])
def test_a_damaged_answer_is_refused(answer: str, job: JobFolder) -> None:
    with pytest.raises(StoreError, match="damaged"):
        Fetching(place(Path("/x")), Node(SLURM, os.environ, answer)).fetch(job, ["n"])
    with pytest.raises(StoreError, match="which node"):
        Fetching(place(Path("/x")), Node(SLURM, os.environ, answer)).fetch(job, [])


def test_other_batch_systems_ask_by_ssh() -> None:
    options = replace(place(Path("/x")).options, account="a")
    for name in ("pbs", "lsf", "flux"):
        assert SYSTEMS[name].on_node("n3", "cat x", options) == ["ssh", "-o", "BatchMode=yes", "--", "n3", "cat x"]
    assert "--account=a" in SLURM.on_node("n3", "cat x", options)
