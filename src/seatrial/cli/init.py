"""`seatrial init`: a commented file to start from, with the line that gives editors its schema."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.benchmarks import benchmark_of
from seatrial.cli.command import command
from seatrial.errors import UsageError
from seatrial.model.benchmark.role import Role

_STUDY = """\
# Show what it runs, and for how long: seatrial plan {file}
# Measure:                             seatrial run {file}
study: nontemporal-stores          # letters, digits, - and _
question: Are non-temporal stores faster on this machine?
benchmarks:                        # `seatrial list` names them, `seatrial list NAME` their parameters
  {benchmark}: {{threads: all}}
axes:                              # what varies: parameters, or parts of the environment such as environment.mpi
  nontemporal: [false, true]
compare: {{along: nontemporal, baseline: false, margin: 2%}}
repeat: {{budget: 2min}}             # for the whole study; also precision: 1% and max: 100 (repeats of one experiment)
#
# Other keys, each explained in docs/study-files.md:
# zip: [[threads, array_B]]        # these axes advance together
# exclude: [{{threads: 1, array_B: 32 MiB}}]            # combinations to leave out
# include: [{{threads: all, array_B: 256 MiB}}]         # one combination to add
# scaling: {{kind: strong, along: threads}}             # or weak; in place of compare
# best_of: {{over: [threads, nontemporal], figure: triad}}
# probes: [io]                     # also mpi, power: recorded beside the figures
# references: [levels.triad-stream]   # published values to show beside the results
"""

_SITE = """\
# Environments that programs are built and run in, and the systems of this site. Everything is optional.
# The usual place of this file: ~/.config/seatrial/site.yaml; another one: --site {file}
#
# environments:
#   production:
#     mpi: /opt/openmpi/4.1.6        # prefix of an MPI library, or the path of its compiler wrapper
#     compiler: g++
#     flags: -O3
#     variables: {{UCX_TLS: "rc,sm,self"}}
#
# systems:
#   tera:
#     batch: slurm                   # jobs are submitted to it: slurm, pbs, lsf or flux
#     partitions:
#       compute:
#         environments: [production] # the preferred one first
#         launcher: srun
#         nodes: 64
#         account: proj1             # also qos, constraint, reservation, modules, time_limit, ...
"""

_BENCHMARK = """\
# Measure: seatrial run {file}
# Found by name: put it into ./seatrial-benchmarks/, and `seatrial list` shows local.copy
benchmark:
  name: copy                       # the benchmark is local.copy
  question: How long does the kernel take to copy zeros?
  argv: [dd, if=/dev/zero, of=/dev/null, bs=1M, "count={{blocks}}"]   # the program; {{blocks}} is the parameter below
  parameters:
    blocks: {{default: 2000, help: blocks of 1 MiB}}
  variables: {{LC_ALL: C}}           # the language that the patterns are written for
  figures:                         # what it prints; `wall`, the time of the whole program, needs no entry
    - {{name: copy, unit: s, better: lower, file: stderr, pattern: 'copied, (\\S+) s,'}}
  checks:                          # what must hold before a figure counts
    - {{name: blocks_written, file: stderr, pattern: '^(\\d+)[+]0 records out', above: 1}}
"""

_IMAGE = """\
# Make it: seatrial container make {file} -o image.sqfs
# (image, a folder; image.tar, a root for podman import; image.oci.tar for podman load; image.sif with apptainer)
base: {{debian: bookworm}}           # or static, or {{image: PATH}} of a folder, tar, OCI archive or squashfs
packages: [g++, openmpi-bin, libopenmpi-dev]
# programs: [./tool]               # statically linked programs, for /usr/bin
# files:                           # path in the image: a file or folder, or a mapping
#   /opt/app: ./app
#   /etc/motd: {{text: "welcome", mode: 0644}}
variables: {{OMP_PROC_BIND: close}}
build: [{benchmark}]             # programs of seatrial, compiled inside
"""


class StarterFile(StrEnum):
    """A kind of file that `init` writes."""

    STUDY = "study"
    SITE = "site"
    BENCHMARK = "benchmark"
    IMAGE = "image"


_TEXTS = {"study": _STUDY, "site": _SITE, "benchmark": _BENCHMARK, "image": _IMAGE}


@command("init")
def _init(
    kind: Annotated[StarterFile, typer.Argument(metavar="study|site|benchmark|image", help="the kind of file")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="its name (default: the kind, with .yaml)")
    ] = None,
) -> None:
    path = file or Path(f"{kind}.yaml")
    schema = _schema(kind)
    lead = "" if schema is None else f"# yaml-language-server: $schema={schema}\n"
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(lead + _TEXTS[kind].format(file=path, benchmark=benchmark_of(Role.MEMORY_BANDWIDTH)))
    except FileExistsError as error:
        raise UsageError(f"{path} exists already", f"give another name: seatrial init {kind} FILE") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", "give another file") from error
    print(path)


def _schema(kind: StarterFile) -> Path | None:
    """The schema of this version, written into the user's data folder for editors; None if that is not possible."""
    from seatrial.plan.schemas import SCHEMAS
    from seatrial.store.files import write_once

    try:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share", "seatrial", "schemas")
        base.mkdir(parents=True, exist_ok=True)
        write_once(base, f"{kind}-1.json", data=json.dumps(SCHEMAS[kind](), ensure_ascii=False).encode())
    except (OSError, RuntimeError):
        return None
    return base / f"{kind}-1.json"
