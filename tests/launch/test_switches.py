"""The leaf switch of each node."""

from __future__ import annotations

from pathlib import Path

from seatrial.launch.allocation import leaf_switches, leaves_in

_FILE = """# the tree
SwitchName=leaf1 Nodes=n[1-2] LinkSpeed=10
SwitchName=leaf2 \\
  Nodes=n3,login1   # two
SwitchName=bad Nodes=n[9-
SwitchName=core Switches=leaf[1-2]
"""
_PRINTED = """SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4]
"""


def test_both_forms_are_read() -> None:
    assert leaves_in(_FILE) == {"n1": "leaf1", "n2": "leaf1", "n3": "leaf2", "login1": "leaf2"}
    assert leaves_in(_PRINTED) == {"n1": "leaf1", "n2": "leaf1", "n3": "leaf2", "n4": "leaf2"}
    assert leaves_in("BlockName=b1 Nodes=n[1-2]\nBlockSizes=2\n") == {"n1": "b1", "n2": "b1"}
    assert leaves_in("No topology information available\n") == {}


def test_without_scontrol_the_file_beside_the_configuration_is_read(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(_FILE)
    variables = {"SLURM_CONF": str(tmp_path / "slurm.conf"), "PATH": str(tmp_path)}
    assert leaf_switches(variables)["n2"] == "leaf1"
    assert leaf_switches({"SLURM_CONF": str(tmp_path / "none" / "slurm.conf"), "PATH": str(tmp_path)}) == {}
