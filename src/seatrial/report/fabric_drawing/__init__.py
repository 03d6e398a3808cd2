"""The drawing of a fabric as SVG: switches by level, the nodes below them, and the links in between.

`folding` finds the parts that look alike, `layout` places one of each. A small fabric is drawn switch by switch.
"""

from __future__ import annotations

from seatrial.model.fabric import Fabric
from seatrial.report.drawing.render import document
from seatrial.report.fabric_drawing.folding import fold_fabric
from seatrial.report.fabric_drawing.layout import lay_out
from seatrial.report.units import count

__all__ = ["fabric_svg"]


def fabric_svg(fabric: Fabric) -> str:
    """The drawing as a separate SVG file, light and dark; the same fabric always gives the same text."""
    title = f"Fabric from {', '.join(fabric.sources)}"
    about = ", ".join(
        [
            count(len(fabric.switches), "switch", "switches"),
            count(len(fabric.levels), "level"),
            count(len(fabric.nodes), "node"),
            count(len(fabric.links), "link"),
        ]
    )
    return document(lay_out(title, about, fold_fabric(fabric)), title, about)
