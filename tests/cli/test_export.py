"""`seatrial export`, `query` and `import csv=`: formats that other tools read, round trips, refusals."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder
from analysis.test_index import put
from analysis.test_no_cpu_first import TAKEN
from cli.in_process import seatrial_here
from made_up import made_up_machine

from seatrial.engine.trial import keep_machine
from seatrial.model.machine.fact import Facts
from seatrial.model.results.exported import Exported, ExportedRow
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Stage
from seatrial.report.export.tables import csv_text, markdown_text
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

HEAD = (
    "benchmark,parameters,environment,figure,figure_parameters,unit,better,median,ci95_low,ci95_high,n_repeats,outcome"
)


def say(tmp_path: Path, *words: str) -> str:
    done = seatrial_here(*words, cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(tmp_path: Path, *words: str) -> str:
    done = seatrial_here(*words, cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Figures of two hosts, and a command of alice that failed."""
    put(tmp_path / "r", 7)
    folder = put(tmp_path / "r", 6, host="n2")
    machine = made_up_machine()
    serial = replace(machine, name="secrethost", facts=Facts({**machine.facts, **_serial()}))
    keep_machine(folder, serial, "machine")
    failing = Experiment("command", {"argv": ("/home/alice/app", "--in", "alice.dat", "-n", "4")}, "", "", "machine")
    folder.put("experiments", failing.id, failing.document())
    writer = RecordWriter(folder, "secrethost")
    outcome = Outcome.failed(Stage.RUN, "/home/alice/app: exit status 1 | on secrethost", "alice@secrethost <&> \x07")
    writer.append(RepeatRecord(failing.id, 0, 0, 1.7e9, 1.0, outcome, (), {}, {"host": "secrethost.cluster"}))
    writer.close()
    return tmp_path / "r"


def _serial() -> Facts:
    from made_up import facts

    return facts(serial_number="SN-4711-XY")


def test_csv_has_the_columns_of_the_contract_and_comes_back_equal(tmp_path: Path, results: Path) -> None:
    text = say(tmp_path, "export", "r")
    assert text.splitlines()[0] == HEAD
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["outcome"] for row in rows} == {"ok", "failed"}
    ok = next(row for row in rows if row["figure"] == "triad")
    assert json.loads(ok["parameters"])["threads"] == 2 and json.loads(ok["figure_parameters"])["threads"] == 2
    failed = next(row for row in rows if row["outcome"] == "failed")
    assert (failed["figure"], failed["median"], failed["n_repeats"]) == ("", "", "")
    (tmp_path / "a.csv").write_text(text)
    done = seatrial_here(
        "import", "csv=a.csv", "--results", "back", cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 3  # the table has an experiment that failed
    assert say(tmp_path, "export", "back") == text
    answer = json.loads(
        seatrial_here(
            "import", "csv=a.csv", "--results", "back", "--format", "json", cwd=tmp_path,
            SEATRIAL_CACHE=str(tmp_path / "cache"),
        ).stdout
    )  # fmt: skip
    assert answer["schema"] == "seatrial.results/1"
    assert say(tmp_path, "export", "back") == text  # the same table is not counted twice


def test_remarks_say_why_there_is_no_interval_and_who_had_no_cpu(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    made.add([1e10, 1.1e10] * 4, seen=TAKEN)
    made.add([1e10] * 3, cores="all")
    made.add([1e10 + 1e6 * k for k in range(12)], cores="two")  # each resembles the one before
    usual = seatrial_here("export", "r", cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "cache"))
    assert usual.stdout.splitlines()[0] == HEAD
    assert usual.stderr == "2 figures without an interval: --columns remarks says why\n"
    text = say(tmp_path, "export", "r", "--columns", "remarks")
    rows = {json.loads(row["parameters"])["cores"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["one"]["remarks"].startswith("no CPU for 60 % of the time (other processes used 1.6 of the 2 CPUs)")
    assert rows["one"]["ci95_low"] and "not judged" in rows["one"]["remarks"]
    assert rows["all"]["remarks"] == "an interval needs 6 repeats, 3 made"
    assert rows["two"]["remarks"].startswith("successive repeats are correlated (r = 0.")
    markdown = say(tmp_path, "export", "r", "--format", "markdown")
    assert all(row["remarks"] in markdown for row in rows.values()) and "| none |" in markdown
    junit = ET.fromstring(say(tmp_path, "export", "r", "--format", "junit"))
    texts = "".join(junit.itertext())
    assert all(row["remarks"] in texts for row in rows.values())
    (tmp_path / "a.csv").write_text(text)
    back = seatrial_here("import", "csv=a.csv", "--results", "b", "--format", "json", cwd=tmp_path)
    stated = [figure for one in json.loads(back.stdout)["experiments"] for figure in one["figures"]]
    assert {one["no_interval_because"] for one in stated} == {"", "its source states no interval"}
    assert "--columns is for CSV" in refused(tmp_path, "export", "r", "--format", "junit", "--columns", "remarks")


@pytest.mark.parametrize("output", ["csv", "markdown", "junit", "openmetrics"])
def test_an_anonymous_export_names_nobody(tmp_path: Path, results: Path, output: str) -> None:
    text = say(tmp_path, "export", "r", "--format", output, "--anonymous")
    for word in ("alice", "secrethost", "SN-4711", "/home", "n1", "cluster"):
        assert word not in text, word
    assert "triad" in text and "failed" in text


def test_junit_has_a_case_for_each_figure_and_failure(tmp_path: Path, results: Path) -> None:
    root = ET.fromstring(say(tmp_path, "export", "r", "--format", "junit"))
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("9", "1", "0")
    error = root.find(".//error")
    assert error is not None and "exit status 1" in (error.get("message") or "") and "<&> ?" in (error.text or "")


def test_a_strict_parser_reads_the_openmetrics(tmp_path: Path, results: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="needs prometheus-client (PyPI)")
    families = list(parser.text_string_to_metric_families(say(tmp_path, "export", "r", "--format", "openmetrics")))
    figures = next(family for family in families if family.name == "seatrial_figure")
    assert len(figures.samples) == 8 and {s.labels["figure"] for s in figures.samples} == {
        "copy",
        "scale",
        "add",
        "triad",
    }


def test_parquet_and_markdown(tmp_path: Path, results: Path) -> None:
    import duckdb

    assert "name a file" in refused(tmp_path, "export", "r", "--format", "parquet")
    say(tmp_path, "export", "r", "--format", "parquet", "-o", "a.parquet")
    found = duckdb.sql(f"SELECT * FROM '{tmp_path}/a.parquet'")
    assert ",".join(found.columns) == HEAD and len(found.fetchall()) == 9
    table = say(tmp_path, "export", "r", "--format", "markdown").splitlines()
    assert len(table) == 11 and all(line.replace("\\|", "").count("|") == 9 for line in table)


def test_a_column_and_a_label_for_each_parameter(tmp_path: Path, results: Path) -> None:
    text = say(tmp_path, "export", "r", "--columns", "parameters")
    assert text.splitlines()[0].startswith(f"{HEAD},parameter.")
    for row in csv.DictReader(io.StringIO(text)):
        given = {**json.loads(row["parameters"]), **json.loads(row["figure_parameters"] or "{}")}
        assert row["parameter.threads"] == str(given.get("threads", ""))
        assert row["parameter.argv"] == ("/home/alice/app --in alice.dat -n 4" if row["benchmark"] == "command" else "")
    (tmp_path / "a.csv").write_text(text)
    seatrial_here("import", "csv=a.csv", "--results", "b", cwd=tmp_path, SEATRIAL_CACHE=str(tmp_path / "cache"))
    assert say(tmp_path, "export", "b", "--columns", "parameters") == text
    assert "is for CSV" in refused(tmp_path, "export", "r", "--columns", "parameters", "--format", "junit")
    metrics = say(tmp_path, "export", "r", "--format", "openmetrics")
    assert metrics.count('parameter_threads="2"') >= 8


def test_markdown_has_a_relative_column_and_commands_as_typed() -> None:
    def row(words: list[str], median: float, **more: object) -> ExportedRow:
        given = json.dumps({"argv": words, "warmup": 0, "expect": 0, **more})
        ends = (median * 0.99, median * 1.01)
        of_figure = ("wall", given, "s", "lower", median, *ends, 12)
        return ExportedRow("e", "command", given, "env", "m", "ok", "", "", *of_figure)

    rows = (row(["./a", "x y"], 1.5), row(["./b"], 1.0, warmup=1), row(["sleep", "1"], 2.0))
    table = [line.split(" | ") for line in markdown_text(Exported(rows)).splitlines()]
    assert table[0][5] == "Relative"
    assert [line[1] for line in table[2:]] == ["-- ./a 'x y'", "warmup=1 -- ./b", "-- sleep 1"]
    assert [line[5] for line in table[2:]] == ["1.50 (1.47 to 1.53)", "1.00", "2.00 (1.96 to 2.04)"]
    assert markdown_text(Exported(rows[:1])).splitlines()[2].split(" | ")[5] == ""


def test_queries_answer_in_three_formats(tmp_path: Path, results: Path) -> None:
    sql = "SELECT figure, count(*) AS n FROM figures GROUP BY figure ORDER BY figure"
    assert say(tmp_path, "query", "r", sql, "--format", "csv") == "figure,n\nadd,2\ncopy,2\nscale,2\ntriad,2\n"
    found = json.loads(say(tmp_path, "query", "r", sql, "--format", "json"))
    assert found["rows"][0] == {"figure": "add", "n": 2}
    assert say(tmp_path, "query", "r", sql).splitlines()[1].split() == ["add", "2"]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT medain FROM figures", "did you mean median"),
        ("SELECT * FROM figurs", "the views are figures, samples"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("COPY figures TO 'x.csv'", "not one SELECT"),
        ("DROP VIEW figures", "not one SELECT"),
        ("SELECT 1; SELECT 2", "not one SELECT"),
        ("SET enable_external_access = true", "not one SELECT"),
        ("selct", "cannot be answered"),
        ("", "not one SELECT"),
    ],
)
def test_other_sql_is_refused(tmp_path: Path, results: Path, sql: str, words: str) -> None:
    assert words in refused(tmp_path, "query", "r", sql)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("benchmark,", "bench,", "the header is not"),
        ("B/s,higher", "GB/s,higher", "unit"),
        ("higher", "faster", "better"),
        ("ok\n", "good\n", "outcome"),
        (",7,ok", ",0,ok", "n_repeats"),
        ("4.3e+10", "nan", "not a number"),
        ('""threads"": 2', '""threads"": null', "JSON object"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, results: Path, old: str, new: str, words: str) -> None:
    text = say(tmp_path, "export", "r").replace("43000000000.0", "4.3e+10")
    assert old in text
    (tmp_path / "a.csv").write_text(text.replace(old, new))
    assert words in refused(tmp_path, "import", "csv=a.csv", "--results", "back")
    assert not (tmp_path / "back").exists()


def test_a_page_of_several_folders_has_a_default_name(tmp_path: Path) -> None:
    put(tmp_path / "a", 2)
    put(tmp_path / "b", 2, host="n2")
    path = Path(say(tmp_path, "report", "a", "b").strip())
    assert path == (tmp_path / "a" / "report.html").resolve()
    assert "n1" in path.read_text() and "n2" in path.read_text()
    assert isinstance(ResultsFolder.existing(tmp_path / "a"), ResultsFolder)


def test_no_cell_of_a_table_is_a_formula() -> None:
    rows = [
        ExportedRow("e", name, json.dumps({"flags": flags}), "", "m", "ok", figure=name, unit="s", median=-1.5)
        for name, flags in (("=1+1", "-O3 -g"), ("@SUM(A1)", "-2+3+cmd|' /C calc'!A0"), ("+plain", "ordinary"))
    ]
    found = list(csv.DictReader(io.StringIO(csv_text(Exported(tuple(rows), ()), with_parameters=True))))
    assert [row["benchmark"] for row in found] == ["'=1+1", "'@SUM(A1)", "+plain"]
    assert [row["parameter.flags"] for row in found] == ["-O3 -g", "'-2+3+cmd|' /C calc'!A0", "ordinary"]
    assert {row["median"] for row in found} == {"-1.5"}
