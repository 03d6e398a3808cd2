"""Takes the pictures of topology drawings for the docs, with headless Chromium.

python docs/topology_drawings.py                          made-up machines with 0, 2, 4, 8 and 16 GPUs
python docs/topology_drawings.py KIND=FILE ... -o DIR     drawings of dumps, as `seatrial discover --from` reads them

The machines of the first form are those of the tests, and none of them is a real one: a caption has to say so. Dumps of
other people are not ours to publish, so the second form never writes into the docs.
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
"""File -> the made-up machine that it shows."""
DARK = ("topology-8-gpus-nvswitch",)
"""Of which there is a picture on a dark ground as well."""


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", metavar="KIND=FILE", help="a dump, with its kind as in --from")
    parser.add_argument("-o", "--output", type=Path, help="folder for the drawings of dumps")
    options = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium was found (Debian: apt install chromium)")
    if bool(options.dumps) != bool(options.output):
        parser.error("dumps need -o DIR, and -o needs dumps")
    drawings = of_dumps(options.dumps) if options.dumps else made_up()
    folder = options.output or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in drawings.items():
        for is_dark in (False, True) if name in DARK else (False,):
            picture = folder / f"{name}{'-dark' if is_dark else ''}.png"
            take(browser, svg, picture, is_dark=is_dark)
            print(picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture)


def made_up() -> dict[str, str]:
    """Name of the picture -> drawing of a made-up machine."""
    sys.path.insert(0, str(ROOT / "tests"))
    from report.drawing_machines import MACHINES  # of the tests: not installed

    from seatrial.report.drawing import machine_svg

    return {name: machine_svg(MACHINES[machine]()) for name, machine in PICTURES.items()}


def of_dumps(arguments: list[str]) -> dict[str, str]:
    """Name of the file -> drawing of the machine that it describes."""
    from seatrial.machine.assemble import assemble
    from seatrial.machine.dumps import Dump, survey_dumps
    from seatrial.report.drawing import machine_svg

    drawings: dict[str, str] = {}
    for argument in arguments:
        kind, _, file = argument.partition("=")
        dump = Dump(kind, file, Path(file).read_bytes())
        drawings[Path(file).name.split(".")[0]] = machine_svg(assemble(survey_dumps([dump])))
    return drawings


def take(browser: str, svg: str, picture: Path, *, is_dark: bool) -> None:
    """Write what a browser shows of a drawing, twice as large for sharp screens."""
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
