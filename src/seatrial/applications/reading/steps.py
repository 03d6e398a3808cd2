"""The lines of steps in a log of training: which belong to one run, which to a restart of it, and which are the same
step as another rank prints it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from seatrial.applications.reading.log import Found, Log, Printed
from seatrial.applications.reading.text import LogLine, Pattern
from seatrial.model.frozen import Frozen

EPOCH = 10**9
"""More steps than an epoch has."""
_LAG = 3
"""Ranks print a step at most so many steps after the first of them."""
_NOT_FINITE = Pattern(r"(?i)[-+]?(?:nan|inf(?:inity)?)(?:\.0)?")
_NO_LOSS = Pattern(r"-1(?:\.0*)?")
"""Of a stage of a pipeline that has no loss (torchtitan)."""
_NEVER = Pattern(r"(?!)")


class StepLines(Frozen):
    """Which lines of a tool's log are what. `step`: the line of a step, with its groups `step` (its number), `loss`,
    and `epoch` if numbers begin again with each; `hint`: what every such line has in it. `first`: the number of a run's
    first step. `banner`: a line that a program prints before its steps; `resumed`: what is in a line that says that a
    checkpoint was loaded."""

    step: Pattern
    hint: str
    first: int
    banner: Pattern = _NEVER
    resumed: Pattern = _NEVER

    def number(self, match: re.Match[str]) -> int:
        """The number of the step in a line, which rises through epochs."""
        return int(match.groupdict().get("epoch") or 0) * EPOCH + int(match["step"])

    def starts(self, lines: Sequence[str]) -> list[int]:
        """Where runs begin (Reader.starts). Steps of ranks that print other losses are mixed, not runs: then there is
        one part, which is refused."""
        places = self.places([line.strip() for line in lines])
        found = list(dict.fromkeys(place.start for place in places))
        return found[:1] if sum(place.is_mixed for place in places) > 1 else found

    def places(self, texts: Sequence[str]) -> list[_Place]:
        """The lines of steps, in order.

        A step that is not after the one before it is the line of another rank (same loss), of a run that loaded a
        checkpoint, or the first of another run.
        """
        found: list[_Place] = []
        seen: dict[int, str | None] = {}
        banner: int | None = None
        is_resumed = False
        last = -1
        for index, text in enumerate(texts):
            match = self.step.fullmatch(text) if self.hint in text else None
            if match is None:
                if banner is None and self.banner.fullmatch(text):
                    banner = index
                elif self.resumed.search(text):
                    is_resumed = True
                continue
            number, loss = self.number(match), match["loss"]
            loss = None if loss is None or _NO_LOSS.fullmatch(loss) else loss
            before = found[-1] if found else None
            is_start = banner is not None or is_resumed or before is None
            is_again = not is_start and number in seen and last - number < _LAG
            if before is not None and is_again and (loss is None or seen[number] in (None, loss)):
                found.append(_Place(index, number, before.session, before.start, is_copy=True))
                continue
            if before is None or (is_start and not is_resumed) or (not is_start and number <= last):
                start = index if banner is None else banner
                is_shown = banner is not None or is_resumed
                before = _Place(index, number, 0, start, is_start=is_shown, is_mixed=is_again)
                seen, last = {}, -1
            elif is_resumed:
                before = _Place(index, number, before.session + 1, before.start, is_start=True)
                seen, last = {}, -1
            else:
                before = _Place(index, number, before.session, before.start)
            found.append(before)
            seen[number] = loss
            last = max(last, number)
            banner, is_resumed = None, False
        return found


class _Place(Frozen):
    """The line of a step: its index, the number of the step, and the start of its run, as index of a line. `session`
    counts the starts of this run. `is_copy`: another rank printed it before. `is_start`: the log shows the start.
    `is_mixed`: the same step was just there, with another loss."""

    index: int
    number: int
    session: int
    start: int
    is_copy: bool = False
    is_start: bool = False
    is_mixed: bool = False


class Step(Frozen):
    """A step as a log has it: seconds of one step, the mean over `covers` steps since the line before.

    `counts` are those of a step of the whole run, and `device_counts` of a device (tokens, samples). `flops` is the
    rate of a device as the tool computes it. `at`: the time stamp; `apart`: why it is left out of the steady part.
    """

    found: Found
    number: int
    time: Printed
    loss: str | None = None
    counts: Mapping[str, float] = {}
    device_counts: Mapping[str, float] = {}
    flops: Printed | None = None
    at: datetime | None = None
    covers: int = 1
    skipped: int = 0
    apart: str = ""
    session: int = 0
    is_start: bool = False
    is_first: bool = False
    """Whether it is the first step of a run, by its number."""

    @property
    def elapsed_s(self) -> float:
        """The time of all the steps that it covers."""
        return self.time.value * self.covers


class Ending(Frozen):
    """What a log says of the end of its run: the line, and the number of the last step."""

    line: Found | None = None
    last: int | None = None


def sessions(log: Log, lines: StepLines, step: Callable[[Found, int], Step]) -> list[Step]:
    """The steps of a log with one run; `step` makes one of a line and the usual distance of the numbers. The slowest of
    several ranks counts. Raises ParseError if there is none, or the text has steps of several runs."""
    texts = log.texts if not log.lines or log.lines[-1].is_ended else log.texts[:-1]
    places = lines.places(texts)
    if not places:
        raise log.error("no line of a step: from another program, or nothing of its training is in it")
    if len({place.start for place in places}) > 1:
        other = next(place for place in places if place.start != places[0].start)
        raise log.lines[other.index].error("steps of another run begin here: put each in its own file")
    own = [place for place in places if not place.is_copy]
    apart = [b.number - a.number for a, b in itertools.pairwise(own) if b.session == a.session]
    stride = Counter(apart).most_common(1)[0][0] if apart else 1
    found: list[Step] = []
    at: dict[tuple[int, int], int] = {}
    before: _Place | None = None
    for place in places:
        match = lines.step.fullmatch(texts[place.index])
        if match is None:
            continue
        covers = stride
        if before is not None and before.session == place.session and place.number > before.number:
            covers = min(stride, place.number - before.number)
        one = step(Found(log.lines[place.index], match), covers)
        is_first = before is None or before.session != place.session
        is_start = is_first and (place.is_start or place.number < lines.first + stride)
        is_one = covers == 1 and place.number == lines.first
        one = replace(one, session=place.session, is_start=is_start, is_first=is_one)
        key = (place.session, place.number)
        if place.is_copy:
            known = found[at[key]]
            if one.time.value > known.time.value:
                found[at[key]] = replace(one, is_start=known.is_start, is_first=known.is_first)
            continue
        at[key] = len(found)
        found.append(one)
        before = place
    return found


def check_whole(log: Log, like: Pattern, form: Pattern) -> None:
    """Raise ParseError at the first line that is `like` those of steps and has not their form; a last line that is cut
    off is passed over."""
    whole = {one.line.number for one in log.found(form)}
    for one in log.found(like):
        if one.line.is_ended and one.line.number not in whole:
            raise one.error("the line of a step is damaged")


def is_not_finite(loss: str | None) -> bool:
    """Whether a loss is nan or infinite."""
    return loss is not None and _NOT_FINITE.fullmatch(loss) is not None


def moment_in(text: str) -> datetime | None:
    """The date and time that a text is, as ISO 8601 has it, or None."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def moment(line: LogLine, text: str) -> datetime:
    """A time stamp, as ISO 8601 has it. Raises ParseError."""
    found = moment_in(text)
    if found is None:
        raise line.error("not a valid date and time")
    return found
