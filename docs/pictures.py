"""Makes the pictures of README and docs anew, with headless Chromium.

python docs/pictures.py                      the drawing of a fictitious machine of the tests
python docs/pictures.py seatrial-results     also the page of a trial, its figures, and the page of a profile

A results folder gives the same pictures each time, with the same Chromium and fonts. To measure one:
`seatrial run --budget 5min`, then `seatrial profile --results seatrial-results -- mpirun -n 2 PROGRAM`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
DRAWINGS = {"topology-8-gpus-nvswitch": "eight_with_adapters"}
"""Image -> the fictitious machine of the tests that it shows."""
WIDTH = 1280
PARTS = {
    "page": ("article:not(:last-of-type), .masthead", 860),
    "figures": ("article:not(:last-of-type), .masthead, .facts, header, section:not(.figures), footer", 860),
    "profile": (".masthead, article:not(#p1-top), footer", 1260),
}
"""Image -> (what of the page of a results folder is hidden, the height in pixels)."""


def main() -> None:
    """Make the pictures."""
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        raise SystemExit(__doc__)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium not found (Debian: apt install chromium)")
    for name, svg in drawings().items():
        size = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', svg)
        if size is None:
            raise SystemExit(f"{name}: the drawing has no size")
        width, height = (round(float(number) + 0.5) for number in size.groups())
        take(browser, svg, "svg", IMAGES / f"{name}.png", (width, height), scale=2)
    if len(sys.argv) == 2:
        html = page_of(Path(sys.argv[1]))
        for name, (hidden, height) in PARTS.items():
            style = (
                f"{hidden} {{ display: none !important }} article {{ border: 0 !important; padding-top: 0 !important }}"
            )
            shown = html.replace("</head>", f"<style>{style} article {{ margin: 0 !important }}</style></head>", 1)
            take(browser, shown, "html", IMAGES / f"{name}.png", (WIDTH, height))


def drawings() -> dict[str, str]:
    """Image -> drawing of a fictitious machine."""
    sys.path.insert(0, str(ROOT / "tests"))
    from report.drawing_machines import MACHINES  # part of the tests, not installed

    from seatrial.report.drawing import machine_svg

    return {name: machine_svg(MACHINES[machine]()) for name, machine in DRAWINGS.items()}


def page_of(results: Path) -> str:
    """The page of a results folder, without links to its records."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        subprocess.run([sys.executable, "-m", "seatrial", "report", "-q", results, "-o", page], check=True)
        return page.read_text(encoding="utf-8")


def take(browser: str, content: str, kind: str, picture: Path, size: tuple[int, int], scale: int = 1) -> None:
    """Write one screenshot of a file of this kind, on a light page, `scale` pixels for each of `size`."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"shown.{kind}"
        file.write_text(content, encoding="utf-8")
        command = [
            *(browser, *sandbox, "--headless", "--disable-gpu", "--hide-scrollbars"),
            *("--blink-settings=preferredColorScheme=1", f"--force-device-scale-factor={scale}"),
            *(f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}"),
            *(f"--screenshot={picture}", file.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
