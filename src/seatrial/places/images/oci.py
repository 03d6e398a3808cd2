"""Archives of images: OCI, and those of `docker save` and `podman save`. Files are read where they are in the archive,
a tar or a folder, never extracted.

An OCI archive is a tar of `oci-layout`, `index.json` and `blobs/sha256/HEX`. Every digest is checked when one is read.
Archives of `docker save` and `podman save` (Docker image specification 1.2) are a tar of `manifest.json`, a
configuration and layers, whose digests the configuration states.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from seatrial.errors import UsageError
from seatrial.model.json_check import parse_json
from seatrial.places.images.entries import EntryLeftOut, add_tar, opened_tar
from seatrial.places.images.tree import Entry, EntryKind, Tree

_MOST_JSON_B = 8 << 20
_PIECE_B = 1 << 20
_MOST_FILES = 100_000
_MOST_OTHERS = 1000
_MARKS = ("oci-layout", "manifest.json")
"""The files by which archives of layers are known."""


class ArchiveParts:
    """The regular files of an archive by path. `title` is what it should be, for messages. Raises UsageError for a
    damaged archive."""

    def __init__(self, archive: Path, title: str) -> None:
        self.archive = archive
        self._title = title
        self._places = _of_folder(archive) if archive.is_dir() else _of_tar(archive)

    def __contains__(self, path: str) -> bool:
        return path in self._places

    def small(self, path: str) -> bytes:
        """A file of at most 8 MiB."""
        with self._opened(path) as stream:
            data = stream.read(_MOST_JSON_B + 1)
        if len(data) > _MOST_JSON_B:
            raise self.damaged(f"{path} is larger than 8 MiB")
        return data

    def sha256(self, path: str) -> str:
        """The digest of a file, in hexadecimal digits."""
        with self._opened(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def layer(self, path: str, to: Path) -> None:
        """Write a layer as an uncompressed tar."""
        with self._opened(path) as stream, to.open("wb") as made:
            if stream.peek(2)[:2] == b"\x1f\x8b":
                self._unpack(stream, made, to.parent)
            else:
                shutil.copyfileobj(stream, made, _PIECE_B)

    def _unpack(self, stream: BinaryIO, made: BinaryIO, folder: Path) -> None:
        written, free = 0, shutil.disk_usage(folder).free
        try:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                while piece := unpacked.read(_PIECE_B):
                    written += len(piece)
                    if written > free:
                        raise self.damaged("a layer is larger than the free space of the temporary folder")
                    made.write(piece)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.damaged(f"a layer is damaged: {error}") from None

    @contextmanager
    def _opened(self, path: str) -> Iterator[io.BufferedReader]:
        """The content of a file. Not through a link: that could lead out of a folder."""
        if path not in self._places:
            raise self.damaged(f"{path[:100]} is missing")
        file, offset, size = self._places[path]
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
            stream.seek(offset)
            yield io.BufferedReader(_Window(stream, size))

    def damaged(self, why: str) -> UsageError:
        """The error for an archive that is not what it should be."""
        return UsageError(f"{self.archive} is not a valid {self._title}: {why}", "give another base")


def _of_tar(archive: Path) -> dict[str, tuple[Path, int, int]]:
    """Path -> (archive, offset, bytes) of the regular files in a tar."""
    found: dict[str, tuple[Path, int, int]] = {}
    with opened_tar(archive) as stream:
        for member in stream:
            if member.isreg() and not member.issparse():
                found[member.name.removeprefix("./")] = (archive, member.offset_data, member.size)
                is_known = any(mark in found for mark in _MARKS)
                if len(found) > _MOST_FILES or (not is_known and len(found) > _MOST_OTHERS):
                    break  # no archive of layers has so many
    return found


def _of_folder(folder: Path) -> dict[str, tuple[Path, int, int]]:
    """The same of an image layout in a folder; links in it are not followed."""
    try:
        paths = [folder / "oci-layout", folder / "index.json", *_blobs(folder)]
        infos = [(path, path.lstat()) for path in paths]
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror or error}", "give another base") from error
    return {
        str(path.relative_to(folder)): (path, 0, info.st_size) for path, info in infos if stat.S_ISREG(info.st_mode)
    }


def _blobs(folder: Path) -> list[Path]:
    blobs = folder / "blobs" / "sha256"
    if not all(stat.S_ISDIR(path.lstat().st_mode) for path in (blobs.parent, blobs)):
        return []
    return sorted(blobs.iterdir())[:_MOST_FILES]


class _Window(io.RawIOBase):
    """The next bytes of a stream, and no more."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """As of a file that ends where the window does."""
        data = self._stream.read(min(self._left, len(buffer)))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x"}
"""The kernel's name of an architecture -> OCI's and Debian's."""


def write_oci(
    root: Path, image: Path, *, architecture: str, variables: Mapping[str, str], epoch_s: int, name: str
) -> str:
    """Write an archive whose only layer is the tar `root`; `name` is how `podman load` calls it. The digest of the
    manifest, which identifies the image. Raises OSError."""
    created = datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    layer, layer_B = _sha256(root), root.stat().st_size
    config = _json(
        {
            "architecture": architecture,
            "config": {"Env": [f"{key}={value}" for key, value in sorted(variables.items())]},
            "created": created,
            "history": [{"created": created, "created_by": "seatrial container make"}],
            "os": "linux",
            "rootfs": {"diff_ids": [f"sha256:{layer}"], "type": "layers"},
        }
    )
    manifest = _json(
        {
            "config": {"digest": _digest(config), "mediaType": _CONFIG, "size": len(config)},
            "layers": [{"digest": f"sha256:{layer}", "mediaType": _LAYER, "size": layer_B}],
            "mediaType": _MANIFEST,
            "schemaVersion": 2,
        }
    )
    described = {
        "annotations": {"org.opencontainers.image.ref.name": name},
        "digest": _digest(manifest),
        "mediaType": _MANIFEST,
        "platform": {"architecture": architecture, "os": "linux"},
        "size": len(manifest),
    }
    index = _json({"manifests": [described], "mediaType": _INDEX, "schemaVersion": 2})
    small = {"oci-layout": _LAYOUT, "index.json": index}
    small |= {f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (config, manifest)}
    with image.open("wb") as to, tarfile.open(fileobj=to, mode="w:", format=tarfile.PAX_FORMAT) as stream:
        for folder in ("blobs", "blobs/sha256"):
            stream.addfile(_info(folder, 0, epoch_s, tarfile.DIRTYPE))
        for path, data in sorted(small.items()):
            stream.addfile(_info(path, len(data), epoch_s), io.BytesIO(data))
        with root.open("rb") as layer_stream:
            stream.addfile(_info(f"blobs/sha256/{layer}", layer_B, epoch_s), layer_stream)
    return _digest(manifest)


def kind_of_layers(archive: Path) -> str:
    """The kind of image that a tar is: "OCI", "docker", or "" for the files of a root. Raises UsageError for a damaged
    one."""
    parts = ArchiveParts(archive, "OCI archive")
    return "OCI" if "oci-layout" in parts else "docker" if _DOCKER_MANIFEST in parts else ""


def add_oci(tree: Tree, archive: Path, work: Path, latest_s: int, left_out: EntryLeftOut) -> tuple[str, ...]:
    """Add the files of the image in an archive, layer upon layer; its variables, as NAME=VALUE.

    Raises UsageError for what is damaged, has another digest than it says, or is compressed by other than gzip.
    """
    blobs = _Blobs(archive, "OCI archive")
    manifest = blobs.manifest()
    try:
        config = blobs.document(manifest["config"])
        for number, described in enumerate(manifest["layers"]):
            layer = work / f"layer-{number}.tar"
            blobs.described_layer(described, layer)
            add_tar(tree, layer, latest_s, left_out, put_over)
        return _variables(config)
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{archive} is not a valid OCI archive: {error}", "give another base") from error


class _Blobs(ArchiveParts):
    """The parts of an archive by digest."""

    def manifest(self) -> Mapping[str, Any]:
        """The manifest for this machine's architecture, or the only one."""
        try:
            found = parse_json(self.small("index.json"))
            for _ in range(4):  # an index may contain an index
                if "layers" in found:
                    return dict(found)
                manifests = list(found["manifests"])
                ours = ARCHITECTURES.get(platform.machine(), platform.machine())
                fitting = [one for one in manifests if (one.get("platform") or {}).get("architecture") == ours]
                found = self.document((fitting or manifests)[0])
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise self.damaged(f"its index is not valid ({type(error).__name__})") from error
        raise self.damaged("its index has no manifest")

    def document(self, described: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON blob."""
        digest = str(described["digest"])
        data = self.small(self._path(digest))
        if _digest(data) != digest:
            raise self._other_content(digest)
        found = parse_json(data)
        if not isinstance(found, dict):
            raise self.damaged(f"{digest[:30]} is not a JSON object")
        return found

    def described_layer(self, described: Mapping[str, Any], to: Path) -> None:
        """Write a layer as an uncompressed tar."""
        digest, kind = str(described["digest"]), str(described["mediaType"])
        path = self._path(digest)
        if self.sha256(path) != digest.removeprefix("sha256:"):
            raise self._other_content(digest)
        if kind.endswith("+zstd"):
            raise self.damaged("its layers are compressed by zstd: save the image with gzip or without compression")
        self.layer(path, to)

    def _path(self, digest: str) -> str:
        algorithm, _, number = digest.partition(":")
        if algorithm != "sha256" or len(number) != 64 or not all(c in "0123456789abcdef" for c in number):
            raise self.damaged(f"{digest[:80]!r} is not a SHA-256 digest")
        return f"blobs/sha256/{number}"

    def _other_content(self, digest: str) -> UsageError:
        return self.damaged(f"{digest[:30]} has another content than its digest says")


def put_over(tree: Tree, path: str, entry: Entry) -> None:
    """Add an entry of a layer to those below: whiteouts remove, other kinds replace."""
    above, _, name = path.rpartition("/")
    if name == _OPAQUE:
        tree.empty(above)
        return
    if name.startswith(_WHITEOUT):
        tree.remove(f"{above}/{name[len(_WHITEOUT) :]}" if above else name[len(_WHITEOUT) :])
        return
    before = tree.get(path)
    if before is not None and (before.kind is EntryKind.FOLDER) != (entry.kind is EntryKind.FOLDER):
        tree.remove(path)
    tree.add(path, entry)


def _info(path: str, size: int, epoch_s: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.size, info.mtime = kind, size, epoch_s
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    return info


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_DOCKER_MANIFEST = "manifest.json"


def _variables(config: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(one) for one in (config.get("config") or {}).get("Env") or [])


def add_docker(tree: Tree, archive: Path, work: Path, latest_s: int, left_out: EntryLeftOut) -> tuple[str, ...]:
    """Add the files of the only image in an archive, layer upon layer; its variables, as NAME=VALUE. Raises UsageError
    for what is damaged, or has another digest than its configuration states."""
    parts = ArchiveParts(archive, "docker archive")
    try:
        images = parse_json(parts.small(_DOCKER_MANIFEST))
        if len(images) != 1:
            raise parts.damaged(f"it has {len(images)} images: save one alone")
        config = parse_json(parts.small(images[0]["Config"]))
        layers, digests = list(images[0]["Layers"]), list(config["rootfs"]["diff_ids"])
        if len(layers) != len(digests):
            raise parts.damaged(f"it has {len(layers)} layers, and its configuration names {len(digests)}")
        for number, (path, digest) in enumerate(zip(layers, digests, strict=True)):
            layer = work / f"layer-{number}.tar"
            parts.layer(str(path), layer)
            if f"sha256:{_sha256(layer)}" != digest:
                raise parts.damaged(f"the layer {str(path)[:80]} has another content than its digest says")
            add_tar(tree, layer, latest_s, left_out, put_over)
        return _variables(config)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise parts.damaged(f"its manifest or configuration is not valid ({type(error).__name__})") from error
