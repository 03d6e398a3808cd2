"""sacct of Slurm: what jobs took, from its table (with `-P`, or of fixed width) or its JSON, 21.08 to 25.11.

Without a header, only the columns that Open XDMoD asks for (shredder of Slurm) are known by their form. An experiment
is a job; its steps are parts of it, and only give what the job itself has not: memory, and the CPU time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.text import LogLine, Pattern, moment_of, number, read_lines
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Better, Figure, elapsed
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "sacct"
_TIME = Pattern(r"(?:(?:([0-9]{1,5})-)?([0-9]{1,2}):)?([0-9]{1,3}):([0-9]{2}(?:\.[0-9]{1,6})?)")
_SIZE = Pattern(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)([KMGTP]?)")
_RULE = Pattern(r"-{3,200}(?:\s+-{3,200}){1,200}")
_OK = ("COMPLETED",)
_NOT_ENDED = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING")
_COUNTS = {"AllocCPUS": "cpus", "NCPUS": "cpus", "AllocNodes": "nodes", "NNodes": "nodes", "NTasks": "ranks"}
_WORDS = {"JobName": "name", "Partition": "partition"}
_MOST_JOBS = 20_000

_ID, _MOMENT = Pattern(r"[0-9]{1,12}(?:[_+][0-9\[\],%-]{1,40})?(?:\.[\w+-]{1,40})?"), "%Y-%m-%dT%H:%M:%S"
_WITHOUT_HEADER = (
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem"),
    *("ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
)
"""Columns of `sacct --noheader --parsable2` as the documentation of Open XDMoD has them."""
_COUNT, _WHEN = Pattern("[0-9]{1,12}"), Pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}|Unknown|None")
_FORMS = {
    "JobID": _ID, "JobIDRaw": _ID, "GID": _COUNT, "UID": _COUNT, "Submit": _WHEN, "Eligible": _WHEN, "Start": _WHEN,
    "End": _WHEN, "Elapsed": _TIME, "ExitCode": Pattern(r"[0-9]{1,3}:[0-9]{1,3}"),
    "State": Pattern(r"[A-Z_]{2,20}(?: by [0-9]{1,12})?"), "NNodes": _COUNT, "NCPUS": _COUNT, "ReqCPUS": _COUNT,
}  # fmt: skip


def read(data: bytes) -> ImportedFile:
    """The jobs that ended. Raises ParseError for a table without JobID and State, or a damaged row."""
    if is_json(data, "jobs"):
        jobs = [_json_job(job) for job in read_object(data, _TOOL, "jobs").objects("jobs")]
    else:
        jobs = _jobs(_rows(read_lines(data, _TOOL)))
    experiments = tuple(job for job in jobs if job is not None)
    if not experiments:
        raise ParseError(_TOOL, None, "", "no job that has ended")
    if len(experiments) > _MOST_JOBS:
        raise ParseError(_TOOL, None, "", f"more than {_MOST_JOBS} jobs: select some with --name or --starttime")
    seen: set[Value] = set()
    for experiment in experiments:
        if experiment.parameters["job"] in seen:
            raise ParseError(_TOOL, None, str(experiment.parameters["job"]), "a job is here twice")
        seen.add(experiment.parameters["job"])
    return ImportedFile("sacct of Slurm", "", experiments)


_Row = tuple[LogLine, Mapping[str, str]]
_CLOCK_CHANGE_S = 3600.0
"""Local time jumps twice a year."""


def _rows(lines: Sequence[LogLine]) -> Iterator[_Row]:
    """The rows of the table, by the names of their columns."""
    named = next((k for k, one in enumerate(lines) if re.match(r"\s*JobID(?:Raw)?\b", one.text)), None)
    if named is None:
        yield from _known_by_form(lines)
        return
    header = lines[named]
    if "|" in header.text:
        names = header.text.strip().strip("|").split("|")
        for line in lines[named + 1 :]:
            cells = line.text.strip().split("|")
            if len(cells) == len(names) + 1 and not cells[-1]:  # -p ends each line with one
                del cells[-1]
            if len(cells) == len(names):
                yield line, dict(zip(names, map(str.strip, cells), strict=True))
            elif line.text.strip():
                raise line.error(f"the row has {len(cells)} cells, but the header {len(names)} columns")
        return
    if named + 1 >= len(lines) or not _RULE.fullmatch(lines[named + 1].text.strip()):
        raise header.error("no line of dashes below the header: where columns begin is unknown; use `sacct -P`")
    starts = [match.start() for match in re.finditer(r"-+", lines[named + 1].text)]
    edges = [*pairwise(starts), (starts[-1], None)]
    names = [header.text[start:end].strip() for start, end in edges]
    for line in lines[named + 2 :]:
        if line.text.strip():
            yield line, {name: line.text[start:end].strip() for name, (start, end) in zip(names, edges, strict=True)}


def _known_by_form(lines: Sequence[LogLine]) -> Iterator[_Row]:
    """The rows of a table without header, if all have the form of the columns that are known."""
    for line in lines:
        if not line.text.strip():
            continue
        cells = line.text.strip().split("|", len(_WITHOUT_HEADER) - 1)
        row = dict(zip(_WITHOUT_HEADER, map(str.strip, cells), strict=False))
        if len(cells) < len(_WITHOUT_HEADER) or not all(form.fullmatch(row[name]) for name, form in _FORMS.items()):
            raise line.error("no header with JobID, so the columns are unknown: give the table with it (without -n)")
        start, end = (moment_of(row[name], _MOMENT) for name in ("Start", "End"))
        elapsed_s = _seconds(row["Elapsed"]) or 0.0
        took_s = (end - start).total_seconds() if start and end else None
        if not _is_running(row["State"]) and took_s is not None and elapsed_s > took_s + _CLOCK_CHANGE_S:
            raise line.error(f"{row['Elapsed']} elapsed, but {took_s:.0f} s are between start and end: damaged")
        yield line, row


def _jobs(rows: Iterator[_Row]) -> list[ImportedExperiment | None]:
    """The jobs, each with what its steps add."""
    jobs: dict[str, _Row] = {}
    steps: dict[str, list[_Row]] = {}
    for line, row in rows:
        name = row.get("JobID") or row.get("JobIDRaw") or ""
        if _ID.fullmatch(name) is None:
            raise line.error(f"{name[:40]!r} is not the number of a job")
        job, _, step = name.partition(".")
        if step:
            steps.setdefault(job, []).append((line, row))
        elif job in jobs:
            raise line.error(f"job {job} is here a second time")
        else:
            jobs[job] = (line, row)
    return [_job(name, line, row, steps.get(name, [])) for name, (line, row) in jobs.items()]


def _is_running(state: str) -> bool:
    """Whether a state, be it cut off, is that of a job that has not ended."""
    return any(one.startswith(state) for one in _NOT_ENDED)


def _job(name: str, line: LogLine, row: Mapping[str, str], steps: Sequence[_Row]) -> ImportedExperiment | None:
    state = row.get("State", "").split(" ")[0].rstrip("+")
    if not state:
        raise line.error("no State: add it to --format, or a job that failed looks like one that succeeded")
    if _is_running(state):
        return None
    parameters: dict[str, Value] = {"job": name}
    parameters |= {parameter: row[key] for key, parameter in _WORDS.items() if row.get(key)}
    parameters |= {key: int(row[k]) for k, key in _COUNTS.items() if row.get(k, "").isdecimal() and int(row[k])}
    wall_s = _seconds(row.get("ElapsedRaw", "")) or _seconds(row.get("Elapsed", ""))
    cpu_s = _seconds(row.get("TotalCPU", ""))
    rss = [size for _, step in (*steps, (line, row)) if (size := _bytes(step.get("MaxRSS", ""))) is not None]
    energy_J = number(row.get("ConsumedEnergyRaw", "")) or None
    return _experiment(parameters, state, row.get("ExitCode", ""), wall_s, cpu_s, max(rss, default=None), energy_J)


def _json_job(job: JsonObject) -> ImportedExperiment | None:
    state = job.object("state").get("current")
    words = state if isinstance(state, list) else [state]
    if not words or not all(isinstance(word, str) for word in words):
        raise job.error("no state")
    current = str(words[0])
    if current in _NOT_ENDED:
        return None
    number_of = job.whole("job_id")
    if number_of is None:
        raise job.error("no job_id")
    parameters: dict[str, Value] = {"job": str(number_of)}
    parameters |= {key: text for key in ("name", "partition") if (text := job.text(key))}
    allocated = job.object("tres").get("allocated") if "tres" in job else None
    tres = [JsonObject(_TOOL, "tres", one) for one in allocated or () if isinstance(one, dict)]
    counted = {one.text("type"): one.whole("count") for one in tres}
    if nodes := _number(job, "allocation_nodes") or counted.get("node"):
        parameters["nodes"] = nodes
    if cpus := counted.get("cpu"):
        parameters["cpus"] = cpus
    time = job.object("time")
    wall_s = _number(time, "elapsed")
    if wall_s is None:
        raise time.error("no elapsed")
    total = time.object("total") if "total" in time else None
    cpu_s = None if total is None else total.number("seconds") + total.number("microseconds") / 1e6
    code = _number(job.object("exit_code"), "return_code") if isinstance(job.get("exit_code"), dict) else None
    return _experiment(parameters, current, "" if code is None else str(code), float(wall_s), cpu_s, None, None)


def _number(of: JsonObject, key: str) -> int | None:
    """A whole number, which Slurm since 23.02 may write as {"set": true, "infinite": false, "number": 4}."""
    value = of.get(key)
    if not isinstance(value, dict):
        return of.whole(key)
    return JsonObject(_TOOL, key, value).whole("number") if value.get("set") and not value.get("infinite") else None


def _experiment(
    parameters: Mapping[str, Value],
    state: str,
    exit_code: str,
    wall_s: float | None,
    cpu_s: float | None,
    rss_B: float | None,
    energy_J: float | None,
) -> ImportedExperiment:
    samples: list[Sample] = []
    for series, seconds in (("wall", wall_s), ("cpu_time", cpu_s)):
        if seconds:
            samples.append(figures.time_sample(series, seconds, resolution=1.0 / seconds if series == "wall" else 0.0))
    samples += [figures.rate_sample(name, v) for name, v in (("max_rss", rss_B), ("energy", energy_J)) if v]
    failed = "" if state in _OK else f"Slurm calls the job {state}{f' (exit code {exit_code})' if exit_code else ''}"
    return ImportedExperiment("imported.sacct", tuple(samples), parameters, failed=failed)


def _seconds(text: str) -> float | None:
    """[days-][hours:]minutes:seconds, or seconds (ElapsedRaw); None for nothing."""
    if text.isdecimal():
        return float(text)
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _bytes(text: str) -> float | None:
    match = _SIZE.fullmatch(text)
    return None if match is None else float(match[1]) * 1024.0 ** (" KMGTP".index(match[2] or " "))


IMPORTED = figures.imported(
    "sacct",
    "sacct of Slurm",
    "What did jobs take?",
    (
        figures.text("job", "number of the job"),
        figures.text("name", "name of the job"),
        figures.text("partition", "partition"),
        *figures.counts(nodes="nodes", cpus="CPUs that were allocated", ranks="tasks"),
    ),
    (
        figures.time("wall", "elapsed time of the job, in whole seconds"),
        Figure("cpu_time", "s", Better.LOWER, elapsed, "CPU time of all processes", is_secondary=True),
        Figure("max_rss", "B", Better.LOWER, WorkRate("amount"), "memory of the largest task", is_secondary=True),
        Figure("energy", "J", Better.LOWER, WorkRate("amount"), "energy that Slurm counted", is_secondary=True),
    ),
)

READER = figures.Reader("sacct", read)
