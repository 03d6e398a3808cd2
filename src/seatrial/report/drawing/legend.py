"""The legend: the meaning of the styles in use, omitted if all are plain."""

from __future__ import annotations

from seatrial.report.drawing.geometry import LABEL_SIZE, Picture, Stroke, Text
from seatrial.report.drawing.scene import Grade, Scene, Tone
from seatrial.report.drawing.text_width import text_width

_SAMPLE = 30.0
_GRADES = {
    Grade.LOW: "link trained below its capability (idle devices reduce it)",
    Grade.GOOD: "measured, at least 90 % of the trained rate",
    Grade.FAIR: "measured, 75 to 90 %",
    Grade.POOR: "measured, below 75 %",
    Grade.UNMEASURED: "not measured",
}


def add_legend(picture: Picture, scene: Scene, left: float, widest: float) -> None:
    """Add the legend at the bottom."""
    items = _items(picture, scene)
    if not items or all(stroke.kind == "pcie" and stroke.grade is Grade.PLAIN for stroke, _ in items):
        return
    y = picture.lowest + 26
    right = max([*(box.right for box in picture.boxes), 420.0])
    x = left
    for stroke, text in items:
        width = _SAMPLE + 8 + text_width(text, LABEL_SIZE)
        if x > left and x + width > min(widest - left, max(right, 420.0)):
            x, y = left, y + 18
        picture.strokes.append(
            Stroke(
                ((x, y - 3.5), (x + _SAMPLE, y - 3.5)), stroke.kind, stroke.grade, stroke.width, "", "", stroke.assumed
            )
        )
        picture.labels.append(Text(x + _SAMPLE + 8, y, text, LABEL_SIZE, Tone.MUTED))
        x += width + 22


def _items(picture: Picture, scene: Scene) -> list[tuple[Stroke, str]]:
    used = {(stroke.kind, stroke.grade) for stroke in picture.strokes if stroke.kind != "rail"}
    items: list[tuple[Stroke, str]] = []
    if any(kind == "pcie" for kind, _ in used):
        items.append((Stroke((), "pcie"), "PCIe link, rate per direction"))
    for grade, text in _GRADES.items():
        if any(used_grade is grade for _, used_grade in used):
            items.append((Stroke((), "pcie", grade, 3.0 if grade in (Grade.GOOD, Grade.FAIR, Grade.POOR) else 1.5),
                          text))  # fmt: skip
    if scene.peers is not None and any(kind == "peer" for kind, _ in used):
        items.append((Stroke((), "peer", width=2.0), f"{scene.peers.name} between GPUs"))
    if scene.between is not None and any(kind == "socket" for kind, _ in used):
        items.append((Stroke((), "socket"), scene.between.name))
    if any(box.assumed for box in picture.boxes):
        items.append((Stroke((), "edge", assumed=True), "dashed: inferred, not reported directly"))
    return items
