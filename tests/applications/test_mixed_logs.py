"""Logs that were mixed or written otherwise: parts of two runs, a run twice, a restart appended, columns exchanged,
numbers in other forms, line ends of another system. A reader refuses them, or gives numbers of the runs in them.

SEATRIAL_MUTATIONS=10000 in the environment makes so many mutants of a log, in place of 12.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from random import Random

import pytest
from applications.log_damage import APPLICATIONS, figures, needs_logs

from seatrial.errors import ParseError

MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "12"))
KINDS = (
    *("abaqus", "amber", "calculix", "castep", "cfx", "fluent", "hpcg", "hpl", "hpl-mxp"),
    *("hpl-nvidia", "io500", "ior", "lammps", "ls-dyna", "mdtest", "namd", "nccl-tests"),
    *("openfoam", "opensbli", "psdns", "qe"),
)
LARGEST_B = 100_000
"""Of larger logs, each mutant takes too long."""
NEAR = 2e-3
FEWER = {"abaqus": ("increments", "iterations")}
"""Figures that are less if rows are lost, since nothing states how many there were."""
_NUMBER = re.compile(rb"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w])")

Lines = list[bytes]


def _logs(kind: str) -> list[bytes]:
    paths = sorted((APPLICATIONS / kind).iterdir())
    return [path.read_bytes() for path in paths if path.is_file() and path.stat().st_size <= LARGEST_B]


def _read(kind: str, data: bytes) -> Mapping[str, list[float]]:
    """What a reader finds; {} if it refuses the log. Any other exception fails the test."""
    try:
        return figures(kind, data)
    except ParseError:
        return {}


def _halves(one: Lines, other: Lines, rng: Random) -> bytes:
    return b"".join(one[: rng.randrange(len(one))] + other[rng.randrange(len(other)) :])


def _block(one: Lines, other: Lines, rng: Random) -> bytes:
    at, start, count = rng.randrange(len(one)), rng.randrange(len(other)), rng.choice((1, 2, 5, 20))
    return b"".join(one[:at] + other[start : start + count] + one[at + rng.choice((0, count)) :])


def _restart(one: Lines, other: Lines, rng: Random) -> bytes:
    end = rng.randrange(len(one))
    return b"".join(one[:end] + one[rng.randrange(end + 1) :])


def _tail_again(one: Lines, other: Lines, rng: Random) -> bytes:
    return b"".join(one + one[-rng.randrange(1, len(one) + 1) :])


def _both(one: Lines, other: Lines, rng: Random) -> bytes:
    return b"".join(one + other)


def _columns(one: Lines, other: Lines, rng: Random) -> bytes:
    at = rng.randrange(len(one))
    words = one[at].split()
    if len(words) > 1:
        a, b = rng.sample(range(len(words)), 2)
        words[a], words[b] = words[b], words[a]
    return b"".join([*one[:at], b" ".join(words) + b"\n", *one[at + 1 :]])


def _interleaved(one: Lines, other: Lines, rng: Random) -> bytes:
    at, text = rng.randrange(len(one)), rng.choice(one).rstrip(b"\r\n")
    cut = rng.randrange(len(one[at]) + 1)
    return b"".join([*one[:at], one[at][:cut] + text + one[at][cut:], *one[at + 1 :]])


def _other_form(form: Callable[[bytes], bytes]) -> Callable[[Lines, Lines, Random], bytes]:
    """One number in another form."""

    def change(one: Lines, other: Lines, rng: Random) -> bytes:
        text = b"".join(one)
        found = rng.choice(list(_NUMBER.finditer(text)))
        return text[: found.start()] + form(found.group()) + text[found.end() :]

    return change


DAMAGE: Mapping[str, Callable[[Lines, Lines, Random], bytes]] = {
    "halves of two runs": _halves,
    "a block of another run": _block,
    "a restart appended": _restart,
    "the end repeated": _tail_again,
    "two runs": _both,
    "two columns exchanged": _columns,
    "two lines written at once": _interleaved,
    "a field too narrow": _other_form(lambda number: b"*" * len(number)),
    "an exponent of Fortran": _other_form(lambda number: f"{float(number):.8E}".replace("E", "D").encode()),
    "a decimal comma": _other_form(lambda number: number.replace(b".", b",")),
    "a sign": _other_form(lambda number: b"-" + number),
}


@needs_logs
@pytest.mark.parametrize("kind", KINDS)
def test_no_mixture_of_runs_makes_a_number_that_none_of_them_has(kind: str) -> None:
    found = {text: _read(kind, text) for text in _logs(kind)}
    logs = [text for text, whole in found.items() if whole]  # parts of a refused log have numbers too, true or not
    true: dict[str, list[float]] = {}
    for figure, values in (item for whole in found.values() for item in whole.items()):
        true.setdefault(figure, []).extend(values)
    for name, damage in DAMAGE.items():
        for number in range(MUTANTS):
            rng = Random(f"{kind} {name} {number}")
            one, other = rng.choice(logs), rng.choice(logs)
            data = damage(one.splitlines(keepends=True), other.splitlines(keepends=True), rng)
            for figure, values in _read(kind, data).items():
                for value in values:
                    known = true.get(figure, ())
                    is_fewer = figure in FEWER.get(kind, ()) and any(0 < value < one for one in known)
                    is_true = any(abs(value - one) <= NEAR * one for one in known)
                    assert is_true or is_fewer, (name, number, figure, value, known)


@needs_logs
@pytest.mark.parametrize("kind", KINDS)
def test_line_ends_of_another_system_change_nothing(kind: str) -> None:
    for text in _logs(kind):
        unix = text.replace(b"\r\n", b"\n")
        assert _read(kind, unix.replace(b"\n", b"\r\n")) == _read(kind, unix)
