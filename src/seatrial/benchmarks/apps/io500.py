"""apps.io500: the IO500 on a configuration of the user; its result.txt is read as `seatrial import io500=FILE`
does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.io500 import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

BENCHMARK = application(
    "apps.io500",
    "What is the IO500 score of this file system?",
    IMPORTED,
    tool="IO500",
    programs=("io500",),
    install="build the IO500 (https://github.com/IO500/io500) and put io500 on PATH",
    arguments=lambda params: [str(params[INPUT])],
    output="results/*/result.txt",
    cases=(
        InputCase(
            "minimal",
            "the shortest valid configuration (stonewall 300 s; set expected_s); its data and results are in the "
            "folder of the run",
            "https://github.com/IO500/io500, file config-minimal.ini",
            "config-minimal.ini",
        ),
    ),
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
