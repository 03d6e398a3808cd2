"""GPUs of AMD through a made-up library, which the bindings of AMD SMI load."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.machine.files import FileTree
from seatrial.probes.power import amdsmi, hwmon

LIBRARY = r"""
#include <stdint.h>
#include <string.h>
typedef struct {
  uint64_t socket; uint32_t current, average; uint64_t gfx, soc, mem; uint32_t limit; uint64_t rest[18];
} Power;
static long gpus[3] = {0, 1, 2};  /* GPU 0, its second partition, GPU 1 */
int amdsmi_init(uint64_t flags) { return 0; }
int amdsmi_get_socket_handles(uint32_t *n, void **handles) { *n = 1; if (handles) handles[0] = gpus; return 0; }
int amdsmi_get_processor_handles(void *socket, uint32_t *n, void **handles) {
  if (handles) for (uint32_t k = 0; k < *n; k++) handles[k] = &gpus[k];
  *n = 3;
  return 0;
}
int amdsmi_get_gpu_device_bdf(void *handle, uint64_t *bdf) {  /* function: 3, device: 5, bus: 8, domain: 48 bits */
  long gpu = *(long *)handle;
  *bdf = gpu == 2 ? 0xc200 : 0xc100 + gpu;
  return 0;
}
int amdsmi_get_power_info(void *handle, Power *power) {
  memset(power, 0, sizeof *power);
  power->current = *(long *)handle ? 0xFFFF : 540;
  power->average = *(long *)handle ? 291 : 0xFFFF;
  return 0;
}
int amdsmi_get_energy_count(void *handle, uint64_t *count, float *resolution, uint64_t *stamp) {
  *count = 1000000; *resolution = 15.25f; *stamp = 1;
  return *(long *)handle ? 2 : 0;
}
int amdsmi_status_code_to_string(int status, const char **text) { *text = "NOT_SUPPORTED"; return 0; }
"""
READ = """
import json
from msgspec.structs import asdict
from seatrial.probes.power import amdsmi
from seatrial.probes.power.sources import read_all
print(json.dumps([asdict(one) for one in read_all(amdsmi.sensors())]))
"""


def read(folder: Path) -> list[dict[str, object]]:
    variables = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", READ], env=variables, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


@pytest.mark.real
def test_gpus_of_a_made_up_driver(tmp_path: Path) -> None:
    compiler, bindings = shutil.which("cc") or shutil.which("gcc"), importlib.util.find_spec("amdsmi")
    if compiler is None or bindings is None or bindings.origin is None:
        pytest.skip("needs a C compiler and the package amdsmi")
    assert read(tmp_path) == []  # the package prints that it has no library, which is not part of what we print
    wrapper = Path(bindings.origin).with_name("amdsmi_wrapper.py").read_text()
    names = set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", wrapper))
    stubs = (f"int {name}(void) {{ return 2; }}" for name in sorted(names) if f" {name}(" not in LIBRARY)
    (tmp_path / "smi.c").write_text("\n".join([LIBRARY, *stubs]))
    library = tmp_path / "libamd_smi.so"
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "smi.c")], check=True)
    power, energy, other_power, other_energy = read(tmp_path)
    assert (power["name"], power["watts"], power["scope"]) == ("amdsmi:gpu0/power", 540.0, "device")
    assert (energy["joules"], energy["usable"]) == (15.25, True)
    assert (other_power["name"], other_power["watts"]) == ("amdsmi:gpu1/power", 291.0)
    assert other_power["of"] == "GPU 1 (0000:c2:00.0)"
    assert not other_energy["usable"]
    assert str(other_energy["why"]).startswith("the driver reports: ")


def test_a_gpu_is_the_same_in_hwmon(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/hwmon/hwmon3"
    folder.mkdir(parents=True)
    (folder / "name").write_text("amdgpu\n")
    (folder / "power1_average").write_text("90000000\n")
    (folder / "device").symlink_to("../../../0000:C1:00.0")
    (shown,) = hwmon.sensors(FileTree(tmp_path))
    assert shown.whole == "GPU 0000:c1:00.0"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"current_socket_power": "N/A", "average_socket_power": 90}, {"watts": 90.0}),
        ({"current_socket_power": 0, "average_socket_power": 4294967295}, {}),
        ({}, {}),
    ],
)
def test_what_has_no_power(answer: dict[str, object], found: dict[str, float]) -> None:
    assert amdsmi._watts(answer) == found
