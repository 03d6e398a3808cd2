"""apps.abaqus: Abaqus on the user's input deck; the job's .dat is read as `seatrial import abaqus=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.abaqus import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

_SITE = "the Abaqus installation: abaqus fetch job="

BENCHMARK = application(
    "apps.abaqus",
    "How long does an Abaqus job take?",
    IMPORTED,
    tool="Abaqus",
    programs=("abaqus",),
    install="Abaqus needs a licence (https://www.3ds.com): put abaqus on PATH",
    arguments=lambda params: ["job=run", f"input={params[INPUT]}", f"cpus={params['processes']}", "interactive"],
    output="run.dat",
    cases=(
        InputCase("s2a", "a flywheel, centrifugal load", f"{_SITE}s2a", "s2a.inp"),
        InputCase("s4b", "a cylinder head, 5 million equations", f"{_SITE}s4b", "s4b.inp"),
    ),
    starts="itself",
    stated={},
    needed=("elements",),
    evidence=FORMAT_SEEN,
)
