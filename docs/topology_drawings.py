"""Renders the topology drawings of the docs as PNG files, with headless Chromium.

python docs/topology_drawings.py                          fictitious machines with 0, 2, 4, 8 and 16 GPUs
python docs/topology_drawings.py KIND=FILE ... -o DIR     machines from dumps, as in `seatrial discover --from`

The first form uses the machines of the tests. They are fictitious, and captions must say so. Other people's dumps are
not ours to publish, so the second form never writes to the docs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = Path(__file__).resolve().parent / "images"
PICTURES = {
    "topology-0-gpus": "cpu_server",
    "topology-2-gpus": "two_gpus",
    "topology-4-gpus-one-switch": "four_behind_a_switch",
    "topology-4-gpus-mesh": "four_mesh",
    "topology-8-gpus-nvswitch": "eight_with_adapters",
    "topology-8-gpus-cube-mesh": "hybrid_cube_mesh",
    "topology-16-gpus-nvswitch": "sixteen_with_switches",
    "topology-matrix-only": "matrix_only",
    "topology-virtual-machine": "virtual_machine",
}
"""Image file -> the fictitious machine that it shows."""
DARK = ("topology-8-gpus-nvswitch",)
"""Images that also have a version with a dark background."""


def main() -> None:
    """Render the drawings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", metavar="KIND=FILE", help="a dump and its kind, as in --from")
    parser.add_argument("-o", "--output", type=Path, help="folder for the drawings of dumps")
    options = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium not found (Debian: apt install chromium)")
    if bool(options.dumps) != bool(options.output):
        parser.error("give dumps and -o DIR together")
    drawings = dump_drawings(options.dumps) if options.dumps else fictitious_drawings()
    folder = options.output or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in drawings.items():
        for is_dark in (False, True) if name in DARK else (False,):
            picture = folder / f"{name}{'-dark' if is_dark else ''}.png"
            render(browser, svg, picture, is_dark=is_dark)
            print(picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture)


def fictitious_drawings() -> dict[str, str]:
    """Image name -> drawing of a fictitious machine."""
    sys.path.insert(0, str(ROOT / "tests"))
    from report.drawing_machines import MACHINES  # part of the tests, not installed

    from seatrial.report.drawing import machine_svg

    return {name: machine_svg(MACHINES[machine]()) for name, machine in PICTURES.items()}


def dump_drawings(arguments: list[str]) -> dict[str, str]:
    """File name -> drawing of the machine that the dump describes."""
    from seatrial.machine.assemble import assemble
    from seatrial.machine.dumps import Dump, survey_dumps
    from seatrial.report.drawing import machine_svg

    drawings: dict[str, str] = {}
    for argument in arguments:
        kind, _, file = argument.partition("=")
        dump = Dump(kind, file, Path(file).read_bytes())
        drawings[Path(file).name.split(".")[0]] = machine_svg(assemble(survey_dumps([dump])))
    return drawings


def render(browser: str, svg: str, picture: Path, *, is_dark: bool) -> None:
    """Render a drawing in the browser, at twice the size for high-resolution screens."""
    size = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', svg)
    if size is None:
        raise SystemExit(f"{picture.name}: the drawing has no size")
    width, height = (-(-float(number) // 1) for number in size.groups())
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        drawing = Path(folder) / "drawing.svg"
        drawing.write_text(svg, encoding="utf-8")
        command = [
            *(browser, *sandbox, "--headless", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=2"),
            *(f"--user-data-dir={folder}/profile", f"--window-size={width:.0f},{height:.0f}"),
            *(["--blink-settings=preferredColorScheme=0"] if is_dark else []),
            *(f"--screenshot={picture.resolve()}", drawing.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
