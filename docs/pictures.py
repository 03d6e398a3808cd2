"""Takes the screenshots of the docs, with headless Chromium.

python docs/pictures.py seatrial-results/report.html     trial: the top of the page, the figures
python docs/pictures.py --profile page.html              profile: the top of the page
python docs/pictures.py                                  fictitious machines with 0, 2, 4, 8 and 16 GPUs

The last form uses the machines of the tests. Nothing was measured on them, so their pages show the drawing,
findings, the matrix and the bindings, but no figures. The machine name in the image says that they are fictitious.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from seatrial.model.machine.machine import Affinity, DeviceKind, Machine

ROOT = Path(__file__).resolve().parent.parent
IMAGES = Path(__file__).resolve().parent / "images"
OF_A_TRIAL = {"page": "", "figures": "header, section:not(#m1-figures) { display: none !important }"}
"""Image name -> CSS that hides everything else."""
MADE_UP = {
    "page-0-gpus": "cpu_server",
    "page-2-gpus": "two_gpus",
    "page-4-gpus": "four_behind_a_switch",
    "page-8-gpus": "eight_with_adapters",
    "page-16-gpus": "sixteen_with_switches",
}
"""Image name -> the fictitious machine that it shows."""
ONLY_THE_NODE = ".facts, nav, .panel:not(.findings, .node), footer { display: none !important }"
WIDTH, HEIGHT = 1280, 860
PROFILE_HEIGHT = 1260
ROOM_BELOW = 32
MEASURE = (
    "<script>addEventListener('load', () => "
    "{ document.title = `height ${document.querySelector('main').offsetHeight}` })</script></body>"
)


def main() -> None:
    """Take the screenshots."""
    is_profile = sys.argv[1:2] == ["--profile"]
    if len(sys.argv) > 2 + is_profile or sys.argv[1:] in (["-h"], ["--help"], ["--profile"]):
        raise SystemExit(__doc__)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium not found (Debian: apt install chromium)")
    IMAGES.mkdir(exist_ok=True)
    if is_profile:
        take(browser, Path(sys.argv[2]).read_text(encoding="utf-8"), IMAGES / "profile.png", PROFILE_HEIGHT)
    elif len(sys.argv) == 2:
        page = Path(sys.argv[1]).read_text(encoding="utf-8")
        for name, style in OF_A_TRIAL.items():
            take(browser, styled(page, style), IMAGES / f"{name}.png", HEIGHT)
    else:
        for name, page in fictitious_pages().items():
            shown = styled(page, ONLY_THE_NODE)
            take(browser, shown, IMAGES / f"{name}.png", height_of(browser, shown))


def fictitious_pages() -> dict[str, str]:
    """Image name -> page of a fictitious machine."""
    sys.path.insert(0, str(ROOT / "tests"))
    from report.drawing_machines import MACHINES  # part of the tests, not installed

    from seatrial.analysis.rules import findings
    from seatrial.machine.paths import pci_paths
    from seatrial.model.study.result import Trial
    from seatrial.report.pages.page import page

    pages: dict[str, str] = {}
    for name, of in MADE_UP.items():
        machine = with_affinity(MACHINES[of]())
        reported = {(path.a, path.b) for path in machine.paths}
        machine = replace(
            machine,
            name=f"{machine.name}, a fictitious machine",
            links=tuple(replace(link, measured_Bps=None) for link in machine.links),
            paths=(*machine.paths, *(p for p in pci_paths(machine.devices) if (p.a, p.b) not in reported)),
        )
        pages[name] = page([Trial(machine, (), findings(machine, ()), (), {})])
    return pages


def with_affinity(machine: Machine) -> Machine:
    """The machine with NUMA nodes and CPU affinity added to each device, as discovery adds them."""
    node_of = {
        device.id: next((d.numa for d in machine.ancestors(device) if d.numa is not None), device.numa)
        for device in machine.devices
    }
    devices = tuple(replace(device, numa=node_of[device.id]) for device in machine.devices)
    cpus: dict[int | None, list[int]] = {}
    for cpu, pu in machine.pus.items():
        cpus.setdefault(node_of[pu.id], []).append(cpu)
    ends = [device for device in devices if device.kind in (DeviceKind.GPU, DeviceKind.NIC) and device.numa is not None]
    affinity = tuple(Affinity(device.id, tuple(sorted(cpus.get(device.numa, ()))), device.numa) for device in ends)
    return replace(machine, devices=devices, affinity=affinity, allowed_cpus=tuple(sorted(machine.pus)))


def styled(page: str, style: str) -> str:
    """The page with added CSS."""
    return page.replace("</head>", f"<style>{style}</style></head>", 1)


def height_of(browser: str, page: str) -> int:
    """Height of the content in pixels."""
    done = shoot(browser, page.replace("</body>", MEASURE, 1), "--dump-dom")
    found = re.search(r"<title>height (\d+)</title>", done)
    if found is None:
        raise SystemExit("Chromium did not report the height of the page")
    return int(found[1]) + ROOM_BELOW


def take(browser: str, page: str, picture: Path, height: int) -> None:
    """Write one screenshot."""
    shoot(browser, page, f"--window-size={WIDTH},{height}", f"--screenshot={picture}")
    print(picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture)


def shoot(browser: str, page: str, *arguments: str) -> str:
    """Run the browser on a page, and return its output."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / "page.html"
        shown.write_text(page, encoding="utf-8")
        command = [browser, *sandbox, *options, f"--user-data-dir={folder}/profile", *arguments, shown.as_uri()]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
