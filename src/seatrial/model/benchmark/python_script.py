"""The declaration of a Python library that is measured: a script of ours and what its interpreter must import."""

from __future__ import annotations

from seatrial.model.benchmark.benchmark import External

PYTHON = "python"
"""The parameter that names the interpreter."""

AUTO = "auto"


class PythonScript(External, kw_only=True):
    """A script whose path comes first among the `arguments`. Files among these are part of the experiment's identity.

    `module` is what the interpreter must be able to import, `package` the distribution that states its version.
    `variable_of_mpi` tells the library where the MPI library is that starts the ranks ("": it is linked with one).
    """

    module: str
    package: str
    variable_of_mpi: str = ""
