"""A release of Debian as a tar archive, by mmdebstrap.

As root it works in a mount namespace of its own, so that nothing stays mounted whatever ends it; without root in a user
namespace, with the ids of /etc/subuid.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import ImageError
from seatrial.model.image import DebianBase
from seatrial.places.images.private import tool_environment
from seatrial.places.images.tools import run_tool, tool
from seatrial.places.images.tree import Kind, Tree, text_file
from seatrial.processes.output import OutOfTimeError, output_of

_USUAL_WORDS = (
    ("Unable to locate package", "correct the name of the package, or choose a suite that has it"),
    ("Could not resolve", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("Could not connect", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("Temporary failure", "the mirror cannot be reached from here: set `mirror`, http_proxy or https_proxy"),
    ("does not have a Release file", "the mirror has no such suite: correct `debian` or `mirror`"),
    ("404  Not Found", "the mirror has no such suite or package: correct `debian`, `packages` or `mirror`"),
    ("NO_PUBKEY", "the key of the suite is not known here: install debian-archive-keyring"),
    ("No space left", "free some space, or set TMPDIR to a folder with more"),
)
_OF_THE_HOST = ("etc/hostname", "etc/resolv.conf")


def debian_command(base: DebianBase, packages: Sequence[str]) -> list[str]:
    """The command that prints the archive. Raises ImageError for a missing tool."""
    words = [
        tool("mmdebstrap", "mmdebstrap"),
        f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
        "--variant=minbase",
        "--format=tar",
        "--quiet",
        *([f"--include={','.join(packages)}"] if packages else []),
        base.suite,
        "-",
        *([base.mirror] if base.mirror is not None else []),
    ]
    if os.geteuid() == 0:
        return [tool("unshare", "util-linux"), "--mount", "--propagation", "private", "--", *words]
    return words


def make_debian(base: DebianBase, packages: Sequence[str], work: Path, epoch_s: int) -> Path:
    """The archive, in `work`. The same packages give the same bytes (SOURCE_DATE_EPOCH). Raises ImageError."""
    _need_user_namespace()
    temporary = work / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)  # without root, mmdebstrap writes as another user
    archive = work / "debian.tar"
    environment = tool_environment(SOURCE_DATE_EPOCH=str(epoch_s), TMPDIR=str(temporary))
    try:
        run_tool(debian_command(base, packages), output=archive, environment=environment)
    except ImageError as error:
        remedy = next((todo for words, todo in _USUAL_WORDS if words in error.message), "")
        raise ImageError(error.message, remedy) from error
    return archive


def forget_host(tree: Tree) -> None:
    """Empty what mmdebstrap copies from this machine: its name and its name servers."""
    for path in _OF_THE_HOST:
        found = tree.get(path)
        if found is not None and found.kind is Kind.FILE:
            tree.add(path, text_file(b"", tree.mtime_s))


def _need_user_namespace() -> None:
    """Raises ImageError if we are neither root nor able to be it in a user namespace with several ids."""
    if os.geteuid() == 0:
        return
    tool("newuidmap", "uidmap")
    try:
        answer = output_of([tool("mmdebstrap", "mmdebstrap"), "--unshare-helper", "true"], tool_environment(), 60.0)
    except (OSError, OutOfTimeError) as error:
        raise ImageError(f"mmdebstrap cannot be started: {error}") from error
    if answer.returncode != 0:
        words = answer.stderr.decode("utf-8", "replace").strip()
        raise ImageError(
            f"without root, packages need user namespaces with ids from /etc/subuid:\n    {words[-400:]}",
            "run as root, or have the administrator run: usermod --add-subuids 100000-165535 --add-subgids "
            "100000-165535 USER, and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
            "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu)",
        )
