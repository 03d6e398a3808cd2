"""The contents of a results folder, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.benchmarks.declared import know_declarations
from seatrial.errors import ProtocolError, StoreError
from seatrial.model.environment.choice import check_environment
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import check_shape
from seatrial.model.machine.document import KeptMachineJson
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.spelling import count
from seatrial.model.study.result import PerRepeat, RecordPlace
from seatrial.model.study.study import KeptStudy, study_from_document
from seatrial.store.folder import MOST_LINE_B, ResultsFolder
from seatrial.store.record_lines import KeptDocuments, LineDecoder
from seatrial.store.stored_samples import PartReader, RecordFile

_LINE_BITS = 40


class Contents(Frozen):
    """All records by experiment, each list in order of repeat, with the facts that they refer to.

    `damaged` has a sentence for each line or file that was rejected; a torn last line (its writer was killed) is
    ignored, since that repeat was not finished. An index has in addition the `results` of the experiments, without
    ceilings, and knows which are `superseded`; None: not known.
    """

    experiments: Mapping[str, Experiment] = {}
    records: Mapping[str, Sequence[RepeatRecord]] = {}
    places: PerRepeat[RecordPlace] = PerRepeat({})
    machines: Mapping[str, Mapping[str, Any]] = {}
    environments: Mapping[str, Mapping[str, Any]] = {}
    studies: tuple[KeptStudy, ...] = ()
    damaged: tuple[str, ...] = ()
    results: Mapping[str, ExperimentResult] = {}
    superseded: frozenset[str] | None = None


def read_contents(folder: ResultsFolder) -> Contents:
    """Read the whole folder. Records with missing or damaged facts are skipped and reported in `damaged`."""
    damaged: list[str] = []
    by_experiment, lines = _all_records(folder, damaged)
    facts = kept_facts(folder, {key: len(repeats) for key, repeats in by_experiment.items()}, damaged)
    experiments = facts.experiments
    return Contents(
        experiments=experiments,
        records={key: tuple(by_experiment[key][n] for n in sorted(by_experiment[key])) for key in experiments},
        places=PerRepeat({key: lines[key] for key in experiments}),
        machines=facts.machines,
        environments=facts.environments,
        studies=kept_studies(folder, damaged),
        damaged=tuple(damaged),
    )


def joined(folders: Sequence[tuple[str, Contents]]) -> Contents:
    """The contents of several folders, given with their names, as one: what a merge of them would contain.

    Equal repeats are one. Of different ones with the same number, the later folder's gets the next free number. An
    entry names its folder. Of the documents of a machine, the most complete one counts.
    """
    if len(folders) == 1:
        return folders[0][1]
    records: dict[str, dict[int, RepeatRecord]] = {}
    places: dict[str, dict[int, RecordPlace]] = {}
    machines = KeptDocuments()
    best: dict[str, tuple[bool, int]] = {}
    for name, contents in folders:
        for identity, document in contents.machines.items():
            if identity not in best or _completeness(document) > best[identity]:
                best[identity] = _completeness(document)
                machines.keep(identity, dict(document))
        for key, repeats in contents.records.items():
            own, own_places = records.setdefault(key, {}), places.setdefault(key, {})
            known = {record.t0: record for record in own.values()}
            for record in repeats:
                same = known.get(record.t0)
                if same is not None and same.samples == record.samples:
                    continue
                number = record.repeat if record.repeat not in own else max(own) + 1
                own[number] = record if number == record.repeat else replace(record, repeat=number)
                where = contents.places.get((key, record.repeat))
                if where is not None:
                    own_places[number] = RecordPlace(f"{name.rstrip('/')}/{where.path}", where.line)
    return Contents(
        experiments={key: one for _, contents in folders for key, one in contents.experiments.items()},
        records={key: tuple(own[n] for n in sorted(own)) for key, own in records.items()},
        places=PerRepeat(places),
        machines=machines,
        environments={key: one for _, contents in folders for key, one in contents.environments.items()},
        studies=tuple(study for _, contents in folders for study in contents.studies),
        damaged=tuple(line for _, contents in folders for line in contents.damaged),
    )


class KeptFacts(Frozen):
    """What records refer to, by key."""

    experiments: Mapping[str, Experiment]
    machines: Mapping[str, Mapping[str, Any]]
    environments: Mapping[str, Mapping[str, Any]]


def kept_facts(folder: ResultsFolder, n_repeats: Mapping[str, int], damaged: list[str]) -> KeptFacts:
    """The experiments that have repeats (key -> how many), their machines and environments. Those with missing or
    damaged facts are left out, with a sentence in `damaged`."""
    experiments: dict[str, Experiment] = {}
    for key, n in n_repeats.items():
        try:
            experiments[key] = kept_experiment(folder, key)
        except StoreError as error:
            damaged.append(f"{error.message}: {count(n, 'repeat')} ignored")
    environments, machines = (
        kept_environments(folder, experiments, damaged),
        kept_machines(folder, experiments, damaged),
    )
    for key, experiment in list(experiments.items()):
        for kind, known, needed in (
            ("machines", machines, experiment.machine),
            ("environments", environments, experiment.environment),
        ):
            if needed and needed not in known and key in experiments:
                damaged.append(
                    f"{kind}/{needed[:80]}.json is missing: {count(n_repeats[key], 'repeat')} of {key} ignored"
                )
                del experiments[key]
    return KeptFacts(experiments, machines, environments)


def kept_studies(folder: ResultsFolder, damaged: list[str]) -> tuple[KeptStudy, ...]:
    """The studies whose results are in the folder."""
    found = []
    for key in _listed(lambda: folder.keys("studies"), damaged):
        try:
            found.append(study_from_document(folder.get("studies", key)))
        except StoreError as error:
            damaged.append(error.message)
        except ValueError as error:
            damaged.append(f"studies/{key}.json does not describe a study: {error}")
    return tuple(found)


def kept_environments(
    folder: ResultsFolder, experiments: Mapping[str, Experiment], damaged: list[str]
) -> dict[str, dict[str, Any]]:
    """Key -> document of the environments that experiments refer to, in the order of the experiments."""
    found: dict[str, dict[str, Any]] = {}
    for key in dict.fromkeys(experiment.environment for experiment in experiments.values()):
        if not key:
            continue
        try:
            document = folder.get("environments", key)
            check_environment(document)
            found[key] = document
        except StoreError as error:
            damaged.append(error.message)
        except ValueError as error:
            damaged.append(f"environments/{key}.json does not describe an environment: {error}")
    know_declarations(found.values())
    return found


def _listed(names: Callable[[], Iterable[str]], damaged: list[str]) -> tuple[str, ...]:
    """The names in a folder; none, with a sentence in `damaged`, if it is not a folder or cannot be read."""
    try:
        return tuple(names())
    except StoreError as error:
        damaged.append(error.message)
        return ()


def kept_machines(
    folder: ResultsFolder, experiments: Mapping[str, Experiment], damaged: list[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Identity -> the most complete document of that machine: only root sees memory modules, only hwloc device
    names."""
    best = KeptDocuments()
    for identity, _, document in _machine_documents(folder, experiments, damaged):
        best.keep(identity, document)
    return best


def kept_machine_keys(
    folder: ResultsFolder, experiments: Mapping[str, Experiment], damaged: list[str]
) -> dict[str, str]:
    """Identity -> key of the most complete document of that machine."""
    return {identity: key for identity, key, _ in _machine_documents(folder, experiments, damaged)}


def _machine_documents(
    folder: ResultsFolder, experiments: Mapping[str, Experiment], damaged: list[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Identity, key and document of machines; a later one of an identity is more complete."""
    wanted = {experiment.machine for experiment in experiments.values()}
    completeness: dict[str, tuple[bool, int]] = {}
    for key in _listed(lambda: folder.keys("machines"), damaged):
        try:
            document = folder.get("machines", key)
            identity = document.get("identity")
            if identity not in wanted if isinstance(identity, str) else identity is not None:
                continue
            check_shape(KeptMachineJson, document)
        except StoreError as error:
            damaged.append(error.message)
            continue
        except ValueError as error:
            damaged.append(f"machines/{key}.json does not describe a machine: {error}")
            continue
        if isinstance(identity, str) and (
            identity not in completeness or _completeness(document) > completeness[identity]
        ):
            completeness[identity] = _completeness(document)
            yield identity, key, document


def _completeness(document: Mapping[str, Any]) -> tuple[bool, int]:
    """Sort key: whether memory modules are known, then the number of sources."""
    return document["memory"]["peak_Bps"] is not None, len(document["sources"])


def _all_records(
    folder: ResultsFolder, damaged: list[str]
) -> tuple[dict[str, dict[int, RepeatRecord]], dict[str, RecordPlaces]]:
    """The records of each experiment by repeat, and where they are."""
    by_experiment: dict[str, dict[int, RepeatRecord]] = {}
    places: dict[str, RecordPlaces] = {}
    decoder, reader = LineDecoder(), PartReader(folder.path)
    for name in _listed(folder.record_files, damaged):
        try:
            for number, record in _records(folder, RecordFile(name, reader), decoder):
                if isinstance(record, ProtocolError):
                    damaged.append(f"{name} line {number}: {record.message}")
                    continue
                repeats = by_experiment.get(record.experiment)
                if repeats is None:
                    repeats = by_experiment[record.experiment] = {}
                    places[record.experiment] = RecordPlaces()
                if record.repeat in repeats:
                    damaged.append(f"{name} line {number}: duplicate repeat {record.repeat} of {record.experiment}")
                    continue
                repeats[record.repeat] = record
                places[record.experiment].add(record.repeat, f"records/{name}", number)
        except StoreError as error:
            damaged.append(error.message)
    return by_experiment, places


class RecordPlaces(Mapping[int, RecordPlace]):
    """Repeat -> where its record is, in little memory."""

    __slots__ = ("_files", "_lines")

    def __init__(self) -> None:
        self._files: list[str] = []
        self._lines: dict[int, int] = {}  # the number of the file above the bits of the line

    @classmethod
    def of(cls, files: list[str], places: Iterable[tuple[int, int, int]]) -> RecordPlaces:
        """From the file (a position in `files`), line and repeat of each record."""
        found = cls()
        found._files = files
        found._lines = {repeat: file << _LINE_BITS | line for file, line, repeat in places}
        return found

    @property
    def files(self) -> set[str]:
        """The files of the records."""
        return {self._files[number] for number in {place >> _LINE_BITS for place in self._lines.values()}}

    def add(self, repeat: int, file: str, line: int) -> None:
        """Add a record. The records of one file are added one after another."""
        if not self._files or self._files[-1] != file:
            self._files.append(file)
        self._lines[repeat] = len(self._files) - 1 << _LINE_BITS | line

    def __getitem__(self, repeat: int) -> RecordPlace:
        found = self._lines[repeat]
        return RecordPlace(self._files[found >> _LINE_BITS], found & (1 << _LINE_BITS) - 1)

    def __contains__(self, repeat: object) -> bool:
        return repeat in self._lines

    def __iter__(self) -> Iterator[int]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def files_of(places: Mapping[int, RecordPlace]) -> set[str]:
    """The files that repeats are recorded in: a session of measuring is one."""
    return places.files if isinstance(places, RecordPlaces) else {place.path for place in places.values()}


def _records(
    folder: ResultsFolder, file: RecordFile, decoder: LineDecoder
) -> Iterator[tuple[int, RepeatRecord | ProtocolError]]:
    """The records of one file with their line numbers from 1; an error for a rejected line. Raises StoreError."""
    for number, (offset, line) in enumerate(folder.record_lines(file.name), start=1):
        try:
            if line is None:
                raise ProtocolError(f"longer than {MOST_LINE_B >> 20} MiB")
            yield number, decoder.decode(line, file, offset)
        except ProtocolError as error:
            yield number, error


def kept_experiment(folder: ResultsFolder, key: str) -> Experiment:
    """The experiment of that name. Raises StoreError if it is missing or not the one that the name states."""
    document = folder.get("experiments", key)
    try:
        experiment = Experiment.from_document(document)
    except ValueError as error:
        raise StoreError(f"experiments/{key}.json does not describe an experiment: {error}") from error
    if experiment.id != key:
        raise StoreError(f"experiments/{key}.json is not the experiment of that name: its content has {experiment.id}")
    return experiment
