"""How commands reach a guest: through a port of one that was started here, or by ssh.

Both ends are the same: the agent of the guest (native/launch/guest_agent.cpp) and `session.talk`.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from seatrial.places.guest.session import Streams, connected, free_port, talk

PORT, SSH = "port", "ssh"
AGENT = "agent"
"""The name of the agent in the folder of a guest that is reached by ssh."""
_OPTIONS = ("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ClearAllForwardings=yes")
_ANSWER_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Channel:
    """`kind` is PORT with the guest's folder here in `place`, or SSH with a host. `there` is a folder of the guest for
    our files, `control` the socket of an ssh that is connected already ("": none)."""

    kind: str
    place: str
    there: str
    control: str = ""

    def words(self) -> tuple[str, ...]:
        """As arguments of a command."""
        return (self.kind, self.place, self.there, self.control)

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection for commands, one after another. Raises GuestError, BusyError."""
        if self.kind == PORT:
            with free_port(Path(self.place)) as port:
                yield Connection(self, port)
            return
        ours, its = socket.socketpair()
        with ours:
            with its:
                # It ends with our end of its streams, whatever ends this process.
                process = subprocess.Popen(self._ssh_words(), stdin=its.fileno(), stdout=its.fileno())
            try:
                yield Connection(self, ours)
            finally:
                ours.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_ANSWER_WITHIN_S)

    def _ssh_words(self) -> list[str]:
        control = ("-S", self.control) if self.control else ()
        agent = str(PurePosixPath(self.there) / AGENT)
        return [*ssh_words(self.place, *control), f"exec {agent} --serve"]


@dataclass(frozen=True, slots=True)
class Connection:
    """An open channel: a port, which each command connects to anew, or the stream of an ssh."""

    channel: Channel
    through: Path | socket.socket

    def run(self, words: Sequence[str], streams: Streams, variables: Mapping[str, str], folder: str) -> int:
        """Run a command; its exit status as in a shell. Raises GuestError."""
        if isinstance(self.through, socket.socket):
            return talk(self.through, words, streams, variables, folder, answer_within_s=_ANSWER_WITHIN_S)
        with connected(self.through) as stream:
            return talk(stream, words, streams, variables, folder, answer_within_s=_ANSWER_WITHIN_S)


def ssh_words(host: str, *options: str) -> list[str]:
    """Ssh to a host, without anything that it could ask; a command for a shell of the host follows."""
    return ["ssh", *_OPTIONS, *options, "--", host]
