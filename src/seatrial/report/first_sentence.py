"""What qualifies results before anything else, in one sentence without a full stop: programs that had no CPU
(docs/adr/0063), or else the load beside them."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.missing_cpus import missing_cpus
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.no_cpu import NOT_JUDGED, no_cpu_sentence
from seatrial.model.study.answer import Answer

_BESIDE = "Measured beside other load"


def first_of_results(results: Sequence[ExperimentResult]) -> str:
    """Of a trial, or of benchmarks that were named; "" if most of them had all the CPUs to themselves."""
    measured = [result for result in results if result.outcome.is_ok]
    missing = missing_cpus(measured)
    if missing:
        whose = "these" if len(missing) > 1 else "its"
        return no_cpu_sentence(missing, f"{whose} figures are {NOT_JUDGED}", len(measured))
    loaded = [result.beside for result in measured if result.beside]
    if 2 * len(loaded) <= len(measured):
        return ""
    when = f" during {len(loaded)} of {len(measured)} experiments" if len(measured) > 1 else ""
    return f"{_BESIDE}{when}: {loaded[0]}"


def first_of_answer(answer: Answer) -> str:
    """Of a study or of comparisons; "" if nothing qualifies it."""
    if not answer.no_cpu:
        return f"{_BESIDE}: {answer.beside}" if answer.beside else ""
    then = "the ratios include this" if answer.stretches else "this is in the figures"
    if answer.reaches:
        then = f"efficiencies without these CPUs are {NOT_JUDGED}"
    return no_cpu_sentence(answer.no_cpu, then, answer.measured)
