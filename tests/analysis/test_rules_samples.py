"""What the rules say of real machines: just what an expert would, and nothing beside it.

The samples are other people's data and stay outside the repository: without them these tests are skipped.
"""

from __future__ import annotations

import json

import pytest
from analysis.sound_findings import unsound
from published_schemas import check
from shared_samples import DUMPS, MISREAD, TOPOLOGY

from seatrial.analysis.rank_layout import bindings
from seatrial.analysis.rules import findings
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import Dump, survey_dumps
from seatrial.machine.live import discover_live
from seatrial.model.machine.fact import Finding
from seatrial.model.machine.machine import Machine
from seatrial.report.documents.check import check_document
from seatrial.report.text.check import check_text
from seatrial.report.text.terminal import PLAIN

KINDS = {
    "hwloc_": "hwloc-xml",
    "smi-topo-p2p_": "nvidia-smi-p2p",
    "smi-topo_": "nvidia-smi-topo",
    "rocm-smi_": "rocm-smi-topo",
    "nccl_": "nccl-xml",
    "rccl_": "nccl-xml",
    "lspci-vv": "lspci-vv",
    "dmi_": "dmidecode",
}
NOTHING: frozenset[str] = frozenset()


def machine_of(name: str, pick: int | None = None) -> Machine:
    path = next((folder / name for folder in (TOPOLOGY, MISREAD) if (folder / name).exists()), TOPOLOGY / name)
    if not path.exists():
        pytest.skip(f"needs {path}, which is not part of the repository")
    kind = next(kind for prefix, kind in KINDS.items() if name.startswith(prefix))
    return assemble(survey_dumps([Dump(kind, name, path.read_bytes(), pick)]))


def said(machine: Machine) -> dict[str, Finding]:
    """Rule -> its one finding; that nobody told the memory modules is no news in these dumps."""
    found = [finding for finding in findings(machine, ()) if finding.rule != "memory-modules-unknown"]
    assert len({finding.rule for finding in found}) == len(found), "what repeats is one finding"
    return {finding.rule: finding for finding in found}


@pytest.mark.parametrize(
    ("name", "pick", "rules"),
    [
        ("hwloc_16intel64-manyVFs.xml.txt", None, NOTHING),
        (
            "hwloc_24em64t-2n6c2t-pci.xml.txt",
            None,
            {"adapter-far-from-gpu", "smt-on", "numa-node-without-devices"},
        ),
        ("hwloc_96em64t-4n4d3ca2co-pci.xml.txt", None, NOTHING),
        ("hwloc_linux_40intel64-2g2n4c+pcilocality.xml.txt", None, NOTHING),
        ("hwloc_linux_nvidia-dgx-gb10.xml.txt", None, NOTHING),
        ("hwloc_nvidiaDGX2.xml.txt", None, {"gpus-share-uplink"}),
        ("smi-topo_v100_dgx1_4xmlx5.txt", None, {"gpu-links-uneven", "gpus-across-numa-nodes"}),
        ("smi-topo_v100_8x_NIC0_numa_NODE.txt", None, {
            "adapter-far-from-gpu", "gpu-links-uneven", "gpus-across-numa-nodes",
        }),
        ("smi-topo_h100_hgx_8nic_legend_offset_sglang-env.txt", None, NOTHING),
        ("smi-topo_a100_hgx_10nic_legend_litgpt.txt", None, {"adapter-near-no-gpu", "paths-contradict-numa"}),
        ("smi-topo_rtx4090_8x_2nic_go-gpuallocator-17.txt", None, {
            "adapter-far-from-gpu", "gpus-across-numa-nodes", "paths-contradict-numa",
        }),
        ("smi-topo_gb200_gpunuma_sglang11208.txt", None, NOTHING),
        ("dmi_SYS-511E-WR_757BDADF0B5C.txt", None, {"memory-unbalanced"}),
        ("smi-topo_a100_polaris_header-no-leading-tab.txt", None, {"adapter-far-from-gpu"}),
        ("smi-topo_p100pcie_comet_mlx4_SOC.txt", None, {"adapter-far-from-gpu", "gpus-across-numa-nodes"}),
        ("smi-topo_a100_cgroup_partial-affinity_NODE-PIX-PHB.txt", None, {"adapter-far-from-gpu", "affinity-cut"}),
        ("smi-topo_k80_2boards_mlx4_microway.txt", None, NOTHING),
        ("smi-topo_single_gb10.txt", None, NOTHING),
        ("smi-topo-p2p_h100_OK_and_L4_CNS_stas00.txt", 1, NOTHING),
        ("smi-topo-p2p_h100_OK_and_L4_CNS_stas00.txt", 2, {"gpus-without-peer-access"}),
        ("smi-topo-p2p_5090_GNS_club3090-1229.txt", None, {"gpus-without-peer-access"}),
        ("rocm-smi_showtopotype_8gpu_xgmi_litgpt.txt", None, NOTHING),
        ("lspci-vvd10de_a6000_neuropoly.md.txt", None, {"link-below-capability"}),
        ("lspci-vv_rendered_tree-asus-p6t6.txt", None, NOTHING),
        ("dmi_dell-c6520_16of16_icx.txt", None, NOTHING),
        ("dmi_dell-r740_12of24_balanced_2933.txt", None, NOTHING),
        ("dmi_lenovo-sr650v2_16of32_icx.txt", None, NOTHING),
        ("dmi_dell-r740_8of24_unbalanced.txt", None, {"memory-unbalanced"}),
        ("dmi_lenovo-sr650_16of24_unbalanced.txt", None, {"memory-unbalanced"}),
        ("dmi_dell-r7525_8of32_epyc.txt", None, {"memory-unbalanced"}),
    ],
)  # fmt: skip
def test_just_what_an_expert_would_say(name: str, pick: int | None, rules: set[str]) -> None:
    assert set(said(machine_of(name, pick))) == set(rules)


def test_sixteen_gpus_behind_four_uplinks() -> None:
    finding = said(machine_of("hwloc_nvidiaDGX2.xml.txt"))["gpus-share-uplink"]
    assert len(finding.devices) == 16
    assert finding.observation.startswith("4 GPUs (gpu-0 to gpu-3) share one uplink of 15.8 GB/s: 3.94 GB/s each")


def test_idle_gpus_are_one_note() -> None:
    finding = said(machine_of("lspci-vvd10de_a6000_neuropoly.md.txt"))["link-below-capability"]
    assert len(finding.devices) == 4 and finding.severity.value == "info" and finding.loss is None


def test_a_cut_affinity_is_bound_to_nowhere() -> None:
    found = bindings(machine_of("smi-topo_a100_cgroup_partial-affinity_NODE-PIX-PHB.txt"))
    assert [binding.cpus for binding in found[:4]] == [(0,), (0,), None, None]
    assert [binding.numactl for binding in found[2:4]] == [None, None]


def check_answer(machine: Machine) -> None:
    """Valid by the schema, nothing overlong but commands, no escape codes."""
    found, places = findings(machine, ()), bindings(machine)
    assert unsound(machine) == []
    document = json.loads(json.dumps(check_document(found, places), allow_nan=False))
    check(document, "check-1")
    text = check_text(found, places)
    assert "\x1b" not in text
    assert all(len(line) <= PLAIN.width or "numactl" in line for line in text.splitlines())


@pytest.mark.parametrize("prefix", KINDS)
def test_every_sample_gives_an_answer(prefix: str) -> None:
    names = [name for name in DUMPS[KINDS[prefix]] if name.startswith(prefix)]
    names = [name for name in names if prefix == "lspci-vv" or "and_" not in name]  # two matrices in one file: above
    missing = [name for name in names if not (TOPOLOGY / name).is_file()]
    assert names
    for name in names:
        if name not in missing:
            check_answer(machine_of(name))
    if missing:
        pytest.skip(f"those that are here have an answer; not here: {', '.join(missing)}")


MISREAD_DUMPS = (
    "dmi_PRIMERGY-RX2450-M2_6F7BBA6E51B5.txt",
    "dmi_SYS-511E-WR_757BDADF0B5C.txt",
    "dmi_grace_megarac.txt",
    "hwloc_64intel64-heteromem.xml",
    "hwloc_cxlmem+dax.v3.xml",
    "hwloc_fakepcilocalities.xml",
    "hwloc_gh200.xml",
    "lspci-vv_qemu-2numa-switch-2nvme.txt",
    "rocm-smi_showtopo_4_pcie_3hops.txt",
    "smi-topo_6gpu_ansi.txt",
    "smi-topo_b200_gpu2_off_nvlink.txt",
    "smi-topo_gb200_gpunuma_sglang11208.txt",
)


@pytest.mark.parametrize("name", MISREAD_DUMPS)
def test_machines_that_were_read_wrong_have_sound_findings(name: str) -> None:
    check_answer(machine_of(name))


def test_this_machine_gives_an_answer() -> None:
    check_answer(discover_live(use_hwloc=False))
