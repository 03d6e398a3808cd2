"""Libraries of NVIDIA that this machine cannot run, made up in C: compiled into a folder, under the names that programs
load."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

NAMES = {
    "made_up_cuda.c": "libcuda.so.1",
    "made_up_cublas.c": "libcublas.so.13",
    "made_up_nccl.c": "libnccl.so.2",
    "made_up_cuda_mpi.c": "cuda-mpi.so",
}


def compiled(folder: Path, *sources: str, options: Sequence[str] = ()) -> Path:
    """The folder with these libraries; the test is skipped without a compiler."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    for source in sources:
        text = str(Path(__file__).with_name(source))
        made = ["-o", str(folder / NAMES[source])]
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-pthread", *options, text, *made], check=True)
    return folder
