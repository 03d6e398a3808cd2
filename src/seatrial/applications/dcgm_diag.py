"""DCGM: `dcgmi diag`, as its table or JSON (`-j`), versions 1.7 to 4.5.

An experiment is one test on one GPU, or on all that the text does not name. A test that failed or warns is invalid, one
that did not run is skipped; neither has a figure. `passed` alone says that DCGM reports no fault: some tests pass
without having tested anything (a remark has what DCGM warns of). What a test measured is in its information, which the
table has with `-v`. A gigaflop is 2^30 of them there (nvvs, DiagnosticPlugin), of several precisions together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.runs import JSON_BEGIN
from seatrial.applications.reading.text import LogLine, Pattern, last_digit, read_lines
from seatrial.errors import ParseError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "dcgmi diag"
_HEADER = r"\| Diagnostic\s+\| Result\s+\|"
_ROW = Pattern(r"\|(.{1,60}?)\|(.{1,200})\|")
_RULE = Pattern(r"[+|][-= ]{3,}(?:[A-Z][\w ]{2,30}?[-= ]{2,})?[+|]?[-=+ ]{3,}[+|]?")
_FOOTER = Pattern(r"\+-{3,}\+-{3,}\+")
_MESSAGE = Pattern(r"(Errors?|Warnings?|Info)(?::\s*(.{1,20}))?")
_STATUS = Pattern(r"(Pass|Fail|Skip|Skipped|Warn|Not Run)(?: - (?:All|GPUs?:? ?([0-9, ]{1,200})))?", re.IGNORECASE)
_OF_ONE = Pattern(r"(?:GPU ?)?([A-Za-z]*[0-9]{1,4}): (\w[\w ]{1,20})")
_VERSIONS = {"DCGM Version", "Driver Version Detected", "GPU Device IDs Detected"}
_WIDTH, _CHUNK = 78, 45
"""Characters of a row, and of the part of a message in it, as DCGM prints the table."""

_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_ON = r"(?:GPU ?([0-9]{1,4})[ ,]\s*){0,2}\s*"
_COPIES, _PRODUCTS, _STRESS, _POWER = ("pcie",), ("diagnostic",), ("targeted stress", "sm stress"), ("targeted power",)
_MEASURED = (
    (Pattern(rf"{_ON}GPU to Host bandwidth:\s*{_NUMBER} GB/s"), "to_host", _COPIES, 1e9),
    (Pattern(rf"{_ON}Host to GPU bandwidth:\s*{_NUMBER} GB/s"), "to_device", _COPIES, 1e9),
    (Pattern(rf"{_ON}bidirectional bandwidth:\s*{_NUMBER} GB/s"), "bidirectional", _COPIES, 1e9),
    (Pattern(rf"{_ON}GPU to Host latency:\s*{_NUMBER} us"), "to_host_latency", _COPIES, 1e-6),
    (Pattern(rf"{_ON}Host to GPU latency:\s*{_NUMBER} us"), "to_device_latency", _COPIES, 1e-6),
    (Pattern(rf"{_ON}bidirectional latency:\s*{_NUMBER} us"), "bidirectional_latency", _COPIES, 1e-6),
    (Pattern(rf"{_ON}calculated at approximately\s*{_NUMBER} gigaflops"), "flops", _PRODUCTS, 2.0**30),
    (Pattern(rf"{_ON}relative stress level:?\s*{_NUMBER}(?![0-9.])"), "stress_level", _STRESS, 1.0),
    (Pattern(rf"{_ON}max power:\s*{_NUMBER} W"), "max_power", _POWER, 1.0),
    (Pattern(rf"{_ON}max power:\s*[0-9.]+ W average power\s*usage:\s*{_NUMBER} W"), "mean_power", _POWER, 1.0),
)
"""What a test states of a GPU -> series, the tests that state it, and its unit in SI."""


class _Result(Struct):
    """What one test reports of one GPU ("all": of those that it does not name)."""

    test: str
    gpu: str
    status: str
    messages: list[str] = []
    info: list[str] = []


class _Test(Struct):
    """A test with its status for the whole node (""), the results of its GPUs, and messages that may name one."""

    name: str
    where: ParseError
    status: str = ""
    gpus: dict[str, str] = {}
    said: list[tuple[str, str, str]] = []
    """What it is (error, warning or info), of which GPU (""), and the text."""


def read(data: bytes) -> ImportedFile:
    """The results of all tests. Raises ParseError for a table or JSON that is damaged, cut off or not of `dcgmi
    diag`."""
    name = "DCGM GPU Diagnostic" if b'"DCGM GPU Diagnostic"' in data else "DCGM Diagnostic"  # until 3, and since 4
    is_table = not is_json(data, name)
    version, serials, tests = _from_table(read_lines(data, _TOOL)) if is_table else _from_json(data, name)
    if not tests:
        raise ParseError(_TOOL, None, "", "no results of tests")
    experiments: dict[tuple[str, str], ImportedExperiment] = {}
    for test in tests:
        for result in _results(test):
            key = (result.test, result.gpu)
            if key in experiments:
                raise _error(test.where, f"the test {result.test} of GPU {result.gpu} is here twice")
            experiments[key] = _experiment(result, test.where, serials.get(result.gpu))
    return ImportedFile("DCGM", version, tuple(experiments.values()))


def _error(where: ParseError, why: str) -> ParseError:
    return ParseError(_TOOL, where.line, where.text, why)


def _from_table(lines: Sequence[LogLine]) -> tuple[str, dict[str, str], list[_Test]]:
    begun = [k for k, one in enumerate(lines) if re.fullmatch(_HEADER, one.text.strip())]
    if not begun:
        raise ParseError(_TOOL, None, "", "no header `| Diagnostic | Result |`: not the table of `dcgmi diag`")
    if len(begun) > 1:
        raise lines[begun[1]].error("a second table begins here: put each run in its own file")
    version, tests, is_ended = "", list[_Test](), False
    width = len(lines[begun[0]].text.strip())
    for line in lines[begun[0] + 1 :]:
        text = line.text.strip()
        if _RULE.fullmatch(text):
            is_ended = bool(_FOOTER.fullmatch(text)) and bool(tests)
            continue
        row = _ROW.fullmatch(text)
        if row is None:
            if is_ended or not text:
                continue
            raise line.error("not a row of the table of `dcgmi diag`")
        if width == _WIDTH and len(text) != width:
            raise line.error("the row has another width than the table: it is damaged")
        if is_ended:
            raise line.error("a row below the end of the table")
        left, right = row[1].strip(), row[2]
        if left in _VERSIONS:
            version = right.strip() if left == "DCGM Version" else version
        elif left and not _MESSAGE.fullmatch(left):
            tests.append(_Test(left, line.error("")))
            _take_status(tests[-1], right.strip(), line)
        elif not tests:
            raise line.error("a message above the first test")
        else:
            _take_more(tests[-1], left, right, line)
    if not is_ended:
        raise lines[-1].error("the table has no end: the run did not end, or the text is cut off")
    return version, {}, tests


def _take_status(test: _Test, text: str, line: LogLine) -> None:
    match = _STATUS.fullmatch(text)
    if match is None:
        raise line.error(f"{text[:60]!r} is not a result (Pass, Fail, Skip, Warn or Not Run)")
    if match[2] is None:
        if test.status:
            raise line.error("a second result of this test")
        test.status = match[1].lower()
        return
    for gpu in re.findall(r"[0-9]+", match[2]):
        _take_gpu(test, gpu, match[1])


def _take_gpu(test: _Test, gpu: str, status: str) -> None:
    if gpu in test.gpus:
        raise _error(test.where, f"the test has two results of GPU {gpu}")
    test.gpus[gpu] = status.lower()


def _take_more(test: _Test, left: str, right: str, line: LogLine) -> None:
    """A row below the first one of a test: the result of a GPU, a message, or the next part of one."""
    whole = right[1:] if right.startswith(" ") else right
    chunk = whole[:_CHUNK] if len(right) == _CHUNK + 3 else right.strip()
    if (kind := _MESSAGE.fullmatch(left)) is not None:
        test.said.append((kind[1].lower().rstrip("s"), (kind[2] or "").removeprefix("GPU").strip(), chunk))
    elif not test.said and (one := _OF_ONE.fullmatch(right.strip())) and (status := _STATUS.fullmatch(one[2])):
        _take_gpu(test, one[1], status[1])
    elif not test.said:
        _take_status(test, right.strip(), line)
    else:
        what, gpu, text = test.said[-1]
        test.said[-1] = (what, gpu, text + chunk)


def _from_json(data: bytes, key: str) -> tuple[str, dict[str, str], list[_Test]]:
    document = read_object(data, _TOOL, key)
    body = document.object(key)
    for failure in ("runtime_error", "error"):
        if text := body.text(failure):
            raise body.error(f"DCGM reports an error: {text[:300]}")
    version = (document.object("metadata") if "metadata" in document else body).text("version") or ""
    return version, _serials(document, body), [_json_test(one) for one in _tests(body)]


def _tests(body: JsonObject) -> Iterator[JsonObject]:
    for category in body.objects("test_categories"):
        yield from category.objects("tests")


def _serials(document: JsonObject, body: JsonObject) -> dict[str, str]:
    """Serial numbers, by GPU."""
    stated = body.get("GPU Device Serials")
    found = {str(gpu): str(serial) for gpu, serial in stated.items()} if isinstance(stated, dict) else {}
    for group in document.objects("entity_groups") if "entity_groups" in document else ():
        for entity in group.objects("entities") if group.text("entity_group") == "GPU" else ():
            if (serial := entity.text("serial_num")) is not None:
                found[str(entity.whole("entity_id"))] = serial
    return {gpu: serial for gpu, serial in found.items() if serial.isalnum()}


def _json_test(one: JsonObject) -> _Test:
    name = one.text("name")
    if name is None:
        raise one.error("a test without a name")
    test = _Test(name, one.named(f"test {name}").error(""))
    if "test_summary" in one:
        summary = one.object("test_summary")
        test.status = _status(summary, test)
        test.said += _said(summary, "")
    for result in one.objects("results"):
        status = _status(result, test)
        gpus = _gpus(result)
        for gpu in gpus:
            _take_gpu(test, gpu, status)
        if not gpus:
            test.status = test.status or status
        test.said += _said(result, gpus[0] if len(gpus) == 1 else "")
    return test


def _status(result: JsonObject, test: _Test) -> str:
    text = (result.text("status") or "").lower()
    if not _STATUS.fullmatch(text) or " - " in text:
        raise _error(test.where, f"the result of {test.name} is {text[:40]!r}, not Pass, Fail, Skip, Warn or Not Run")
    return text


def _gpus(result: JsonObject) -> list[str]:
    number = result.whole("entity_id")
    if number is not None:
        group = result.text("entity_group") or "GPU"
        if not group.isalpha():
            raise result.error(f"{group[:40]!r} is not a kind of device")
        return [str(number) if group == "GPU" else f"{group}{number}"]
    for key in ("gpu_ids", "gpu_id"):
        if isinstance(value := result.get(key), str | int) and not isinstance(value, bool):
            return re.findall(r"[0-9]{1,4}", str(value))
    return []


def _said(result: JsonObject, gpu: str) -> Iterator[tuple[str, str, str]]:
    for key, what in (("warnings", "warning"), ("info", "info")):
        value = result.get(key)
        for one in value if isinstance(value, list) else [value]:
            text = one.get("warning") if isinstance(one, dict) else one
            if isinstance(text, str):
                yield what, gpu, text


def _results(test: _Test) -> list[_Result]:
    """The results of a test by GPU. Raises ParseError if its result for the node contradicts them."""
    found = {gpu: _Result(test.name, gpu, status) for gpu, status in test.gpus.items()}
    is_bad = {status in ("fail", "warn") for status in test.gpus.values()}
    if test.status == "pass" and True in is_bad:
        raise _error(test.where, f"{test.name} passed, but failed on a GPU: the text contradicts itself")
    if not found or (test.status in ("fail", "warn") and is_bad == {False}):
        found["all"] = _Result(test.name, "all", test.status)
    for what, gpu, text in test.said:
        words = " ".join(text.split())
        named = gpu or (match[1] if (match := re.match(r"GPU ?([0-9]{1,4})\b", words)) else "")
        if named and named not in found and "all" in found and found["all"].status != "skip":
            found[named] = _Result(test.name, named, found["all"].status)
        of = found.get(named) or found.get("all") or next(iter(found.values()))
        if what == "info":
            for other, part in _by_gpu(words, named):
                (found.get(other) or of).info.append(part)
        else:
            of.messages.append(words)
    return list(found.values())


def _by_gpu(words: str, gpu: str) -> list[tuple[str, str]]:
    """The parts of an information about several GPUs ("GPU 0 ..., GPU 1 ..."), by GPU."""
    parts = re.split(r",\s*(?=GPU ?[0-9]{1,4} )", words)
    return [(match[1] if (match := re.match(r"GPU ?([0-9]{1,4}) ", part)) else gpu, part) for part in parts]


def _experiment(result: _Result, where: ParseError, serial: str | None) -> ImportedExperiment:
    parameters: dict[str, Value] = {"test": result.test, "gpu": result.gpu}
    if serial is not None:
        parameters["device"] = serial
    samples = tuple(_samples(result, where))
    why = "; ".join(result.messages)[:600]
    on = "" if result.gpu == "all" else f" on GPU {result.gpu}"
    said = f"DCGM reports {result.status.title()} for {result.test}{on}{f': {why}' if why else ''}"
    if result.status in ("fail", "warn"):
        return ImportedExperiment("imported.dcgm-diag", samples, parameters, failed=said)
    if result.status != "pass":
        return ImportedExperiment("imported.dcgm-diag", (), parameters, skipped=said)
    remarks = (f"passed, but DCGM warns: {why}",) if why else ()
    return ImportedExperiment(
        "imported.dcgm-diag", (figures.rate_sample("passed", 1.0), *samples), parameters, remarks=remarks
    )


def _samples(result: _Result, where: ParseError) -> Iterator[Sample]:
    """What the information states. Raises ParseError for a figure that is there twice, or of another GPU."""
    seen: set[str] = set()
    for text in result.info:
        for pattern, series, tests, unit in _MEASURED:
            for match in pattern.finditer(text):
                *_, gpu, printed = match.groups()
                if result.test.lower().replace("_", " ") not in tests:
                    raise _error(where, f"{series} is not a result of {result.test}: rows are missing, or damaged")
                if gpu not in (None, result.gpu) and result.gpu != "all":
                    raise _error(where, f"{series} of GPU {gpu} is among the results of GPU {result.gpu}")
                if series in seen:
                    raise _error(where, f"{result.test} states {series} of GPU {result.gpu} twice")
                seen.add(series)
                value = figures.in_SI(float(printed), unit)
                if value and unit < 1:
                    yield figures.time_sample(series, value, resolution=last_digit(printed))
                elif value:
                    yield figures.rate_sample(series, value, resolution=last_digit(printed))


IMPORTED = figures.imported(
    "dcgm-diag",
    "dcgmi diag",
    "Which tests of DCGM did the GPUs pass, and what did they measure?",
    (
        figures.text("test", "test, as DCGM names it"),
        figures.text("gpu", "number that DCGM gives the GPU; all: those that the text does not name"),
        figures.text("device", "serial number of the GPU"),
    ),
    (
        figures.rate("passed", "1", "1: DCGM reports Pass, of whatever it tested"),
        figures.rate("to_host", "B/s", "copies from the GPU to the host"),
        figures.rate("to_device", "B/s", "copies from the host to the GPU"),
        figures.rate("bidirectional", "B/s", "copies in both directions at once"),
        figures.time("to_host_latency", "of a small copy to the host"),
        figures.time("to_device_latency", "of a small copy to the GPU"),
        figures.time("bidirectional_latency", "of small copies in both directions"),
        figures.rate("flops", "flop/s", "matrix products in several precisions, as DCGM counts them"),
        figures.rate("stress_level", "1", "relative performance under stress, as DCGM defines it"),
        figures.rate("max_power", "W", "highest power", is_secondary=True),
        figures.rate("mean_power", "W", "mean power", is_secondary=True),
    ),
)

READER = figures.Reader("dcgm-diag", read, (rf"{_HEADER}|{JSON_BEGIN}",), is_from_documentation=True)
