"""An article of the page: a head with the results, and sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.model.frozen import Frozen
from seatrial.model.study_result import Compared
from seatrial.report.pages.templating import Verbatim
from seatrial.report.studies.section import Section
from seatrial.report.units import count

if TYPE_CHECKING:
    from jinja2 import Environment


class Article(Frozen):
    """A part of the page: its name and one line for the list at the top, its anchor, and its HTML."""

    name: str
    line: str
    anchor: str
    html: Verbatim


class Head(Frozen):
    """The text above the sections. `lines` are the results, most important first.

    `needed` is what undecided results still need; `alarm` is a possible cause of a result; `about` says how it was
    obtained.
    """

    kicker: str
    name: str
    lines: Sequence[str]
    question: str = ""
    about: str = ""
    alarm: str = ""
    needed: str = ""


def no_record(experiment: str, repeat: int) -> str | None:
    """For pages without raw records."""
    return None


def article(
    environment: Environment, ident: str, head: Head, sections: Sequence[Section], *, is_alone: bool
) -> Article:
    """The article; its ids begin with `ident`. `is_alone`: its name is the heading of the whole page."""
    rendered = [
        {
            "name": section.name,
            "title": section.title,
            "anchor": f"{ident}-{section.name}-section",
            "html": Verbatim(environment.get_template(f"study/{section.template}.html.j2").render(**section.context)),
        }
        for section in sections
    ]
    html = environment.get_template("study/article.html.j2").render(
        head=head, sections=rendered, ident=ident, level="h1" if is_alone else "h2"
    )
    return Article(head.name, next(iter(head.lines), ""), f"{ident}-top", Verbatim(html))


def alarm(compared: Sequence[Compared]) -> str:
    """A warning beside the result: unintended differences, which may be its cause."""
    compared = [one for one in compared if one.comparisons or not one.lost]  # without a result, it is of no interest
    number = sum(len(one.unintended) for one in compared)
    if not number:
        return ""
    names = list(dict.fromkeys(difference.what for one in compared for difference in one.unintended))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{count(number, 'unintended difference')} between the sides: {', '.join(names[:3])}{more}"
