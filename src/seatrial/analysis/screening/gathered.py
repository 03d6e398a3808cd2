"""All records of a folder as one table of columns, and the figures of its experiments in them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.analysis.screening.columns import (
    FOLDER_USE,
    ColumnReader,
    FigureKey,
    Hosts,
    ScreenColumns,
    add_values,
    numberings,
    tasks_of,
)
from seatrial.benchmarks import registry
from seatrial.errors import ProtocolError, StoreError
from seatrial.model.benchmark.program import UNREADABLE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.identity import is_stored_as_emulated
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.model.study.screen import NodePair
from seatrial.store.contents import KeptFacts, kept_facts
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import FileSpan, read_in_order

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]


class ScreenFolder(Frozen):
    """What a screen uses of a folder. Columns of records are in the order of `experiments`, and of time within each.
    Columns of values are in the order of the records, and as declared within each.

    `experiments` are those whose facts are known. The records of each are from its entry in `first` up to the next.
    """

    facts: KeptFacts
    experiments: Sequence[Experiment]
    first: Sequence[int]
    latest: Sequence[Outcome]
    """The outcome of the latest repeat of each experiment."""
    is_ever_ok: Sequence[bool]
    """Whether any repeat of each experiment is ok."""
    has_figures: Sequence[bool]
    """Whether that is ok, the values of all ok repeats of it are known, and its processors were not emulated."""
    hosts: Sequence[Hosts]
    record_hosts: Numbers
    """Of each record, the position in `hosts`."""
    record_repeats: Numbers
    record_t0: Numbers
    record_folder: Mapping[str, Numbers]
    """What each saw of the results folder, by `columns.FOLDER_USE`."""
    keys: Sequence[FigureKey]
    value_experiments: Numbers
    value_records: Numbers
    value_keys: Numbers
    values: Numbers
    links: Mapping[int, Sequence[Mapping[str, Any]]]
    """Record -> the counters of links that grew."""
    no_cpu: Mapping[int, NoCpu]
    """Record -> that its programs had no CPU for a tenth of its time or more."""
    fingerprints: Mapping[int, str]
    """Record -> the fingerprint of the deterministic run of its program."""
    file_systems: Mapping[str, str]
    """Node -> the type of the results folder's file system there."""
    pairs: Mapping[int, Mapping[str, Mapping[NodePair, float]]]
    """Record -> figure -> the value between two nodes."""
    damaged: Sequence[str]

    def records_of(self, experiment: int) -> range:
        """The records of an experiment."""
        return range(self.first[experiment], self.first[experiment + 1])

    def hosts_of(self, experiment: int) -> list[Hosts]:
        """The different ones of its records."""
        own = self.records_of(experiment)
        return [self.hosts[k] for k in dict.fromkeys(self.record_hosts[own.start : own.stop].tolist())]

    def by_repeat(self, records: Iterable[int]) -> list[int]:
        """These records by experiment and number of the repeat."""
        starts = self.first
        return sorted(records, key=lambda record: (bisect_right(starts, record), int(self.record_repeats[record])))


def screen_folder(folder: ResultsFolder) -> ScreenFolder:
    """All that a screen uses of a folder; large ones are read by a process for each CPU. Raises StoreError."""
    found = _Gathered()
    try:
        tasks, size_B = tasks_of(folder)
    except StoreError as error:
        found.damaged.append((0, 0, error.message))
        tasks, size_B = [], 0
    for spans, columns in zip(tasks, read_in_order(_reader, (folder.path,), tasks, size_B), strict=True):
        found.add(spans, columns)
    return found.made(folder)


def _reader(path: Path) -> Callable[[Sequence[FileSpan]], ScreenColumns]:
    """What reads spans of a folder, in any process."""
    return ColumnReader(path).read


class _Gathered:
    """Collects the columns of all spans."""

    def __init__(self) -> None:
        self.damaged: list[tuple[int, float, str]] = []
        self._spans: list[tuple[str, int]] = []
        """File, and the number of its lines before the span."""
        self._lines: dict[str, int] = {}
        self._numbers = numberings()
        self._records: dict[str, list[Numbers]] = {}
        self._values: dict[str, list[Numbers]] = {}
        self._n_records = self._n_values = 0
        self._links: dict[int, Sequence[Mapping[str, Any]]] = {}
        self._no_cpu: dict[int, NoCpu] = {}
        self._fingerprints: dict[int, str] = {}
        self._file_systems: dict[str, str] = {}
        self._pairs: dict[int, Mapping[str, Mapping[NodePair, float]]] = {}
        self._declared: dict[int, tuple[str, int, int]] = {}

    def add(self, spans: Sequence[FileSpan], columns: ScreenColumns) -> None:
        """Add what the next spans have."""
        first = len(self._spans)
        for span, n in zip(spans, columns.n_lines, strict=True):
            before = self._lines.get(span.file, 0) if span.start else 0
            self._spans.append((span.file, before))
            self._lines[span.file] = before + n
        for place, line, text in columns.damaged:
            file, before = self._spans[first + place]
            at = f"{file} line {before + line}: " if line else ""
            self.damaged.append((first + place, line or float("inf"), at + text))
        of = {
            "experiment": self._renumbered("experiments", columns.experiments),
            "outcome": self._renumbered("outcomes", columns.outcomes),
            "hosts": self._renumbered("hosts", columns.hosts),
            "key": self._renumbered("keys", columns.keys),
        }
        records, values = map(_arrays, (columns.records, columns.values))
        records["span"] += first
        values["record"] += self._n_records
        for kept, new in ((self._records, records), (self._values, values)):
            for name, column in new.items():
                kept.setdefault(name, []).append(of[name][column] if name in of and len(column) else column)
        self._no_cpu |= {self._n_records + record: one for record, one in columns.no_cpu.items()}
        self._fingerprints |= {self._n_records + record: one for record, one in columns.fingerprints.items()}
        self._file_systems |= columns.file_systems
        self._links |= {self._n_records + record: links for record, links in columns.links.items()}
        self._pairs |= {self._n_records + record: pairs for record, pairs in columns.pairs.items()}
        for record, (offset, length) in columns.declared.items():
            file, _ = self._spans[int(records["span"][record])]
            self._declared[self._n_records + record] = (file, offset, length)
        self._n_records += len(columns.records["repeat"])
        self._n_values += len(columns.values["value"])

    def made(self, folder: ResultsFolder) -> ScreenFolder:
        """The whole."""
        import numpy as np

        names = list(self._numbers["experiments"])
        outcomes, hosts = list(self._numbers["outcomes"]), list(self._numbers["hosts"])
        records = {name: np.concatenate(parts) for name, parts in self._records.items()} or _arrays(
            ScreenColumns().records
        )
        experiment, repeat = records["experiment"], records["repeat"]
        counts = self._without_duplicates(names, records)
        damaged = [text for _, _, text in sorted(self.damaged, key=lambda one: one[:2])]
        facts = kept_facts(folder, {names[k]: int(n) for k, n in enumerate(counts)}, damaged)
        unreadable = records["is_unreadable"].astype(bool)
        self._add_declared(folder, facts, names, experiment, unreadable)

        known = np.asarray([name in facts.experiments for name in names], bool)
        kept = np.flatnonzero(known[experiment] & ~records["is_twice"]) if len(names) else np.zeros(0, np.int64)
        order = kept[np.lexsort((repeat[kept], records["order"][kept], records["t0"][kept], experiment[kept]))]
        rank = np.cumsum(known) - 1  # of the known ones among themselves
        of_records = rank[experiment[order]] if len(names) else order
        experiments = [facts.experiments[name] for name in names if name in facts.experiments]
        first = np.searchsorted(of_records, np.arange(len(experiments) + 1)).tolist()
        latest = [outcomes[records["outcome"][order[stop - 1]]] for stop in first[1:]]
        is_ok = np.asarray([one.is_ok for one in outcomes], bool)[records["outcome"][order]]
        ever_ok = {int(number) for number in of_records[is_ok]}
        wrong = set(of_records[unreadable[order]].tolist())
        has_figures = [
            latest[k].is_ok
            and k not in wrong
            and one.benchmark in registry()
            and not is_stored_as_emulated(facts.machines.get(one.machine, {}))
            for k, one in enumerate(experiments)
        ]
        place = np.full(len(experiment), -1, np.int64)
        place[order] = np.arange(len(order))

        values = {name: np.concatenate(parts) for name, parts in self._values.items()} or _arrays(
            ScreenColumns().values
        )
        of_values = place[values["record"]]
        usable = np.flatnonzero(of_values >= 0)
        if len(usable):
            usable = usable[np.asarray(has_figures, bool)[of_records[of_values[usable]]]]
        rows = usable[np.argsort(of_values[usable], kind="stable")]
        return ScreenFolder(
            facts=facts,
            experiments=experiments,
            first=first,
            latest=latest,
            is_ever_ok=[k in ever_ok for k in range(len(experiments))],
            has_figures=has_figures,
            hosts=hosts,
            record_hosts=records["hosts"][order],
            record_repeats=repeat[order],
            record_t0=records["t0"][order],
            record_folder={name: records[name][order] for name in FOLDER_USE},
            keys=list(self._numbers["keys"]),
            value_experiments=of_records[of_values[rows]],
            value_records=of_values[rows],
            value_keys=values["key"][rows],
            values=values["value"][rows],
            no_cpu={int(place[record]): one for record, one in self._no_cpu.items() if place[record] >= 0},
            fingerprints={int(place[record]): one for record, one in self._fingerprints.items() if place[record] >= 0},
            links={int(place[record]): one for record, one in self._links.items() if place[record] >= 0},
            file_systems=self._file_systems,
            pairs={int(place[record]): one for record, one in self._pairs.items() if place[record] >= 0},
            damaged=damaged,
        )

    def _without_duplicates(self, names: Sequence[str], records: dict[str, Numbers]) -> Numbers:
        """Mark records of repeats that are there before (`is_twice`); the number of others of each experiment."""
        import numpy as np

        experiment, repeat = records["experiment"], records["repeat"]
        order = np.lexsort((repeat, experiment))  # stable: the first one stays the first
        again = (experiment[order][1:] == experiment[order][:-1]) & (repeat[order][1:] == repeat[order][:-1])
        records["is_twice"] = np.zeros(len(repeat), bool)
        records["is_twice"][order[1:][again]] = True
        for record in np.flatnonzero(records["is_twice"]).tolist():
            span, line = int(records["span"][record]), int(records["line"][record])
            file, before = self._spans[span]
            text = f"{file} line {before + line}: duplicate repeat {repeat[record]} of {names[experiment[record]]}"
            self.damaged.append((span, line, text))
        return np.bincount(experiment[~records["is_twice"]], minlength=len(names))

    def _add_declared(
        self, folder: ResultsFolder, facts: KeptFacts, names: Sequence[str], experiment: Numbers, unreadable: Numbers
    ) -> None:
        """The values of declared benchmarks: `facts` have all their declarations now."""
        reader, found = ColumnReader(folder.path), ScreenColumns()
        for record, place in self._declared.items():
            own = facts.experiments.get(names[experiment[record]])
            if own is None:
                continue
            try:
                layout, values = reader.values(own.benchmark, *reader.again(*place))
            except (ProtocolError, *UNREADABLE):
                unreadable[record] = True
                continue
            numbers = self._numbers["keys"]
            add_values(found, record, [numbers[key] for key in layout.keys], values)
        if not self._declared:
            return
        for name, column in _arrays(found.values).items():
            self._values.setdefault(name, []).append(column)

    def _renumbered(self, table: str, values: Iterable[Any]) -> Numbers:
        """The number in all spans of each value of these."""
        import numpy as np

        known = self._numbers[table]
        return np.asarray([known[value] for value in values], np.int32)


def _arrays(columns: Mapping[str, array[Any]]) -> dict[str, Numbers]:
    import numpy as np

    return {name: np.array(column, column.typecode) for name, column in columns.items()}
