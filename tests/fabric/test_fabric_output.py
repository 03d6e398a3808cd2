"""`seatrial discover` of a fabric: JSON, text and drawing; wrong use is one clear error."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from cli.test_contract import answer
from conftest import SHARED_DATA
from fabric.made_up_fabrics import FatTree

from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.report.text.fabric import fabric_text

SAMPLES = SHARED_DATA / "fabrics"
SMALL = FatTree(leaves=2, nodes=2, spines=1)


def shown(cwd: Path, *sources: str, form: str = "json") -> str:
    options = [word for source in sources for word in ("--from", source)]
    done = seatrial_here("discover", *options, "--format", form, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def document(cwd: Path, *sources: str) -> dict:
    options = [word for source in sources for word in ("--from", source)]
    return answer(seatrial_here("discover", *options, "--format", "json", cwd=cwd), "fabric-1")


def test_every_end_of_a_link_is_a_switch_or_a_node(tmp_path: Path) -> None:
    (tmp_path / "net").write_text(SMALL.ibnetdiscover())
    found = document(tmp_path, "ibnetdiscover=net")
    known = {switch["id"] for switch in found["switches"]} | set(found["nodes"])
    assert {end for link in found["links"] for end in (link["a"], link["b"])} == known
    assert found["nodes"] == SMALL.hosts and {switch["level"] for switch in found["switches"]} == {1, 2}
    assert {len(leaf["nodes"]) for leaf in found["leaves"]} == {2}


def test_text_names_levels_ratios_and_slow_links(tmp_path: Path) -> None:
    (tmp_path / "net").write_text(replace(SMALL, slow={("spine-0-0", "leaf-0-1"): "2xHDR"}).iblinkinfo())
    text = shown(tmp_path, "iblinkinfo=net", form="text")
    for part in ("3 switches, 2 levels, 4 nodes, 6 links", "level 1  2.67 : 1", "spine-0-0 port 2 - leaf-0-1 port 3",
                 "link-below-capability", "n[00002-00003]"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(
    ("tree", "parts"),
    [
        (SMALL, ("spine-0-0", "leaf-0-1", "n[00000-00001]")),
        (
            FatTree(pods=8, leaves=20, nodes=25, spines=10, cores=40),
            ("40 switches, level 3", "8 x 10 switches, level 2", "each: 20 switches, level 1", "25 nodes each"),
        ),
    ],
)
def test_the_drawing_is_folded_where_parts_are_alike(tree: FatTree, parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "net").write_text(tree.ibnetdiscover())
    svg = shown(tmp_path, "ibnetdiscover=net", form="svg")
    text = " ".join(
        "".join(element.itertext()) for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    )
    assert all(part in text for part in parts), text
    assert len(svg) < 40_000


def test_a_slow_link_is_not_folded_away(tmp_path: Path) -> None:
    tree = FatTree(leaves=40, nodes=10, spines=4, slow={("spine-0-2", "leaf-0-17"): "1xHDR"})
    (tmp_path / "net").write_text(tree.iblinkinfo())
    svg = shown(tmp_path, "iblinkinfo=net", form="svg")
    assert "leaf-0-17" in svg and "1 x 1xHDR" in svg and 'class="pcie low"' in svg


def test_check_reports_the_findings_of_a_fabric(tmp_path: Path) -> None:
    slow = replace(SMALL, slow={("spine-0-0", "leaf-0-1"): "2xHDR"})
    (tmp_path / "net").write_text(slow.iblinkinfo())
    done = seatrial_here("check", "--from", "iblinkinfo=net", "--fail-on", "warning", "--format", "json", cwd=tmp_path)
    assert done.returncode == 1
    rules = [finding["rule"] for finding in json.loads(done.stdout)["findings"]]
    assert rules == ["link-below-capability", "mixed-rates"]
    assert seatrial_here("check", "--from", "iblinkinfo=net", "--live", cwd=tmp_path).returncode == 2


def test_hostile_names_do_nothing(tmp_path: Path) -> None:
    (tmp_path / "net").write_text(SMALL.ibnetdiscover().replace("leaf-0-0", "<script>alert(1)</script>\x1b[31m"))
    assert "<script" not in shown(tmp_path, "ibnetdiscover=net", form="svg")
    assert "\x1b" not in shown(tmp_path, "ibnetdiscover=net", form="text")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--from", "ibnetdiscover=net", "--from", "nvidia-smi-topo=net"], "do not describe one and the same"),
        (["--from", "ibnetdiscover=net", "--from", "iblinkinfo=net"], "do not describe one and the same"),
        (["--from", "ibnetdiscover=net", "--live"], "--live is for a machine"),
        (["--from", "ibnetdiscover=gone"], "cannot be read"),
        (["--from", "ibnetdiscover=empty"], "no record of a switch or adapter"),
        (["--from", "ibnetdiscovery=net"], "ibnetdiscover"),
        (["--from", "iblinkinfo=net#2"], "there is no dump 2"),
    ],
)
def test_wrong_use_is_one_error(options: list[str], why: str, tmp_path: Path) -> None:
    (tmp_path / "net").write_text(SMALL.ibnetdiscover())
    (tmp_path / "empty").write_text("")
    done = seatrial_here("discover", *options, "--format", "json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and why in done.stderr and "Traceback" not in done.stderr


def sample(*names: str) -> list[str]:
    for name in names:
        if not (SAMPLES / name).is_file():
            pytest.skip(f"{SAMPLES / name} is not here")
    return [str(SAMPLES / name) for name in names]


def test_a_recorded_fabric_in_two_parts(tmp_path: Path) -> None:
    """40 switches of which 31 carry hosts, 582 adapters, 122 host names, 532 links between switches, all 4xNDR."""
    parts = sample("ibnetdiscover-dgx-ndr-2level-part1-switches.txt", "ibnetdiscover-dgx-ndr-2level-part2-cas.txt")
    found = document(tmp_path, *(f"ibnetdiscover={part}" for part in parts))
    switches = {switch["id"] for switch in found["switches"]}
    between = [link for link in found["links"] if link["b"] in switches]
    assert (len(switches), len(found["nodes"]), len(found["adapters"])) == (40, 122, 582)
    assert (len(between), len(found["links"])) == (532, 532 + 582)
    assert sum(switch["level"] == 1 for switch in found["switches"]) == 31
    assert {(link["width"], link["speed"], link["trained_Bps"]) for link in found["links"]} == {(4, "NDR", 50e9)}
    assert sum(adapter["kind"] == "aggregation" for adapter in found["adapters"]) == 40
    assert not any(finding["rule"] == "link-below-capability" for finding in found["findings"])


@pytest.mark.parametrize(
    ("kind", "name", "switches", "nodes", "links"),
    [
        ("ibnetdiscover", "ibnetdiscover-generated-3level-4ary-EDR.txt", 80, 128, 384),
        ("ibnetdiscover", "ibnetdiscover-p-edr-links-and-down-ports.txt", 4, 3, 4),
        ("ibnetdiscover", "ibnetdiscover-single-hca-no-links.txt", 0, 1, 0),
        ("iblinkinfo", "iblinkinfo-4cas-1switch-qdr-down-cut.txt", 1, 4, 4),
        ("slurm-topology", "slurm-topology-tree-3level-96nodes.conf", 19, 96, 114),
        ("slurm-topology", "slurm-topology-block-dra.conf", 12, 96, 96),
    ],
)
def test_recorded_dumps(kind: str, name: str, switches: int, nodes: int, links: int, tmp_path: Path) -> None:
    found = document(tmp_path, f"{kind}={sample(name)[0]}")
    assert (len(found["switches"]), len(found["nodes"]), len(found["links"])) == (switches, nodes, links)


def test_switches_whose_level_is_not_known_have_a_row_of_their_own() -> None:
    fabric = read_fabric("ibnetdiscover", [FabricText("net", SMALL.ibnetdiscover().encode(), None)])
    first, *others = fabric.switches
    shown = fabric_text(replace(fabric, switches=(replace(first, level=None), *others)))
    (row,) = (line for line in shown.splitlines() if line.startswith("  no level  1 switch"))
    assert row.endswith(f" {first.name}")
