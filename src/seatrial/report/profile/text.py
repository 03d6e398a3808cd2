"""A profile as text for a terminal: the headline, what takes the time, what limits its reliability, and what to do; in
full, all tables of its page."""

from __future__ import annotations

from seatrial.model.spelling import count, show
from seatrial.profiler.profile import Profile
from seatrial.report.blocks import Detail
from seatrial.report.profile import words
from seatrial.report.profile.page import sections
from seatrial.report.text.blocks import sections_text
from seatrial.report.text.terminal import PLAIN, Style, clean, joined


def profile_text(profile: Profile, style: Style = PLAIN, detail: Detail = Detail.FULL) -> str:
    """The output of `seatrial profile`, without a trailing newline."""
    head = style.paint(f"{words.headline(profile)}.", "heading")
    if not profile.ranks:
        return head
    where = f"{clean(profile.program)} on {count(profile.ranks, 'rank')}, {show(profile.elapsed_s, 's')}"
    return joined([f"{head}\n{where}", sections_text(sections(profile, "p"), style, detail)])
