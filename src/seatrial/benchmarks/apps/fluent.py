"""apps.fluent: Ansys Fluent on the user's case and journal; its transcript is read as `seatrial import fluent=FILE`
does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.fluent import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT

BENCHMARK = application(
    "apps.fluent",
    "How long does Fluent take for the iterations of a journal?",
    IMPORTED,
    tool="Fluent",
    programs=("fluent",),
    install="Fluent needs a licence (https://www.ansys.com): put fluent on PATH",
    arguments=lambda params: ["3ddp", "-g", f"-t{params['processes']}", "-i", str(params[INPUT])],
    output="stdout",
    cases=(),  # the vendor's are for its customers; the journal must print the timer once (/parallel/timer/usage)
    starts="itself",
    evidence=FORMAT_SEEN,
)
