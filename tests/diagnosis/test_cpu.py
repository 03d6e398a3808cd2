"""Who had the CPUs that threads waited for: the one decision of profiles and repeats."""

from __future__ import annotations

import pytest

from seatrial.diagnosis.cpu import CpuSignals, cpus_words, others_words, ready_words, steal_words
from seatrial.profiler.cause import Cause


def test_threads_wait_for_each_other_beyond_their_cpus() -> None:
    assert CpuSignals(ran=2.0, waited=2.0, cpus=2).crowd == 2.0
    assert CpuSignals(ran=1.0, waited=2.0, cpus=2).crowd == 1.0, "others had the second CPU"
    assert CpuSignals(ran=2.0, waited=2.0, cpus=0).crowd == 0.0, "their CPUs are not known"


@pytest.mark.parametrize(
    ("others", "idle", "steal", "cause"),
    [
        (0.6, 0.1, 0.0, Cause.OTHER_PROCESSES),
        (0.4, 0.1, 0.0, Cause.NO_CPU),
        (0.6, 0.6, 0.0, Cause.NO_CPU),
        (0.6, 0.1, 2.5, Cause.STEAL),
        (3.0, 0.1, 2.5, Cause.OTHER_PROCESSES),
        (None, None, 2.5, Cause.NO_CPU),
    ],
)
def test_the_larger_taker_of_half_of_the_waiting_is_named(
    others: float | None, idle: float | None, steal: float, cause: Cause
) -> None:
    seen = CpuSignals(ran=1.0, waited=1.0, cpus=4, watched=4, others=others, idle=idle, steal=steal)
    assert seen.taken_by(1.0) is cause


def test_words() -> None:
    assert steal_words("0.30 of 4 CPUs") == "the hypervisor gave 0.30 of 4 CPUs to other guests (steal)"
    assert others_words("2", cpus_words(4)) == "other processes used 2 of 4 CPUs"
    assert ready_words("ranks", "5 % of their time", are_several=True).startswith("ranks were ready to run, but had no")
