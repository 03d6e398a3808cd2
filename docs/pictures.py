"""Takes the pictures of the docs from a page, with headless Chromium.

    python docs/pictures.py seatrial-results/report.html
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
SIZE = "1280,1180"


def main() -> None:
    """Take the picture of the page's top."""
    page = Path(sys.argv[1]).resolve()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium was found (Debian: apt install chromium)")
    IMAGES.mkdir(exist_ok=True)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
    picture = IMAGES / "page.png"
    subprocess.run([browser, *sandbox, *options, f"--screenshot={picture}", page.as_uri()], check=True)
    print(picture)


if __name__ == "__main__":
    main()
