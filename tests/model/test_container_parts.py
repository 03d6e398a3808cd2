"""Mounts and devices of containers: what is accepted, and that no text adds an option to a runtime's command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.model.environment.container import ContainerDevice, ContainerMount, devices_of, mounts_of
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import Inside, Mount
from seatrial.places.containers.runtimes import RUNTIMES


def test_what_a_mount_states() -> None:
    assert mounts_of(["/data", "/a/b:/opt/c", "/x:/y:ro"]) == (
        ContainerMount("/data", "/data"),
        ContainerMount("/a/b", "/opt/c"),
        ContainerMount("/x", "/y", is_read_only=True),
    )
    assert [str(mount) for mount in mounts_of(["/data", "/x:/y:ro"])] == ["/data:/data", "/x:/y:ro"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "is not a mount") for text in ("", "data", "/a:b", "/a:/b:rw", "/a:/b:ro:x", "--nv", "/a,/b")),
        *(
            (text, "is not a mount")
            for text in ("/a/../b", "/a/.", "//a", "/a b", "/a;b", "/a\\072b", "/a\n/b", "/a=b")
        ),
        *((text, "is not a mount") for text in ("/", "/a:/", "/a/", "/a=b")),
        *((text, "nothing can be mounted at") for text in ("/a:/proc", "/a:/dev/x", "/sys", "/a:/usr", "/a:/etc")),
        ("/a:/tmp/x", "is in /tmp, which is that of the host"),
    ],
)
def test_what_is_no_mount(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        mounts_of([text])


def test_mounts_that_lie_in_each_other() -> None:
    for texts in (["/a:/x", "/b:/x"], ["/a:/x", "/b:/x/y"], ["/b:/x/y", "/a:/x"]):
        with pytest.raises(UsageError, match="inside the other"):
            mounts_of(texts)
    assert len(mounts_of(["/a:/x", "/b:/xy"])) == 2


def test_devices() -> None:
    assert devices_of(["nvidia", "rocm", "nvidia", "nvidia.com/gpu=0:1"]) == (
        ContainerDevice("nvidia", is_cdi=False),
        ContainerDevice("rocm", is_cdi=False),
        ContainerDevice("nvidia.com/gpu=0:1", is_cdi=True),
    )
    assert [device.kind for device in devices_of(["nvidia.com/gpu=all", "amd.com/gpu=0", "intel.com/gpu=0"])] == [
        "nvidia",
        "rocm",
        None,
    ]
    for text in ("", "gpu", "--nv", "nvidia.com/gpu", "nvidia.com/gpu=all --privileged", "a/b=c,d", "/dev/kfd"):
        with pytest.raises(UsageError, match="is not a device"):
            devices_of([text])


@given(st.text(min_size=1, max_size=60))
def test_no_text_adds_an_option(text: str) -> None:
    """Whatever is accepted stays in one word, or in the parts of it that a runtime knows."""
    image = Image("app", ImageKind.NAME, "")
    try:
        (mount,) = mounts_of([f"/data/{text}:/mnt/{text}"])
    except UsageError:
        return
    assert not set(text) & set(":,;=+\\\"' \n")
    for runtime in RUNTIMES.values():
        if runtime.name == "bubblewrap":
            continue  # needs the folder of an image
        bare = runtime.prefix(Inside(image))
        words = runtime.prefix(Inside(image, added=(Mount(Path(mount.source), Path(mount.inside)),)))
        assert len(words) - len(bare) in (0, 1, 2) and sum(mount.source in word for word in words) == 1
