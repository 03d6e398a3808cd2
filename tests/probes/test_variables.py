"""Which environment variables are kept in records."""

from __future__ import annotations

import pytest

from seatrial.probes.system import performance_variables

KEPT = [
    *("OMP_NUM_THREADS", "OMPI_MCA_btl", "PMIX_MCA_gds", "PRTE_MCA_rmaps", "MPIR_CVAR_NOLOCAL", "MPICH_OFI_NIC_POLICY"),
    *("FI_PROVIDER", "UCX_TLS", "I_MPI_FABRICS", "MV2_ENABLE_AFFINITY", "PSM2_CUDA", "SLURM_MPI_TYPE", "OPAL_PREFIX"),
]
LEFT_OUT = [
    *(
        "HOME",
        "PATH",
        "SLURM_JOB_USER",
        "PMIX_SERVER_URI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_MCA_orte_hnp_uri",
        "UCX_AUTH_FILE",
        "OMPI_MCA_secret",
    ),
    *("I_MPI_HYDRA_KEY", "FI_PSM3_PASSWORD", "MPICH_API_TOKEN", "AWS_SECRET_ACCESS_KEY"),
]


@pytest.mark.parametrize("name", KEPT)
def test_variables_that_affect_programs_are_kept(name: str) -> None:
    assert performance_variables({name: "x"}) == {name: "x"}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_secrets_and_variables_that_a_launcher_sets_are_not_kept(name: str) -> None:
    assert performance_variables({name: "x"}) == {}
