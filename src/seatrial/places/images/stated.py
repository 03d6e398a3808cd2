"""What an image that seatrial made says about itself, as part of the environment that it is."""

from __future__ import annotations

from functools import cache
from typing import Any

from seatrial.model.secrets import sounds_like_a_secret
from seatrial.places.containers.image import Image, ImageKind


@cache
def stated_by(image: Image) -> dict[str, Any]:
    """Its base, content, packages with their versions, and variables; empty if seatrial did not make it. Variables
    whose names suggest secrets are left out: an image may come from someone else."""
    from seatrial.places.images.read_facts import facts_of_image  # most runs have no image

    facts = None if image.kind in (ImageKind.NAME, ImageKind.SIF) else facts_of_image(image.path)
    if facts is None:
        return {}
    packages = None if facts.packages is None else [f"{one.name}={one.version}" for one in facts.packages]
    return {
        "made": {
            "base": facts.base,
            "content": facts.content,
            "packages": packages,
            "variables": {name: value for name, value in facts.variables if not sounds_like_a_secret(name)},
            "programs": [one.path for one in facts.programs],
        }
    }
