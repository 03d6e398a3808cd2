"""The environment variables that affect performance: an allowlist, so that records contain no secrets.

A name that suggests a secret is left out even if its prefix is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.secrets import sounds_like_a_secret

_NAMES = frozenset(
    {
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "CXX", "OPAL_PREFIX", "TMPDIR"),
        *("SLURM_JOB_ID", "SLURM_JOB_PARTITION", "SLURM_MPI_TYPE", "SLURM_CPU_BIND"),
    }
)
_OF_LIBRARIES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTOBLAS_", "MKL_", "BLIS_", "NVPL_", "MALLOC_ARENA", "NUMA_")
_OF_MPI = (
    *("OMPI_", "PMIX_MCA_", "PRTE_MCA_", "MPIR_", "MPICH_", "HYDRA_", "I_MPI_", "MV2_", "MVP_"),
    *("PSM2_", "PSM3_", "FI_", "UCX_", "UCC_", "HCOLL_", "SHARP_"),
)
"""Open MPI with its run-time systems, MPICH and its launcher, Intel MPI, MVAPICH, and their communication libraries."""
_PREFIXES = (*_OF_LIBRARIES, *_OF_MPI)
_PER_RUN = (
    *("OMPI_COMM_", "OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_UNIVERSE"),
    *("OMPI_FILE_LOCATION", "OMPI_ARGV", "OMPI_COMMAND", "OMPI_APP_CTX"),
)
"""Variables that a launcher sets for its ranks: they are not settings, even if seatrial runs under a launcher."""


def starts_of_performance_variables() -> tuple[str, ...]:
    """What the lines of `env` that may have such a variable start with: letters, digits, `_` and `=`."""
    return (*(f"{name}=" for name in sorted(_NAMES)), *_PREFIXES)


def performance_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables kept in records, by name."""
    return {name: value for name, value in sorted(environment.items()) if _is_kept(name)}


def _is_kept(name: str) -> bool:
    return name in _NAMES or (
        name.startswith(_PREFIXES) and not name.startswith(_PER_RUN) and not sounds_like_a_secret(name)
    )
