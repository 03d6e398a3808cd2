"""Images from definitions: what is in them in every format, and that the same definition gives the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import tarfile
import urllib.request
from pathlib import Path

import pytest
from places.compiler_root import make_compiler_root
from places.made_images import defined, made, static_program

from seatrial.benchmarks import registry
from seatrial.errors import ImageError, UsageError
from seatrial.model.environment.image import FACTS_FILE, Package, facts_text, read_facts
from seatrial.places.images.debian import machine_sources, parse_status
from seatrial.places.images.entries import EntryLeftOut
from seatrial.places.images.given import facts_of_image
from seatrial.places.images.make import EPOCH_S, make_image
from seatrial.places.images.oci import add_oci
from seatrial.places.images.programs import WantedProgram
from seatrial.places.images.tree import Tree

ENDINGS = ["", ".tar", ".oci.tar", ".sqfs"]
TEXTS = """
base: static
files:
  /opt/data: ./data
  /bin/first: ./data/script
  /etc/motd: {text: "welcome", mode: 0640}
  /opt/link: {link: data/script}
variables: {GREETING: good morning}
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "script").write_text("#!/bin/sh\n")
    (tmp_path / "data" / "script").chmod(0o755)
    os.link(tmp_path / "data" / "script", tmp_path / "data" / "sub" / "again")
    (tmp_path / "data" / "inside").symlink_to("/etc/passwd")
    (tmp_path / "data" / "inside").lstat()
    for path in (tmp_path / "data").rglob("*"):
        os.utime(path, (12345, 12345), follow_symlinks=False)
    return tmp_path


def need_tools(ending: str) -> None:
    if ending == ".sqfs" and shutil.which("mksquashfs") is None:
        pytest.skip("mksquashfs not found (Debian: squashfs-tools)")


def unpacked(image: Path, ending: str, to: Path) -> Path:
    """The files of an image, unpacked by tools that are not ours."""
    if ending == "":
        return image
    to.mkdir()
    if ending == ".sqfs":
        subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-force", "-dest", to, image], check=True)
    elif ending == ".tar":
        subprocess.run(["tar", "-xpf", image, "-C", to], check=True)
    else:
        parts = to.with_name(f"{to.name}-parts")
        parts.mkdir()
        subprocess.run(["tar", "-xf", image, "-C", parts], check=True)
        index = json.loads((parts / "index.json").read_bytes())
        manifest = json.loads(blob(parts, index["manifests"][0]["digest"]))
        config = json.loads(blob(parts, manifest["config"]["digest"]))
        assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
        assert config["config"]["Env"] == ["GREETING=good morning"] and config["os"] == "linux"
        (to.parent / "layer.tar").write_bytes(blob(parts, manifest["layers"][0]["digest"]))
        subprocess.run(["tar", "-xpf", to.parent / "layer.tar", "-C", to], check=True)
    return to


def blob(folder: Path, digest: str) -> bytes:
    data = (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest
    return data


@pytest.mark.real
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_image_holds_what_its_definition_says_whatever_its_format(sources: Path, ending: str) -> None:
    need_tools(ending)
    image = sources / f"image{ending}"
    found = made(TEXTS, image)
    root = unpacked(image, ending, sources / "root")
    if ending == ".sqfs":  # mksquashfs 4.5 writes 0777, its user and the present time, so digests differed
        listed = subprocess.run(["unsquashfs", "-lln", image], capture_output=True, text=True, check=True).stdout
        assert re.match(r"drwxr-xr-x 0/0 +\d+ 2000-01-01 ", listed), listed.partition("\n")[0]
    assert (root / "etc" / "motd").read_text() == "welcome"
    assert stat.S_IMODE((root / "etc" / "motd").stat().st_mode) == 0o640
    assert (root / "opt" / "data" / "inside").readlink() == Path("/etc/passwd")
    assert (root / "opt" / "link").readlink() == Path("data/script")
    assert (root / "opt/data/script").stat().st_ino == (root / "opt/data/sub/again").stat().st_ino
    assert stat.S_IMODE((root / "usr" / "bin" / "first").stat().st_mode) == 0o755, "/bin leads to usr/bin inside"
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
    assert {path.lstat().st_mtime for path in root.rglob("*")} == {EPOCH_S}
    assert facts_of_image(image) == found.facts == read_facts((root / FACTS_FILE).read_bytes())
    assert found.facts.packages == () and dict(found.facts.variables) == {"GREETING": "good morning"}
    if ending in (".tar", ".sqfs"):
        assert found.digest == f"sha256:{hashlib.sha256(image.read_bytes()).hexdigest()}"
    assert not list(sources.glob(".seatrial-image-*")), "nothing private is left"


@pytest.mark.real
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_definition_gives_the_same_bytes(sources: Path, ending: str) -> None:
    need_tools(ending)
    first = made(TEXTS, sources / f"a{ending}")
    elsewhere = sources / "elsewhere"
    shutil.copytree(sources / "data", elsewhere / "data", symlinks=True)
    (elsewhere / "data" / "sub" / "again").unlink()
    os.link(elsewhere / "data" / "script", elsewhere / "data" / "sub" / "again")
    again = made(TEXTS, elsewhere / f"a{ending}")
    assert (first.digest, first.facts) == (again.digest, again.facts)
    if ending:
        assert first.path.read_bytes() == again.path.read_bytes()
    (elsewhere / "data" / "script").write_text("#!/bin/bash\n")
    assert made(TEXTS, elsewhere / f"b{ending}").digest != first.digest


def test_the_content_is_the_same_in_every_format_and_from_every_base(sources: Path) -> None:
    endings = [ending for ending in ENDINGS if ending != ".sqfs" or shutil.which("mksquashfs")]
    first = [made(TEXTS, sources / f"image{ending}") for ending in endings]
    assert len({one.facts.content for one in first}) == 1
    again = [made(f"base: {{image: {one.path.name}}}", sources / f"{n}.tar") for n, one in enumerate(first)]
    assert {one.facts.content for one in again} == {first[0].facts.content}
    assert all(dict(one.facts.variables) == {"GREETING": "good morning"} for one in again)
    assert all(first[0].facts.content in one.facts.base for one in again)


def test_source_date_epoch_is_the_time_in_the_image(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert made(TEXTS, sources / "image").facts.epoch_s == 1_700_000_000
    assert (sources / "image" / "etc").stat().st_mtime == 1_700_000_000
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
        made(TEXTS, sources / "other")


@pytest.mark.real
def test_a_static_program_runs_in_the_folder(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    static_program(tmp_path)
    made("base: static\nprograms: [./greet]", tmp_path / "image")
    done = subprocess.run(["chroot", tmp_path / "image", "/bin/greet"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "none\n"), done.stderr


@pytest.mark.real
def test_a_dynamic_program_is_refused_for_a_static_root(tmp_path: Path) -> None:
    shutil.copy(shutil.which("true") or "/bin/true", tmp_path / "true")
    with pytest.raises(UsageError, match="linked dynamically: it needs /lib"):
        made("base: static\nprograms: [./true]", tmp_path / "image")
    (tmp_path / "text").write_text("no program")
    with pytest.raises(UsageError, match="text is not a program"):
        made("base: static\nprograms: [./text]", tmp_path / "image")


def test_what_exists_is_replaced_only_on_request_and_only_by_the_same_kind(sources: Path) -> None:
    first = made(TEXTS, sources / "image.tar")
    with pytest.raises(UsageError, match="exists already"):
        made("base: static", sources / "image.tar")
    assert f"sha256:{hashlib.sha256(first.path.read_bytes()).hexdigest()}" == first.digest
    assert made("base: static", sources / "image.tar", force=True).digest != first.digest
    made(TEXTS, sources / "image")
    assert made("base: static", sources / "image", force=True).facts.files == 5
    assert not (sources / "image" / "opt" / "data").exists()
    with pytest.raises(UsageError, match=r"data is not an image that seatrial made"):
        made("base: static", sources / "data", force=True)
    (sources / "link.tar").symlink_to("image.tar")
    with pytest.raises(UsageError, match="of another kind"):
        made("base: static", sources / "link.tar", force=True)
    with pytest.raises(UsageError, match="nowhere is not a folder"):
        made("base: static", sources / "nowhere" / "image")
    with pytest.raises(UsageError, match=r"the ending \.img is not one of an image"):
        made("base: static", sources / "image.img")
    assert not list(sources.glob(".seatrial-image-*"))


def test_sif_needs_apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="SIF needs apptainer"):
        made("base: static", tmp_path / "image.sif")


def test_sif_is_made_by_apptainer_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command alone: Debian 12 has no apptainer."""
    script = tmp_path / "apptainer"
    script.write_text('#!/bin/sh\ntest "$1 $2" = "build --force" && test -d "$4/usr/bin" && echo "SIF $4" > "$3"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    made("base: static", tmp_path / "image.sif")
    assert (tmp_path / "image.sif").read_text().startswith("SIF ")


def layer(entries: dict[str, bytes | None]) -> bytes:
    """A tar; None: a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made_tar:
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.type, info.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
            made_tar.addfile(info, None if data is None else io.BytesIO(data))
    return stream.getvalue()


def oci_archive(path: Path, layers: list[tuple[str, bytes]], *, wrong: bool = False) -> Path:
    """An OCI archive of layers with their media types, as other tools write them."""
    blobs: dict[str, bytes] = {}

    def put(data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return f"sha256:{digest}"

    described = [{"mediaType": kind, "digest": put(data), "size": len(data)} for kind, data in layers]
    config = put(json.dumps({"config": {"Env": ["PATH=/bin", "SECRET_TOKEN=x", "BAD=\n"]}}).encode())
    manifest = put(json.dumps({"config": {"digest": config}, "layers": described}).encode())
    files = {"oci-layout": b"{}", "index.json": json.dumps({"manifests": [{"digest": manifest}]}).encode(), **blobs}
    if wrong:
        files[f"blobs/sha256/{described[-1]['digest'][7:]}"] += b"\0"
    path.write_bytes(layer(dict(files)))
    return path


TAR, GZIP = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"


def test_layers_of_an_oci_archive_are_put_over_each_other(tmp_path: Path) -> None:
    lower = layer({"a/keep": b"1", "a/gone": b"2", "opaque/old": b"3", "kind": b"4", "b": None, "b/x": b"5"})
    upper = layer({"a/.wh.gone": b"", "opaque/.wh..wh..opq": b"", "opaque/new": b"6", "kind": None, ".wh.b": b""})
    archive = oci_archive(tmp_path / "base.tar", [(TAR, lower), (GZIP, gzip.compress(upper))])
    tree = Tree(0)
    assert add_oci(tree, archive, tmp_path, 0, EntryLeftOut()) == ("PATH=/bin", "SECRET_TOKEN=x", "BAD=\n")
    paths = [path for path, _ in tree.sorted()]
    assert paths == ["a", "a/keep", "kind", "opaque", "opaque/new"]
    found = made("base: {image: base.tar}", tmp_path / "image")
    assert dict(found.facts.variables) == {"PATH": "/bin"}, "no secrets and control characters"


@pytest.mark.parametrize(
    ("layers", "wrong", "words"),
    [
        ([(TAR, layer({"x": b"1"}))], True, "another content than its digest"),
        ([(f"{TAR}+zstd", b"1234")], False, "compressed by zstd"),
        ([(GZIP, gzip.compress(layer({"x": b"1" * 9000}))[:-20])], False, "a layer is damaged"),
        ([(TAR, layer({"../x": b"1"}))], False, "leads out of the image"),
    ],
)
def test_damaged_oci_archives_are_refused(
    tmp_path: Path, layers: list[tuple[str, bytes]], wrong: bool, words: str
) -> None:
    oci_archive(tmp_path / "base.tar", layers, wrong=wrong)
    with pytest.raises(UsageError, match=words):
        made("base: {image: base.tar}", tmp_path / "image")
    assert not (tmp_path / "image").exists()


def test_packages_are_read_from_the_list_of_dpkg(tmp_path: Path) -> None:
    status = (
        "Package: gcc\nStatus: install ok installed\nVersion: 4:12.2.0-3\nArchitecture: amd64\n"
        "Description: x\n Version: 9\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: bad\x1b\nVersion: 1\nArchitecture: all\n"
    )
    assert list(parse_status(status)) == [Package("gcc", "4:12.2.0-3", "amd64")]
    (tmp_path / "base" / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "base" / "var/lib/dpkg/status").write_text(status)
    assert made("base: {image: base}", tmp_path / "a").facts.packages == (Package("gcc", "4:12.2.0-3", "amd64"),)
    shutil.rmtree(tmp_path / "base" / "var/lib/dpkg")
    (tmp_path / "base" / "var/lib/rpm").mkdir()
    assert made("base: {image: base}", tmp_path / "b").facts.packages is None


def test_facts_of_others_are_read_or_ignored(sources: Path) -> None:
    facts = made(TEXTS, sources / "image").facts
    assert read_facts(facts_text(facts)) == facts
    document = json.loads(facts_text(facts))
    for change in (
        {"schema": "seatrial.image-facts/2"},
        {"content": "sha256:x"},
        {"files": -1},
        {"files": True},
        {"base": "\x1b[2J"},
        {"packages": [{"name": "x"}]},
        {"packages": "x"},
        {"variables": {"A": 1}},
        {"programs": [[]]},
    ):
        assert read_facts(json.dumps(document | change).encode()) is None, change
    for text in (b"", b"[]", b"{", b"[" * 100_000, b"\xff"):
        assert read_facts(text) is None
    assert facts_of_image(sources / "data") is None and facts_of_image(sources / "nowhere") is None


def test_a_large_image_takes_time_in_proportion(tmp_path: Path) -> None:
    """20,000 files, and as many below one folder: a search through all for each would take minutes."""
    tree = {f"f/{n // 100}/{n}": b"x" for n in range(20_000)}
    (tmp_path / "base.tar").write_bytes(layer(dict(tree)))
    definition = defined("base: {image: base.tar}", tmp_path)
    assert make_image(definition, tmp_path / "image.tar").facts.files == 20_003


@pytest.mark.real
def test_a_program_is_compiled_inside_by_the_compiler_of_the_image(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ not found")
    source = registry()["cpu.peak"].program.source
    (tmp_path / "base").mkdir()
    make_compiler_root(tmp_path / "base", [source])
    march = "x86-64-v2" if platform.machine() == "x86_64" else "armv8-a"
    text = f"base: {{image: base}}\nbuild: [cpu.peak]\nmarch: {march}"
    definition = defined(text, tmp_path)
    try:
        found = make_image(definition, tmp_path / "image", wanted=[WantedProgram("cpu.peak", source)])
    except ImageError as error:
        if "programs cannot be compiled inside" in str(error):
            pytest.skip(str(error))
        raise
    (program,) = found.facts.programs
    assert (program.benchmark, program.path, program.mpi) == ("cpu.peak", "/opt/seatrial/serial/peak", None)
    made_program = tmp_path / "image" / program.path.lstrip("/")
    assert program.digest == f"sha256:{hashlib.sha256(made_program.read_bytes()).hexdigest()}"
    assert program.command[0] == "g++" and "/seatrial-build/src/benchmarks/cpu/peak.cpp" in program.command
    described = subprocess.run([made_program, "--describe"], capture_output=True, text=True, check=True).stdout
    assert json.loads(described)["program"] == "peak"
    assert not (tmp_path / "image" / "seatrial-build").exists()


def test_an_image_without_compiler_or_mpi_cannot_build(tmp_path: Path) -> None:
    (tmp_path / "base" / "usr" / "bin").mkdir(parents=True)
    definition = defined("base: {image: base}\nbuild: [mpi.latency]", tmp_path)
    wanted = [WantedProgram("mpi.latency", registry()["mpi.latency"].program.source)]
    with pytest.raises(ImageError, match=r"no C\+\+ compiler"):
        make_image(definition, tmp_path / "image", wanted=wanted)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base"]


@pytest.mark.real
def test_debian_by_mmdebstrap(tmp_path: Path) -> None:
    """One release from this machine's mirror, with a package; the second base is what it gave."""
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap not found (Debian: mmdebstrap)")
    if not mirror_answers():
        pytest.skip("apt has no mirror of Debian here, or it does not answer")
    definition = defined("base: {debian: bookworm}\npackages: [hello]", tmp_path)
    try:
        found = make_image(definition, tmp_path / "image.tar")
    except ImageError as error:
        if "without root" in str(error):
            pytest.skip(str(error))
        raise
    assert found.facts.packages is not None
    names = {package.name: package.version for package in found.facts.packages}
    assert {"hello", "libc6", "dpkg"} <= set(names) and all(names.values())
    with tarfile.open(found.path) as stream:
        members = {member.name: member for member in stream}
    assert members["./usr/bin/su"].mode & 0o4000, "Debian's own programs keep their bits"
    assert not [name for name, member in members.items() if member.isdev()]
    assert members["./etc/hostname"].size == members["./etc/resolv.conf"].size == 0, "nothing of this machine"


def mirror_answers() -> bool:
    uri = next((one.uri for one in machine_sources() if one.suite == "bookworm" and "main" in one.components), None)
    if uri is None:
        return False
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/dists/bookworm/InRelease", timeout=5) as answer:
            return bool(answer.read(10))
    except OSError:
        return False
