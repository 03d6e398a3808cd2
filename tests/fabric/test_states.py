"""Dumps of the state of ports, switches and a whole fabric: perfquery, ibqueryerrors, ibswinfo, opafabricinfo."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from cli.test_contract import answer
from conftest import SHARED_DATA
from fabric.fabric_texts import IBQUERYERRORS, IBSWINFO, IBSWINFO_STATUS, IBSWINFO_VITALS, OPAFABRICINFO, PERFQUERY
from fabric.made_up_fabrics import FatTree

from seatrial.errors import ParseError, UsageError
from seatrial.fabric.dumps import read_fabric, read_fabrics
from seatrial.fabric.parts import FabricText
from seatrial.model.machine.fabric import Fabric
from seatrial.model.machine.fact import Finding, Severity

SAMPLES = SHARED_DATA / "fabrics"


def fabric(kind: str, *texts: str) -> Fabric:
    return read_fabric(kind, [FabricText(f"file{n}", text.encode()) for n, text in enumerate(texts)])


def sample(kind: str, name: str) -> Fabric:
    path = SAMPLES / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    return fabric(kind, path.read_text())


def rules(found: Fabric) -> dict[tuple[str, Severity], Finding]:
    return {(finding.rule, finding.severity): finding for finding in found.findings}


ERRORS = ("link-errors-counted", Severity.WARNING)
EVENTS = ("link-events-counted", Severity.INFO)
FEW = ("link-discards-counted", Severity.INFO)
MUCH = ("link-discards-counted", Severity.WARNING)


def test_counters_say_since_when() -> None:
    found = rules(fabric("perfquery", PERFQUERY))
    # 4 symbol errors in 7e11 B received are below 1e-12 of its bits, 20 discards few of 4e8 packets
    assert set(found) == {EVENTS, FEW}
    assert all("since the counters were last cleared" in finding.observation for finding in found.values())
    assert found[EVENTS].devices == ("lid 7 port 3",)


def test_many_errors_and_discards_are_a_warning() -> None:
    text = PERFQUERY.replace("SymbolErrorCounter:..............4", "SymbolErrorCounter:..............4000")
    text = text.replace("PortXmitDiscards:................20", "PortXmitDiscards:................2000000")
    found = rules(fabric("perfquery", text))
    assert {ERRORS, MUCH} <= set(found) and "may be old" in found[ERRORS].diagnosis
    without = text.replace("PortRcvData", "PortOtherData")
    assert ERRORS in rules(
        fabric("perfquery", without.replace("Counter:..............4000", "Counter:..............4"))
    )


def test_old_names_of_counters_and_two_ports() -> None:
    old = "# Port counters: Lid 936 port 1\nSymbolErrors:....................9\nLinkRecovers:....................2\n"
    found = fabric("perfquery", PERFQUERY, old)
    assert [one.device for one in found.port_counters] == ["lid 7", "lid 936"]
    assert dict(found.port_counters[1].counters) == {"symbol_error": 9, "link_error_recovery": 2}
    with pytest.raises(ParseError, match="also in another file"):
        fabric("perfquery", PERFQUERY, PERFQUERY)


def test_a_fabric_without_errors() -> None:
    clean = IBQUERYERRORS[IBQUERYERRORS.index("\n## Summary") :]
    found = fabric("ibqueryerrors", clean)
    assert found.findings == () and "226 ports checked" in found.facts["checked"]


def test_states_are_joined_to_the_topology() -> None:
    net = FatTree(leaves=2, nodes=2, spines=1).ibnetdiscover()
    texts = {"ibqueryerrors": IBQUERYERRORS, "ibnetdiscover": net, "ibswinfo": IBSWINFO}
    found = read_fabrics({kind: [FabricText(kind, text.encode())] for kind, text in texts.items()})
    assert found.sources == ("ibnetdiscover", "ibqueryerrors", "ibswinfo")
    assert (len(found.switches), len(found.links)) == (3, 6)
    (leaf,) = (switch for switch in found.switches if switch.facts)
    assert (leaf.name, leaf.level, leaf.facts["PSU1 DC power"]) == ("leaf-0-0", 1, "ERROR")
    by_rule = rules(found)
    assert by_rule[ERRORS].devices == ("leaf-0-0 port 2",) and by_rule[EVENTS].devices == ("n00002 mlx5_0 port 1",)


def test_an_adapter_is_the_same_by_the_guid_of_its_port() -> None:
    """ibnetdiscover has the GUID of the adapter, ibqueryerrors that of the port, which may be one more."""
    net = FatTree(leaves=2, nodes=2, spines=1).ibnetdiscover()
    both = {"ibnetdiscover": net, "ibqueryerrors": IBQUERYERRORS.replace("0x100002", "0x100004")}
    both["ibqueryerrors"] = both["ibqueryerrors"].replace("n00002", "n00003")
    found = read_fabrics({kind: [FabricText(kind, text.encode())] for kind, text in both.items()})
    assert len(found.adapters) == 4 and found.port_counters[-1].device == "H-0000000000100003" and not found.unread
    both["ibqueryerrors"] = IBQUERYERRORS.replace("0x100002", "0x900000")
    other = read_fabrics({kind: [FabricText(kind, text.encode())] for kind, text in both.items()})
    assert "1 device of ibqueryerrors not in ibnetdiscover" in other.unread[0]
    assert "no-link" not in {finding.rule for finding in other.findings}


def test_switches_and_their_hardware() -> None:
    found = rules(fabric("ibswinfo", IBSWINFO))
    (finding,) = found.values()
    assert finding.rule == "switch-power-supply" and "PSU1 DC power, PSU1 fan status" in finding.observation
    vitals = rules(fabric("ibswinfo", IBSWINFO_VITALS))
    assert "stopped: fan 2" in vitals["switch-fan", Severity.WARNING].observation
    status = fabric("ibswinfo", IBSWINFO_STATUS)
    assert status.switches[0].id == "file0" and len(status.findings) == 1
    hot = rules(fabric("ibswinfo", IBSWINFO.replace("| 47", "| 107")))
    assert ("switch-hot", Severity.WARNING) in hot
    was = rules(fabric("ibswinfo", IBSWINFO.replace("| 52", "| 107")))
    assert "at an unknown moment" in was["switch-hot", Severity.INFO].observation
    both = fabric("ibswinfo", IBSWINFO, IBSWINFO.replace("1000", "1001").replace("leaf-0-0", "leaf-0-1"))
    assert [switch.name for switch in both.switches] == ["leaf-0-0", "leaf-0-1"]
    assert "MT0000" not in str(both)  # serial numbers are not kept


def test_what_a_fabric_manager_counts() -> None:
    found = fabric("opafabricinfo", OPAFABRICINFO)
    (finding,) = found.findings
    assert (finding.rule, finding.observation) == ("degraded-links", "1 degraded link of 20.")
    newer = OPAFABRICINFO.replace("HFI", "NIC").replace("Degraded", "Slow").replace("ISLs: 4 ", "ISLs Links: 4 ")
    assert fabric("opafabricinfo", newer).facts == found.facts
    standby = rules(fabric("opafabricinfo", OPAFABRICINFO.replace("State: Master", "State: Standby")))
    assert ("subnet-manager", Severity.WARNING) in standby


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("perfquery", PERFQUERY + PERFQUERY, "a second time"),
        ("ibqueryerrors", IBQUERYERRORS.replace("== 250]", "== ]"), "not counters"),
        ("ibswinfo", IBSWINFO.replace("ERROR", "ERRO"), "neither OK nor ERROR"),
        ("ibswinfo", "ports   | 36\n", "no power supply"),
        ("opafabricinfo", OPAFABRICINFO.replace("Number of Links: 20", "Number of Links: 21"), "not as many as"),
        ("opafabricinfo", OPAFABRICINFO.replace("(HFI Links: 1", "(HFI Links: 7"), "1 are not 7 and 0"),
        ("opafabricinfo", OPAFABRICINFO[: OPAFABRICINFO.index("Number of Omitted")], "omitted links is missing"),
    ],
)  # fmt: skip
def test_damage_is_refused(kind: str, text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        fabric(kind, text)


def test_one_guid_twice_does_not_cost_the_whole_fabric() -> None:
    """Two adapters with one GUID: a second switch port leads to the same adapter, or there are two records of it."""
    tree = FatTree(leaves=2, nodes=3, spines=1)
    whole = tree.ibnetdiscover()
    ids = {name: f"H-{number:016x}" for number, name in enumerate(tree.hosts, 0x100000)}
    records = whole.replace(ids["n00004"], ids["n00001"])
    for text in (records, _without_record(records, "n00004")):
        found = fabric("ibnetdiscover", text)
        (finding,) = (one for one in found.findings if one.rule == "guid-shared")
        assert ids["n00001"] in finding.observation and "n00001 mlx5_0" in finding.devices
        assert len(found.links) == len(fabric("ibnetdiscover", whole).links) - 2
        assert "n00000" in found.nodes
    several = records.replace(ids["n00005"], ids["n00002"])
    with pytest.raises(ParseError):  # of two, these may be two dumps
        fabric("ibnetdiscover", several)


def _without_record(text: str, host: str) -> str:
    return "\n\n".join(block for block in text.split("\n\n") if not ("\nCa" in f"\n{block}" and f'# "{host} ' in block))


def test_recorded_outputs() -> None:
    found = sample("ibqueryerrors", "ibqueryerrors-sx6036-ceph.txt")
    assert rules(found)[ERRORS].devices == ("ys23ib4 port 5", "ys23ib4 port 7")
    assert "where it stops" in rules(found)[ERRORS].observation
    assert len(found.port_counters) == 14
    assert sample("perfquery", "perfquery-x-0x7cfe9003003b4b96.txt").findings == ()
    assert set(rules(sample("perfquery", "perfquery-x-0x506b4b03005c2740.txt"))) == {EVENTS, FEW}
    assert len(sample("perfquery", "perfquery-rcv-error-details-4ports.txt").port_counters) == 4
    fans = sample("ibswinfo", "ibswinfo-switch-test1-psu-error.txt")
    assert [finding.rule for finding in fans.findings] == ["switch-fan"] and fans.switches[0].facts["ports"] == "36"
    for name in ("ibswinfo-switch-test3-psu1-error.txt", "ibswinfo-status-psu1-error.txt"):
        assert [finding.rule for finding in sample("ibswinfo", name).findings] == ["switch-power-supply"]


def test_commands(tmp_path: Path) -> None:
    for name, text in {"p": PERFQUERY, "e": IBQUERYERRORS, "s": IBSWINFO, "o": OPAFABRICINFO}.items():
        (tmp_path / name).write_text(text)
    sources = ("--from", "ibqueryerrors=e", "--from", "ibswinfo=s")
    document = answer(seatrial_here("discover", *sources, "--format", "json", cwd=tmp_path), "fabric-1")
    assert document["port_counters"][0]["counters"]["symbol_error"] == 250
    assert document["switches"][0]["facts"]["PSU0 status"] == "OK"
    done = seatrial_here("check", *sources, "--fail-on", "warning", cwd=tmp_path)
    assert done.returncode == 1 and "switch-power-supply" in done.stdout and "link-errors-counted" in done.stdout
    text = seatrial_here("discover", "--from", "opafabricinfo=o", cwd=tmp_path).stdout
    assert "16 adapters, 2 switches, 20 links" in text
    for form in ("text", "svg"):
        assert seatrial_here("discover", "--from", "perfquery=p", "--format", form, cwd=tmp_path).returncode == 0


def test_a_wrong_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(IBSWINFO)
    (tmp_path / "p").write_text(PERFQUERY)
    for given, right in (("ethtool=s", "ibswinfo"), ("iblinkinfo=s", "ibswinfo"), ("lscpu=p", "perfquery")):
        done = seatrial_here("discover", "--from", given, cwd=tmp_path)
        assert done.returncode == 2 and f"the text can be read as {right}: --from {right}=FILE" in done.stderr
    done = seatrial_here("discover", "--from", "perfquery=p", "--from", "lscpu=s", cwd=tmp_path)
    assert done.returncode == 2 and "do not describe one and the same" in done.stderr


def test_several_fabrics_need_a_choice() -> None:
    two = OPAFABRICINFO + OPAFABRICINFO.replace("0:0", "1:2").replace("Number of HFIs: 16", "Number of HFIs: 8")
    with pytest.raises(UsageError, match="2 dumps"):
        fabric("opafabricinfo", two)
    assert read_fabric("opafabricinfo", [FabricText("two", two.encode(), 2)]).facts["adapters"] == "8"
