"""Colours and strokes of a drawing, with the palette of the page.

A fragment uses the colour variables of its page; a document defines its own, for light and dark screens and print.
"""

from __future__ import annotations

from seatrial.report.drawing.geometry import LABEL_SIZE, Picture, Stroke, Text
from seatrial.report.drawing.labels import text_width
from seatrial.report.drawing.scene import Grade, Scene, Tone

_LIGHT = {
    "paper": "#ffffff", "raised": "#f6f7f8", "ink": "#1a1f24", "muted": "#59626b", "rule": "#e1e5e9", "axis": "#9aa4ae",
    "band": "#dfeaf5", "track": "#e9edf1", "accent": "#1f63a8", "alarm": "#b3261e", "caution": "#7a5200",
    "series-1": "#1f63a8", "series-2": "#b4530a", "series-3": "#1d7a55", "series-4": "#8a3fa0", "series-5": "#6b6b00",
    "heat-1": "#f3e680", "heat-2": "#aed57b", "heat-3": "#62c085", "heat-4": "#04a692", "heat-5": "#117d88",
    "heat-6": "#025f82", "heat-7": "#0c3b7f", "heat-8": "#261561",
}  # fmt: skip
_DARK = {
    "paper": "#14171a", "raised": "#1d2125", "ink": "#e6e9ec", "muted": "#a0aab3", "rule": "#2d3339", "axis": "#69737d",
    "band": "#1e3246", "track": "#272d33", "accent": "#74b0ec", "alarm": "#ff9184", "caution": "#e7b95c",
    "series-1": "#74b0ec", "series-2": "#f0a062", "series-3": "#6fcba0", "series-4": "#d39be6", "series-5": "#d0cc62",
    "heat-1": "#322571", "heat-2": "#144286", "heat-3": "#0a5d7e", "heat-4": "#0b737e", "heat-5": "#0e9a88",
    "heat-6": "#57b57b", "heat-7": "#a3ca70", "heat-8": "#ebde77",
}  # fmt: skip
FONT = 'system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "Liberation Sans", "DejaVu Sans", sans-serif'

_RULES = """
{s} text { font-family: var(--sans, {font}); fill: var(--ink); }
{s} .muted { fill: var(--muted); } {s} .warning { fill: var(--caution); font-weight: 600; }
{s} .alarm { fill: var(--alarm); font-weight: 600; }
{s} .bold { font-weight: 600; }
{s} rect { stroke: var(--axis); stroke-width: 1; fill: var(--paper); }
{s} .socket > rect { fill: var(--raised); stroke: var(--ink); stroke-width: 1.25; }
{s} .domain > rect { fill: var(--paper); }
{s} .cores > rect { fill: var(--band); stroke: none; }
{s} .cache > rect, {s} .rest > rect, {s} .bar > rect { fill: var(--track); stroke: none; }
{s} .memory > rect { fill: none; stroke: var(--series-4); stroke-opacity: 0.55; }
{s} .slot > rect { fill: var(--series-4); stroke: var(--series-4); }
{s} .slot-empty > rect { fill: none; stroke: var(--series-4); stroke-dasharray: 2 2; }
{s} .hub > rect { fill: var(--track); stroke: var(--axis); }
{s} .gpu > rect { stroke: var(--series-3); stroke-width: 1.75; }
{s} .nic > rect { stroke: var(--series-1); stroke-width: 1.25; }
{s} .nvme > rect, {s} .block > rect { stroke: var(--series-5); }
{s} .switch > rect, {s} .bank > rect, {s} .chip > rect { stroke: var(--series-3); }
{s} .bank > rect { fill: var(--raised); stroke-width: 1.5; }
{s} .assumed > rect { stroke-dasharray: 5 3; }
{s} .low > rect { stroke: var(--caution); stroke-width: 2; }
{s} .lines path { fill: none; stroke: var(--axis); stroke-linejoin: round; }
{s} .lines .pcie { stroke: var(--muted); }
{s} .lines .peer { stroke: var(--series-3); }
{s} .lines .socket { stroke: var(--ink); }
{s} .lines .over { stroke: var(--paper); }
{s} .lines .low { stroke: var(--caution); stroke-dasharray: 5 3; stroke-width: 2.5; }
{s} .lines .good { stroke: var(--series-3); stroke-width: 3; }
{s} .lines .fair { stroke: var(--caution); stroke-width: 3; stroke-dasharray: 10 3; }
{s} .lines .poor { stroke: var(--alarm); stroke-width: 3; stroke-dasharray: 8 3 2 3; }
{s} .lines .unmeasured { stroke-dasharray: 1.5 3; }
{s} .lines .assumed { stroke-dasharray: 5 3; }
{s} .ground { stroke: none; }
"""

_HEAT_RULES = """
.heat text { font-size: 12px; } .heat .tick { fill: var(--muted); font-size: 11.5px; }
.heat .on-low { fill: var(--ink); } .heat .on-high { fill: var(--paper); }
.heat .ground, .heat .blank { fill: var(--paper); } .heat .self { fill: var(--track); } .heat .frame { fill: none; }
"""


def heat_rules() -> str:
    """The style of a heat map in a separate drawing; a page has its own (templates/style.css)."""
    classes = " ".join(f".heat .h{k} {{ fill: var(--heat-{k}); stroke: none; }}" for k in range(1, 9))
    return f"{_HEAT_RULES.strip()}\n{classes}"


def rules(selector: str) -> str:
    """The style of one drawing; all rules are below `selector`, so they affect nothing else on a page."""
    return _RULES.strip().replace("{s}", selector).replace("{font}", FONT)


def palette() -> str:
    """The variables of a separate document: light, dark on dark screens, light on paper."""
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}"
    paper = f"@media print {{ :root {{ {_variables(_LIGHT)} }} }}"
    return f":root {{ color-scheme: light dark; {_variables(_LIGHT)} }}\n{dark}\n{paper}"


def _variables(values: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in values.items())


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
