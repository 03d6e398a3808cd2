"""The figures of nodes and devices, from the columns of folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from seatrial.analysis.grouped import Numbering
from seatrial.analysis.screening.columns import natural
from seatrial.analysis.screening.gathered import ScreenFolder
from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Figure
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import point_key
from seatrial.model.study.screen import Item, ItemFigure, RepeatsOfItems

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]

_DEVICE = "device"
"""The parameter that has the number of a GPU."""


class FigureRows(Frozen):
    """One figure at one point of one experiment. `number` is that of its rows in `FolderFigures.of_rows`."""

    experiment: int
    figure: Figure
    point: Mapping[str, Value]
    number: int


class FolderFigures:
    """The figures of the experiments of a folder: of each experiment as declared, points in order of appearance."""

    def __init__(self, folder: ScreenFolder) -> None:
        import numpy as np

        self.folder = folder
        self.figures: list[FigureRows] = []
        places = Numbering[tuple[Any, ...]]()
        same = [places[key.figure, point_key(dict(key.point))] for key in folder.keys]
        codes = folder.value_experiments * max(1, len(places)) + np.asarray(same, np.int64)[folder.value_keys]
        _, first, self.of_rows = np.unique(codes, return_index=True, return_inverse=True)
        """Of each value, the number of its figure."""
        declared: dict[str, dict[str, tuple[int, Figure]]] = {}
        ordered: list[tuple[int, int, int, FigureRows]] = []
        for number, row in enumerate(first.tolist()):
            experiment, key = int(folder.value_experiments[row]), folder.keys[folder.value_keys[row]]
            name = folder.experiments[experiment].benchmark
            if name not in declared:
                declared[name] = {one.name: (place, one) for place, one in enumerate(registry()[name].figures)}
            place, figure = declared[name][key.figure]
            ordered.append((experiment, place, row, FigureRows(experiment, figure, dict(key.point), number)))
        self.figures = [own for *_, own in sorted(ordered, key=lambda one: one[:3])]

    def values_of(self, figure: FigureRows) -> list[float]:
        """The values of one figure, in order of time."""
        import numpy as np

        return _values(self.folder, np.flatnonzero(self.of_rows == figure.number))


def item_figures(
    folders: Sequence[FolderFigures],
    is_of_one_node: Sequence[Sequence[bool]],
    confirmed_s: Mapping[str, Sequence[tuple[float, float]]],
) -> Iterator[ItemFigure]:
    """The figures of equal benchmark, parameters and environment, each with its items in order of their names.

    `is_of_one_node`: of each folder, whether each experiment ran on one node at a time. `confirmed_s`: when a node was
    measured again because it was odd, from and until, in seconds since 1970.
    """
    collected = _Collected(confirmed_s)
    for place, folder in enumerate(folders):
        collected.add(folder, is_of_one_node[place])
    yield from collected.made()


class _Collection(Struct):
    """One figure over experiments, named after the first of them."""

    experiment: Experiment
    figure: Figure
    parameters: dict[str, Value]
    rows: list[tuple[ScreenFolder, Numbers, Numbers, Numbers]]
    """Folder, rows, the number of the item of each row, and whether it is of when the node was measured again."""


class _ItemsOfFolder:
    """The items that values of a folder may belong to. `nodes` has the node of each of its hosts, `devices` the device
    of each of its figures, `numbers` the number of each item (-1: none yet) by node and device."""

    def __init__(self, folder: ScreenFolder, devices: Sequence[str]) -> None:
        import numpy as np

        nodes, names = Numbering[str](), Numbering[str]()
        of_hosts = [nodes[own.of_ranks[0] if own.of_ranks else ""] for own in folder.hosts]
        of_figures = [names[name] for name in devices]
        self.nodes, self.node_names = np.asarray(of_hosts, np.int64), list(nodes)
        self.devices, self.device_names = np.asarray(of_figures, np.int64), list(names)
        self.numbers = np.full(len(nodes) * len(names), -1, np.int64)


class _Collected:
    def __init__(self, confirmed_s: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        self._confirmed_s = confirmed_s
        self._of: dict[str, _Collection] = {}
        self._known: dict[Any, tuple[str, str]] = {}
        self._items = Numbering[Item]()

    def add(self, figures: FolderFigures, is_of_one_node: Sequence[bool]) -> None:
        """Add the figures of a folder."""
        import numpy as np

        folder = figures.folder
        of_figure = np.full(len(figures.figures), -1, np.int64)
        devices: list[str] = [""] * len(figures.figures)
        numbers = Numbering[str]()
        for one in figures.figures:
            if one.figure.is_secondary or not is_of_one_node[one.experiment]:
                continue
            key, devices[one.number] = self._collection(folder.experiments[one.experiment], one)
            of_figure[one.number] = numbers[key]
        nodes = np.asarray([bool(hosts.of_ranks) for hosts in folder.hosts], bool)
        hosts = folder.record_hosts[folder.value_records]
        wanted = np.flatnonzero((of_figure[figures.of_rows] >= 0) & (folder.values > 0) & nodes[hosts])
        of_wanted = of_figure[figures.of_rows[wanted]]
        order = np.argsort(of_wanted, kind="stable")
        is_later = self._is_later(folder)
        ends = np.searchsorted(of_wanted[order], np.arange(len(numbers) + 1))
        items = _ItemsOfFolder(folder, devices)
        for key, number in numbers.items():
            rows = wanted[order[ends[number] : ends[number + 1]]]
            if len(rows):
                own_items = self._items_of(items, hosts[rows], figures.of_rows[rows])
                self._of[key].rows.append((folder, rows, own_items, is_later[folder.value_records[rows]]))

    def _is_later(self, folder: ScreenFolder) -> Numbers:
        """Of each record, whether its node was measured again because it was odd."""
        import numpy as np

        found = np.zeros(len(folder.record_t0), bool)
        for host, own in enumerate(folder.hosts):
            for start, end in self._confirmed_s.get(own.of_ranks[0], ()) if own.of_ranks else ():
                found |= (folder.record_hosts == host) & (folder.record_t0 >= start) & (folder.record_t0 <= end)
        return found

    def _collection(self, experiment: Experiment, one: FigureRows) -> tuple[str, str]:
        """The key of the collection of a figure, and its device ("": none)."""
        parameters: dict[str, Value] = {**experiment.parameters, **one.point}
        typed = tuple((name, type(value), value) for name, value in parameters.items())
        same = (experiment.benchmark, experiment.environment, one.figure.name, typed)
        if same not in self._known:
            device = parameters.pop(_DEVICE, None)
            key = key_of(experiment.benchmark, parameters, experiment.environment, one.figure.name)
            self._of.setdefault(key, _Collection(experiment, one.figure, parameters, []))
            self._known[same] = (key, "" if device is None else f"GPU {device}")
        return self._known[same]

    def _items_of(self, items: _ItemsOfFolder, hosts: Numbers, figures: Numbers) -> Numbers:
        """The number of the item of each row."""
        import numpy as np

        codes = items.nodes[hosts] * len(items.device_names) + items.devices[figures]
        for code in np.unique(codes[items.numbers[codes] < 0]).tolist():
            node, device = divmod(code, len(items.device_names))
            item = Item(items.node_names[node], items.device_names[device])
            items.numbers[code] = self._items[item]
        found: Numbers = items.numbers[codes]
        return found

    def made(self) -> Iterator[ItemFigure]:
        """The figures. Of one device per node the node is the item."""
        import numpy as np

        items = list(self._items)
        if not items:
            return
        nodes, devices = _ranks([item.node for item in items]), _ranks([item.device for item in items])
        known: dict[bytes, tuple[Item, ...]] = {}
        for one in self._of.values():
            if not one.rows:
                continue
            numbers = np.concatenate([own for _, _, own, _ in one.rows])
            values = [value for folder, rows, *_ in one.rows for value in _values(folder, rows)]
            is_later = np.concatenate([own for *_, own in one.rows])
            later: dict[int, list[float]] = {}
            if is_later.any():
                for row in np.flatnonzero(is_later).tolist():
                    later.setdefault(int(numbers[row]), []).append(values[row])
                numbers, values = numbers[~is_later], [values[row] for row in np.flatnonzero(~is_later).tolist()]
            if not values:
                continue
            found, first = np.unique(numbers, return_index=True)
            names = found[np.lexsort((first, devices[found], nodes[found]))]
            place = np.zeros(len(items), np.int64)
            place[names] = np.arange(len(names))
            order = np.argsort(place[numbers], kind="stable")
            starts = np.searchsorted(place[numbers][order], np.arange(len(names) + 1))
            own_items = known.get(names.tobytes())
            if own_items is None:
                own_items = tuple(items[k] for k in names.tolist())
                if len({item.device for item in own_items}) == 1:
                    own_items = tuple(Item(item.node) for item in own_items)
                known[names.tobytes()] = own_items
            yield ItemFigure(
                one.experiment.benchmark,
                one.figure.name,
                one.figure.unit,
                one.figure.better,
                own_items,
                RepeatsOfItems([values[k] for k in order.tolist()], starts.tolist()),
                one.parameters,
                {place: later[name] for place, name in enumerate(names.tolist()) if name in later},
            )


def key_of(*parts: object) -> str:
    """Equal for equal parts."""
    return json.dumps(parts, sort_keys=True, default=str)


def _values(folder: ScreenFolder, rows: Numbers) -> list[float]:
    """The values in these rows."""
    found: list[float] = folder.values[rows].tolist()
    return found


def _ranks(names: Sequence[str]) -> Numbers:
    """The position of each name in natural order; equal for those that sort as equal."""
    import numpy as np

    keys = [natural(name) for name in names]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.asarray([place[key] for key in keys], np.int64)
