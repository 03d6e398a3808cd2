"""The third-party samples that tests read by the dozen. shared/data, beside the checkout, may hold others, too."""

from __future__ import annotations

from conftest import SHARED_DATA

TOPOLOGY = SHARED_DATA / "topology"
MISREAD = SHARED_DATA / "topology-misread"
OUTPUTS = SHARED_DATA / "outputs"

DUMPS: dict[str, tuple[str, ...]] = {
    "hwloc-xml": (
        "hwloc_16intel64-manyVFs.xml.txt",
        "hwloc_24em64t-2n6c2t-pci.xml.txt",
        "hwloc_96em64t-4n4d3ca2co-pci.xml.txt",
        "hwloc_cxlmem+dax.v2.xml.txt",
        "hwloc_linux_32em64t-2n8c+dax+nvme+mic+dimms.xml.txt",
        "hwloc_linux_40intel64-2g2n4c+pcilocality.xml.txt",
        "hwloc_linux_nvidia-dgx-gb10.xml.txt",
        "hwloc_nvidiaDGX2.xml.txt",
    ),
    "nccl-xml": (
        "nccl_aws_p4de-24xl-topo.xml.txt",
        "nccl_azure_ncv4-topo.xml.txt",
        "nccl_azure_ndv2-topo.xml.txt",
        "nccl_azure_ndv4-topo.xml.txt",
        "rccl_topo_4p1h.xml.txt",
        "rccl_topo_4p4h.xml.txt",
        "rccl_topo_8p6l_6nic.xml.txt",
        "rccl_topo_8p_90a.xml.txt",
        "rccl_topo_8p_940vm.xml.txt",
        "rccl_topo_8p_pcie_2nic.xml.txt",
        "rccl_topo_8p_rome_n4.xml.txt",
        "rccl_topo_8p_ts1_n4.xml.txt",
    ),
    "lspci-vv": (
        "lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt",
        "lspci-vv_rendered_cap-dpc.txt",
        "lspci-vv_rendered_cap-exp-lnkcap2.txt",
        "lspci-vv_rendered_cap-pcie-2.txt",
        "lspci-vv_rendered_tree-asus-p6t6.txt",
        "lspci-vv_rendered_tree-fujitsu-p8010.txt",
        "lspci-vvd10de_a6000_neuropoly.md.txt",
    ),
    "lspci-tree": (
        "lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt",
        "lspci-tv_rendered_tree-asus-p6t6.txt",
        "lspci-tv_rendered_tree-fujitsu-p8010.txt",
    ),
    "dmidecode": (
        "dmi_dell-c6520_16of16_icx.txt",
        "dmi_dell-c6525_8of16_epyc.txt",
        "dmi_dell-r740_12of24_2400.txt",
        "dmi_dell-r740_12of24_balanced_2933.txt",
        "dmi_dell-r740_8of24_unbalanced.txt",
        "dmi_dell-r740_mixed-4x16+6x64.txt",
        "dmi_dell-r750_16of32_icx.txt",
        "dmi_dell-r7525_16of32_epyc_2666.txt",
        "dmi_dell-r7525_8of32_epyc.txt",
        "dmi_hpe-dl380g10_12of24_balanced.txt",
        "dmi_hpe-dl380g11_8of32_spr.txt",
        "dmi_hpe-dl385g10pv2_32of32_epyc.txt",
        "dmi_lenovo-sr650_16of24_unbalanced.txt",
        "dmi_lenovo-sr650v2_12of32_icx.txt",
        "dmi_lenovo-sr650v2_16of32_icx.txt",
        "dmi_supermicro-x11dpi_12of16.txt",
    ),
    "nvidia-smi-topo": (
        "lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt",
        "smi-topo_2gpu_NV1_litgpt.txt",
        "smi-topo_2gpu_NV2_and_PHB_numaNA_stas00.txt",
        "smi-topo_4gpu_PHB_SOC_mlx4_tf-gdr.txt",
        "smi-topo_4gpu_PHB_nonvlink_litgpt.txt",
        "smi-topo_a100_and_h100_8x_reformatted_stas00.txt",
        "smi-topo_a100_cgroup_partial-affinity_NODE-PIX-PHB.txt",
        "smi-topo_a100_hgx_10nic_legend_litgpt.txt",
        "smi-topo_a100_polaris_header-no-leading-tab.txt",
        "smi-topo_a100pcie_della_and_power9_traverse.txt",
        "smi-topo_dgx1-p100_jammed-header_SOC.txt",
        "smi-topo_h100_8x_HT-split-affinity_stas00.txt",
        "smi-topo_h100_hgx_8nic_legend_offset_sglang-env.txt",
        "smi-topo_k80_2boards_mlx4_microway.txt",
        "smi-topo_p100pcie_comet_mlx4_SOC.txt",
        "smi-topo_rtx4090_8x_2nic_go-gpuallocator-17.txt",
        "smi-topo_single_MISSING-affinity_wsl_sglang-env.txt",
        "smi-topo_single_gb10.txt",
        "smi-topo_v100_8x_NIC0_numa_NODE.txt",
        "smi-topo_v100_dgx1_4xmlx5.txt",
    ),
    "nvidia-smi-p2p": (
        "smi-topo-p2p_5090_GNS_club3090-1229.txt",
        "smi-topo-p2p_h100_OK_and_L4_CNS_stas00.txt",
    ),
    "rocm-smi-topo": ("rocm-smi_showtopotype_8gpu_xgmi_litgpt.txt",),
    "amd-smi": (),
    "ibstat": (),
}
"""Kind of dump -> its files in the folder TOPOLOGY."""

MISREAD = SHARED_DATA / "topology-misread"

PRINTED = (
    "babelstream_omp_run1.txt",
    "gromacs_water510_2ranks.txt",
    "hpcc_n2000.txt",
    "hpcg_openmpi_2x64.txt",
    "imb_pingpong_openmpi_run1.txt",
    "imb_pingpong_openmpi_run2.txt",
    "lammps_lj4000_2ranks.txt",
    "nccl_allreduce_superbench.txt",
    "nvbandwidth_results_superbench.txt",
    "osu_allreduce_openmpi_run1.txt",
    "osu_allreduce_openmpi_run2.txt",
    "osu_allreduce_openmpi_run3.txt",
    "osu_barrier_openmpi_run1.txt",
    "osu_barrier_openmpi_run2.txt",
    "osu_barrier_openmpi_run3.txt",
    "osu_bw_openmpi_run1.txt",
    "osu_bw_openmpi_run2.txt",
    "osu_bw_openmpi_run3.txt",
    "osu_latency_openmpi_run1.txt",
    "osu_latency_openmpi_run2.txt",
    "osu_latency_openmpi_run3.txt",
    "prk_dgemm_run1.txt",
    "shoc_maxflops_pocl_impossible.txt",
    "shoc_reduction_pocl.txt",
    "stream_run1.txt",
    "stream_run2.txt",
    "thebandwidthbenchmark_avx512_run1.txt",
)
"""What benchmarks and applications printed: files in the folder OUTPUTS."""
