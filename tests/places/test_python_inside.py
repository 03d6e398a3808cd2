"""Libraries of Python in a container: the interpreter is found inside, and gets copies of the scripts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from benchmarks.training.runs import interpreter
from engine.harness import keep_point, prepare_point, run_one
from places.host_root import make_small_root

from seatrial.benchmarks.training.input import BENCHMARK as INPUT
from seatrial.benchmarks.training.pytorch import BENCHMARK as PYTORCH
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.cached_files import private_tree
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

QUESTION = "import sys; print(sys.base_prefix, sys.prefix, sys.base_exec_prefix + '/bin/python3', sep='\\n')"


@pytest.fixture(scope="module")
def folders() -> tuple[Path, Path]:
    """Of a Python without frameworks, and of a virtual environment of it with Pillow."""
    done = subprocess.run([interpreter("PIL"), "-c", QUESTION], capture_output=True, text=True, check=True)
    base, environment = map(Path, done.stdout.splitlines()[:2])
    if base == environment or base in (Path("/usr"), Path("/usr/local")):
        pytest.skip("needs a virtual environment of a Python outside of /usr")
    return base, environment


@pytest.fixture(scope="module")
def image(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The libraries of that Python, and folders to mount it at."""
    root = tmp_path_factory.mktemp("image") / "root"
    base, environment = folders
    of_pillow = [*environment.glob("lib/python3.*/site-packages/[Pp][Ii][Ll]*/*.so*")]
    make_small_root(root, [base / "bin/python3", *base.glob("lib/python3.*/lib-dynload/*.so"), *of_pillow])
    for folder in folders:
        (root / str(folder).lstrip("/")).mkdir(parents=True, exist_ok=True)
    return root


def chosen(image: Path, runtime: str, *mounted: Path, **more: str) -> dict[str, str]:
    if RUNTIMES[runtime].path() is None:
        pytest.skip(f"needs {RUNTIMES[runtime].package}")
    mounts = {"container_mounts": "+".join(map(str, mounted))} if mounted else {}
    return {
        f"environment.{name}": value
        for name, value in {"container": str(image), "container_runtime": runtime, **mounts, **more}.items()
    }


def test_an_image_without_the_library_says_what_to_install(
    image: Path, folders: tuple[Path, Path], live_machine: Machine
) -> None:
    base, _ = folders
    todo = "install torch in the image, or mount a Python that has it (environment.container_mounts)"
    for seen, more in (
        ("has no python3 or python on the PATH of the container", {}),
        ("has no /opt/venv or /opt/venv/bin/python", {"python": "/opt/venv"}),
        (f"python in {image} cannot import torch", {"PATH": f"{base}/bin:/usr/bin:/bin"}),
    ):
        refused = prepare_point(PYTORCH, live_machine, chosen(image, "podman", base, **more))
        assert isinstance(refused, Refused)
        assert seen in refused.outcome.reason, refused.outcome
        assert refused.outcome.state is State.UNSUPPORTED and todo in refused.outcome.reason


@pytest.mark.parametrize("runtime", ["podman", "charliecloud"])
def test_a_script_runs_with_a_python_of_the_container(
    runtime: str, image: Path, folders: tuple[Path, Path], live_machine: Machine, tmp_path: Path
) -> None:
    settings = {"model": "cifar10-quick", "images": 64, "passes": 1, "workers": 1, "folder": str(tmp_path)}
    inside = chosen(image, runtime, *folders, python=str(folders[1]))
    folder = ResultsFolder.create(tmp_path / "results")
    ready = prepare_point(INPUT, live_machine, {**settings, **inside})
    assert isinstance(ready, Ready), ready.outcome
    assert ready.environment["name"].startswith("PIL ") and ready.environment["program"]["image"].startswith("sha256:")
    keep_point(ready, live_machine, folder)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert record.seen["container"]["runtime"].lower() == runtime
    assert {sample.series for sample in record.samples} == {"pipeline", "read", "decode"}
    outside = prepare_point(INPUT, live_machine, {**settings, "environment.python": inside["environment.python"]})
    assert outside.experiment.environment != ready.experiment.environment


def test_copies_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    files = [tmp_path / "run.py", tmp_path / "part" / "more.py"]
    for file in files:
        file.write_text(file.name)
    copies = private_tree(tmp_path, files)
    assert {path.relative_to(copies).as_posix(): path.read_text() for path in copies.rglob("*.py")} == {
        "run.py": "run.py",
        "part/more.py": "more.py",
    }
    assert private_tree(tmp_path, files) == copies
    files[0].write_text("changed")
    assert private_tree(tmp_path, files) != copies and (copies / "run.py").read_text() == "run.py"
