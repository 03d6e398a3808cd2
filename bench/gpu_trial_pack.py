"""The folder that travels to a machine with a GPU: sources, wheels and, with nvcc, CUB's rates (see gpu_trial.py)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_MOST_B = 60 << 20
_PYTHON = "3.12"
_PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (39, 34, 28, 27, 24, 17, 12, 5))
_NEEDED = ("typer", "rich", "jinja2", "ruamel.yaml", "numpy", "msgspec", "nvidia-ml-py", "pyelftools", "mpich")
"""What measuring imports; drawings, tables of files and Redfish are left out."""
_GENERATIONS = (80, 90, 100)


def pack(folder: Path) -> int:
    """Make the folder, which must not exist. Ends the script if something cannot be packed."""
    project = Path(__file__).resolve().parent.parent
    if folder.exists():
        raise SystemExit(f"{folder} exists; name a new folder")
    command = ["git", "-C", str(project), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*command, "src", "bench", "pyproject.toml"], capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / name, target)
    _download(folder / "wheels")
    _build_cub(project / "bench" / "cub_rates.cu", folder / "cub_rates")
    total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {total / (1 << 20):.0f} MiB")
    if total > _MOST_B:
        raise SystemExit(f"that is more than {_MOST_B >> 20} MiB")
    return 0


def _download(wheels: Path) -> None:
    """The wheels for the Python there, with all that they need."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(wheels)]
    command += ["--python-version", _PYTHON, "--implementation", "cp"]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    if subprocess.run([*command, *_NEEDED]).returncode != 0:
        raise SystemExit("the wheels cannot be downloaded")


def _build_cub(source: Path, target: Path) -> None:
    """For the generations of today; left out without nvcc."""
    if (nvcc := shutil.which("nvcc")) is None:
        print("no nvcc: without CUB's rates")
        return
    generations = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in _GENERATIONS]
    if subprocess.run([nvcc, "-O3", "-std=c++17", *generations, "-o", str(target), str(source)]).returncode != 0:
        raise SystemExit(f"{source.name} cannot be built")
