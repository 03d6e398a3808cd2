"""Archives of images as folders: every form that holds the same files, and what is refused in them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.places.containers import fitted as containers
from seatrial.places.containers.image import ContainerError, ImageKind, image_of
from seatrial.places.containers.runtime import Inside
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import PROGRAM, STATUS, write_root
from seatrial.places.images.given import unpacked

Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))


def tar_of(files: Files, *members: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as stream:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o4755
            stream.addfile(info, io.BytesIO(data))
        for member in members:
            stream.addfile(member)
    return made.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def docker(layers: list[bytes], digests: list[str] | None = None) -> Files:
    """The parts of a docker archive; layers are compressed."""
    config = {
        "rootfs": {"diff_ids": digests or [f"sha256:{sha(layer)}" for layer in layers]},
        "config": {"Env": ["A=b"]},
    }
    names = [f"{number}.tar" for number in range(len(layers))]
    manifest = [{"Config": "c.json", "RepoTags": ["a:1"], "Layers": names}]
    parts = dict(zip(names, map(gzip.compress, layers), strict=True))
    return {**parts, "c.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}


def oci(layers: list[bytes]) -> Files:
    """The parts of an OCI image."""
    blobs = {f"blobs/sha256/{sha(layer)}": layer for layer in layers}
    described = [{"digest": f"sha256:{sha(one)}", "mediaType": "application/x.tar", "size": 1} for one in layers]
    config = json.dumps({"config": {}}).encode()
    manifest = json.dumps({"config": {"digest": f"sha256:{sha(config)}"}, "layers": described}).encode()
    index = {"manifests": [{"digest": f"sha256:{sha(manifest)}"}]}
    blobs |= {f"blobs/sha256/{sha(one)}": one for one in (config, manifest)}
    return {**blobs, "oci-layout": b"{}", "index.json": json.dumps(index).encode()}


def lay_out(files: Files, folder: Path) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


LOWER = tar_of({"bin/x": b"old", "bin/gone": b"y"})
UPPER = tar_of({"bin/x": b"new", "bin/.wh.gone": b""})


@pytest.mark.parametrize("form", ["docker archive", "OCI archive", "OCI layout", "tar of a root"])
def test_every_form_is_the_same_folder(form: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    if form == "docker archive":
        path.write_bytes(tar_of(docker([LOWER, UPPER])))
    elif form == "OCI archive":
        path.write_bytes(tar_of(oci([LOWER, UPPER])))
    elif form == "OCI layout":
        lay_out(oci([LOWER, UPPER]), path)
    else:
        path.write_bytes(tar_of({"bin/x": b"new"}))
    image = image_of(str(path))
    assert image.kind is ImageKind.ARCHIVE
    found = unpacked(image)
    assert (found.kind, found.digest, found.name) == (ImageKind.FOLDER, image.digest, "image")
    assert (found.path / "bin" / "x").read_bytes() == b"new" and not (found.path / "bin" / "gone").exists()
    assert (found.path / "bin" / "x").stat().st_mode & 0o7000 == 0, "no setuid bits"
    assert (found.path / "proc").is_dir() and (found.path / "mnt").is_dir()
    before = (found.path / "bin").stat().st_ino
    assert unpacked(image) == found and (found.path / "bin").stat().st_ino == before, "unpacked once"


def linked(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def device() -> tarfile.TarInfo:
    info = tarfile.TarInfo("disk")
    info.type = tarfile.BLKTYPE
    return info


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (docker([LOWER], ["sha256:" + "0" * 64]), "has another content than its digest says"),
        ({**docker([LOWER]), "manifest.json": b"[]"}, "it has 0 images"),
        ({**docker([LOWER]), "c.json": b"[]"}, "its manifest or configuration is not valid"),
        ({**docker([LOWER]), "0.tar": gzip.compress(LOWER)[:-9]}, "a layer is damaged"),
        (docker([tar_of({"../x": b""})]), "leads out of the image"),
        (docker([tar_of({}, device())]), "is a device outside /dev"),
        (docker([tar_of({}, linked("a", "/"), tarfile.TarInfo("a/b"))]), "below"),
        ({**oci([LOWER]), f"blobs/sha256/{sha(LOWER)}": b"x"}, "has another content than its digest says"),
    ],
)
def test_what_is_refused(files: Files, why: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(tar_of(files))
    with pytest.raises(ContainerError, match=f"image cannot be unpacked: .*{why}"):
        unpacked(image_of(str(path)))
    assert list((tmp_path / "cache" / "images").iterdir()) == []


def test_a_layout_whose_blobs_are_elsewhere(tmp_path: Path) -> None:
    layout = lay_out(oci([LOWER]), tmp_path / "image")
    blob = layout / "blobs" / "sha256" / sha(LOWER)
    blob.rename(tmp_path / "aside")
    blob.symlink_to(tmp_path / "aside")
    with pytest.raises(ContainerError, match="is missing"):
        unpacked(image_of(str(layout)))


def test_a_runtime_without_folders_gets_the_archive_itself(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(tar_of(docker([LOWER])))
    image = image_of(str(path))
    assert containers._startable(image, "docker") is image
    assert containers._startable(image, "podman").kind is ImageKind.FOLDER


@pytest.fixture(scope="module")
def podman_image() -> Iterator[Callable[[str, Path], None]]:
    """Saves an image of podman in a form, as its users do: a small root with two layers more, of which the last one
    replaces a file. All that podman keeps of it is in a folder of its own."""
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    if os.geteuid() != 0:
        pytest.skip("needs root: podman imports a root for others only with ids of /etc/subuid")
    top = Path(tempfile.mkdtemp())  # podman refuses a long path
    podman = ["podman", "--root", top / "root", "--runroot", top / "run", "--storage-driver", "vfs"]
    podman += ["--cgroup-manager", "cgroupfs"]

    def run(*words: str | Path) -> None:
        done = subprocess.run([*podman, *words], cwd=top, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"podman {words[0]}: {done.stderr}")

    (top / "files").mkdir()
    assert write_root(top / "files")
    with tarfile.open(top / "root.tar", "w") as stream:
        stream.add(top / "files", ".")
    (top / "added").write_text("added")
    (top / "Containerfile").write_text("FROM localhost/base:1\nCOPY added /etc/added\nCOPY added /etc/hosts\n")
    run("import", "-q", "root.tar", "base:1")
    run("build", "-q", "--layers", "--isolation", "chroot", "--pull=never", "-f", "Containerfile", "-t", "app:1", ".")
    yield lambda form, path: run("save", "-q", "--format", form, "-o", path, "localhost/app:1")
    shutil.rmtree(top)


@pytest.mark.real
@pytest.mark.parametrize("form", ["docker-archive", "oci-archive", "oci-dir"])
def test_what_podman_saves_is_started(form: str, podman_image: Callable[[str, Path], None], tmp_path: Path) -> None:
    path = tmp_path / "app"
    podman_image(form, path)
    image = image_of(str(path))
    assert image.kind is ImageKind.ARCHIVE
    found = unpacked(image)
    assert (found.path / "etc" / "added").read_text() == (found.path / "etc" / "hosts").read_text() == "added"
    assert (found.path / "etc" / "os-release").read_text() == "ID=tiny\n"
    started = []
    for runtime in (RUNTIMES["charliecloud"], RUNTIMES["bubblewrap"], RUNTIMES["podman"]):
        if runtime.path() is not None:
            command = [*runtime.prefix(Inside(found)), PROGRAM]
            started.append(subprocess.run(command, env={**os.environ, **runtime.variables()}, check=False).returncode)
    assert started and set(started) == {STATUS}
