"""GPUs of NVIDIA through a made-up driver library, which the real bindings load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = r"""
#include <string.h>
#include <stdlib.h>
static int gpus[2] = {0, 1};
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 3 ? "Not Supported" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = &gpus[index]; return 0; }
int nvmlDeviceGetName(void *handle, char *name, unsigned length) { strncpy(name, "Made-up GPU", length); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
  *major = *(int *)handle ? 9 : 8; *minor = 0; return 0;
}
int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *pending) { *now = *(int *)handle; return 0; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) { *milliwatts = 310500; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
  *millijoules = 7000; return *(int *)handle ? 3 : 0;
}
"""
READ = """
import json
from msgspec.structs import asdict
from seatrial.probes.power import nvml
from seatrial.probes.power.sources import read_all
print(json.dumps([asdict(one) for one in read_all(nvml.sensors())]))
"""


@pytest.mark.real
def test_gpus_of_a_made_up_driver(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "nvml.c").write_text(LIBRARY)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "nvml.c")], check=True)
    variables = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", READ], env=variables, capture_output=True, text=True, check=True)
    a100, hopper_power, hopper_energy = [one for one in json.loads(done.stdout) if one["name"] != "nvml:gpu0/energy"]
    assert (a100["watts"], a100["window_s"], a100["why"]) == (310.5, 0.0, "samples a quarter of the time (A100)")
    assert (hopper_power["watts"], hopper_power["window_s"], hopper_power["scope"]) == (310.5, 1.0, "device")
    assert hopper_power["why"] == "of the whole GPU: an instance (MIG) has no power"
    assert (hopper_energy["joules"], hopper_energy["usable"]) == (None, False)
    assert hopper_energy["why"] == "the driver reports: Not Supported"
