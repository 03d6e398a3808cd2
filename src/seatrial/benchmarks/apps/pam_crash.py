"""apps.pam-crash: the crash code PAM-CRASH (ESI VPS) on the user's input; what it prints is read as
`seatrial import pam-crash=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FROM_DOCUMENTATION, application
from seatrial.benchmarks.imported.pam_crash import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT

BENCHMARK = application(
    "apps.pam-crash",
    "How long does PAM-CRASH take?",
    IMPORTED,
    tool="PAM-CRASH",
    programs=("pamcrash",),
    install="PAM-CRASH needs a licence (https://www.esi-group.com): put pamcrash on PATH",
    arguments=lambda params: ["-np", str(params["processes"]), "-nt", "1", str(params[INPUT])],
    output="stdout",
    cases=(),
    starts="itself",
    stated={},
    is_clocked=True,
    evidence=FROM_DOCUMENTATION,
)
