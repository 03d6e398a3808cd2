"""The script that runs on the first node of a job: POSIX sh, for every batch system.

It leaves a mark of its start and one of its end, so that the outcome of a job needs no accounting database, and passes
signals on to what it runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

_ID = "${SLURM_JOB_ID:-${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-unknown}}}}"


def node_script(
    folder: Path,
    job: str,
    in_job: str,
    command: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    first: str = "",
) -> str:
    """The script of a job: `command` runs in `cwd` with these variables, and finds `job` and this start of it in the
    variable `in_job`. Marks are made in `folder`, an absolute path. `first` are lines that run before it."""
    exports = [f"{name}={shlex.quote(value)}\nexport {name}" for name, value in variables.items()]
    text = resources.files(__package__).joinpath("job.sh").read_text(encoding="utf-8")
    return text.format(
        folder=shlex.quote(str(folder)),
        id=_ID,
        variables="\n".join(exports) or ":",
        in_job=in_job,
        job=shlex.quote(job),
        cwd=shlex.quote(str(cwd)),
        command=shlex.join(command),
        first=first,
    )


_FACTS = """if {facts} <"$folder/patterns" >"$folder/.facts.$$"; then
    mv -f "$folder/.facts.$$" "$folder/facts.tar"
fi
env | sed -n {variables} >"$folder/variables"
cpu="$(sed -n 's/^model name[[:space:]]*: *//p' /proc/cpuinfo | sed -n 1p), $(grep -c '^processor' /proc/cpuinfo) CPUs"
if [ "$cpu" != {cpu} ]; then
    echo "$(uname -n) is another machine than the plan is for: $cpu"
    cd -- "$folder" && mark ended "status=0" "time=$(date +%s)"
    exit 0
fi
"""


def facts_first(program: Path, cpu: str, variables: Sequence[str]) -> str:
    """Lines that keep the facts of the node in the job's folder, with the variables whose lines in the output of `env`
    start with one of these texts, and end the job if its CPU is not `cpu`."""
    kept = " ".join(f"-e {shlex.quote(f'/^{start}/p')}" for start in variables)
    return _FACTS.format(facts=shlex.quote(str(program)), cpu=shlex.quote(cpu), variables=kept)
