"""What a container changes and costs, in sentences. All sentences about containers of comparisons are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.model.comparison import Comparison, Verdict, decisive
from seatrial.model.container_contrast import ContainerContrast, ContainerCost, ContainerFact, Cost
from seatrial.model.difference import Difference
from seatrial.model.study_result import Compared
from seatrial.report.studies.effect import effect_words
from seatrial.report.units import count, label, show_percent

_NOT_RECORDED = "not recorded"
_MOST_FIGURES = 4
_CHARACTERS = 200
_OF_CONTAINER = "environment container "
_NAMING = ("image", "runtime")

CONTAINER_RULE = (
    "The same program, outside of a container and in one, or in two. A figure that is clearly slower has its possible "
    "causes below: facts that differ between the sides and can slow this figure down. If several fit, the records do "
    "not tell which it is: change one of them and run the study again."
)


def fact_rows(contrast: ContainerContrast) -> list[tuple[str, str, str]]:
    """(fact, baseline, candidate) of what is known to differ or is known of one side only."""
    return [
        (one.name, _text(one.baseline), _text(one.candidate)) for one in contrast.facts if one.baseline != one.candidate
    ]


def alike_line(contrast: ContainerContrast) -> str:
    """What both sides have in common: "Alike on both sides: ..."; "" if nothing is known to be."""
    alike = [f"{one.name} ({_short(one)})" for one in contrast.facts if one.baseline == one.candidate]
    return f"Alike on both sides: {'; '.join(alike)}." if alike else ""


def _text(text: str | None) -> str:
    return _NOT_RECORDED if text is None else text


def _short(one: ContainerFact) -> str:
    text = one.baseline or ""
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"


def cost_lines(compared: Compared) -> list[str]:
    """Each cause with the figures that it fits, as sentences; that there is nothing to explain, if no figure is slower.

    Empty without containers.
    """
    contrast = compared.containers
    if contrast is None:
        return []
    if contrast.costs:
        return [cost_sentence(one, compared) for one in contrast.costs]
    main = decisive(compared.comparisons)
    if not main:
        return []
    undecided = sum(one.verdict is Verdict.AMBIGUOUS for one in main)
    rest = f" {undecided} of {count(len(main), 'figure')} {'is' if undecided == 1 else 'are'} undecided." * bool(
        undecided
    )
    return [f"No figure is clearly slower on either side, so there is no cost to explain.{rest}"]


def is_stated_by_facts(compared: Compared, difference: Difference) -> bool:
    """Whether the facts of the container already state an intended difference in words."""
    return (
        compared.containers is not None
        and difference.intended
        and difference.what.startswith(_OF_CONTAINER)
        and difference.what.removeprefix(_OF_CONTAINER) not in _NAMING
    )


def cost_sentence(one: ContainerCost, compared: Compared) -> str:
    """A cause, its evidence and the figures that it fits, as one or more sentences."""
    text = _SENTENCES[one.cost](one)
    figures = _figures(one.figures, compared.candidate)
    return f"{text[:1].upper()}{text[1:]} Seen in: {figures}{_spared(one)}."


def _figures(figures: Sequence[Comparison], candidate: str) -> str:
    named = [f"{_name(one)} ({effect_words(one)} with {candidate})" for one in figures[:_MOST_FIGURES]]
    more = f", and {count(len(figures) - _MOST_FIGURES, 'more figure')}" if len(figures) > _MOST_FIGURES else ""
    return ", ".join(named) + more


def _name(one: Comparison) -> str:
    size = one.parameters.get("size_B")
    return f"{one.benchmark} {one.figure}" + ("" if size is None else f" at {label('size_B', size)}")


def _spared(one: ContainerCost) -> str:
    parts = []
    if one.spared:
        names = ", ".join(map(_name, one.spared[:_MOST_FIGURES]))
        parts.append(f"; as it must be with this cause, not slower: {names}")
    if one.share is not None:
        parts.append(f"; the MPI profiles put {show_percent(one.share)} of the difference into the calls themselves")
    return "".join(parts)


def _pair(one: ContainerCost) -> str:
    return f"baseline: {one.baseline or _NOT_RECORDED}; candidate: {one.candidate or _NOT_RECORDED}"


def _cross_memory(one: ContainerCost) -> str:
    return (
        "cross-memory attach (CMA) is lost: large messages are copied through shared memory, twice instead of once "
        f"({_pair(one)}). One user namespace for all ranks (environment.container_mpi=joined or inside) brings it back "
        "where namespaces are the reason."
    )


def _transport(one: ContainerCost) -> str:
    return (
        f"the MPI library loaded other modules for its messages (only there: {_pair(one)}). An image has only the "
        "modules that are installed in it."
    )


def _mpi_library(one: ContainerCost) -> str:
    return f"the ranks load another MPI library, by build id ({_pair(one)})."


def _user_files(one: ContainerCost) -> str:
    return (
        f"a process in user space serves the root file system ({_pair(one)}): the image's files are read through it. "
        "An image unpacked into a folder, or mounted by the kernel, does without."
    )


def _not_known(one: ContainerCost) -> str:
    return "no recorded fact of the container explains this difference."


_SENTENCES: Mapping[Cost, Callable[[ContainerCost], str]] = {
    Cost.CROSS_MEMORY: _cross_memory,
    Cost.TRANSPORT: _transport,
    Cost.MPI_LIBRARY: _mpi_library,
    Cost.USER_FILES: _user_files,
    Cost.NOT_KNOWN: _not_known,
}
