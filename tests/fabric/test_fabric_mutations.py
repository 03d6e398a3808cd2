"""No damage to a dump ends in anything but a fabric or a clear refusal.

SEATRIAL_MUTATIONS=2000 in the environment makes so many mutants, in place of 150, over all kinds together.
"""

from __future__ import annotations

import json
import os
from random import Random

import pytest
from fabric.made_up_fabrics import FatTree
from machine.mutations import damaged

from seatrial.errors import UsageError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.report.documents.check import fabric_document
from seatrial.report.fabric_drawing import fabric_svg
from seatrial.report.text.fabric import fabric_text

MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "150"))
TREE = FatTree(pods=2, leaves=3, nodes=3, spines=2, cores=2)
TOPOLOGY = "SwitchName=top Switches=s[0-2]\n" + "".join(f"SwitchName=s{n} Nodes=n[{n}0-{n}7]\n" for n in range(3))
YAML = (
    "- topology: a\n  tree:\n    switches:\n      - switch: top\n        children: s[0-1]\n"
    "      - switch: s0\n        nodes: n[1-4]\n      - switch: s1\n        nodes: n[5-8]\n"
    "- topology: b\n  block:\n    block_sizes: [4]\n    blocks:\n      - block: b1\n        nodes: n[1-4]\n"
)
DUMPS = {
    "ibnetdiscover": TREE.ibnetdiscover(),
    "iblinkinfo": TREE.iblinkinfo(),
    "iblinkinfo -l": TREE.iblinkinfo_lines(),
    "slurm-topology": TOPOLOGY,
    "slurm-topology yaml": YAML,
}


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
