"""A node as a tree of files, with clocks and limits that can be set, and GPUs behind a made-up nvidia-smi."""

from __future__ import annotations

import os
from pathlib import Path

CPUFREQ = "sys/devices/system/cpu/cpufreq"
POWERCAP = "sys/class/powercap"
UNCORE = "sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00"
FILES = {
    **{
        f"{CPUFREQ}/policy{k}/{name}": text
        for k in range(4)
        for name, text in {
            "scaling_governor": "powersave",
            "scaling_available_governors": "performance powersave",
            "scaling_min_freq": "800000",
            "scaling_max_freq": "3500000",
            "cpuinfo_min_freq": "800000",
            "cpuinfo_max_freq": "3500000",
            "energy_performance_preference": "balance_performance",
            "energy_performance_available_preferences": "performance balance_performance power",
        }.items()
    },
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    **{f"{UNCORE}/{name}": text for name, text in {"min_freq_khz": "800000", "max_freq_khz": "2400000"}.items()},
    **{
        f"{UNCORE}/initial_{name}": text for name, text in {"min_freq_khz": "800000", "max_freq_khz": "2400000"}.items()
    },
    f"{POWERCAP}/intel-rapl:0/name": "package-0",
    f"{POWERCAP}/intel-rapl:0/constraint_0_power_limit_uw": "270000000",
    f"{POWERCAP}/intel-rapl:0/constraint_0_max_power_uw": "270000000",
    f"{POWERCAP}/intel-rapl:0:0/name": "dram",
}


def plant_node(folder: Path) -> Path:
    """The tree, in a new folder."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")
    return folder


def value(node: Path, name: str) -> str:
    """What a file of the tree holds: its first line, since sysfs has no more."""
    return (node / name).read_text().partition("\n")[0]


def changed(node: Path) -> dict[str, str]:
    """The files that do not have their first value."""
    return {name: text for name in FILES if (text := value(node, name)) != FILES[name]}


GPUS = ("GPU-11111111-aaaa", "GPU-22222222-bbbb")
_TOOL = r"""#!/bin/sh
# Answers as nvidia-smi(1). A GPU is a folder with its power limit, and its locked clock if it has one.
cd "$MADE_UP_GPUS" || exit 9
gpus=$(ls -d GPU-*)
while [ $# -gt 0 ]; do
  case "$1" in
    -i) gpus=$(echo "$2" | tr , ' '); shift ;;
    --query-gpu=*) query=${1#*=} ;;
    -lgc) what=lock; value=$2; shift ;;
    -rgc) what=free ;;
    -pl) what=limit; value=$2; shift ;;
  esac
  shift
done
if [ -n "$what" ] && [ -e denied ]; then
  echo "Setting it for GPU 00000000:17:00.0 failed: Insufficient Permissions"; exit 4
fi
number=0
for gpu in $gpus; do
  case "$what$query" in
    lock) echo "$value" >"$gpu/lock" ;;
    free) rm -f "$gpu/lock" ;;
    limit) echo "$value" >"$gpu/limit" ;;
    uuid,*) echo "$gpu, $number, NVIDIA Made Up, 1980, 100.00, 700.00" ;;
    power.limit) cat "$gpu/limit" ;;
    clocks.gr,*) echo "$(cat "$gpu/clock"), 100"; echo "$gpu" >>looks ;;
    *) echo "unknown option"; exit 2 ;;
  esac
  number=$((number + 1))
done
"""


def plant_gpus(folder: Path) -> dict[str, str]:
    """Variables with which the made-up tool answers for GPUS, each at 1.4 GHz and 700 W."""
    for gpu in GPUS:
        (folder / "gpus" / gpu).mkdir(parents=True)
        (folder / "gpus" / gpu / "limit").write_text("700.00\n")
        (folder / "gpus" / gpu / "clock").write_text("1400\n")
    tool = folder / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(_TOOL)
    tool.chmod(0o755)
    return {"PATH": f"{tool.parent}:{os.environ['PATH']}", "MADE_UP_GPUS": str(folder / "gpus")}


def gpu_settings(variables: dict[str, str]) -> list[str]:
    """The locked clock and the limit of each GPU."""
    gpus = [Path(variables["MADE_UP_GPUS"]) / gpu for gpu in GPUS]
    locks = [(gpu / "lock").read_text().strip() if (gpu / "lock").exists() else "free" for gpu in gpus]
    return [f"{lock} {(gpu / 'limit').read_text().strip()}" for gpu, lock in zip(gpus, locks, strict=True)]
