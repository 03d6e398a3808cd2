"""The history of figures on pages: changes with their dates and what else changed, in `history -o` and `report`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from analysis.made_up_folders import MadeUpFolder, noisy
from cli.in_process import seatrial_here
from cli.test_export import refused, say
from cli.test_keep_results import months

from seatrial.interface.results import results_of_folders
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.history import Change, FigureHistory, Session
from seatrial.report.histories import drawn_sessions, history_page
from seatrial.report.pages.page import machines_words


def test_the_page_of_a_history_shows_its_change_and_what_else_changed(tmp_path: Path) -> None:
    months(tmp_path / "a", slow_from=15)
    text = say(tmp_path, "history", "triad", "a", "-o", "h.html")
    page = (tmp_path / "h.html").read_text()
    assert (
        "1 change: -16.7% between 2023-11-28 22:13 and 2023-11-29 22:13." in page
        and "library libm.so.6" in page
        and page.count('role="img"') == 1
    )
    for words in (line.strip() for line in text.splitlines() if "sureness" in line):
        assert words in page
    assert page.count("<td") > 24 * 2 and "2023-11-14 22:13" in page  # every session is in its table
    assert "did you mean triad" in refused(tmp_path, "history", "tirad", "a", "-o", "none.html")
    assert not (tmp_path / "none.html").exists()


def test_a_report_has_histories_once_there_are_enough_sessions(tmp_path: Path) -> None:
    months(tmp_path / "a", slow_from=5, sessions=9)
    say(tmp_path, "report", "a", "-o", "few.html")
    assert "Figures over time" not in (tmp_path / "few.html").read_text()
    months(tmp_path / "b", slow_from=15)
    say(tmp_path, "report", "a", "b", "-o", "many.html")
    page = (tmp_path / "many.html").read_text()
    names = {one["figure"] for one in json.loads(say(tmp_path, "history", "triad", "b", "--format", "json"))["series"]}
    assert "Figures over time" in page and "4 of 4 figures changed" in page and names == {"triad"}
    say(tmp_path, "report", "b", "b", "-o", "twice.html")
    assert "24 sessions" in (tmp_path / "twice.html").read_text()  # a folder that is named twice counts once


def test_several_folders_of_one_machine_are_one_machine(tmp_path: Path) -> None:
    for name, level in (("h", 5e10), ("nov", 5.1e10)):
        MadeUpFolder(tmp_path / name).add(noisy(level, 7, seed=len(name)))
    found = results_of_folders([tmp_path / "h", tmp_path / "nov"])
    (trial,) = found.trials
    (figure,) = trial.results[0].figures
    assert figure.n_repeats == 14 and len(trial.results) == 1
    assert {place.path.split("/")[-3] for place in trial.places.values()} == {"h", "nov"}
    done = seatrial_here("report", "h", "nov", "-v", cwd=tmp_path)
    assert "1 machine," in done.stderr and "2 machines" not in (tmp_path / "h" / "report.html").read_text()
    shutil.copytree(tmp_path / "h", tmp_path / "copy")
    assert results_of_folders([tmp_path / "h", tmp_path / "copy"]).experiments[0].figures[0].n_repeats == 7
    MadeUpFolder(tmp_path / "other").add(noisy(5e10, 7), host="n2")
    two = results_of_folders([tmp_path / "h", tmp_path / "other"]).trials
    assert machines_words(two) == "1 machine (2 configurations)"  # both are named "test"


def _long(figure: str, sessions: int, changes: tuple[Change, ...] = ()) -> FigureHistory:
    made = tuple(Session(1.7e9 + 3600.0 * n, 1e9 + n % 7, 3) for n in range(sessions))
    return FigureHistory("b", figure, {"size_B": 8}, "<b>n1</b>", "B/s", Better.HIGHER, made, changes)


def test_of_many_sessions_those_at_changes_are_drawn_and_many_figures_are_folded() -> None:
    change = Change(801, 1.7e9 + 3600.0 * 800, 1.7e9 + 3600.0 * 801, 1e9, 0.9e9, 0.999, ())
    long = _long("first", 1000, (change,))
    drawn = drawn_sessions(long)
    assert {0, 800, 801, 999} <= set(drawn) and len(drawn) <= 304
    many = [*(_long(f"f{n}", 10) for n in range(80)), long]
    page = history_page(many, "f")
    assert "1 of 81 figures changed" in page and page.index(">b first") < page.index(">b f0")
    assert page.count('role="img"') == 60 and page.count('class="part-of-study folded"') == 48
    assert "The first 60 are drawn above" in page and "<b>n1" not in page
    assert "nothing else that was recorded changed then" in page.lower()
