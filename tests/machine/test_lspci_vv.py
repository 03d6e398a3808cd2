"""`lspci -v` and `-vv`: functions, links and bridges, as people paste them, and damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine.lspci_damage import damage
from machine.lspci_machines import random_machine, render_tree, render_vv

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.lspci_tree import read_lspci_tree
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.survey import PciPart, Survey, SurveyLinkRate
from seatrial.model.machine.machine import DeviceKind

DATA = Path(__file__).resolve().parents[1] / "data" / "machine" / "lspci"
SEEDS = st.integers(min_value=0, max_value=1 << 32)
CONTROL = "\tControl: I/O- Mem+ BusMaster+ SpecCycle-\n"
GPU = f"41:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)\n{CONTROL}"
LINK = (
    "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n"
    "\t\tLnkSta:\tSpeed 16GT/s, Width x16\n\t\t\tTrErr- Train-\n"
)
IDLE = LINK.replace("Sta:\tSpeed 16GT/s", "Sta:\tSpeed 2.5GT/s (downgraded)")
EXPRESS = "\tCapabilities: [78] Express (v2) Endpoint, MSI 00\n"


def read(text: str, pick: int | None = None) -> dict[str, PciPart]:
    return by_address(read_lspci_vv(text.encode(), pick))


def by_address(survey: Survey) -> dict[str, PciPart]:
    return {part.address: part for part in survey.pci_parts}


def test_a_switch_with_gpu_adapter_and_virtual_functions() -> None:
    survey = read_lspci_vv((DATA / "switch-vv.md").read_bytes())
    parts = by_address(survey)
    assert {address: part.parent for address, part in parts.items()} == {
        "0000:00": None,
        "0000:3a": None,
        "0000:00:00.0": "0000:00",
        "0000:3a:00.0": "0000:3a",
        "0000:3b:00.0": "0000:3a:00.0",
        "0000:3c:04.0": "0000:3b:00.0",
        "0000:3c:08.0": "0000:3b:00.0",
        "0000:3c:0c.0": "0000:3b:00.0",
        "0000:3d:00.0": "0000:3c:04.0",
        "0000:3e:00.0": "0000:3c:08.0",
        "0000:3f:00.0": "0000:3c:08.0",  # a virtual function of 3e:00.0, on a bus of its own
        "0000:3f:00.1": "0000:3c:08.0",
        "0000:85:00.0": None,  # an endpoint whose port is not in the listing
    }
    adapter, gpu, empty = parts["0000:3e:00.0"], parts["0000:3d:00.0"], parts["0000:3c:0c.0"]
    assert (adapter.kind, adapter.class_id, adapter.numa) == (DeviceKind.NIC, "0207", 0)
    assert (adapter.capable, adapter.trained) == (SurveyLinkRate(8.0, 16), SurveyLinkRate(8.0, 8))
    assert (empty.capable, empty.trained) == (SurveyLinkRate(8.0, 16), None)
    assert (gpu.facts.text("driver"), gpu.facts.text("iommu_group")) == ("nvidia", "35")
    assert gpu.facts.text("pci_name") == "GV100GL [Tesla V100 PCIe 32GB]"
    assert parts["0000:85:00.0"].numa is None
    assert (parts["0000:3a"].class_id, parts["0000:3a"].numa) == ("", 0)
    assert "above 1 functions" in " ".join(survey.unread)


def test_a_port_that_describes_the_link_below_again_has_its_rates() -> None:
    port = (
        "40:01.0 PCI bridge: Advanced Micro Devices Starship Root Port\n"
        + CONTROL
        + "\tBus: primary=40, secondary=41, subordinate=41, sec-latency=0\n"
        + "\tCapabilities: [58] Express (v2) Root Port (Slot+), MSI 00\n"
        + LINK
    )
    card = GPU + EXPRESS + LINK.replace("Speed 16GT/s, Width x16", "Speed 8GT/s, Width x8")
    machine = assemble([read_lspci_vv((port + "\n" + card).encode())])
    links = {link.b: (link.capable_Bps, link.trained_Bps) for link in machine.links}
    assert len(links) == 2 and len(set(links.values())) == 1, "one link, one rate"
    assert all(capable and capable < 8e9 for capable, _ in links.values())


def test_access_control_that_redirects_peers_is_a_fact_of_bridges() -> None:
    parts = by_address(read_lspci_vv((DATA / "switch-vv.md").read_bytes()))
    redirects = {
        address: part.facts["acs_redirects"][0].value
        for address, part in parts.items()
        if "acs_redirects" in part.facts
    }
    assert redirects == {"0000:3a:00.0": True, "0000:3c:04.0": False}
    assert "ReqRedir+" in (parts["0000:3a:00.0"].facts.text("acs") or "")


def test_without_root_links_are_unknown_and_reported_once() -> None:
    survey = read_lspci_vv((DATA / "user-v.txt").read_bytes())
    parts = by_address(survey)
    assert all(part.capable is None and part.trained is None for part in parts.values())
    assert sum("denied" in sentence for sentence in survey.unread) == 1
    accelerator = parts["0000:01:00.0"]
    assert (accelerator.parent, accelerator.class_id, accelerator.numa) == ("0000:00:01.0", "1200", 1)
    assert accelerator.facts.text("vendor_id") == "1002"
    assert accelerator.facts.text("device_id") == "740f"
    assert accelerator.facts.text("subsystem_id") == "0c34"
    assert parts["0000:02:00.0"].parent == "0000:00:01.0"  # a virtual function by its name
    assert parts["0000:7e:03.0"].parent == "0000:7e"  # several devices on a bus: no link leads to it
    assert parts["0000:7f:00.0"].parent is None  # perhaps below a port that is not shown


def test_the_machine_has_its_gpu_below_the_switch() -> None:
    machine = assemble([read_lspci_vv((DATA / "switch-vv.md").read_bytes())])
    gpu = next(device for device in machine.devices if device.pci == "0000:3d:00.0")
    link = next(link for link in machine.links if link.b == gpu.id)
    assert (gpu.kind, gpu.parent) == (DeviceKind.GPU, "pci-0000:3c:04.0")
    assert link.capable_Bps == link.trained_Bps == pytest.approx(8e9 * 16 / 8 * 128 / 130)


@pytest.mark.parametrize(
    ("title", "class_id", "vendor_id", "device_id", "name"),
    [
        ("3D controller [0302]: NVIDIA Corporation GV100GL [Tesla V100] [10de:1db1] (rev a1)", "0302", "10de", "1db1",
         "GV100GL [Tesla V100]"),
        ("0302: 10de:1db1 (rev a1)", "0302", "10de", "1db1", None),
        ("Class 1200: Device 1da3:1020", "1200", "1da3", "1020", None),
        ("Unknown class [1201]: Device [1da3:1020]", "1201", "1da3", "1020", None),
        ("USB Controller: NEC Corporation uPD720200 (rev 03) (prog-if 30 [XHCI])", "0c03", None, None,
         "NEC Corporation uPD720200"),
        ("Bridge: NVIDIA Corporation Device 1af1 (rev a1)", "0680", "10de", "1af1", None),
        ("Contraption: Red Hat, Inc. Virtio console", "0000", "1af4", None, "Virtio console"),
        ("VGA compatible controller: Red Hat, Inc. QXL paravirtual graphic card", "0300", "1b36", None,
         "QXL paravirtual graphic card"),
        ("Non-Essential Instrumentation [1300]: Advanced Micro Devices, Inc. [AMD] Zeppelin (rev 01)", "1300", "1022",
         None, "Zeppelin"),
    ],
)  # fmt: skip
def test_first_lines_of_every_option(
    title: str, class_id: str, vendor_id: str | None, device_id: str | None, name: str | None
) -> None:
    part = read(f"0001:c1:00.0 {title}\n{CONTROL}")["0001:c1:00.0"]
    assert part.class_id == class_id
    assert [part.facts.text(fact) for fact in ("vendor_id", "device_id", "pci_name")] == [vendor_id, device_id, name]
    assert part.facts.text("class_id") == (class_id if class_id != "0000" else None)


@pytest.mark.parametrize(
    ("capable", "trained", "rates"),
    [
        ("Port #0, Speed 16GT/s, Width x16, ASPM L0s L1, Exit Latency L0s <512ns",
         "Speed 2.5GT/s (downgraded), Width x16 (ok)", ((16.0, 16), (2.5, 16))),
        ("Port #0, Speed 32GT/s, Width x16, ASPM not supported",
         "Speed 32GT/s, Width x8 (downgraded)", ((32.0, 16), (32.0, 8))),
        ("Port #2, Speed 5GT/s, Width x2, ASPM L1", "Speed unknown, Width x0 (downgraded)", ((5.0, 2), None)),
        ("Port #0, Speed unknown, Width x63, ASPM unknown", "Speed unknown, Width x63", (None, None)),
        ("Port #0, Speed 8GT/s, Width x8, ASPM L0s",
         "Speed 8GT/s, Width x4, TrErr- Train- SlotClk+", ((8.0, 8), (8.0, 4))),
    ],
)  # fmt: skip
def test_links_of_all_versions_of_lspci(
    capable: str, trained: str, rates: tuple[tuple[float, int] | None, tuple[float, int] | None]
) -> None:
    text = f"{GPU}{EXPRESS}\t\tLnkCap:\t{capable}\n\t\tLnkSta:\t{trained}\n\t\t\tTrErr- Train-\n"
    part = read(text)["0000:41:00.0"]
    assert (part.capable, part.trained) == tuple(SurveyLinkRate(*rate) if rate else None for rate in rates)


@pytest.mark.parametrize(
    ("details", "line"),
    [
        ("\t\tLnkCap:\tPort #0, Speed 16GT/, Width x16, ASPM L1\n", 3),
        ("\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n", 3),
        ("\t\tLnkCap:\tPort #0, Speed 6GT/s, Width x16, ASPM L1\n", 3),
        ("\t\tLnkCap:\tPort #0, Speed 16GT/s, Width 16, ASPM L1\n", 3),
        ("\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x6, ASPM L1\n", 3),
        ("\t\tLnkSta:\tSpeed 16GT/s, Width x5\n\t\t\tTrErr-\n", 3),
        ("\t\tLnkSta:\tSpeed 16GT/s, Width 16\n\t\t\tTrErr-\n", 3),
        ("\t\tLnkSta:\tSpeed 16GT/s, Width x1\n", 3),  # the line with TrErr is cut off, and perhaps a digit
        (f"{EXPRESS}{LINK.replace('Sta:	Speed 16GT/s, Width x16', 'Sta:	Speed 16GT/s, Width x1')}", 5),
        (f"{EXPRESS}{LINK.replace('Sta:	Speed 16GT/s', 'Sta:	Speed 16GT/s (downgraded)')}", 5),
        ("\tBus: primary=00, secondary=4x, subordinate=42, sec-latency=0\n", 3),
        ("\tBus: primary=00, secondary=42\n", 3),
        ("\tBus: primary=00, secondary=44, subordinate=42, sec-latency=0\n", 3),
        ("\tBus: primary=00, secondary=41, subordinate=42, sec-latency=0\n", 3),
        ("\tNUMA node: one\n", 3),
        ("\t\tACSCtl: SrcValid- TransBlk- ReqRe\n", 3),
        ("\tKernel driver in use: nvidia\n\tKernel driver in use: nouveau\n", 4),
        (f"\n{GPU}", 4),
        ("\n42:00.0 VGA compat\n\tControl: I/O-\n", 4),
        ("\n42:00.0 VGA compatible controller: ASPEED Graphics Family [AST\n\tControl: I/O-\n", 4),
        ("\n42:00.0 VGA compatible controller [0300]: ASPEED Technology, Inc. ASPE\n\tControl: I/O-\n", 4),
        ("\n0000:42:00.0 VGA compatible controller: ASPEED\n\tControl: I/O-\n", 4),
        ("\n42:00.0 PCI bridge: Intel Corporation Device 352a\n\tControl: I/O-\n", 4),  # its buses are missing
        ("\n42:00.0 VGA compatible controller: ASPEED\n", 4),  # its details are missing
        ("\n42:00 VGA compatible controller: ASPEED\n\tControl: I/O-\n", 4),
        ("\n\tControl: I/O-\n", 4),
        ("SlotClk+ wrapped\n\t\tDevCtl2: x\n\tCapabilities: [b4] Vendor Specific\n", 3),
    ],
)
def test_damage_is_refused_with_its_first_line(details: str, line: int) -> None:
    text = GPU + details
    with pytest.raises(ParseError) as caught:
        read(text)
    assert (caught.value.tool, caught.value.line) == ("lspci-vv", line)
    assert caught.value.text == text.split("\n")[line - 1]


def test_two_bridges_cannot_lead_to_one_bus() -> None:
    bridge = "00:0{}.0 PCI bridge: Intel Corporation Device 352a\n" + CONTROL
    text = "\n".join(
        bridge.format(device) + "\tBus: primary=00, secondary=01, subordinate=02, sec-latency=0\n" for device in (1, 2)
    )
    with pytest.raises(ParseError, match="two bridges lead to bus 0000:01") as caught:
        read(text)
    assert caught.value.line == 7


def test_a_bridge_that_is_not_set_up_leads_nowhere() -> None:
    text = (
        f"00:1c.0 PCI bridge: Intel Corporation Device 352a\n{CONTROL}"
        "\tBus: primary=00, secondary=00, subordinate=00, sec-latency=0\n\n"
        f"00:1f.0 ISA bridge: Intel Corporation X\n{CONTROL}"
    )
    assert {a: p.parent for a, p in read(text).items() if p.class_id} == {
        "0000:00:1c.0": "0000:00",
        "0000:00:1f.0": "0000:00",
    }


def test_hex_lines_are_skipped_below_text_and_refused_alone() -> None:
    dump = "00: de 10 b0 20 06 04 10 00 a1 00 02 03 10 00 00 00\n100: 02 00 01 25\n"
    assert read(f"{GPU}{EXPRESS}{LINK}{dump}\n42:00.0 Audio device: X Y\n{CONTROL}{dump}")["0000:41:00.0"].capable
    with pytest.raises(ParseError, match="lspci -F FILE -vv") as caught:
        read(f"41:00.0 3D controller: NVIDIA Corporation GA100\n{dump}")
    assert caught.value.line == 2


def test_devices_printed_one_by_one_are_one_listing() -> None:
    text = f"$ lspci -vv -s 41:0\n{GPU}{EXPRESS}{LINK}\n$ lspci -vv -s 3f:0\n{GPU.replace('41:', '3f:')}"
    assert list(read(text)) == ["0000:41:00.0", "0000:3f:00.0"]


def test_a_second_listing_must_be_picked() -> None:
    text = f"idle\n\n{GPU}{EXPRESS}{IDLE}\nbusy\n\n{GPU}{EXPRESS}{LINK}"
    with pytest.raises(UsageError, match="line 3 and line 12"):
        read(text)
    rates = [read(text, pick)["0000:41:00.0"].trained for pick in (1, 2)]
    assert rates == [SurveyLinkRate(2.5, 16), SurveyLinkRate(16.0, 16)]
    with pytest.raises(UsageError, match="no listing of PCI functions 3"):
        read(text, 3)


def test_a_function_twice_among_others_is_damage() -> None:
    other = GPU.replace("41:", "43:")
    with pytest.raises(ParseError, match="second time"):
        read(f"{GPU}\n{other}\nprose\n\n{GPU}\n{GPU.replace('41:', '45:')}")


def test_an_unfinished_last_line_is_ignored() -> None:
    whole, cut = (read_lspci_vv(f"{GPU}\tKernel driver in use: nvidia{end}".encode()) for end in ("\n", ""))
    assert whole.pci_parts[0].facts.text("driver") == "nvidia"
    assert cut.pci_parts[0].facts.text("driver") is None
    assert "may be cut" in " ".join(cut.unread)


def test_grepped_lines_and_plain_lspci_have_no_bridges() -> None:
    plain = read("00:00.0 Host bridge: Intel Corporation X\n41:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n")
    assert (plain["0000:41:00.0"].class_id, plain["0000:41:00.0"].parent) == ("0302", None)
    grepped = read(f"41:00.0 3D controller: NVIDIA Corporation GA100\n{LINK.replace('			TrErr- Train-', '')}")
    assert grepped["0000:41:00.0"].trained == SurveyLinkRate(16.0, 16)


@pytest.mark.parametrize(
    "text",
    ["", "prose only\n", "01:00.0 is the GPU that we look at\n", "$ lspci -vv | grep ACSCtl\n\t\tACSCtl: SrcValid-\n"],
)
def test_text_without_a_listing_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="no listing of PCI functions"):
        read(text)


def test_hostile_text_ends_soon() -> None:
    header = "41:00.0 " + "[" * 50_000 + ": " + " Device" * 50_000
    with pytest.raises(UsageError):
        read(f"{header}\n{CONTROL}")
    many = "".join(
        f"{bus >> 5:04x}:{bus % 32:02x}:{d:02x}.0 RAM memory: X\n{CONTROL}\n" for bus in range(1024) for d in range(32)
    )
    with pytest.raises(UsageError, match="more functions than any machine has"):
        read(many)
    with pytest.raises(UsageError, match="more lines than lspci prints"):
        read("\n" * ((1 << 20) + 1))


@given(SEEDS, st.booleans())
def test_random_machines_are_read_back(seed: int, numbers: bool) -> None:
    machine = random_machine(seed)
    parts = read(render_vv(machine, numbers=numbers))
    assert {a: p.parent for a, p in parts.items() if p.class_id} == machine.parents()
    for function, _ in machine.functions():
        part = parts[function.address]
        assert part.class_id == function.leaf[1]
        assert (part.facts.text("driver") or "") == function.leaf[4]
        assert part.numa == function.numa
        assert [part.capable, part.trained] == [
            SurveyLinkRate(float(rate[0]), rate[1]) if rate else None for rate in (function.capable, function.trained)
        ]


@settings(max_examples=300)
@given(SEEDS)
def test_damaged_listings_are_refused_or_right(seed: int) -> None:
    draw = random.Random(seed)
    machine = random_machine(seed)
    truth = {function.address: (function, parent) for function, parent in machine.functions()}
    how, text = damage(draw, render_vv(machine, numbers=draw.random() < 0.5))
    try:
        parts = read(text)
    except UsageError:
        return
    for part in (part for part in parts.values() if part.class_id):
        function, parent = truth[part.address]
        assert part.parent in (parent, None)
        assert part.class_id == function.leaf[1]
        assert part.capable in (
            SurveyLinkRate(float(function.capable[0]), function.capable[1]) if function.capable else None,
            None,
        )
        # A port's cut "x1" of x16 goes unnoticed: lspci does not say "(downgraded)" of ports.
        if not (function.port in ("Root Port", "Downstream Port") and how in ("truncate", "cut", "paste")):
            rate = SurveyLinkRate(float(function.trained[0]), function.trained[1]) if function.trained else None
            assert part.trained in (rate, None)


@given(SEEDS)
def test_both_forms_of_one_machine_agree(seed: int) -> None:
    machine = random_machine(seed)
    tree = by_address(read_lspci_tree(render_tree(machine).encode()))
    listing = read(render_vv(machine))
    assert {a: p.parent for a, p in tree.items()} == {a: p.parent for a, p in listing.items()}


def test_passed_through_to_a_virtual_machine() -> None:
    parts = read(f"{GPU.replace('41:00.0', '00:1e.0')}{EXPRESS}{LINK}")
    assert parts["0000:00:1e.0"].parent == "0000:00"  # nothing but a host bridge is above bus 0
    parts = read(f"{GPU.replace('41:00.0', '7ec6:00:00.0')}{EXPRESS}{LINK}")
    assert parts["7ec6:00:00.0"].parent == "7ec6:00"


def test_a_bus_in_the_range_of_a_bridge_is_not_a_root_bus() -> None:
    text = (
        f"00:00.0 Host bridge: Intel Corporation Device 09a2\n{CONTROL}\n"
        f"00:01.0 PCI bridge: Intel Corporation Device 352a\n{CONTROL}"
        "\tBus: primary=00, secondary=01, subordinate=02, sec-latency=0\n\n"
        f"02:04.0 3D controller: NVIDIA Corporation Device 20b5\n{CONTROL}\n"
        f"05:04.0 System peripheral: Intel Corporation Device 0998\n{CONTROL}"
    )
    above = {address: part.parent for address, part in read(text).items()}
    assert above["0000:02:04.0"] is None  # a virtual function, or one whose own bridge is not shown
    assert above["0000:05:04.0"] == "0000:05"


def test_addresses_are_those_of_sysfs() -> None:
    text = GPU.replace("41:00.0", "{}:C1:00.0")
    for domain, expected in (("0000", "0000"), ("00000000", "0000"), ("000A", "000a"), ("10000", "10000")):
        assert f"{expected}:c1:00.0" in read(text.format(domain))
