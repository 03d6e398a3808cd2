"""Jobs on nodes that have no file system in common with the login node: their script brings along what they need, and
what they made is fetched from their node when they are over."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import shlex
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.errors import StoreError
from seatrial.jobs.folder import JobFolder
from seatrial.jobs.queue import Queue
from seatrial.jobs.where import Where
from seatrial.model.frozen import Frozen
from seatrial.store.files import make_folder, write_once
from seatrial.store.job_marks import JOBS

_END = "END_OF_PROGRAMS"
_LINE = 4096
_MOST_B = 1 << 30
_RETURNED = re.compile(
    r"started|ended|output|facts\.tar|variables|repeats/repeats|repeats/\d{1,6}-\d{1,6}/[A-Za-z0-9_][\w.-]{0,99}",
    re.ASCII,
)
"""What a job makes (jobs/folder.py, jobs/node_jobs.py)."""
_FETCH = """cd -- {folder} 2>/dev/null || {{ echo "it has no folder {name}" >&2; exit 1; }}
set --
for name in started ended output facts.tar variables repeats; do
    [ ! -e "$name" ] || set -- "$@" "$name"
done
tar -cf - -- "$@" | gzip | base64"""


def folder_on_node(where: Where, job: str) -> Path:
    """The folder of a job on its node."""
    return where.place.partition.scratch / f"seatrial-{job}"


def bringing(folder: Path, texts: Mapping[str, str], programs: Mapping[str, bytes]) -> tuple[str, ...]:
    """Lines of a batch script that make `folder` on the node, with these texts, and these programs below `programs`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data, mode in (
            *((name, text.encode(), 0o600) for name, text in texts.items()),
            *((f"programs/{name}", data, 0o700) for name, data in programs.items()),
        ):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            tar.addfile(member, io.BytesIO(data))
    coded = base64.b64encode(gzip.compress(packed.getvalue(), mtime=0)).decode()
    at = shlex.quote(str(folder))
    return (
        f"mkdir -m 700 -- {at} 2>/dev/null || [ -O {at} ]",
        f"base64 -d <<'{_END}' | gzip -dc | tar -xf - -C {at}",
        *(coded[first : first + _LINE] for first in range(0, len(coded), _LINE)),
        _END,
        f"exec >>{at}/output 2>&1",
    )


class Fetching(Frozen):
    """Fetches from nodes what jobs made there."""

    where: Where
    queue: Queue

    def fetch(self, job: JobFolder, nodes: Sequence[str]) -> None:
        """Bring the files of a job that is over from its first node. Raises QueueError if the node cannot be asked now,
        StoreError if what it sends is damaged or cannot be written."""
        if not nodes:
            raise StoreError("the batch system does not say which node it ran on")
        folder = folder_on_node(self.where, job.id)
        script = _FETCH.format(folder=shlex.quote(str(folder)), name=shlex.quote(str(folder)))
        text = self._ask(nodes[0], script)
        for name, data in sorted(_unpacked(text), key=lambda found: (found[0] == "ended", found[0])):
            *above, last = name.split("/")
            try:
                make_folder(job.results, JOBS, job.id, *above)
                write_once(job.results, JOBS, job.id, *above, last, data=data)
            except OSError as error:
                raise StoreError(f"{job.path / name} cannot be written: {error.strerror or error}") from error

    def remove(self, job: JobFolder, nodes: Sequence[str]) -> None:
        """Remove the folder of a job from its node. Raises QueueError."""
        self._ask(nodes[0], f"rm -rf -- {shlex.quote(str(folder_on_node(self.where, job.id)))}")

    def _ask(self, node: str, script: str) -> str:
        return self.queue.ask(self.where.batch.on_node(node, script, self.where.options))


def _unpacked(text: str) -> Iterator[tuple[str, bytes]]:
    """The files of an archive that a job makes; others, links and folders are left out."""
    try:
        with (
            gzip.open(io.BytesIO(base64.b64decode("".join(text.split()), validate=True))) as packed,
            tarfile.open(fileobj=io.BytesIO(packed.read(_MOST_B)), mode="r:") as tar,
        ):
            for member in tar:
                if member.isreg() and _RETURNED.fullmatch(member.name) and (file := tar.extractfile(member)):
                    yield member.name, file.read()
    except (binascii.Error, tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        raise StoreError(f"what the node sent is damaged: {error}") from error
