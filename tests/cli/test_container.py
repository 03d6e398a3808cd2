"""`seatrial container make` as scripts see it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.cli.completion.answer import answers
from seatrial.cli.completion.table import made_table
from seatrial.plan.image_file import read_image_path
from seatrial.report.export.image_recipes import apptainer_definition, containerfile

IMAGE = """\
base: static
files:
  /opt/data: ./data
  /etc/motd: {text: "it's 100% \\\\ fine\\n", mode: 0640}
  /opt/link: {link: data}
variables: {GREETING: 'a "b" $c \\'}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("x")
    (tmp_path / "image.yaml").write_text(IMAGE)
    return tmp_path


def test_json_is_as_published(folder: Path) -> None:
    done = seatrial_here("container", "make", "image.yaml", "-o", "i.oci.tar", "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check(document, "image-1")
    check(facts(folder), "image-facts-1")
    assert document["format"] == "oci" and document["path"] == str(folder / "i.oci.tar")
    assert document["variables"] == {"GREETING": 'a "b" $c \\'} and document["packages"] == []


def facts(folder: Path) -> dict[str, object]:
    """Of the same image as a folder."""
    assert seatrial_here("container", "make", "image.yaml", "-o", "i", "-q", cwd=folder).stdout == f"{folder / 'i'}\n"
    found: dict[str, object] = json.loads((folder / "i" / ".seatrial" / "image.json").read_bytes())
    return found


def test_text_names_what_was_made(folder: Path) -> None:
    done = seatrial_here("container", "make", "image.yaml", "-o", "i.tar", cwd=folder)
    assert done.returncode == 0 and str(folder / "i.tar") in done.stdout and "sha256:" in done.stdout
    assert "base      static" in done.stdout and "0 packages" in done.stdout


@pytest.mark.parametrize(
    ("text", "arguments", "status", "words"),
    [
        ("base: static", ("-o", "image.yaml"), 2, "the ending .yaml is not one of an image"),
        ("base: static", ("-o", "data"), 2, "data exists already"),
        ("base: static", ("-o", "data", "--force"), 2, "is not an image that seatrial made"),
        ("base: static", ("-o", "x", "--also-as", "docker=x"), 2, "unknown recipe 'docker'"),
        ("base: static", ("-o", "x", "--also-as", "apptainer"), 2, "write --also-as apptainer=FILE"),
        ("base: static", ("-o", "x", "--also-as", "apptainer=image.yaml"), 2, "image.yaml exists already"),
        ("bas: static", ("-o", "x"), 2, "image.yaml: line 1: bas: unknown key"),
        ("base: {image: nowhere}", ("-o", "x"), 2, "nowhere does not exist"),
        ("base: static\nfiles: {/a/../b: data}", ("-o", "x"), 2, "a path in the image has no .."),
        (
            "base: {debian: bookworm}\nbuild: [cpu.peak]",
            ("-o", "x", "--also-as", "apptainer=d"),
            2,
            "leave `build` out",
        ),
    ],
)
def test_what_cannot_be_made_is_one_message(
    folder: Path, text: str, arguments: tuple[str, ...], status: int, words: str
) -> None:
    (folder / "image.yaml").write_text(text)
    before = sorted(folder.iterdir())
    done = seatrial_here("container", "make", "image.yaml", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_recipes_of_other_tools_describe_the_same(folder: Path) -> None:
    definition = "base: {debian: bookworm}\npackages: [g++, libopenmpi-dev=4.1.4-3]\n" + IMAGE.partition("\n")[2]
    (folder / "image.yaml").write_text(definition)
    found = read_image_path(folder / "image.yaml")
    apptainer = apptainer_definition(found)
    assert "Bootstrap: debootstrap\nOSVersion: bookworm\n" in apptainer
    assert "apt-get install -y --no-install-recommends g++ libopenmpi-dev=4.1.4-3" in apptainer
    assert f"    {folder}/data /opt/data" in apptainer
    container = containerfile(found, folder)
    assert container.splitlines()[2:4] == ["ARG DEBIAN=debian:bookworm-slim", "FROM ${DEBIAN}"]
    assert "MirrorURL: {{ MIRROR }}\n" in apptainer and "http" not in apptainer + container
    assert 'COPY ["data/", "/opt/data/"]' in container and 'ENV GREETING="a \\"b\\" \\$c \\\\"' in container
    (line,) = [line for line in container.splitlines() if "/etc/motd" in line]
    script = (
        line.removeprefix("RUN ")
        .replace("/etc/motd", f"{shlex.quote(str(folder))}/motd")
        .replace(" /etc", f" {folder}")
    )
    subprocess.run(["sh", "-c", script], check=True)
    assert (folder / "motd").read_text() == "it's 100% \\ fine\n" and (folder / "motd").stat().st_mode & 0o777 == 0o640
    shell = [line.strip() for line in apptainer.splitlines() if line.startswith("    ") and "APPTAINER_ROOTFS" in line]
    root = folder / "root"
    subprocess.run(
        ["sh", "-ec", "\n".join(shell)], env={"APPTAINER_ROOTFS": str(root), "PATH": "/usr/bin:/bin"}, check=True
    )
    assert (root / "etc" / "motd").read_text() == "it's 100% \\ fine\n" and (root / "opt" / "link").is_symlink()
    export = next(line.strip() for line in apptainer.splitlines() if "export GREETING" in line)
    shown = subprocess.run(["sh", "-c", f'{export}\nprintf %s "$GREETING"'], capture_output=True, text=True, check=True)
    assert shown.stdout == 'a "b" $c \\'


def test_what_a_recipe_cannot_state_is_refused(folder: Path) -> None:
    for text, kind, words in (
        ("files: {/a: 'a b'}", "apptainer", "cannot copy"),
        ("files: {/a: /bin/sh}", "containerfile", "copies only from the folder"),
        ("files: {/a: {text: x}}", "containerfile", "there is no shell inside"),
        ("files: {/a: {from: data/x, mode: 0600}}", "apptainer", "there is no chmod inside"),
    ):
        (folder / "a b").write_text("x")
        (folder / "image.yaml").write_text(f"base: static\n{text}\n")
        recipe = f"{kind}=recipe"
        done = seatrial_here("container", "make", "image.yaml", "-o", "i", "--also-as", recipe, cwd=folder)
        assert done.returncode == 2 and words in done.stderr, done.stderr
        assert not (folder / "i").exists() and not (folder / "recipe").exists()


def test_recipes_are_written_beside_the_image(folder: Path) -> None:
    (folder / "image.yaml").write_text("base: static\nfiles: {/opt/data: ./data}")
    arguments = ("--also-as", "apptainer=i.def", "--also-as", "containerfile=Containerfile")
    done = seatrial_here("container", "make", "image.yaml", "-o", "i", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Bootstrap: scratch" in (folder / "i.def").read_text()
    assert (folder / "Containerfile").read_text().splitlines()[1:] == ["FROM scratch", 'COPY ["data/", "/opt/data/"]']


def test_words_are_completed() -> None:
    table = made_table()
    assert answers(["container", ""], table)[0][0] == "make"
    assert [word for word, _ in answers(["container", "make", "--also-as", ""], table)] == [
        "apptainer=",
        "containerfile=",
    ]
    assert "image" in [word for word, _ in answers(["init", ""], table)]
