"""Runs a real browser without a window."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    *("--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
"""Without what a browser does for itself at its start: half of the time that a page takes."""


def find_browser() -> str:
    """Its path, or the test is skipped."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"needs a browser ({' or '.join(_NAMES)}; apt install chromium)")
    return found


def run(browser: str, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the browser says with these arguments; its profile lies in `tmp_path`."""
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [browser, *_QUIET, *as_root, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
