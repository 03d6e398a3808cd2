"""What all tests share: made-up machines, the machine they run on, and one cache of built programs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from seatrial.model.machine import Machine

settings.register_profile("shared machines", deadline=None)  # how long an example takes tells nothing there
settings.load_profile("shared machines")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


_CACHE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Programs are built once for all tests, and never found in the user's cache: nor are wheels of MPI that lie there,
    over which tests would be collected."""
    config.stash[_CACHE] = Path(tempfile.mkdtemp(prefix="seatrial-cache-"))
    os.environ["SEATRIAL_CACHE"] = str(config.stash[_CACHE])
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "CXX"):
        os.environ.pop(name, None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Nothing of them is left."""
    shutil.rmtree(config.stash[_CACHE], ignore_errors=True)


@pytest.fixture(scope="session")
def program_cache(pytestconfig: pytest.Config) -> Path:
    """Where the programs are kept."""
    return pytestconfig.stash[_CACHE]


@pytest.fixture
def need() -> Callable[[str, str], str]:
    """`need("strace", "apt install strace")`: its path, or the test is skipped and says so."""

    def find(tool: str, how: str) -> str:
        path = shutil.which(tool)
        if path is None:
            pytest.skip(f"needs {tool} ({how})")
        return path

    return find


@pytest.fixture(scope="session")
def live_machine() -> Machine:
    """The machine that the tests run on."""
    from seatrial.machine.live import discover_live

    return discover_live()
