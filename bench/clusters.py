"""A cluster of its own namespaces, for the time of a benchmark script (needs root and Slurm)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """A cluster in its own folder, beside any other."""

    folder: Path

    def command(self, *words: str) -> list[str]:
        """A command of `seatrial cluster`."""
        return [sys.executable, "-m", "seatrial", "cluster", *words]

    def variables(self) -> dict[str, str]:
        """The environment in which these commands mean this cluster."""
        return {**os.environ, "SEATRIAL_CLUSTER": str(self.folder)}

    def on_nodes(self, nodes: int, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command on the first of so many nodes, in a job that has them all; its messages are not captured."""
        command = self.command("exec", "--", "salloc", "-Q", "-N", str(nodes), *words)
        return subprocess.run(command, env=self.variables(), cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)


@contextmanager
def own_cluster(*shape: str) -> Iterator[OwnCluster]:
    """A cluster of this shape (options of `seatrial cluster up`), taken down at the end."""
    with tempfile.TemporaryDirectory(prefix="seatrial-bench-", dir="/run") as above:
        Path(above).chmod(0o755)
        cluster = OwnCluster(Path(above) / "c")
        try:
            subprocess.run(cluster.command("up", *shape), env=cluster.variables(), stdout=sys.stderr, check=True)
            yield cluster
        finally:
            subprocess.run(cluster.command("down"), env=cluster.variables(), check=False)
