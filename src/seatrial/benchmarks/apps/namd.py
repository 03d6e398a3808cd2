"""apps.namd: NAMD on its published inputs; its figures are read from the log as `seatrial import namd=FILE` does."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.namd import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase
from seatrial.model.parameter import Params, whole

_SITE = "https://www.ks.uiuc.edu/Research/namd/benchmarks/"
_APOA1 = {
    "apoa1.psf": "32aa47e446abd793d714f443d8a41eb5ac0d03e05e6d19888261f5e89949cc6d",
    "apoa1.pdb": "7325bb5f65185095409fa27a68ce7917f19b34c8f0d178ff9d656c0cc80ded03",
    "par_all22_popc.xplor": "7b88f0a5d707909689bcac87868f770f2c698198b74fdc5c17dc53f089b87687",
    "par_all22_prot_lipid.xplor": "b1ea48036ca1781303c3a4f986a31167258662427fc35012a7b4641db00feda1",
}
"""Files of 2000, alike in three public copies; apoa1.namd is for the user to change (steps, outputs)."""


def _arguments(params: Params) -> Sequence[str]:
    """A multicore build takes its threads from `+p`, ranks with threads (MPI-SMP builds) take them from `+ppn`."""
    threads, is_alone = whole(params["threads"]), whole(params["ranks"]) == 1
    of_ranks = ["+ppn", str(threads)] if threads > 1 else []
    return [*([f"+p{threads}"] if is_alone else of_ranks), str(params[INPUT])]


BENCHMARK = application(
    "apps.namd",
    "How fast does NAMD simulate?",
    IMPORTED,
    tool="NAMD",
    programs=("namd3", "namd2"),
    install="get NAMD from https://www.ks.uiuc.edu/Research/namd/ (it may not be redistributed) and put it on PATH",
    arguments=_arguments,
    output="stdout",
    cases=(
        InputCase("apoa1", "92,224 atoms", _SITE, "apoa1.namd", ("apoa1.psf", "apoa1.pdb"), 92_224, _APOA1),
        InputCase("f1atpase", "327,506 atoms", _SITE, "f1atpase.namd", ("f1atpase.psf", "f1atpase.pdb"), 327_506),
        InputCase("stmv", "1,066,628 atoms", _SITE, "stmv.namd", ("stmv.psf", "stmv.pdb"), 1_066_628),
    ),
    evidence=FORMAT_SEEN,
)
