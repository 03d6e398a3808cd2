"""What was measured on emulated processors (QEMU TCG) is shown, and compared with nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy, side_by_side
from made_up import made_up_machine
from published_schemas import check

from seatrial.analysis.compare_along import compare_along
from seatrial.analysis.compare_folders import NamedFolder, compare_folders
from seatrial.analysis.history import histories
from seatrial.analysis.index.index import opened_index
from seatrial.analysis.results import all_results, machines_of
from seatrial.analysis.rules import findings
from seatrial.analysis.screening.gathered import screen_folder
from seatrial.analysis.screening.inputs import screen_input
from seatrial.analysis.study_results import study_results
from seatrial.errors import UsageError
from seatrial.machine.live import discover_live
from seatrial.model.machine.identity import is_emulated
from seatrial.model.study.study import Axis, BestOf, Compare, Scaling, Study
from seatrial.report.documents.results import results_document
from seatrial.report.text.results import results_text
from seatrial.report.text.terminal import PLAIN

WHY = "emulated"


@pytest.fixture
def guest(tmp_path: Path) -> MadeUpFolder:
    """A folder with a host and a guest with emulated processors."""
    made = MadeUpFolder(tmp_path / "results")
    made.add(noisy(1e9, 8), host="n1", blocks=side_by_side(8), threads=1)
    made.add(noisy(1e8, 8), host="guest", blocks=side_by_side(8), emulated=True, threads=1)
    return made


def test_figures_are_shown_without_a_limit(guest: MadeUpFolder) -> None:
    bare, emulated = sorted(all_results(guest.contents), key=lambda result: result.emulated is not None)
    assert bare.figures and bare.shown == bare.figures and bare.figures[0].limit is not None
    assert emulated.figures == () and emulated.emulated is not None
    (figure,) = emulated.shown
    assert figure.limit is None and figure.fraction_of_limit is None and figure.n_repeats == 8
    text = results_text([bare, emulated], PLAIN)
    assert text.count(WHY) == 1 and text.count("↑") == 2
    document = results_document([bare, emulated], {})
    check(json.loads(json.dumps(document)), "results-1")
    assert ["emulated" in one for one in document["experiments"]] == [False, True]
    assert len(document["experiments"][1]["figures"]) == 1


def test_folders_are_not_compared(tmp_path: Path, guest: MadeUpFolder) -> None:
    other = MadeUpFolder(tmp_path / "other")
    other.add(noisy(2e8, 8), host="guest", emulated=True, threads=1)
    for first, second in ((guest, other), (other, other), (other, guest)):
        if first is second:
            second = MadeUpFolder(tmp_path / "third")
            second.add(noisy(1.5e8, 8, seed=2), host="guest", emulated=True, threads=1)
        found = compare_folders(NamedFolder("A", first.contents), NamedFolder("B", second.contents))
        assert found.comparisons == () and len(found.lost) == 1 and WHY in found.lost[0]


def test_sides_of_a_study_are_not_compared(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "study")
    ids = [
        made.add(noisy(rate, 8), host=host, blocks=side_by_side(8), emulated=host == "guest", threads=1, label=host)
        for host, rate in (("n1", 1e9), ("guest", 1e8))
    ]
    study = Study("s", "?", (), (Axis("label", ("n1", "guest")),), compare=Compare("label", "n1"))
    made.keep(study, [(key, {"label": name}) for key, name in zip(ids, ("n1", "guest"), strict=True)])
    (found,) = study_results(made.contents)
    (compared,) = found.compared
    assert compared.comparisons == () and WHY in compared.lost[0]
    (along,) = compare_along(made.contents, "label", None).compared
    assert along.comparisons == () and WHY in along.lost[0]


def test_it_neither_scales_nor_wins(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "sweep")
    ids = [made.add(noisy(n * 1e8, 8), host="guest", emulated=True, threads=n) for n in (1, 2, 4)]
    study = Study("s", "?", (), (Axis("threads", (1, 2, 4)),), scaling=Scaling("strong", "threads"))
    made.keep(study, [(key, {"threads": n}) for key, n in zip(ids, (1, 2, 4), strict=True)], host="guest")
    best = replace(study, name="b", scaling=None, best_of=BestOf(("threads",), "fma"))
    made.keep(best, [(key, {"threads": n}) for key, n in zip(ids, (1, 2, 4), strict=True)], host="guest")
    for one in study_results(made.contents):
        assert one.scaling == () and one.best_of == ()
        assert all(any(WHY in note for note in result.notes) for result in one.results)


def test_it_has_no_history(guest: MadeUpFolder, tmp_path: Path) -> None:
    assert {one.host for one in histories([guest.contents], "fma")} == {"n1"}
    alone = MadeUpFolder(tmp_path / "alone")
    alone.add(noisy(1e8, 8), host="guest", emulated=True)
    with pytest.raises(UsageError, match=WHY):
        histories([alone.contents], "fma")


def test_a_screen_leaves_it_out(guest: MadeUpFolder) -> None:
    given = screen_input([screen_folder(guest.folder)])
    assert {item.node for figure in given.figures for item in figure.items} == {"n1"}
    assert any(WHY in text and "guest" in text for text in given.failed)


def test_queries_do_not_have_its_figures(guest: MadeUpFolder) -> None:
    with opened_index(guest.folder) as index:
        rows = index.execute("SELECT count(*) FROM figures WHERE median IS NOT NULL").fetchall()
    assert rows == [(1,)]


def test_check_says_it(guest: MadeUpFolder) -> None:
    machine = machines_of(guest.contents)["machine-guest"]
    rules = {one.rule: one for one in findings(machine, ())}
    assert "compared with nothing" in rules["emulated-processors"].diagnosis
    assert "emulated-processors" not in {one.rule for one in findings(made_up_machine(), ())}


def test_the_model_of_the_processor_shows_it(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    text = "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t\t: fpu hypervisor\n"
    (tmp_path / "proc" / "cpuinfo").write_text(text)
    assert is_emulated(discover_live(tmp_path))
    (tmp_path / "proc" / "cpuinfo").write_text(text.replace("QEMU TCG CPU version 2.5+", "AMD EPYC Processor"))
    assert not is_emulated(discover_live(tmp_path))
