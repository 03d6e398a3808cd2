"""The environment variables that change how programs run: an allowlist, so that no secret can enter a record.

A name that sounds like a secret is left out even where its prefix is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.secrets import sounds_like_a_secret

_NAMES = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "CXX", "SLURM_JOB_ID", "SLURM_JOB_PARTITION"})
_PREFIXES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTOBLAS_", "MKL_", "BLIS_", "NVPL_", "MALLOC_ARENA", "NUMA_")


def performance_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are kept in records, by name."""
    return {name: value for name, value in sorted(environment.items()) if _is_kept(name)}


def _is_kept(name: str) -> bool:
    return name in _NAMES or (name.startswith(_PREFIXES) and not sounds_like_a_secret(name))
