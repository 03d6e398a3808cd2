"""A repository of one package, of a release of Debian whose installation never ends: its dpkg waits."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

SUITE = "waits"
_CONTROL = """\
Package: waits
Version: 1
Architecture: {architecture}
Essential: yes
Priority: required
Maintainer: Nobody <nobody@localhost>
Description: waits while it is installed
"""
_DPKG = "#!/usr/bin/busybox sh\nexec /usr/bin/busybox sleep 600\n"


def make_repository(folder: Path, busybox: Path) -> str:
    """Write it into an existing folder, with a static busybox; its line for sources.list. Raises CalledProcessError,
    OSError."""
    words = ["dpkg", "--print-architecture"]
    architecture = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    control = _CONTROL.format(architecture=architecture)
    package = folder / "package"
    for name in ("DEBIAN", "usr/bin", "proc", "sys", "dev", "tmp", "etc"):
        (package / name).mkdir(parents=True)
    (package / "DEBIAN" / "control").write_text(control)
    (package / "usr/bin/busybox").write_bytes(busybox.read_bytes())
    (package / "usr/bin/busybox").chmod(0o755)
    (package / "usr/bin/dpkg").write_text(_DPKG)
    (package / "usr/bin/dpkg").chmod(0o755)
    subprocess.run(
        ["dpkg-deb", "--build", "-Znone", package, folder / "waits.deb"], stdout=subprocess.DEVNULL, check=True
    )
    data = (folder / "waits.deb").read_bytes()
    index = f"{control}Filename: ./waits.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
    (folder / "Packages").write_text(index)
    digest = hashlib.sha256(index.encode()).hexdigest()
    (folder / "Release").write_text(
        f"Suite: {SUITE}\nCodename: {SUITE}\nArchitectures: {architecture}\nComponents: main\n"
        f"SHA256:\n {digest} {len(index.encode())} Packages\n"
    )
    return f"deb [trusted=yes] copy:{folder} ./"
