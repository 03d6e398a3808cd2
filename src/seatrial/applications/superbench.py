"""SuperBench's model benchmarks: results-summary.jsonl, and the log of `sb exec`.

A step time is the mean over the steps of one process; the throughput is the mean of batch over time of each step, of
that process alone (one device), and so above batch over mean time, by a few per cent if steps vary. The batch is the
whole number that their product is just above, for one model and precision of the benchmark at least; the rate here is
that batch over the mean time. A benchmark with another return code than 0 has no figure. Micro-benchmarks in the same
file are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.text import LogLine, read_lines
from seatrial.applications.reading.training import TRAINING_PARAMETERS, definitions
from seatrial.errors import ParseError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.printable import printable

_TOOL = "SuperBench"
_KEY = re.compile(
    r"(?:(?P<group>[\w:@.\-]{1,100})/)?(?P<model>[\w.\-]{1,80})/"
    r"(?:(?P<what>steptime|throughput)_(?P<action>train|inference)_(?P<precision>\w{1,20}?)"
    r"|(?P<precision2>[a-z0-9]{1,20})_(?P<action2>train|inference)_(?P<what2>step_time|throughput))(?::(?P<rank>[0-9]{1,6}))?"
)
_RESULT = re.compile(
    r"\[(?P<date>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<host>[\w.\-]{1,100}):[0-9]{1,9}\]"
    r"\[\w{1,40}\.py:[0-9]{1,6}\]\[INFO\] "
    r"benchmark: (?P<model>[\w.\-]{1,80}), return code: (?P<code>-?[0-9]{1,6}), result: (?P<result>\{.{0,20000}\})\.?"
)
_GROUP = re.compile(r"Executor is going to execute model-benchmark ([\w@:.\-]{1,80}): ")
_LIKE = re.compile(r"benchmark: [\w.\-]{1,80}, return code:")
_OBJECT = re.compile(r'\{(?=\s{0,200}"[^"\n]{1,300}"\s{0,20}:).{0,200}')
_SUMMARY = re.compile(r'"[^"\n]{0,200}/[^"\n]{0,100}(?:steptime|step_time|throughput)')
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "float64": "fp64", "bfloat16": "bf16", "int8": "int8"}
_EXACT, _NEAR = 0.005, 0.06
"""How far above batch over mean time the mean of rates may be: to give the batch; and at all."""


class _Found(Frozen):
    """Step time (s) or throughput (per second) of a model. `group`: the benchmark, whose models have one batch."""

    group: str
    model: str
    action: str
    precision: str
    what: str
    value: float
    rank: str
    host: str


def read(data: bytes) -> ImportedFile:
    """The model benchmarks in a summary or a log. Raises ParseError if there is none, or time and throughput of one
    contradict each other."""
    lines = read_lines(data, _TOOL)
    remarks: list[str] = []
    found: list[_Found] = []
    hosts: set[str] = set()
    if any(_LIKE.search(line.text) for line in lines):
        group = ""
        for line in lines:
            group = match[1] if (match := _GROUP.search(line.text)) is not None else group
            found += _of_log(line, group, hosts, remarks)
    else:
        for summary in _summaries("\n".join(line.text for line in lines)):
            node = summary.get("node")
            host = printable(node)[:100] if isinstance(node, str) else ""
            hosts |= {host} if host else set()
            found += _of_summary(summary, host)
    if not found:
        raise ParseError(_TOOL, None, "", "no step time and throughput of a model benchmark: from another program")
    experiments = _experiments(found, with_node=len(hosts) > 1)
    first = experiments[0]
    experiments[0] = replace(first, remarks=(*first.remarks, *remarks))
    return ImportedFile(_TOOL, "", tuple(experiments), host=hosts.pop() if len(hosts) == 1 else None)


def _summaries(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a summary: one, or one on each line. Raises ParseError for a damaged one."""
    decoder = json.JSONDecoder(parse_constant=lambda name: name)
    end = 0
    for match in _OBJECT.finditer(text) if _SUMMARY.search(text) else ():
        if match.start() < end:
            continue
        try:
            found, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, match.start()) + 1
            raise ParseError(_TOOL, line, match[0][:200], f"invalid JSON: {error}") from error
        yield found


def _of_summary(summary: Mapping[str, Any], host: str) -> Iterator[_Found]:
    for key, value in summary.items():
        if match := _KEY.fullmatch(key):
            yield _found(match, match["group"] or match["model"], value, None, host)


def _of_log(line: LogLine, group: str, hosts: set[str], remarks: list[str]) -> Iterator[_Found]:
    match = _RESULT.search(line.text) if line.is_ended else None
    if match is None:
        if line.is_ended and _LIKE.search(line.text):
            raise line.error("the line of a result is damaged")
        return
    hosts.add(match["host"])
    if match["code"] != "0":
        remarks.append(f"line {line.number}: {match['model']} ended with return code {match['code']}: no figure")
        return
    try:
        result = json.loads(match["result"].replace("'", '"'))
    except (ValueError, RecursionError) as error:
        raise line.error("the result is not a dictionary") from error
    for key, value in result.items():
        if (own := _KEY.fullmatch(f"{match['model']}/{key}")) is not None:
            if not isinstance(value, list) or len(value) != 1:
                raise line.error(f"{key} has several values: ranks or runs, of which it is not stated which")
            yield _found(own, group or match["model"], value[0], line, match["host"])


def _found(match: re.Match[str], group: str, value: object, line: LogLine | None, host: str) -> _Found:
    what = (match["what"] or match["what2"]).replace("_", "")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        why = f"{match[0][:80]} is {str(value)[:40]!r}, which is not a number above zero"
        raise line.error(why) if line is not None else ParseError(_TOOL, None, "", why)
    precision = match["precision"] or match["precision2"]
    scaled = value / 1e3 if what == "steptime" else float(value)
    action = match["action"] or match["action2"]
    return _Found(
        group, match["model"], action, _PRECISIONS.get(precision, precision), what, scaled, match["rank"] or "", host
    )


def _experiments(found: list[_Found], *, with_node: bool) -> list[ImportedExperiment]:
    groups: dict[tuple[str, str, str, str, str, str], dict[str, float]] = {}
    for one in found:
        own = groups.setdefault((one.group, one.model, one.action, one.precision, one.rank, one.host), {})
        if own.get(one.what, one.value) != one.value:
            why = f"{one.model}, {one.precision}: two values of {one.what}; put each run in its own file"
            raise ParseError(_TOOL, None, "", why)
        own[one.what] = one.value
    batches = _batches(groups)
    experiments: dict[str, ImportedExperiment] = {}
    for (group, model, action, precision, rank, host), values in groups.items():
        if values.keys() != {"steptime", "throughput"}:
            raise ParseError(_TOOL, None, "", f"{model}, {precision}: step time or throughput is missing")
        time_s, printed = values["steptime"], values["throughput"]
        batch = batches.get(group, 0)
        if batch and not batch * (1.0 - 1e-6) <= time_s * printed <= batch * (1.0 + _NEAR):
            why = f"{printed:.6g} samples/s in steps of {time_s:.6g} s are not a batch of {batch}"
            raise ParseError(_TOOL, None, "", f"{model}, {precision}: {why}")
        parameters: dict[str, Value] = {"model": model, "action": action, "precision": precision}
        if rank:
            parameters["rank"] = rank
        if with_node:
            parameters["node"] = host
        samples = [figures.time_sample("step_mean", time_s)]
        if batch:
            parameters["micro_batch"] = batch
            samples.append(Sample("rate_per_device", 0, time_s, {"amount": float(batch)}, point={"counts": "samples"}))
            samples.append(figures.rate_sample("mean_of_rates", printed))
        notes = {"definitions": definitions(IMPORTED, samples)}
        unknown = () if batch else ("the batch does not follow from throughput and time, so there is no rate",)
        experiments[str(parameters)] = ImportedExperiment(
            IMPORTED.name, tuple(samples), parameters, notes, remarks=unknown
        )
    return list(experiments.values())


def _batches(groups: Mapping[tuple[str, str, str, str, str, str], Mapping[str, float]]) -> dict[str, int]:
    """Benchmark -> its batch, where one of its products of time and throughput is just above a whole number."""
    found: dict[str, int] = {}
    for (group, *_), values in groups.items():
        product = values.get("steptime", 0.0) * values.get("throughput", 0.0)
        batch = round(product)
        if batch >= 1 and batch * (1.0 - 1e-6) <= product <= batch * (1.0 + _EXACT):
            found[group] = min(batch, found.get(group, batch))
    return found


IMPORTED = figures.imported(
    "superbench",
    _TOOL,
    "How fast did the models of SuperBench train?",
    (
        *TRAINING_PARAMETERS,
        figures.text("model", "network, as SuperBench names it"),
        figures.choice("action", "training or inference", "train", "inference"),
        figures.text("precision", "precision of the model"),
        figures.text("rank", "process whose result it is"),
        figures.text("node", "host whose result it is, if the file has several"),
    ),
    (
        figures.rate("rate_per_device", "op/s", "of one process: batch over the mean time of its steps"),
        figures.time("step_mean", "mean time of the steps after warm-up"),
        figures.rate(
            "mean_of_rates", "op/s", "throughput: the mean of batch over time of each step", is_secondary=True
        ),
    ),
)

READER = figures.Reader("superbench", read)
