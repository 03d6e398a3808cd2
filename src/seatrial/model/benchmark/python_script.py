"""The declaration of a Python library that is measured: a script of ours and what its interpreter must import."""

from __future__ import annotations

from pathlib import Path

from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.program import RANKS

PYTHON = "python"
"""The part of the environment that names the interpreter."""

AUTO = "auto"


class PythonScript(External, kw_only=True):
    """A script whose path is among the `arguments`. Files among these, and its `parts` (script and imports), are
    part of the experiment's identity; a container gets copies of the `parts`. `takes_cpus`: it binds its processes
    itself, and its last argument is the list of their CPUs.

    `module` is what the interpreter must be able to import, `package` the distribution that states its version.
    `launched` is the parameter with the number of processes that a launcher starts (Program.launched).
    `variable_of_mpi` tells the library where the MPI library is that starts the ranks ("": it is linked with one).
    """

    module: str
    package: str
    variable_of_mpi: str = ""
    parts: tuple[Path, ...] = ()
    takes_cpus: bool = False
    launched: str = RANKS
