"""Takes the pictures of the docs from a page, with headless Chromium.

python docs/pictures.py seatrial-results/report.html
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
PICTURES = {"page": "", "figures": "header, section:not(#m1-figures) { display: none !important }"}
"""Name -> a style that leaves what the picture is to show."""
SIZE = "1280,860"


def main() -> None:
    """Take the pictures."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    page = Path(sys.argv[1]).resolve()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium was found (Debian: apt install chromium)")
    IMAGES.mkdir(exist_ok=True)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
    for name, style in PICTURES.items():
        picture = IMAGES / f"{name}.png"
        with tempfile.TemporaryDirectory() as folder:
            shown = Path(folder) / "page.html"
            shown.write_text(page.read_text(encoding="utf-8").replace("</head>", f"<style>{style}</style></head>", 1))
            command = [browser, *sandbox, *options, f"--screenshot={picture}", shown.as_uri()]
            subprocess.run(command, check=True, capture_output=True)
        print(picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture)


if __name__ == "__main__":
    main()
