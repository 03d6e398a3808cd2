"""Waiting for late ranks, in words."""

from __future__ import annotations

from seatrial.profiler.call_site import CallSite
from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.report.profile.place_words import site_words
from seatrial.report.profile.rank_words import call_words, number_of, rank_words
from seatrial.report.units import count, show, show_percent

_MOSTLY = 0.5
_EACH_WAITS = 0.1
"""If the rank that waits least waits for more than this part of the mean, no rank is the last one each time."""
_MESSAGES = {
    Cause.LATE_SENDER: ("Ranks wait for messages that are sent late", "sends", "sends messages late"),
    Cause.LATE_RECEIVER: ("Ranks wait until others take their messages", "receives", "receives messages late"),
}


def late_partner(one: Diagnosis) -> str:
    """Messages that are sent or received late; with what follows from it."""
    waiting, verb, late = _MESSAGES[one.cause]
    rank, where = rank_words(one), _at(one.late_at)
    share = show_percent(one.share)
    if one.then is not None and one.rank is not None:
        return (
            f"{_upper(rank)} {late}{where}, so that rank {one.then_rank} waits for it; and because rank "
            f"{one.then_rank} comes late for that reason, others wait for it{_at(one.then)} ({share} of the time "
            "together). "
            f"{not_by_computing(one)}."
        )
    of = ""
    if one.rank is not None:
        of = f" {_upper(rank)} {verb} {show_percent(number_of(one, Signal.MESSAGES_SHARE))} of it{where}."
    return f"{waiting} ({share} of the time). {not_by_computing(one)}.{of}"


def short_late_partner(one: Diagnosis) -> str:
    """The same in a few words."""
    if one.then is not None and one.rank is not None:
        return f"waiting, because {rank_words(one)} {_MESSAGES[one.cause][2]}"
    if one.cause is Cause.LATE_RECEIVER:
        return (
            "waiting until messages are received" if one.rank is None else f"waiting until {rank_words(one)} receives"
        )
    return f"waiting for messages that {'are sent' if one.rank is None else f'{rank_words(one)} sends'} late"


def late_at_collective(one: Diagnosis) -> str:
    """Ranks that arrive late at collective calls, one or another."""
    how = "measured with barriers" if one.sureness == "measured" else "estimated from the shortest calls"
    waiting = f"Ranks wait in collective calls, mostly {one.call}, for {show_percent(one.share)} of the time ({how})."
    if one.rank is not None:
        return f"{waiting} {not_by_computing(one)}: {rank_words(one)} hardly waits there, so it arrives last."
    within = number_of(one, Signal.EXPLAINED_IN_SLICES)
    if varies(one):
        slices = show(number_of(one, Signal.SLICE), "s")
        return (
            f"{waiting} In sum, computing differs little between ranks (which explains "
            f"{show_percent(number_of(one, Signal.WAITING_EXPLAINED))} of the waiting), but it varies over time: "
            f"within slices of {slices}, the differences explain {show_percent(within)} of it. Another rank is late "
            "each time."
        )
    is_sure = one.sureness == "measured" and number_of(one, Signal.LEAST_WAITING) > _EACH_WAITS
    return f"{waiting} {not_by_computing(one)}: another rank {'is' if is_sure else 'may be'} late each time."


def varies(one: Diagnosis) -> bool:
    """Whether slices of time show that computing differs between ranks, where its sums over the run do not."""
    within = number_of(one, Signal.EXPLAINED_IN_SLICES)
    return within >= _MOSTLY and number_of(one, Signal.WAITING_EXPLAINED) <= within / 2


def late_in_call(one: Diagnosis) -> str:
    """A rank that others wait for while it is in MPI."""

    def seconds(signal: Signal) -> str:
        return show(number_of(one, signal), "s")

    calls = count(round(number_of(one, Signal.CALLS)), "call")
    return (
        f"Ranks wait for {rank_words(one)} at collective calls for "
        f"{show_percent(number_of(one, Signal.WAITING_SHARE))} of the time. It does not compute meanwhile: it is in "
        f"{call_words(one)}{_at(one.late_at, call=False)} for {seconds(Signal.CALL_TIME)} ({calls}, "
        f"{seconds(Signal.CALL_MEAN)} on average and {seconds(Signal.CALL_BEST)} at best). The ranks "
        f"that it exchanges messages with waited at collective calls for all but {seconds(Signal.PARTNERS_FREE)}, so "
        "it did not wait for them: these calls themselves take so long; why is not known."
    )


def late_in_call_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    where = "" if one.late_at is None else f" at {site_words(one.late_at)}"
    receive = (
        " If messages arrive before their receives are posted, post these first (MPI_Irecv), and receive in the order "
        "of sending: then the library need not search among those that have arrived."
        if "recv" in one.call.lower()
        else ""
    )
    return f"Make fewer or shorter calls of {one.call}{where}.{receive}"


def slow_collective(one: Diagnosis) -> str:
    """A collective call that takes long although nobody is late."""

    def seconds(signal: Signal) -> str:
        return show(number_of(one, signal), "s")

    made = (
        "the program makes reduction operations of its own (MPI_Op_create), whose time is part of such a call"
        if one.value(Signal.OPERATIONS)
        else "why is not known"
    )
    return (
        f"{call_words(one)} takes {seconds(Signal.CALL_BEST)} at best and {seconds(Signal.CALL_MEAN)} on average; by "
        f"constants ({one.source}), it takes at most {seconds(Signal.ALLOWED)}. In each call, some rank is the last to "
        f"arrive and waits for nobody, so the call itself takes so long; {made}."
    )


def slow_collective_remedy(one: Diagnosis) -> str:
    """What to do about it."""
    if one.value(Signal.OPERATIONS):
        return (
            "Make the function that was given to MPI_Op_create faster, or reduce with an operation of MPI (MPI_SUM and "
            "the like), or reduce fewer elements."
        )
    return "`seatrial run` with the benchmark of this call measures what it takes here without the program."


def not_by_computing(one: Diagnosis) -> str:
    """How little differences in computing explain."""
    explained = show_percent(min(1.0, number_of(one, Signal.WAITING_EXPLAINED)))
    return f"Differences in computing explain {explained} of the waiting"


def _at(site: CallSite | None, *, call: bool = True) -> str:
    if site is None:
        return ""
    return f" in {site.call} at {site_words(site)}" if call else f" at {site_words(site)}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
