"""Programs and ranks in containers, made from this machine's own files: every placement, and the faults of each."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
from engine.as_user import give_away, user_command
from engine.harness import make_ready, run_one
from msgspec.structs import replace
from one_point import prepare_point
from places.host_root import make_host_root

from seatrial.benchmarks.command.command import BENCHMARK as COMMAND
from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.benchmarks.mpi.latency import BENCHMARK as LATENCY
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import command_of
from seatrial.environments.cached_files import as_it_is
from seatrial.environments.chosen import chosen_environment
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import INSIDE, JOINED, OUTSIDE
from seatrial.model.environment.site import Site, SiteContainer
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.places.contained import Contained
from seatrial.places.containers import fitted as containers
from seatrial.places.containers.image import ContainerError
from seatrial.places.containers.runtime import SHARED
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import write_root
from seatrial.places.rank_helpers import ranks_probe
from seatrial.plan.site_file import read_site
from seatrial.plan.site_in_force import use_site_within
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

IMAGE, RUNTIME, PLACE = "environment.container", "environment.container_runtime", "environment.container_mpi"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image") / "root"
    make_host_root(root)
    return root


def need(runtime: str, mpi: str | None = None) -> None:
    if RUNTIMES[runtime].path() is None:
        pytest.skip(f"needs {RUNTIMES[runtime].package}")
    if runtime == "nspawn" and os.geteuid() != 0:
        pytest.skip("nspawn needs root")
    if mpi is not None and all(mpi != found.name for found in find_mpis()):
        pytest.skip(f"needs {mpi}")


def try_ranks(
    image: Path, runtime: str, mpi: str, machine: Machine, wanted: str | None, launcher_of: str | None = None
) -> Contained:
    """Two ranks in a container, built with one MPI library and started by the launcher of that or another one."""
    need(runtime, mpi)
    need(runtime, launcher_of)
    environment = chosen_environment(EnvironmentChoice(mpi=mpi), machine, with_mpi=True)
    starter = chosen_environment(EnvironmentChoice(mpi=launcher_of or mpi), machine, with_mpi=True).mpi
    assert starter is not None
    found = containers._found(SiteContainer("", str(image), runtime, None))
    probe = partial(ranks_probe, environment)
    with mock.patch.object(containers, "ranks_probe", lambda _, start: probe(start)):
        return containers._placed(found, replace(environment, mpi=starter), Layout(2), wanted, as_it_is)


@pytest.mark.parametrize(
    ("runtime", "mpi", "wanted", "placed"),
    [
        ("charliecloud", "openmpi", None, JOINED),
        ("charliecloud", "mpich", None, JOINED),
        ("charliecloud", "openmpi", INSIDE, INSIDE),
        ("bubblewrap", "mpich", None, OUTSIDE),
        ("podman", "openmpi", None, OUTSIDE),
        ("podman", "mpich", INSIDE, INSIDE),
        ("nspawn", "mpich", None, INSIDE),
    ],
)
def test_ranks_find_each_other(
    image: Path, runtime: str, mpi: str, wanted: str | None, placed: str, live_machine: Machine
) -> None:
    if runtime == "bubblewrap" and os.geteuid() != 0:
        pytest.skip("a user's ranks have user namespaces of their own there")
    found = try_ranks(image, runtime, mpi, live_machine, wanted)
    assert found.placement == placed and found.document()["mpi"] == placed
    ranks = found.facts["ranks"]
    assert ranks["world"] == 2 and ranks["cross_memory_attach"] and ranks["user_namespaces"] == 1
    assert all(len(ids) == 1 and ids[0] for ids in ranks["libraries"].values())


def test_rootless_podman(image: Path) -> None:
    """As a user without rights and without ids in /etc/subuid, whose image it is."""
    need("podman", "openmpi")
    need("podman", "mpich")
    if os.geteuid() != 0:
        pytest.skip("needs root, to run as another user")
    with tempfile.TemporaryDirectory(dir=SHARED, ignore_cleanup_errors=True) as top:
        Path(top).chmod(0o755)
        home = Path(top, "home")
        home.mkdir()
        shutil.copytree(image, home / "root", symlinks=True)
        give_away(home / "root")
        ways = ("openmpi:outside", "openmpi:inside", "mpich:outside", "mpich:inside")
        words = [sys.executable, str(Path(__file__).with_name("try_ranks.py")), str(home / "root"), "podman", *ways]
        done = subprocess.run(user_command(words, home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = dict(zip(ways, json.loads(done.stdout), strict=True))
    assert "(another user inside)" in found.pop("openmpi:outside")["error"]
    assert "(descriptors of the launcher)" in found.pop("mpich:outside")["error"]
    for facts in found.values():
        assert "error" not in facts, facts
        assert facts["ranks"]["world"] == 2 and "user" in facts["own_namespaces"]
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if top in line]


def test_ranks_that_cannot_read_each_other_hang(
    image: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_RANKS_LIMIT_S", 3.0)
    with pytest.raises(ContainerError, match=r"hang at a message of 4 MiB \(no cross-memory attach\)") as caught:
        try_ranks(image, "charliecloud", "openmpi", live_machine, OUTSIDE)
    assert f"environment.container_mpi={JOINED}" in caught.value.todo


def test_shared_memory_of_ucx(image: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_RANKS_LIMIT_S", 8.0)
    with pytest.raises(ContainerError, match="shared memory of UCX"):
        try_ranks(image, "charliecloud", "mpich", live_machine, OUTSIDE)


@pytest.mark.parametrize(
    ("mpi", "launcher", "seen"),
    [
        ("mpich", "openmpi", "2 times rank 0 of 1"),
        ("openmpi", "mpich", r"\(launcher of another library\)|2 times rank 0"),
    ],
)
def test_the_launcher_of_another_library(
    image: Path, mpi: str, launcher: str, seen: str, live_machine: Machine
) -> None:
    """Without an ssh in the image, Open MPI's ranks fail; else each is alone, as MPICH's are."""
    with pytest.raises(ContainerError, match=seen):
        try_ranks(image, "charliecloud", mpi, live_machine, JOINED, launcher_of=launcher)


def test_a_placement_that_a_runtime_does_not_have(image: Path, live_machine: Machine) -> None:
    with pytest.raises(ContainerError, match="bubblewrap cannot run ranks"):
        try_ranks(image, "bubblewrap", "openmpi", live_machine, JOINED)


@pytest.mark.parametrize("runtime", ["charliecloud", "bubblewrap", "podman", "nspawn"])
def test_a_program_is_measured_inside(image: Path, runtime: str, live_machine: Machine, folder: ResultsFolder) -> None:
    need(runtime)
    ready = make_ready(PEAK, live_machine, folder, **{IMAGE: str(image), RUNTIME: runtime})
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    facts = record.seen["container"]
    assert facts["runtime"] == RUNTIMES[runtime].title and facts["digest"].startswith("sha256:")
    assert "mnt" in facts["own_namespaces"]
    bare = make_ready(PEAK, live_machine, folder)
    assert bare.experiment.id != ready.experiment.id and bare.experiment.program == ready.experiment.program
    assert not (image / "cache").exists() and not any((image / "mnt").iterdir())


def test_ranks_are_measured_inside(image: Path, live_machine: Machine, folder: ResultsFolder) -> None:
    need("charliecloud", "openmpi")
    settings = {IMAGE: str(image), RUNTIME: "charliecloud", "size_B": "8"}
    ready = make_ready(LATENCY, live_machine, folder, mpi="openmpi", **settings)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.seen["container"]["mpi"] == JOINED and "--join-pid=" in record.seen["command"]
    names = [words[words.index("--name") + 1] for words in (record.seen["command"], command_of(ready, folder.path))]
    assert names[0] != names[1], "ranks of a start enter no container of another one"
    notes = record.seen["notes"]
    assert (notes["transport_cross_memory"], notes["transport_single_copy"]) == ("yes", "1 (cma)")


def test_an_image_may_turn_single_copies_off(
    image: Path, live_machine: Machine, folder: ResultsFolder, tmp_path: Path
) -> None:
    """The record says so, although nothing outside shows it."""
    need("charliecloud", "openmpi")
    other = copied(image, tmp_path / "root")
    settings = other / "etc/openmpi/openmpi-mca-params.conf"
    text = settings.read_text()
    settings.unlink()
    settings.write_text(f"{text}\nbtl_vader_single_copy_mechanism = none\n")
    chosen = {IMAGE: str(other), RUNTIME: "charliecloud", "size_B": "8"}
    ready = make_ready(LATENCY, live_machine, folder, mpi="openmpi", **chosen)
    notes = run_one(ready, live_machine, folder).seen["notes"]
    assert (notes["transport_cross_memory"], notes["transport_single_copy"]) == ("yes", "3 (none)")


def site_container(image: Path, text: str) -> Site:
    return read_site(f"containers: {{app: {{image: {image}, {text}}}}}".encode(), "site.yaml")


SHOW = ("/usr/bin/bash", "-c", 'test "$(</mnt/x)" = there && test "$A" = site && test "$B" = study')


@pytest.mark.parametrize("runtime", ["charliecloud", "bubblewrap", "podman", "nspawn"])
def test_a_container_of_the_site(image: Path, runtime: str, live_machine: Machine, folder: ResultsFolder,
                                 tmp_path: Path) -> None:  # fmt: skip
    """With a mount and variables of its own; a study sets one of these anew, and adds a mount."""
    need(runtime)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("there")
    text = f"runtime: {runtime}, mounts: ['{tmp_path}/data:/mnt'], variables: {{A: site, B: site}}"
    settings = {IMAGE: "app", "environment.container_mounts": f"{tmp_path}:/srv", "environment.B": "study"}
    with use_site_within(site_container(image, text), None):
        ready = make_ready(COMMAND, live_machine, folder, **settings, argv=SHOW)
        record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    facts = record.seen["container"]
    assert facts["name"] == "app" and facts["variables_set"] == {"A": "site"}
    assert facts["mounts"] == [f"{tmp_path}/data:/mnt", f"{tmp_path}:/srv"]


@pytest.mark.parametrize(
    ("runtime", "text", "why"),
    [
        (
            "charliecloud",
            "mounts: [/nowhere/at/all:/mnt]",
            "/nowhere/at/all cannot be mounted at /mnt in app",
        ),
        ("charliecloud", "mounts: ['/etc:/mnt:ro']", "Charliecloud cannot mount /etc read-only"),
        ("charliecloud", "mounts: [/etc:/nowhere]", "(mount point): the image has no file or folder"),
        ("bubblewrap", "mounts: [/etc:/usr/share/nowhere]", "(mount point): the image has no file or folder"),
        ("bubblewrap", "devices: [nvidia.com/gpu=all]", "bubblewrap cannot give a container the device nvidia.com/gpu"),
        ("podman", "devices: [nvidia]", "(CDI): this machine describes no device of that name"),
    ],
)
def test_what_a_container_of_the_site_cannot_get(
    image: Path, live_machine: Machine, runtime: str, text: str, why: str
) -> None:
    with use_site_within(site_container(image, text), None):
        assert why in refusal("app", live_machine, runtime)


def test_drivers(image: Path, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that nobody has; one on a shared path of this machine that is not in the container; the same mounted."""
    if _loads("libcuda.so.1"):
        pytest.skip("this machine has a driver")
    with use_site_within(site_container(image, "devices: [nvidia]"), None):
        assert "(no driver): neither the container nor this machine has libcuda.so.1" in refusal("app", live_machine)
        shared = tmp_path / "shared"
        shared.mkdir()
        words = ["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(shared / "libcuda.so.1")]
        subprocess.run(words, check=True)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(shared))
        missing = refusal("app", live_machine)
        assert f"(missing driver): this machine has {shared}/libcuda.so.1" in missing
        assert "environment.container_mounts=" in missing
    text = f"devices: [nvidia], mounts: ['{shared}:/mnt'], variables: {{LD_LIBRARY_PATH: /mnt}}"
    with use_site_within(site_container(image, text), None):
        ready = prepare_point(PEAK, live_machine, {IMAGE: "app", RUNTIME: "charliecloud"})
    assert isinstance(ready, Ready), ready
    assert ready.environment["container"]["devices"] == ["nvidia"]


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def refusal(image: object, machine: Machine, runtime: str = "charliecloud") -> str:
    need(runtime)
    refused = prepare_point(PEAK, machine, {IMAGE: str(image), RUNTIME: runtime})
    assert refused.outcome.state is State.UNSUPPORTED
    return refused.outcome.reason


def copied(image: Path, to: Path) -> Path:
    """The image with files of its own."""
    shutil.copytree(image, to, symlinks=True, copy_function=os.link)
    return to


def test_an_image_that_misses_a_library(image: Path, live_machine: Machine, tmp_path: Path) -> None:
    other = copied(image, tmp_path / "root")
    for path in other.rglob("libstdc++.so.6"):
        path.unlink()
    assert "(missing library)" in refusal(other, live_machine)


def test_an_image_with_older_libraries(image: Path, live_machine: Machine, tmp_path: Path) -> None:
    other = copied(image, tmp_path / "root")
    versions, old = tmp_path / "versions", tmp_path / "libstdc++.so.6"
    versions.write_text("GLIBCXX_3.4 { global: *; };\nCXXABI_1.3 { };\n")
    words = ["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(old), "-Wl,-soname,libstdc++.so.6"]
    subprocess.run([*words, f"-Wl,--version-script={versions}"], check=True)
    for path in list(other.rglob("libstdc++.so.6")):
        path.unlink()
        shutil.copy2(old, path)
    assert "(old C library)" in refusal(other, live_machine)


def test_an_image_without_a_loader(live_machine: Machine, tmp_path: Path) -> None:
    assert write_root(tmp_path)
    assert "(no such program)" in refusal(tmp_path, live_machine)


def test_no_image(live_machine: Machine, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(tmp_path / "nothing", live_machine)


@pytest.mark.parametrize("runtime", ["charliecloud", "podman"])
def test_killed(image: Path, runtime: str, tmp_path: Path, until: Callable[[Callable[[], bool]], None]) -> None:
    """Nothing runs on and nothing stays mounted."""
    need(runtime)
    study = tmp_path / "sleep.yaml"
    study.write_text(
        "study: sleep\nquestion: How long?\nbenchmarks: {command: {argv: [/usr/bin/sleep, '4711']}}\n"
        f"axes: {{{IMAGE}: [{image}], {RUNTIME}: [{runtime}]}}\nrepeat: {{budget: 1s}}\n"
    )
    words = ["run", str(study), "--results", str(tmp_path / "r")]
    process = subprocess.Popen(
        [sys.executable, "-m", "seatrial", *words],
        env={**os.environ, "SEATRIAL_HOST": tmp_path.name},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: bool(sleepers()))
    finally:
        process.kill()
        process.wait()
    until(lambda: not sleepers())
    assert str(image) not in Path("/proc/mounts").read_text()


def sleepers() -> list[str]:
    """The processes that sleep for the test, or start them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"4711" in words[-2:] and words[0].endswith(b"sleep"):
            found.append(path.parent.name)
    return found


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 300
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.05)

    return wait


def test_a_command_of_the_image(image: Path, live_machine: Machine, folder: ResultsFolder) -> None:
    need("bubblewrap")
    settings = {IMAGE: str(image), RUNTIME: "bubblewrap", "argv": ("/usr/bin/sleep", "0.01")}
    record = run_one(make_ready(COMMAND, live_machine, folder, **settings), live_machine, folder)
    assert record.outcome.is_ok, record.outcome
