"""Archives of `docker save` and `podman save` (Docker image specification 1.2): a tar of `manifest.json`, a
configuration and layers, whose digests the configuration states."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from seatrial.places.images.archive_parts import ArchiveParts
from seatrial.places.images.from_folder import LeftOut
from seatrial.places.images.from_tar import add_tar
from seatrial.places.images.oci import put_over
from seatrial.places.images.tree import Tree

_MANIFEST = "manifest.json"
_TITLE = "docker archive"


def is_docker(archive: Path) -> bool:
    """Whether a tar is such an archive. Raises UsageError for a damaged one."""
    parts = ArchiveParts(archive, _TITLE)
    return _MANIFEST in parts and "oci-layout" not in parts


def add_docker(tree: Tree, archive: Path, work: Path, latest_s: int, left_out: LeftOut) -> tuple[str, ...]:
    """Add the files of the only image in an archive, layer upon layer; its variables, as NAME=VALUE. Raises UsageError
    for what is damaged, or has another digest than its configuration states."""
    parts = ArchiveParts(archive, _TITLE)
    try:
        images = json.loads(parts.small(_MANIFEST))
        if len(images) != 1:
            raise parts.damaged(f"it has {len(images)} images: save one alone")
        config = json.loads(parts.small(images[0]["Config"]))
        layers, digests = list(images[0]["Layers"]), list(config["rootfs"]["diff_ids"])
        if len(layers) != len(digests):
            raise parts.damaged(f"it has {len(layers)} layers, and its configuration names {len(digests)}")
        for number, (path, digest) in enumerate(zip(layers, digests, strict=True)):
            layer = work / f"layer-{number}.tar"
            parts.layer(str(path), layer)
            with layer.open("rb") as stream:
                if f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}" != digest:
                    raise parts.damaged(f"the layer {str(path)[:80]} has another content than its digest says")
            add_tar(tree, layer, latest_s, left_out, put_over)
        return tuple(str(one) for one in (config.get("config") or {}).get("Env") or [])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise parts.damaged(f"its manifest or configuration is not valid ({type(error).__name__})") from error
