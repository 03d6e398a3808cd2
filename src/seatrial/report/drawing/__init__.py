"""The drawing of a machine: processors, memory, what hangs on them, and the links between, as SVG.

`build` says what is to be seen (`scene`), `layout` where (`geometry`), `render` writes it down.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.device_copies import PeerRates
from seatrial.model.machine import Machine
from seatrial.report.drawing.build import build_scene
from seatrial.report.drawing.description import describe
from seatrial.report.drawing.layout import lay_out
from seatrial.report.drawing.peer_map import with_peer_map
from seatrial.report.drawing.render import document, fragment
from seatrial.report.pages.svg import Svg

__all__ = ["machine_svg", "machine_svg_fragment"]


def machine_svg(machine: Machine, peers: Sequence[PeerRates] = ()) -> str:
    """The drawing as an SVG file of its own, light and dark; the same machine always gives the same text. Where copies
    between GPUs were measured (`peers`), a heat map of them stands beside it."""
    scene = build_scene(machine)
    picture = lay_out(scene)
    beside, said = with_peer_map(picture, peers)
    return document(picture, f"Topology of {scene.title}", f"{describe(scene)} {said}".rstrip(), beside)


def machine_svg_fragment(machine: Machine, key: str = "topology") -> Svg:
    """The drawing as an `<svg>` element for a page, whose style variables (`--ink`, `--paper`, ...) colour it.

    `key` is its id and the start of its other ids: letters, digits, `-` and `_`, another one for each drawing of a
    page. Raises ValueError for any other key.
    """
    if not key or not key[0].isalpha() or not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
        raise ValueError(f"{key!r} is no id for a drawing: give letters, digits, - and _, a letter first")
    scene = build_scene(machine)
    return Svg(fragment(lay_out(scene), f"Topology of {scene.title}", describe(scene), key))
