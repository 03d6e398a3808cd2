"""apps.ls-dyna: the crash code LS-DYNA (shared memory) on the user's input; its file `messag` is read as
`seatrial import ls-dyna=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.ls_dyna import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

_SITE = "https://www.topcrunch.org"

BENCHMARK = application(
    "apps.ls-dyna",
    "How long does LS-DYNA take?",
    IMPORTED,
    tool="LS-DYNA",
    programs=("ls-dyna_smp_d", "ls-dyna_smp_s", "lsdyna", "ls-dyna"),
    install="LS-DYNA needs a licence (https://lsdyna.ansys.com): put the SMP solver on PATH as ls-dyna_smp_d or lsdyna",
    arguments=lambda params: [f"i={params[INPUT]}", f"ncpu={params['processes']}"],
    output="messag",
    cases=(
        InputCase("neon", "a frontal crash of one car", _SITE),
        InputCase("car2car", "a collision of two cars", _SITE),
    ),
    starts="itself",
    stated={"threads": "processes"},
    evidence=FORMAT_SEEN,
)
