"""Definitions of images: what they say, and one clear message for each mistake."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from seatrial.errors import UsageError
from seatrial.model.environment.image import AddedFile, DebianBase, GivenBase, ImageFormat, StaticBase
from seatrial.plan.image_file import read_image_file
from seatrial.plan.schemas import SCHEMAS

HERE = Path("/where/it/is")
FULL = b"""\
base: {debian: bookworm, mirror: "https://mirror.example/debian"}
packages: [g++, openmpi-bin, libopenmpi-dev=4.1.4-3+b1]
programs: [./tool, /opt/other]
files:
  /opt/app: ./app
  /etc/motd: {text: "welcome\\n", mode: 0600}
  /opt/run: {from: run.sh, mode: "0755"}
  /opt/latest: {link: app}
variables: {OMP_NUM_THREADS: 4, GREETING: good morning}
build: [memory.stream, mpi.latency]
march: x86-64-v3
format: oci
"""


def test_a_full_definition() -> None:
    found = read_image_file(FULL, "image.yaml", HERE)
    assert found.base == DebianBase("bookworm", "https://mirror.example/debian")
    assert found.packages == ("g++", "openmpi-bin", "libopenmpi-dev=4.1.4-3+b1")
    assert found.programs == (HERE / "tool", Path("/opt/other"))
    assert found.files == (
        AddedFile("/opt/app", source=HERE / "app"),
        AddedFile("/etc/motd", text="welcome\n", mode=0o600),
        AddedFile("/opt/run", source=HERE / "run.sh", mode=0o755),
        AddedFile("/opt/latest", link="app"),
    )
    assert dict(found.variables) == {"OMP_NUM_THREADS": "4", "GREETING": "good morning"}
    assert found.build == ("memory.stream", "mpi.latency") and found.march == "x86-64-v3"
    assert found.format is ImageFormat.OCI and found.digest.startswith("sha256:")


def test_short_definitions() -> None:
    assert read_image_file(b"base: static\n", "i", HERE).base == StaticBase()
    assert read_image_file(b"base: {image: root.tar}\n", "i", HERE).base == GivenBase(HERE / "root.tar")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("base: static\npackages: [g++]\n", "line 2: packages: packages need base: {debian"),
        ("packages: [g++]\n", "the key base is missing"),
        ("base: fedora\n", "line 1: base: it cannot be 'fedora'"),
        ("base: {}\n", "neither debian nor image is given"),
        ("base: {debian: 3}\n", "line 1: base.debian: it cannot be 3"),
        ("base: static\nfiles: {/x: {from: [y]}}\n", "files./x.from: it cannot be ['y']"),
        ("base: {debian: bookworm, image: x}\n", "debian and image are both given"),
        ("base: {debian: '--help'}\n", "base.debian: it cannot be '--help'"),
        ("base: {debian: bookworm, mirror: 'http://user:word@host/'}\n", "without a password"),
        ("base: {debian: bookworm, mirror: '[trusted=yes] http://x/'}\n", "base.mirror: it cannot be"),
        ("base: {image: x, mirror: 'http://x/'}\n", "an image has no mirror"),
        ("base: {debian: bookworm}\npackages: ['g++,-o']\n", "is not the name of a Debian package"),
        ("base: {debian: bookworm}\npackages: ['--hook']\n", "is not the name of a Debian package"),
        ("base: {debian: bookworm}\npackages: [g++, g++]\n", "'g++' is listed twice"),
        ("base: static\nfiles: {etc/motd: x}\n", "it is not a path in the image"),
        ("base: static\nfiles: {/: x}\n", "it is not a path in the image"),
        ("base: static\nfiles:\n  /a: x\n  /etc/../x: y\n", "line 4: files./etc/../x: a path in the image has no .."),
        ("base: static\nfiles: {/proc/x: y}\n", "/proc in a container is the kernel's"),
        ("base: static\nfiles: {/dev/sda: y}\n", "/dev in a container is the kernel's"),
        ("base: static\nfiles: {/.seatrial/image.json: y}\n", "is seatrial's"),
        ("base: static\nfiles: {/x: ../../etc/shadow}\n", ".. is not accepted"),
        ("base: static\nfiles: {/x: {from: y, mode: 4755}}\n", "setuid, setgid and sticky bits are not accepted"),
        ("base: static\nfiles: {/x: {from: y, mode: rwx}}\n", "write permissions in octal"),
        ("base: static\nfiles: {/x: {from: y, text: z}}\n", "from and text are both given"),
        ("base: static\nfiles: {/x: {mode: 0755}}\n", "it states no content"),
        ("base: static\nfiles: {/x: {link: y, mode: 0755}}\n", "a link has no permissions"),
        ("base: static\nfiles: {/x: {form: y}}\n", "did you mean from?"),
        ("base: static\nprograms: [./a, b/a]\n", "have the same name"),
        ("base: static\nprograms: [../busybox]\n", ".. is not accepted"),
        ("base: static\nvariables: {lower: x}\n", "write it in upper case"),
        ("base: static\nvariables: {API_TOKEN: x}\n", "suggests a secret"),
        ("base: static\nbuild: [memory.stream]\n", "a static image has no compiler"),
        ("base: {debian: bookworm}\nbuild: [memory.steam]\n", "memory.stream"),
        ("base: {debian: bookworm}\nbuild: [io.file]\n", "io.file has no program of seatrial"),
        ("base: {debian: bookworm}\nmarch: native -fplugin=x\n", "march: it cannot be"),
        ("base: static\nformat: squash\n", "did you mean squashfs?"),
        ("bas: static\n", "did you mean base?"),
    ],
)
def test_mistakes_are_named_with_file_and_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_image_file(text.encode(), "image.yaml", HERE)
    assert words in str(refused.value) and str(refused.value).startswith("image.yaml: "), refused.value


def test_the_published_schema_accepts_and_refuses_the_same() -> None:
    schema = SCHEMAS["image"]()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"base": {"debian": "bookworm"}, "files": {"/x": {"from": "y"}, "/z": "z"}})
    assert not validator.is_valid({"base": {"debian": "bookworm"}, "files": {"/x": {"form": "y"}}})
    assert not validator.is_valid({"packages": []}) and not validator.is_valid({"base": "fedora"})
    assert all(place["description"] for place in schema["properties"].values())
