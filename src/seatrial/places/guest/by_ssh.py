"""A guest that is reached by ssh: its agent is brought once, and further commands share the connection.

Nothing stays there: the agent ends with our end of its standard input, whatever ends this process, and the shell that
started it then removes the folder with all our files.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.session import AGENT, SSH, Channel, Streams, ssh_words, talk
from seatrial.processes.start import Running

_BLOCK_B = 1 << 16
_ANSWER_WITHIN_S = 60.0
_LONGEST_CONTROL = 85
"""Characters: ssh appends 17 to the name of a socket while it makes it, which may have 107."""
_LONGEST_SAID = 400


@contextmanager
def reached_by_ssh(host: str, agent: bytes) -> Iterator[Channel]:
    """A guest for the duration of the block. `agent` is the program guest_agent, linked statically. Raises
    GuestError."""
    if shutil.which("ssh") is None:
        raise GuestError("ssh is not installed", "on Debian: apt install openssh-client")
    blocks = -(-len(agent) // _BLOCK_B)
    private = Path(tempfile.mkdtemp(prefix="seatrial-ssh-"))
    control = str(private / "c")
    if len(control) > _LONGEST_CONTROL:
        control = ""  # each command then connects anew
    ours, its = socket.socketpair()
    try:
        with ours, tempfile.TemporaryFile() as said:
            with its:
                options = ("-M", "-S", control) if control else ()
                words = [*ssh_words(host, *options), shlex.join(["sh", "-c", _script(blocks)])]
                running = Running(words, dict(os.environ), (its.fileno(), its.fileno(), said.fileno()))
            try:
                there = _folder(ours, agent.ljust(blocks * _BLOCK_B, b"\0"), host, said.fileno())
                yield Channel(SSH, host, there, control)
            finally:
                ours.close()
                running.wait(_ANSWER_WITHIN_S)
                running.end()
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _script(blocks: int) -> str:
    machine = os.uname().machine
    return "; ".join(
        [
            f'test "$(uname -m)" = {machine} || {{ echo "it is $(uname -m), not {machine}" >&2; exit 1; }}',
            'd=$(mktemp -d "${TMPDIR:-/tmp}/seatrial-XXXXXX") || exit 1',
            "trap 'cd /; rm -rf \"$d\"' EXIT",
            "trap 'exit 1' HUP INT TERM",
            f'dd bs={_BLOCK_B} count={blocks} iflag=fullblock of="$d/{AGENT}" 2>/dev/null || exit 1',
            f'chmod 700 "$d/{AGENT}" && cd "$d" && ./{AGENT} --serve',
        ]
    )


def _folder(stream: socket.socket, agent: bytes, host: str, said: int) -> str:
    """Send the agent, and ask it for its folder."""
    with tempfile.TemporaryFile() as printed:
        try:
            stream.settimeout(_ANSWER_WITHIN_S)
            stream.sendall(agent)
            streams = Streams(None, printed.fileno(), printed.fileno())
            status = talk(stream, ["pwd"], streams, {}, "", answer_within_s=_ANSWER_WITHIN_S)
        except (OSError, GuestError) as error:
            words = os.pread(said, 1 << 16, 0).decode("utf-8", "replace").split()
            why = " ".join(words)[-_LONGEST_SAID:] or str(error)
            raise GuestError(f"{host} cannot be reached by ssh: {why}", f"try: ssh {host} true") from error
        printed.seek(0)
        folder = printed.read(4096).decode("utf-8", "replace").strip()
    if status or not folder.startswith("/"):
        raise GuestError(f"the agent on {host} does not answer as it should", f"try: ssh {host} pwd")
    return folder
