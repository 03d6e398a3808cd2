"""The outlets of a power distribution unit that the site file names as those of a node."""

from __future__ import annotations

from pathlib import Path

import pytest
from probes.power.made_up_bmc import USER, password_file, redfish_bmc
from probes.power.maker_trees import Tree, collection, link, root

from seatrial.model.environment.site import PduAccess, PowerAccess
from seatrial.model.machine.power import PowerSource, Scope, Supply
from seatrial.probes.power.sources import live_sensors, read_all


def racks() -> Tree:
    """Two units with two outlets each; the second unit has no counters."""
    tree = root() | {"/redfish/v1/PowerEquipment": {"RackPDUs": link("PDUs")}} | collection("PDUs", "1", "2")
    for unit in ("1", "2"):
        tree[f"/redfish/v1/PDUs/{unit}"] = {"Id": unit, "Outlets": link(f"PDUs/{unit}/Outlets")}
        tree |= collection(f"PDUs/{unit}/Outlets", f"A{unit}", "B9")
        for name, watts in ((f"A{unit}", 200.5 + int(unit)), ("B9", 0)):
            own = {"Id": name, "PowerWatts": {"Reading": watts}}
            more = {"EnergykWh": {"Reading": 100.001}} if unit == "1" else {}
            tree[f"/redfish/v1/PDUs/{unit}/Outlets/{name}"] = own | more
    return tree


def read(folder: Path, url: str, certificates: Path, *outlets: str) -> list[PowerSource]:
    access = PduAccess(url, USER, password_file(folder), ca_file=certificates, outlets=outlets)
    with live_sensors(PowerAccess(pdu=access)) as found:
        return [one for one in read_all(found) if one.name.startswith("pdu")]


@pytest.mark.real
def test_the_outlets_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    with redfish_bmc(racks().get, tmp_path) as (url, certificates, _):
        power, energy = read(tmp_path, url, certificates, "A1")
        assert (power.name, power.scope, power.supply, power.watts) == ("pdu:A1", Scope.NODE, Supply.AC, 201.5)
        assert (energy.name, energy.joules, energy.usable) == ("pdu:A1/energy", 100.001 * 3.6e6, True)
        (both,) = read(tmp_path, url, certificates, "A1", "2/A2")
        assert (both.watts, both.usable, both.of) == (404.0, True, "the node, at its outlets")
        (missing,) = read(tmp_path, url, certificates, "A1", "C3")
        assert missing.why == "no outlet is named C3 (it shows: 1/A1, 1/B9, 2/A2, 2/B9)"
        (unclear,) = read(tmp_path, url, certificates, "B9")
        assert unclear.why == "several outlets are named B9 (it shows: 1/B9, 2/B9)"
        (off,) = read(tmp_path, url, certificates, "2/B9")
        assert (off.usable, off.why[:11]) == (False, "reports 0 W")
    (gone,) = read(tmp_path, url, certificates, "A1")
    assert (gone.name, gone.usable, gone.why[:15]) == ("pdu", False, "no answer from ")
