"""What an image says about itself is part of its environment, without secrets, and nothing that it does not say."""

from __future__ import annotations

from pathlib import Path

from seatrial.analysis.container_contrast import container_facts
from seatrial.analysis.fairness.side import SideFacts
from seatrial.model.environment.image import FACTS_FILE, ImageFacts, Package, facts_text
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.images.given import stated_by

DIGEST = f"sha256:{'0' * 64}"


def image_with(path: Path, content: bytes) -> Image:
    (path / FACTS_FILE).parent.mkdir(parents=True)
    (path / FACTS_FILE).write_bytes(content)
    return Image(str(path), ImageKind.FOLDER, DIGEST)


def facts(*packages: Package) -> ImageFacts:
    variables = (("OMP_PROC_BIND", "close"), ("MY_TOKEN", "hidden"))
    return ImageFacts(DIGEST, DIGEST, "debian bookworm", "amd64", 0, packages, variables, (), 3, 4, 0, "0.1.0")


def test_an_image_of_ours_states_what_it_was_made_from(tmp_path: Path) -> None:
    made = stated_by(image_with(tmp_path, facts_text(facts(Package("libc6", "2.36-9", "amd64")))))["made"]
    assert made["base"] == "debian bookworm" and made["packages"] == ["libc6=2.36-9"]
    assert made["variables"] == {"OMP_PROC_BIND": "close"}


def test_what_an_image_does_not_say_is_left_out(tmp_path: Path) -> None:
    assert stated_by(image_with(tmp_path / "a", b'{"schema": "seatrial.image-facts/1"}')) == {}
    assert stated_by(Image("app", ImageKind.NAME, "")) == {}
    assert stated_by(Image(str(tmp_path / "x.sif"), ImageKind.SIF, "")) == {}


def test_pages_show_it_beside_the_other_side() -> None:
    def side(key: str, container: dict[str, object]) -> SideFacts:
        seen = {"container": {"image": key, "runtime": "Charliecloud", "root": "squashfs (ro)"}}
        record = RepeatRecord(key, 0, 0, 1.0, 1.0, Outcome.ok(), seen=seen)
        return SideFacts(
            {key: Experiment("cpu.peak", {}, key, "", "")}, {key: (record,)}, {key: {"container": container}}
        )

    made = {"made": {"base": "debian bookworm", "content": DIGEST, "packages": ["libc6=2.36-9"]}}
    found = {one.name: one for one in container_facts(side("a", made), side("b", {}))}
    assert (found["image made from"].baseline, found["image made from"].candidate) == ("debian bookworm", None)
    assert found["packages in the image"].baseline == "1 package"
    assert found["root file system"].candidate == "squashfs in the kernel; squashfs (ro)"
