"""What all tests share: made-up machines, the machine they run on, and one cache of built programs."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import platform
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, settings
from native_stamp import is_compiled_everywhere
from xdist.scheduler import LoadScopeScheduling

from seatrial import benchmarks
from seatrial.environments import build
from seatrial.environments.asking import lacking_gpu
from seatrial.environments.compiled import Unit
from seatrial.model.machine.machine import Machine
from seatrial.processes import start
from seatrial.store.folder import ResultsFolder

# Other tests, and other users, run at the same time: a slow example is no failure.
settings.register_profile(
    "shared machines", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.register_profile("exhaustive", settings.get_profile("shared machines"), max_examples=200)
settings.load_profile("shared machines")

gc.set_threshold(200_000, 50, 100)
"""As the command does: what the tests keep would be walked again and again, a tenth of their time."""

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell starts a command in the background with interrupts ignored; what tests start would inherit that."""

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


_CACHE = pytest.StashKey[Path]()
_LOCK = pytest.StashKey[IO[str]]()
_KEPT = "SEATRIAL_TEST_CACHE"
"""Names a folder in which built programs stay from one run of the tests to the next."""
_MACHINE_LOCK = "SEATRIAL_TEST_MACHINE_LOCK"
"""The file by which the workers agree who has the machine."""
_TURNS = "SEATRIAL_TEST_TURNS"
"""The file in which the workers say which tests go to one worker: id -> the name that these tests share."""
_HOST = "SEATRIAL_HOST"
"""Names the host whose lock a measurement holds."""
_IN_TURN = ("parallel", "devices", "lab", "quiet")
"""Markers: one worker runs all tests of each, one after the other."""


def pytest_configure(config: pytest.Config) -> None:
    """Programs are built once for all tests and workers, and never found in the user's cache: nor are wheels of MPI
    that lie there, over which tests would be collected."""
    if config.getoption("--exhaustive"):
        settings.load_profile("exhaustive")
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "CXX"):
        os.environ.pop(name, None)
    if hasattr(config, "workerinput"):  # each is a host of its own: else they would wait for each other's measurements
        os.environ[_HOST] = f"{os.environ.get(_HOST) or platform.node()}-{config.workerinput['workerid']}"
    else:  # workers inherit what follows
        config.stash[_CACHE] = Path(tempfile.mkdtemp(prefix="seatrial-cache-"))
        config.stash[_CACHE].chmod(0o755)  # tests that run as another user find the programs there
        os.environ["SEATRIAL_CACHE"] = os.environ.get(_KEPT) or str(config.stash[_CACHE])
        Path(os.environ["SEATRIAL_CACHE"]).mkdir(parents=True, exist_ok=True)
        os.environ[_MACHINE_LOCK] = str(config.stash[_CACHE] / "machine.lock")
        os.environ[_TURNS] = str(config.stash[_CACHE] / "turns.json")
        if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # every command would compile our sources anew
            os.environ["PYTHONPYCACHEPREFIX"] = str(config.stash[_CACHE] / "bytecode")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Nothing of them is left."""
    if _CACHE in config.stash:
        shutil.rmtree(config.stash[_CACHE], ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="also the full products of parameters")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first, those that need a quiet machine last. Workers begin with the tests that one of them runs alone,
    which take longest."""
    if not config.getoption("--exhaustive"):
        left_out = ["exhaustive"]
        if is_compiled_everywhere() and "portability" not in config.option.markexpr:
            left_out.append("portability")
        kept, dropped = [], []
        for item in items:
            (dropped if any(map(item.get_closest_marker, left_out)) else kept).append(item)
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept
    in_turn = _IN_TURN if hasattr(config, "workerinput") else ()

    def place_of(item: pytest.Item) -> list[bool]:
        quiet, real = (item.get_closest_marker(name) is not None for name in ("quiet", "real"))
        return [quiet, not any(map(item.get_closest_marker, in_turn)), real]

    items.sort(key=place_of)
    place = Path(os.environ[_TURNS])
    private = place.with_name(f"turns-{os.getpid()}")
    private.write_text(json.dumps({item.nodeid: _turn(item) for item in items}))
    private.replace(place)


def _turn(item: pytest.Item) -> str:
    """What the tests of one worker share: a marker; for fast tests their file, which may keep what it has made. Of the
    parallel tests, those of benchmarks keep the CPUs busy; most others wait for launchers, jobs and containers."""
    for name in reversed(_IN_TURN):
        if item.get_closest_marker(name):
            return f"{name} {item.path.parent.name == 'benchmarks'}" if name == "parallel" else name
    return item.nodeid if item.get_closest_marker("real") else item.nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Tests that share a name go to one worker."""
    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False  # their order is that of the collection
    return OneAtATime(config, log)


class OneAtATime(LoadScopeScheduling):
    """One worker runs all tests that share a name, one after the other; whoever is free runs the next."""

    _in_turn: Mapping[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._in_turn is None:  # every worker has collected by now
            self._in_turn = json.loads(Path(os.environ[_TURNS]).read_text())
        return self._in_turn[nodeid]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test runs while no other needs a quiet machine."""
    with Path(os.environ[_MACHINE_LOCK]).open("a+") as item.stash[_LOCK]:
        _take(item.stash[_LOCK], fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """One that needs a quiet machine waits until no other worker is in a test, and has them wait. Its fixtures are
    made before: what they build needs no quiet machine."""
    if item.get_closest_marker("quiet"):
        fcntl.lockf(item.stash[_LOCK], fcntl.LOCK_UN)
        _take(item.stash[_LOCK], fcntl.LOCK_EX)
    return (yield)


def _take(lock: IO[str], how: int) -> None:
    with Path(os.environ[_MACHINE_LOCK]).with_name("next.lock").open("a+") as who_is_next:  # else the others starve it
        fcntl.lockf(who_is_next, fcntl.LOCK_EX)
        fcntl.lockf(lock, how)


@pytest.fixture(autouse=True)
def no_program_is_left() -> Generator[None]:
    """A test leaves no program running: the guard ends what orphans leave only when none runs."""
    yield
    left = [program.pid for program in start._running]
    start._running.clear()
    assert not left, f"programs that the test started and did not wait for: {left}"


@pytest.fixture(autouse=True)
def declared_benchmarks_are_forgotten() -> Generator[None]:
    """What a test declares, or reads from a results folder, is in no later test's registry."""
    yield
    if benchmarks._Declared.files or benchmarks._Declared.stored:
        benchmarks._Declared.stored = {}
        benchmarks.declare(())


@pytest.fixture(scope="session", autouse=True)
def programs_are_compiled_quickly(pytestconfig: pytest.Config) -> Generator[None]:
    """With -O1 in place of -O3, in a third less time: these tests ask what a program does, not how fast. Applications,
    which compute for longer, and what commands in processes of their own build are as users have them; all programs are
    in `make exhaustive`, and in `make portability` whenever a native source changes."""
    if pytestconfig.getoption("--exhaustive") or "portability" in pytestconfig.option.markexpr:
        yield
        return
    as_usual = build._Object.of

    def of(environment: build.Environment, unit: Unit, added: Sequence[str] = (), key: str | None = None) -> Any:
        made = as_usual(environment, unit, added, key)
        if unit.optimisation or unit.source.parent.name == "apps":
            return made
        return replace(made, command=tuple("-O1" if word == "-O3" else word for word in made.command))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build._Object, "of", of)
        yield


@pytest.fixture
def reachable() -> Generator[Path]:
    """A temporary folder that processes of other users reach too; pytest's own are closed to them."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    """A new results folder."""
    return ResultsFolder.create(tmp_path / "results")


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch, program_cache: Path) -> None:
    """PoCL offers two devices."""
    if (lack := lacking_gpu()) is not None:
        pytest.skip(f"needs {lack}")
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread")
    monkeypatch.setenv("POCL_CACHE_DIR", str(program_cache / "pocl"))


@pytest.fixture(scope="session")
def program_cache() -> Path:
    """Where the programs are kept."""
    return Path(os.environ["SEATRIAL_CACHE"])


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
