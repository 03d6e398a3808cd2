"""Formats of which no test reads a real text are labelled so wherever they are listed, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import SHARED_DATA
from shared_samples import DUMPS, MISREAD, TOPOLOGY

from seatrial.applications.readers import readers
from seatrial.errors import UsageError
from seatrial.fabric import dumps as fabric_dumps
from seatrial.fabric.parts import FabricText
from seatrial.machine import dumps
from seatrial.report.documents.list import BuildTools, list_document
from seatrial.report.text.list import tools_text

IMPORTED = {
    "abaqus": "applications/abaqus/std-2DPlaneStrain-sta.txt",
    "amber": "applications/amber/sander26-openmp-jac-own-run-mdinfo.txt",
    "babelstream": "pasted/babelstream/uob_v2.0_power8_raja-xl.txt",
    "calculix": "applications/calculix/ccx2.20-explicit-beamnldype-own-run.txt",
    "castep": "applications/castep/castep-al3x3-16nodes-2048ranks.txt",
    "cfx": "applications/cfx/cfx2025r1-final-iteration-and-tail.txt",
    "deepspeed": "training/deepspeed-v08-running-curr-issue2629.txt",
    "dllogger": "applications/dllogger/horovod-resnet-deeplearningexamples.txt",
    "hf-trainer": "training/hf-trainer-step-runtime-pr7.txt",
    "horovod": "applications/horovod/pytorch-synthetic-8gpu.txt",
    "maxtext": "training/maxtext-step-lines-pr761-pr2232.txt",
    "megatron": "training/megatron-mixtral-16xh100-issue756.txt",
    "mllog": "applications/mllog/mlperf-v5.1-llama2-amd-mi300x.txt",
    "mxnet": "applications/tpu-and-mxnet/mxnet_output.txt",
    "tf-estimator": "applications/tpu-and-mxnet/resnet_output.txt",
    "nanogpt": "training/nanogpt-compile-first-step-pr392.txt",
    "nemo": "training/nemo-lightning-bar-nan-issue7957.txt",
    "superbench": "applications/superbench/results-summary-jsonl.txt",
    "tf-cnn-benchmarks": "applications/tf_cnn_benchmarks/resnet50-fp16-2gpu-xla.txt",
    "torchtitan": "training/torchtitan-rank0-prefix-pr3393.txt",
    "cp2k": "applications/cp2k/cp2k7.1-H2O64-1node-128cores-2threads.txt",
    "dlio": "applications/dlio/summary.json.txt",
    "fio-json": "outputs/fio_seqread_128k.json",
    "fluent": "applications/fluent/performance-timer-two-blocks.txt",
    "gromacs": "outputs/gromacs_water510_2ranks.txt",
    "hoomd": "applications/hoomd/hoomd-quasicrystal-metadata-2015.txt",
    "hpcc": "outputs/hpcc_n2000.txt",
    "hpcg": "outputs/hpcg_openmpi_2x64.txt",
    "hpcg-nvidia": "pasted/hpcg-nvidia/pkb_k80_8ranks.txt",
    "hpl": "applications/hpl/hpl-intel-results.txt",
    "hpl-mxp": "pasted/hpl-mxp/scc25_result_block.txt",
    "hpl-nvidia": "applications/hpl-nvidia/hpl-nvidia25-h100-1gpu.txt",
    "imb": "outputs/imb_pingpong_openmpi_run1.txt",
    "io500": "applications/io500/ddn-2025-result-summary.txt",
    "ior": "applications/ior/ior-hard-read-ddn-2025.txt",
    "lammps": "outputs/lammps_lj4000_2ranks.txt",
    "ls-dyna": "applications/ls-dyna/r16-smp-d-one-cycle-messag.txt",
    "mdtest": "applications/mdtest/mdtest-archer-128nodes.txt",
    "namd": "applications/namd/namd2-tiny.txt",
    "nccl-inspector": "collectives/inspector-v4.jsonl.txt",
    "nccl-tests": "outputs/nccl_allreduce_superbench.txt",
    "nvbandwidth": "outputs/nvbandwidth_results_superbench.txt",
    "nwchem": "applications/nwchem/nwchem-c240-128ranks.txt",
    "openfoam": "applications/openfoam/v2312-simpleFoam-motorBike-6ranks-first5-last10-steps.txt",
    "opensbli": "applications/opensbli/opensbli-tgv512-thomas-short.txt",
    "osu": "outputs/osu_latency_openmpi_run1.txt",
    "prk-dgemm": "outputs/prk_dgemm_run1.txt",
    "psdns": "applications/psdns/m-psdns-16384-512nodes.txt",
    "qe": "applications/qe/nomad-benchmark2-HO-scf.txt",
    "sacct": "schedulers/slurm-sacct-pipe-xdmod.txt",
    "shoc": "outputs/shoc_reduction_pocl.txt",
    "stream": "outputs/stream_run1.txt",
    "thebandwidthbenchmark": "outputs/thebandwidthbenchmark_avx512_run1.txt",
    "vasp": "applications/vasp/vasp6.4.1-CdTe-1node.txt",
    "wrf": "applications/wrf/wrf4.1.4-rsl-out-complete.txt",
}
"""A real text of each kind."""
RUN_BY_TESTS = {"abinit", "likwid-bench", "likwid-topology", "lscpu"}
OURS = {"csv", "records"}
FABRICS = {
    "ibnetdiscover": "ibnetdiscover-single-hca-no-links.txt",
    "iblinkinfo": "iblinkinfo-4cas-1switch-qdr-down-cut.txt",
    "slurm-topology": "slurm-topology-tree-3level-96nodes.conf",
    "perfquery": "perfquery-x-0x506b4b03005c2740.txt",
    "ibqueryerrors": "ibqueryerrors-sx6036-ceph.txt",
    "ibswinfo": "ibswinfo-switch-test1-psu-error.txt",
    "ibstat": "ibstat-mlx5-initializing-no-sm.txt",
    "opainfo": "opainfo-hfi1_0-active-4x25.txt",
    "cxi-stat": "cxi_stat-two-sawtooth-200g.txt",
    "ethtool": "ethtool-jc-default1.txt",
    "ethtool-s": "ethtool-S-mlx5-rx-discards-cut.txt",
}
"""A real dump of each kind that is not among those of machines."""


def of_documentation(use: str) -> set[str]:
    """The kinds that `list` labels."""
    formats = list_document((), BuildTools(()), {})["formats"]
    return {one["kind"] for one in formats if one["use"] == use and one["from_documentation"]}


def test_results_have_a_real_text_or_the_label() -> None:
    without = readers().keys() - IMPORTED.keys() - RUN_BY_TESTS - OURS
    assert without == of_documentation("import")


def test_dumps_have_a_real_one_or_the_label() -> None:
    real = {kind for kind, names in DUMPS.items() if names} | FABRICS.keys() | RUN_BY_TESTS
    kinds = {*dumps.READERS, *fabric_dumps.FABRIC_READERS}
    assert kinds - real == of_documentation("discover")


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the third-party samples (shared/data) are not here")
def test_the_real_texts_are_read() -> None:
    for kind, name in IMPORTED.items():
        assert readers()[kind].read((SHARED_DATA / name).read_bytes()).experiments, kind
    for kind, name in FABRICS.items():
        data = (SHARED_DATA / "fabrics" / name).read_bytes()
        if kind in fabric_dumps.FABRIC_READERS:
            assert fabric_dumps.FABRIC_READERS[kind]([FabricText(name, data)]), kind
        else:
            assert dumps.READERS[kind](data, None), kind
    for kind, names in DUMPS.items():
        assert not names or any(_is_read(kind, folder / name) for folder in (TOPOLOGY, MISREAD) for name in names), kind


def _is_read(kind: str, path: Path) -> bool:
    try:
        return path.is_file() and bool(dumps.READERS[kind](path.read_bytes(), None))
    except UsageError:
        return False


def test_the_lists_for_users_have_the_label() -> None:
    text = (Path(__file__).parents[2] / "docs/what-it-measures.md").read_text()
    labelled = re.findall(r"Format from documentation, no test reads a real \w+: (.*?)\. ?", text.replace("\n", " "))
    named = {kind for one in labelled for kind in re.findall(r"`([a-z0-9-]+)`", one)}
    assert named == of_documentation("import") | of_documentation("discover")
    document = list_document((), BuildTools(()), {})
    shown = re.findall(r"([a-z0-9-]+) \(format from documentation\)", " ".join(tools_text(document).split()))
    assert set(shown) == named
