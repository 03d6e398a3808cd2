"""lspci's readers on what real machines printed, and on what the lspci that is installed here prints of their bytes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from seatrial.errors import ParseError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.lspci_tree import read_lspci_tree
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.survey import PciPart, Survey, SurveyLinkRate
from seatrial.model.machine.machine import DeviceKind

TOPOLOGY = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"
MACHINES = ("asus-p6t6", "fsl-p2020", "fujitsu-p8010")

pytestmark = pytest.mark.skipif(
    not TOPOLOGY.is_dir(), reason="the third-party samples (shared/data/topology) are not here"
)


def sample(name: str) -> bytes:
    return (TOPOLOGY / name).read_bytes()


def functions(survey: Survey) -> dict[str, PciPart]:
    return {part.address: part for part in survey.pci_parts if part.class_id}


def parents(survey: Survey) -> dict[str, str | None]:
    return {part.address: part.parent for part in survey.pci_parts}


def test_a_workstation_with_a_switch() -> None:
    parts = functions(read_lspci_vv(sample("lspci-vv_rendered_tree-asus-p6t6.txt")))
    assert len(parts) == 53
    above = {address: part.parent for address, part in parts.items()}
    assert above["0000:02:00.0"] == "0000:00:03.0"
    assert above["0000:03:00.0"] == above["0000:03:02.0"] == "0000:02:00.0"
    assert above["0000:04:00.0"] == "0000:03:00.0"
    assert above["0000:06:00.0"] == above["0000:06:00.1"] == "0000:00:07.0"
    assert above["0000:ff:02.0"] == "0000:ff"
    assert sum(parent == "0000:00" for parent in above.values()) == 26
    links = {address: (part.capable, part.trained) for address, part in parts.items()}
    assert links["0000:00:01.0"] == (SurveyLinkRate(5.0, 4), None)  # an empty slot: Width x0
    assert links["0000:00:07.0"] == (SurveyLinkRate(5.0, 16), SurveyLinkRate(2.5, 16))
    assert links["0000:03:00.0"] == (SurveyLinkRate(5.0, 16), SurveyLinkRate(5.0, 8))
    assert links["0000:04:00.0"] == (SurveyLinkRate(5.0, 8), SurveyLinkRate(5.0, 8))
    assert links["0000:06:00.0"] == (SurveyLinkRate(2.5, 16), SurveyLinkRate(2.5, 16))
    assert links["0000:00:14.0"] == (None, None)  # integrated: no link
    assert parts["0000:06:00.0"].class_id == "0300"
    assert parts["0000:06:00.0"].facts.text("vendor_id") == "10de"
    assert [address for address, part in parts.items() if part.kind is DeviceKind.NIC] == [
        "0000:07:00.0",
        "0000:08:00.0",
    ]


def test_a_laptop_with_a_cardbus_bridge() -> None:
    survey = read_lspci_vv(sample("lspci-vv_rendered_tree-fujitsu-p8010.txt"))
    parts = functions(survey)
    assert len(parts) == 22
    assert (parts["0000:1c:03.0"].class_id, parts["0000:1d:00.0"].parent) == ("0607", "0000:1c:03.0")
    assert parts["0000:1c:03.2"].parent == "0000:00:1e.0"
    assert (parts["0000:04:00.0"].parent, parts["0000:04:00.0"].trained) == ("0000:00:1c.0", SurveyLinkRate(2.5, 1))
    assert survey.unread == ()


@pytest.mark.parametrize("machine", ["asus-p6t6", "fujitsu-p8010"])
def test_both_forms_agree_on_every_parent(machine: str) -> None:
    tree = read_lspci_tree(sample(f"lspci-tv_rendered_tree-{machine}.txt"))
    assert parents(tree) == parents(read_lspci_vv(sample(f"lspci-vv_rendered_tree-{machine}.txt")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cap-dpc", {"0000:05:01.0": ("0604", None, SurveyLinkRate(8.0, 4), SurveyLinkRate(8.0, 4))}),
        ("cap-pcie-2", {"0000:01:00.0": ("0200", None, SurveyLinkRate(2.5, 4), SurveyLinkRate(2.5, 4))}),
        (
            "cap-exp-lnkcap2",
            {
                "0000:00:1c.0": ("0604", "0000:00", SurveyLinkRate(8.0, 4), SurveyLinkRate(8.0, 4)),
                "0000:02:00.0": ("0302", "0000:00:1c.0", SurveyLinkRate(8.0, 4), SurveyLinkRate(8.0, 4)),
            },
        ),
    ],
)
def test_single_devices(
    name: str, expected: dict[str, tuple[str, str | None, SurveyLinkRate | None, SurveyLinkRate | None]]
) -> None:
    rendered = functions(read_lspci_vv(sample(f"lspci-vv_rendered_{name}.txt")))
    told = {a: (p.class_id, p.parent, p.capable, p.trained) for a, p in rendered.items()}
    assert {address: told[address] for address in expected} == expected
    # The same machine as an older lspci printed it, with bytes below the text.
    older = functions(read_lspci_vv(sample(f"lspci_pciutils_{name}.txt")))
    assert {a: (p.class_id, p.parent, p.capable, p.trained) for a, p in older.items()} == told


@pytest.mark.parametrize("machine", MACHINES)
def test_bytes_without_text_are_refused_with_advice(machine: str) -> None:
    data = sample(f"lspci_pciutils_tree-{machine}.txt")
    with pytest.raises(ParseError, match="lspci -F FILE -vv") as caught:
        read_lspci_vv(data)
    assert caught.value.line == 2
    with pytest.raises(ParseError, match="no PCI tree"):
        read_lspci_tree(data)


def test_idle_gpus_of_a_subset() -> None:
    survey = read_lspci_vv(sample("lspci-vvd10de_a6000_neuropoly.md.txt"))
    parts = functions(survey)
    assert list(parts) == [f"0000:{bus}:00.{number}" for bus in ("01", "41", "81", "c1") for number in (0, 1)]
    gpus = [part for part in parts.values() if part.class_id == "0300"]
    assert len(gpus) == 4
    assert all((gpu.capable, gpu.trained) == (SurveyLinkRate(16.0, 16), SurveyLinkRate(2.5, 16)) for gpu in gpus)
    assert all((gpu.parent, gpu.facts.text("driver")) == (None, "nvidia") for gpu in gpus)
    assert len(survey.unread) == 1


def test_tree_and_listing_of_one_machine_make_one() -> None:
    data = sample("lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt")
    tree, listing = read_lspci_tree(data), read_lspci_vv(data)
    parts = functions(tree)
    assert len(parts) == 113
    kinds = [part.kind for part in parts.values()]
    assert [kinds.count(kind) for kind in (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)] == [2, 4, 9]
    assert parts["0000:04:10.0"].parent == "0000:03:00.0"
    assert parts["0000:e2:00.0"].parent == "0000:e1:00.0"
    assert list(functions(listing)) == ["0000:c1:00.0", "0000:c2:00.0", "0000:21:00.0", "0000:11:00.0"]
    machine = assemble([listing, tree])
    gpus = {device.pci: device for device in machine.devices if device.kind is DeviceKind.GPU}
    assert {pci: device.parent for pci, device in gpus.items()} == {
        "0000:c1:00.0": "pci-0000:c0:01.1",
        "0000:c2:00.0": "pci-0000:c0:03.1",
    }
    link = next(link for link in machine.links if link.b == gpus["0000:c1:00.0"].id)
    assert link.capable_Bps == pytest.approx(16e9 * 16 / 8 * 128 / 130)
    assert link.trained_Bps == pytest.approx(2.5e9 * 16 / 8 * 8 / 10)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("lspci") is None, reason="lspci (pciutils) is not installed")
@pytest.mark.parametrize("machine", MACHINES)
def test_what_the_installed_lspci_prints(machine: str) -> None:
    def lspci(*options: str) -> bytes:
        command = [str(shutil.which("lspci")), "-F", str(TOPOLOGY / f"lspci_pciutils_tree-{machine}.txt"), *options]
        return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout

    expected = read_lspci_vv(lspci("-vv"))
    count = {"asus-p6t6": 53, "fsl-p2020": 6, "fujitsu-p8010": 22}[machine]
    assert len(functions(expected)) == count
    assert None not in [part.parent for part in functions(expected).values()]
    for options in (("-t",), ("-tv",), ("-tvv",), ("-tnn",), ("-tvn",), ("-tvnn",)):
        assert parents(read_lspci_tree(lspci(*options))) == parents(expected), options
    for options in (("-v",), ("-nnvv",), ("-nvv",), ("-D", "-vvv"), ("-vv", "-xxx")):
        survey = read_lspci_vv(lspci(*options))
        assert parents(survey) == parents(expected), options
        classes = {address: part.class_id for address, part in functions(survey).items()}
        assert classes == {address: part.class_id for address, part in functions(expected).items()}, options
        if "-v" not in options:
            links = {address: (part.capable, part.trained) for address, part in functions(survey).items()}
            assert links == {a: (part.capable, part.trained) for a, part in functions(expected).items()}, options
    numbered = functions(read_lspci_vv(lspci("-nnvv")))
    for address, part in functions(expected).items():  # names give the right numbers
        told = part.facts.text("vendor_id")
        assert told in (None, numbered[address].facts.text("vendor_id"))
