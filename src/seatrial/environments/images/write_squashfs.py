"""An image as squashfs, by mksquashfs from a tar; SIF, by apptainer from a folder."""

from __future__ import annotations

from pathlib import Path

from seatrial.environments.images.private import tool_environment
from seatrial.environments.images.tools import run_tool, tool
from seatrial.errors import ImageError

_LEVEL = "6"
"""Of zstd: the default of 15 takes three times as long for 3 % fewer bytes."""


def write_squashfs(root: Path, image: Path, epoch_s: int) -> None:
    """Write a squashfs of the tar `root`; the same tar gives the same bytes. Raises ImageError."""
    times = str(epoch_s)
    words = [tool("mksquashfs", "squashfs-tools"), "-", str(image), "-tar", "-noappend", "-quiet", "-no-progress"]
    words += ["-comp", "zstd", "-Xcompression-level", _LEVEL, "-mkfs-time", times, "-root-time", times]
    words += ["-root-mode", "0755", "-root-uid", "0", "-root-gid", "0"]
    run_tool(words, source=root, remedy="mksquashfs 4.5 or later is needed, which reads tar")


def sif_command() -> str | None:
    """The path of apptainer or singularity; None without either."""
    for name in ("apptainer", "singularity"):
        try:
            return tool(name, name)
        except ImageError:
            continue
    return None


def need_sif() -> str:
    """The path of apptainer or singularity. Raises ImageError without either."""
    found = sif_command()
    if found is None:
        raise ImageError(
            "SIF needs apptainer or singularity, and neither is here",
            "write a squashfs (.sqfs), which apptainer runs as well, or use --also-as apptainer=FILE where it is",
        )
    return found


def write_sif(command: str, folder: Path, image: Path, epoch_s: int) -> None:
    """Write a SIF of a folder. Raises ImageError. (Unverified: Debian 12 has no apptainer.)"""
    environment = tool_environment(SOURCE_DATE_EPOCH=str(epoch_s))
    run_tool([command, "build", "--force", str(image), str(folder)], environment=environment)
