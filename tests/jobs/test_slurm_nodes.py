"""What Slurm says of nodes and switches."""

from __future__ import annotations

import pytest

from seatrial.errors import ParseError
from seatrial.jobs.batch.slurm import read_nodes, read_topology


def test_nodes_that_are_up_in_order_and_the_states_of_others() -> None:
    printed = "n1|idle\nn2|mix\nn3|alloc\nn4|drain\nn5|idle*\nn6|down*\nn1|idle\n\n"
    assert read_nodes(printed) == (("n1", "n2", "n3"), {"n4": "drain", "n5": "idle*", "n6": "down*"})


def test_a_line_without_a_state_is_refused() -> None:
    with pytest.raises(ParseError, match="not NODE"):
        read_nodes("n1 idle\n")


def test_nodes_by_their_leaf_switch() -> None:
    printed = (
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
        "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n3\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=s[1-2]\n"
    )
    assert read_topology(printed) == {"n1": "s1", "n2": "s1", "n3": "s2"}
    assert read_topology("No topology information available\n") == {}
