"""No damage to a dump, of any kind, ends in anything but a machine or a clear refusal.

SEATRIAL_MUTATIONS=10000 in the environment makes so many mutants, in place of 400, over all kinds together.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from machine.mutations import KINDS, TooSlowError, limited, missing, mutant, samples

from seatrial.errors import UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import READERS
from seatrial.model.machine.document import machine_document, machine_from_document

MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "400"))
_MOST_SECONDS = 5


def _try(kind: str, data: bytes, pick: int | None) -> str:
    """What came of a dump: "refused" or "read". Anything else is raised."""
    with limited(_MOST_SECONDS):
        try:
            survey = READERS[kind](data, pick)
        except UsageError as error:
            assert str(error).strip()
            return "refused"
    with limited(_MOST_SECONDS):
        machine = assemble([survey])
        document = machine_document(machine)
        assert machine_from_document(json.loads(json.dumps(document, allow_nan=False))) == machine
    return "read"


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    if not samples(kind):
        pytest.skip(f"no sample of {kind} is here")
    came = {"refused": 0, "read": 0}
    for number in range(-(-MUTANTS // len(KINDS))):
        name, data = mutant(kind, number)
        try:
            came[_try(kind, data, (None, 1, 2, None)[number % 4])] += 1
        except (Exception, TooSlowError) as error:
            kept = tmp_path / f"mutant-{number}"
            kept.write_bytes(data)
            pytest.fail(f"mutant({kind!r}, {number}) of {name}, kept as {kept}: {type(error).__name__}: {error}")
    assert came["refused"], "damage that is never noticed is no damage"


@pytest.mark.parametrize("kind", KINDS)
def test_the_samples_themselves(kind: str) -> None:
    """An undamaged sample is read, or (several dumps in one file, a hex dump of lspci) refused."""
    if not samples(kind):
        pytest.skip(f"no sample of {kind} is here")
    came = [_try(kind, data, pick) for _, data in samples(kind) for pick in (None, 1)]
    assert "read" in came
    if missing(kind):
        pytest.skip(f"those that are here are sound; not here: {', '.join(missing(kind))}")


def test_a_mutant_is_the_same_each_time() -> None:
    kind = "hwloc-xml"
    assert [mutant(kind, number) for number in range(20)] == [mutant(kind, number) for number in range(20)]
    assert len({mutant(kind, number)[1] for number in range(20)}) > 15


def test_the_guard_against_hangs_works() -> None:
    with pytest.raises(TooSlowError), limited(0.05):
        while True:
            pass
