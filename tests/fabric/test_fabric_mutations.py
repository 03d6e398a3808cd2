"""No damage to a dump ends in anything but a fabric or a clear refusal.

SEATRIAL_MUTATIONS=2000 in the environment makes so many mutants, in place of 150, over all kinds together.
"""

from __future__ import annotations

import json
import os
from random import Random

import pytest
from fabric.fabric_texts import DUMPS
from machine.mutations import damaged

from seatrial.errors import UsageError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.report.documents.check import fabric_document
from seatrial.report.fabric_drawing import fabric_svg
from seatrial.report.text.fabric import fabric_text

MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "150"))


@pytest.mark.parametrize("form", DUMPS)
def test_mutants_are_read_or_refused(form: str) -> None:
    kind = form.split()[0]
    refused = 0
    for number in range(-(-MUTANTS // len(DUMPS))):
        data = damaged(DUMPS[form].encode(), Random(f"{form} {number}"), "lspci-tree")
        try:
            fabric = read_fabric(kind, [FabricText("mutant", data, (None, 1, 2, None)[number % 4])])
        except UsageError as error:
            assert str(error).strip()
            refused += 1
            continue
        except Exception as error:
            pytest.fail(f"mutant {number} of {form}: {type(error).__name__}: {error}")
        json.dumps(fabric_document(fabric), allow_nan=False)
        fabric_text(fabric)
        fabric_svg(fabric)
    assert refused, "damage that is never noticed is no damage"
