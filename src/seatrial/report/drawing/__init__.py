"""The drawing of a machine as SVG: processors, memory, attached devices, and the links between them.

`build` collects the content (`scene`), `layout` places it (`geometry`), `render` writes the SVG.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.device_copies import PeerRates
from seatrial.model.machine.machine import Machine
from seatrial.report.blocks import Svg
from seatrial.report.drawing.build import build_scene
from seatrial.report.drawing.layout import lay_out
from seatrial.report.drawing.peers import with_peer_map
from seatrial.report.drawing.render import describe, document, fragment

__all__ = ["machine_svg", "machine_svg_fragment"]


def machine_svg(machine: Machine, peers: Sequence[PeerRates] = ()) -> str:
    """The drawing as a separate SVG file, light and dark; the same machine always gives the same text. If copies
    between GPUs were measured (`peers`), a heat map of them is beside it."""
    scene = build_scene(machine)
    picture = lay_out(scene)
    beside, text = with_peer_map(picture, peers)
    return document(picture, f"Topology of {scene.title}", f"{describe(scene)} {text}".rstrip(), beside)


def machine_svg_fragment(machine: Machine, key: str = "topology") -> Svg:
    """The drawing as an `<svg>` element for a page, which takes its colours from the style variables (`--ink`, ...).

    `key` is its id and the start of its other ids: letters, digits, `-` and `_`, unique in the page. Raises ValueError
    for any other key.
    """
    if not key or not key[0].isalpha() or not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
        raise ValueError(f"{key!r} is not a valid id for a drawing: use letters, digits, - and _, a letter first")
    scene = build_scene(machine)
    return Svg(fragment(lay_out(scene), f"Topology of {scene.title}", describe(scene), key))
