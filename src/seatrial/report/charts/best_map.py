"""The contenders of a sweep over two axes as a map: the figure of each as a colour, the leader framed."""

from __future__ import annotations

from seatrial.model.benchmark.parameter import Value
from seatrial.model.spelling import arrow_meaning, bare_name, setting_number, shortened, written
from seatrial.model.study.result import BestOfResult
from seatrial.report.blocks import Chart, always
from seatrial.report.charts import heat
from seatrial.report.studies import best_of_words

_LONGEST_ROW, _LONGEST_COLUMN = 34, 16
_CHARACTER = 7.2
_MARGIN = 22.0
_TALLEST = 624.0
_CELL_HEIGHT, _LEAST_HEIGHT = 26.0, 6.0
_NARROWEST = 58.0
_MOST_COLUMNS = 40


def best_map(result: BestOfResult, ident: str) -> Chart | None:
    """The map over the two axes with the most values, each cell the best of the other axes; None if fewer than two
    axes vary, or if there are more columns than a page has room for."""
    ranked = best_of_words.ranked(result)
    values = {name: _in_order([one.parameters.get(name) for one in result.contenders]) for name in result.over}
    varied = sorted((name for name in values if len(values[name]) > 1), key=lambda name: -len(values[name]))
    if not ranked or len(varied) < 2 or len(values[varied[1]]) > _MOST_COLUMNS:
        return None
    down, across = varied[:2]
    cells: dict[heat.Place, float] = {}
    for one in ranked:  # the best first, which a cell keeps
        place = values[down].index(one.parameters.get(down)), values[across].index(one.parameters.get(across))
        cells.setdefault(place, one.median or 0.0)
    rows = [shortened(_name(down, value), _LONGEST_ROW) for value in values[down]]
    columns = [shortened(_name(across, value), _LONGEST_COLUMN) for value in values[across]]
    widest = max(map(len, (*rows, bare_name(down))))
    grid = heat.Grid(
        result.figure,
        heat.Axis(bare_name(down), rows),
        heat.Axis(bare_name(across), columns),
        cells,
        next(iter(cells)),
        _MARGIN + _CHARACTER * widest,
        (
            max(_NARROWEST, 14 + _CHARACTER * max(map(len, columns))),
            max(_LEAST_HEIGHT, min(_CELL_HEIGHT, _TALLEST / len(rows))),
        ),
    )
    leads = "best" if result.is_beyond_noise else "leader, whose lead is undecided"
    caption = f"Medians; the frame marks the {leads}."
    if len(varied) > 2:
        caption += f" Each cell is the best over {' and '.join(map(bare_name, varied[2:]))}."
    title = f"{result.figure} over {bare_name(down)} and {bare_name(across)}"
    picture = heat.grids([grid], result.unit, arrow_meaning(result.better), f"{ident}-best-map", title, caption)
    return Chart(title, caption, always(picture), best_of_words.contenders_table(result))


def _in_order(values: list[Value | None]) -> list[Value | None]:
    """Distinct values: numbers ascend, then others in the order of their text."""

    def rank(value: Value | None) -> tuple[bool, float, str]:
        return (False, value, "") if isinstance(value, int | float) else (True, 0.0, str(value))

    return sorted(dict.fromkeys(values), key=rank)


def _name(axis: str, value: Value | None) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return setting_number(axis, value)
    return written(axis, value)
