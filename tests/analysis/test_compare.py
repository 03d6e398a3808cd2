"""Comparisons of folders, along axes and of studies: pairing, families, verdicts and what limits them."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy, side_by_side
from analysis.test_rules_expectation import made

from seatrial.analysis.answer import answer_of_study
from seatrial.analysis.compare import compared
from seatrial.analysis.compare_along import compare_along
from seatrial.analysis.compare_folders import NamedFolder, compare_folders, compare_with_reference
from seatrial.analysis.match import Match, MeasuredSide
from seatrial.analysis.results import all_results
from seatrial.analysis.study_results import study_results
from seatrial.errors import UnknownNameError, UsageError
from seatrial.interface.results import results
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.sample import Outcome
from seatrial.model.study.comparison import Stopped, Verdict
from seatrial.model.study.study import Axis, BestOf, Compare, RepeatPolicy, Scaling, Study, StudyBenchmark
from seatrial.references.loader import all_references
from seatrial.report.documents.compare import compare_document
from seatrial.report.pages.page import compare_page
from seatrial.report.studies.answer_words import answer_line
from seatrial.report.studies.verdicts import subjects
from seatrial.report.text.compare import compare_text, study_text
from seatrial.stats.sequential import LOOKS, end_alpha

LEVEL = 5e10


def folder(path: Path, *factors: float, n: int = 20, **parameters: object) -> NamedFolder:
    """A folder with one experiment at LEVEL times each factor; the number of cores tells them apart."""
    made = MadeUpFolder(path)
    for seed, factor in enumerate(factors):
        made.add(noisy(LEVEL * factor, n, seed=seed + len(path.name)), label=f"x{seed}", **parameters)
    return NamedFolder(path.name, made.contents)


def test_two_folders_differ_by_what_their_sessions_show_and_get_no_verdict(tmp_path: Path) -> None:
    found = compare_folders(folder(tmp_path / "a", 1.0), folder(tmp_path / "bb", 0.9))
    (one,) = found.comparisons
    assert one.verdict is Verdict.AMBIGUOUS and one.ratio == pytest.approx(0.9, rel=0.005)
    assert not one.design.is_interleaved and one.design.sessions == 1 and "measured apart, in 1 session" in one.note
    assert one.ci95 is not None and one.ci95[1] < 0.91 and one.ci95_family is None and one.family == 1
    assert one.baseline.name == "a" and one.candidate.name == "bb" and one.n_repeats == 20
    assert one.baseline.median == pytest.approx(LEVEL, rel=0.005)
    text = compare_text([found])
    assert "these two sessions differ by \N{MINUS SIGN}10" in text and "in one study" in text


def _alternating(path: Path, sessions: int, factor: float, start: float, spread: float = 0.01) -> NamedFolder:
    """Sessions of 8 repeats with 1 % between them; each is a run of its own."""
    made = MadeUpFolder(path)
    source = random.Random(f"{path.name}")
    rates, starts, orders = [], [], []
    for session in range(sessions):
        level = LEVEL * factor * source.gauss(1.0, spread)
        rates += [level * source.gauss(1.0, 0.002) for _ in range(8)]
        starts += [start + 1000.0 * session + n for n in range(8)]
        orders += list(range(8))
    made.add(rates, starts=starts, orders=orders)
    return NamedFolder(path.name, made.contents)


def test_six_alternating_sessions_give_a_verdict_and_one_of_each_never_does(tmp_path: Path) -> None:
    first, second = _alternating(tmp_path / "a", 8, 1.0, 0.0), _alternating(tmp_path / "b", 8, 0.9, 500.0)
    (one,) = compare_folders(first, second).comparisons
    assert (one.verdict, one.design.sessions, one.design.blocks) == (Verdict.SLOWER, 8, 0)
    assert one.ci95_family is not None and one.ci95_family[1] - one.ci95_family[0] > 0.005, "the spread of sessions"
    first, second = _alternating(tmp_path / "c", 5, 1.0, 0.0), _alternating(tmp_path / "d", 5, 0.9, 500.0)
    (one,) = compare_folders(first, second).comparisons
    assert (one.verdict, one.design.sessions) == (Verdict.AMBIGUOUS, 5)


def test_sessions_that_do_not_alternate_are_counted_as_they_were_made(tmp_path: Path) -> None:
    made = [_alternating(tmp_path / name, n, 1.0, start) for name, n, start in (("a", 10, 0.0), ("b", 4, 20000.0))]
    (one,) = compare_folders(*made).comparisons
    assert (one.design.sessions, one.design.made_in) == (1, (10, 4))
    assert "measured apart, in 10 and 4 sessions without alternation" in one.note
    found = compare_folders(*made)
    assert "these 10 and 4 sessions without alternation differ by" in compare_text([found])
    assert compare_document([found])["comparisons"][0]["design"]["made_in"] == [10, 4]


def test_several_candidates_are_one_table_with_the_ratio_to_the_first(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    for label, factor in (("a", 1.0), ("b", 0.8), ("c", 1.5)):
        made.add(noisy(LEVEL * factor, 20, seed=ord(label)), label=label, blocks=side_by_side(20))
    found = compare_along(made.contents, "label", 0.02).compared
    rows = [line.split() for line in compare_text(found).splitlines() if line.startswith("  label ") and "/s" in line]
    assert [row[1] for row in rows] == ["a", "b", "c"] and rows[0][4:] == ["1"]
    assert [(row[4], row[-1]) for row in rows[1:]] == [("0.800", "slower"), ("1.499", "faster")]
    assert "relative" not in compare_text(found[:1])


def test_a_family_of_comparisons_widens_the_interval_that_gives_the_verdict(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    for n in range(4):
        for label in ("a", "b"):
            made.add(noisy(LEVEL, 20, seed=2 * n + ord(label)), label=label, cores=f"{n}", blocks=side_by_side(20))
    (found,) = compare_along(made.contents, "label", 0.02).compared
    assert [one.family for one in found.comparisons] == [4] * 4
    for one in found.comparisons:
        assert one.verdict is Verdict.SAME
        assert one.ci95 and one.ci95_family
        assert one.ci95_family[0] <= one.ci95[0] <= one.ratio <= one.ci95[1] <= one.ci95_family[1]
        assert one.ci95_family[1] - one.ci95_family[0] > one.ci95[1] - one.ci95[0]


def test_blocks_see_through_a_drift_that_hides_the_difference_from_all_pairs(tmp_path: Path) -> None:
    """Both sides drift together by 30 %; the difference is 5 %."""
    made = MadeUpFolder(tmp_path / "r")
    drift = [1.0 + 0.03 * n for n in range(10)]
    first = [LEVEL * d * noise for d, noise in zip(drift, noisy(1.0, 10, seed=3), strict=True)]
    second = [1.05 * LEVEL * d * noise for d, noise in zip(drift, noisy(1.0, 10, seed=4), strict=True)]
    for label, rates in (("a", first), ("b", second)):
        made.add(rates, label=label, blocks=side_by_side(10))
    (found,) = compare_along(made.contents, "label", 0.02).compared
    (one,) = found.comparisons
    assert one.design.blocks == 10 and one.verdict is Verdict.FASTER and one.ratio == pytest.approx(1.05, rel=0.004)
    apart = MadeUpFolder(tmp_path / "apart")
    for label, rates, start in (("a", first, 0.0), ("b", second, 100.0)):
        apart.add(rates, label=label, starts=[start + n for n in range(10)])
    (found,) = compare_along(apart.contents, "label", 0.02).compared
    assert found.comparisons[0].verdict is Verdict.AMBIGUOUS


def test_below_six_repeats_there_is_no_interval_and_no_verdict(tmp_path: Path) -> None:
    (one,) = compare_folders(folder(tmp_path / "a", 1.0, n=5), folder(tmp_path / "bb", 2.0, n=9)).comparisons
    assert one.verdict is Verdict.AMBIGUOUS and one.ci95 is None and one.ci95_family is None
    assert "5 repeats" in one.note


def test_two_machines_are_two_machines(tmp_path: Path) -> None:
    first, second = MadeUpFolder(tmp_path / "a"), MadeUpFolder(tmp_path / "b")
    first.add(noisy(LEVEL, 20), host="n1")
    second.add(noisy(LEVEL * 1.1, 20, seed=2), host="n2")
    found = compare_folders(NamedFolder("a", first.contents), NamedFolder("b", second.contents))
    assert "two machines" in found.comparisons[0].note and "Two machines, n1 and n2" in found.scope
    assert any((d.baseline, d.candidate) == ("n1", "n2") for d in found.unintended)


def test_a_parameter_that_parts_the_folders_is_a_difference_and_no_reason_not_to_compare(tmp_path: Path) -> None:
    found = compare_folders(folder(tmp_path / "a", 1.0), folder(tmp_path / "bb", 1.0, cores="all"))
    assert len(found.comparisons) == 1
    assert [d for d in found.unintended if "cores" in d.what]


def test_what_only_one_folder_has_is_left_out(tmp_path: Path) -> None:
    found = compare_folders(folder(tmp_path / "a", 1.0, 1.0), folder(tmp_path / "bb", 1.0))
    assert len(found.comparisons) == 1


def study(**changes: object) -> Study:
    """A study of the label."""
    given: dict[str, object] = {
        "name": "s",
        "question": "q?",
        "benchmarks": (StudyBenchmark("cpu.peak", {}),),
        "axes": (Axis("label", ("a", "b")),),
        "compare": Compare("label", "a"),
        "repeat": RepeatPolicy(budget_s=60.0, maximum=100),
    }
    return Study(**{**given, **changes})


def kept(path: Path, rates: dict[str, list[float]], of: Study) -> MadeUpFolder:
    """A folder in which the study was run."""
    made = MadeUpFolder(path)
    keys = [
        (made.add(values, label=label, blocks=side_by_side(len(values)), seen={"study": of.name}), {"label": label})
        for label, values in rates.items()
    ]
    made.keep(of, keys)
    return made


def test_a_study_tells_what_decided_it_and_uses_no_block_beyond_that_look(tmp_path: Path) -> None:
    n = LOOKS[0] + 2
    made = kept(tmp_path / "r", {"a": noisy(LEVEL, n, 0.001), "b": noisy(LEVEL, n, 0.001, seed=2)}, study())
    (result,) = study_results(made.contents)
    ((one,),) = (compared.comparisons for compared in result.compared)
    assert one.verdict is Verdict.SAME and one.design.stopped is Stopped.DECIDED
    assert one.design.blocks == one.n_repeats == LOOKS[0] and one.design.looks == LOOKS
    assert result.spent_s == pytest.approx(2 * n * 0.3)


@pytest.mark.parametrize(
    ("policy", "stopped"),
    [
        (RepeatPolicy(budget_s=60.0, maximum=14), Stopped.MAXIMUM),
        (RepeatPolicy(budget_s=8.5), Stopped.BUDGET),
        (RepeatPolicy(budget_s=60.0), Stopped.UNFINISHED),
    ],
)
def test_a_study_that_nothing_decided_says_what_ended_it(
    tmp_path: Path, policy: RepeatPolicy, stopped: Stopped
) -> None:
    wild = {"a": noisy(LEVEL, 14, 0.2), "b": noisy(LEVEL, 14, 0.2, seed=2)}
    (result,) = study_results(kept(tmp_path / "r", wild, study(repeat=policy)).contents)
    assert result.compared[0].comparisons[0].design.stopped is stopped
    assert result.compared[0].comparisons[0].verdict is Verdict.AMBIGUOUS


def test_a_budget_for_the_whole_command_is_spent_by_what_was_not_a_repeat_too(tmp_path: Path) -> None:
    """28 repeats of 0.3 s, and 51 s around them, stated by every record of the process."""
    whole = study(repeat=RepeatPolicy(budget_s=60.0))
    made = MadeUpFolder(tmp_path / "r")
    keys = []
    for label, seed in (("a", 1), ("b", 2)):
        seen = [{"study": "s", "outside_s": 50.0 + n / 13.0} for n in range(14)]
        added = made.add(noisy(LEVEL, 14, 0.2, seed=seed), label=label, blocks=side_by_side(14), each=seen)
        keys.append((added, {"label": label}))
    made.keep(whole, keys)
    (result,) = study_results(made.contents)
    assert result.compared[0].comparisons[0].design.stopped is Stopped.BUDGET
    assert result.spent_s == pytest.approx(28 * 0.3 + 51.0) and result.start_s == pytest.approx(51.0)
    budget_s = answer_of_study(result).budget_s
    assert budget_s is not None and budget_s > result.spent_s + 51.0  # the next process has to start, too


def test_a_budget_for_the_whole_command_is_spent_if_the_fewest_blocks_do_not_fit(tmp_path: Path) -> None:
    """Of 3 blocks of 0.6 s, 1 s around them: another block fits into 4 s, but not the five that are missing."""
    for whole_s, stopped in ((4.0, Stopped.BUDGET), (14.0, Stopped.UNFINISHED)):
        made = MadeUpFolder(tmp_path / f"{whole_s}")
        keys = []
        for label, seed in (("a", 1), ("b", 2)):
            seen = [{"study": "s", "outside_s": 1.0 + n / 13.0} for n in range(3)]
            added = made.add(noisy(LEVEL, 3, 0.2, seed=seed), label=label, blocks=side_by_side(3), each=seen)
            keys.append((added, {"label": label}))
        made.keep(study(repeat=RepeatPolicy(budget_s=whole_s)), keys)
        (result,) = study_results(made.contents)
        assert result.compared[0].comparisons[0].design.stopped is stopped
        assert ("repeats needed, 3 made" in study_text(result)) == (stopped is Stopped.BUDGET)


def test_a_budget_is_spent_if_no_block_of_all_sides_fits(tmp_path: Path) -> None:
    """A block of three sides takes 0.9 s, and 0.7 s are left: that was called an interruption."""
    three = study(axes=(Axis("label", ("a", "b", "c")),), repeat=RepeatPolicy(budget_s=13.3))
    wild = {label: noisy(LEVEL, 14, 0.2, seed=seed) for seed, label in enumerate("abc")}
    (result,) = study_results(kept(tmp_path / "r", wild, three).contents)
    assert result.spent_s == pytest.approx(12.6)
    assert {c.design.stopped for one in result.compared for c in one.comparisons} == {Stopped.BUDGET}


def test_a_raised_maximum_is_a_new_end_like_a_raised_budget(tmp_path: Path) -> None:
    alphas = []
    for name, second in (("one", 14), ("two", 20)):
        made = MadeUpFolder(tmp_path / name)
        keys = []
        for label, seed in (("a", 1), ("b", 2)):
            rates = noisy(LEVEL, 20, 0.2, seed=seed)
            seen = [{"study": "s", "maximum": 14 if n < 14 else second} for n in range(20)]
            keys.append((made.add(rates, label=label, blocks=side_by_side(20), each=seen), {"label": label}))
        made.keep(study(repeat=RepeatPolicy(budget_s=60.0, maximum=20)), keys)
        (result,) = study_results(made.contents)
        alphas.append(result.compared[0].comparisons[0].design.alpha)
    assert alphas == [end_alpha(1), end_alpha(2)]


def test_an_unfinished_study_has_no_verdict_between_its_looks(tmp_path: Path) -> None:
    rates = {"a": noisy(LEVEL, 10), "b": noisy(LEVEL * 1.5, 10, seed=2)}
    (result,) = study_results(kept(tmp_path / "r", rates, study()).contents)
    (one,) = result.compared[0].comparisons
    assert (one.verdict, one.design.stopped, one.ci95_family) == (Verdict.AMBIGUOUS, Stopped.UNFINISHED, None)
    assert "unfinished" in one.note and "The same command continues" in study_text(result)
    spent = study(repeat=RepeatPolicy(budget_s=3.0))
    (result,) = study_results(kept(tmp_path / "s", rates, spent).contents)
    assert result.compared[0].comparisons[0].verdict is Verdict.FASTER


def test_each_value_is_held_against_the_baseline_and_the_family_counts_them_all(tmp_path: Path) -> None:
    three = study(axes=(Axis("label", ("a", "b", "c")),), compare=Compare("label", "b"))
    rates = {"a": noisy(LEVEL * 1.1, 20), "b": noisy(LEVEL, 20, seed=2), "c": noisy(LEVEL * 0.9, 20, seed=3)}
    (result,) = study_results(kept(tmp_path / "r", rates, three).contents)
    found = {compared.candidate: compared.comparisons[0] for compared in result.compared}
    assert {name: one.verdict for name, one in found.items()} == {
        "label a": Verdict.FASTER,
        "label c": Verdict.SLOWER,
    }
    assert all(one.family == 2 and one.baseline.name == "label b" for one in found.values())


def test_a_failed_side_gives_no_comparison_and_no_traceback(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    good = made.add(noisy(LEVEL, 8), label="a", blocks=side_by_side(8))
    bad = made.add(noisy(LEVEL, 1), label="b", outcome=Outcome.invalid("residual", "too large"))
    made.keep(study(), [(good, {"label": "a"}), (bad, {"label": "b"})])
    (result,) = study_results(made.contents)
    assert not result.compared[0].comparisons
    assert [r.outcome.is_ok for r in result.results] == [True, False]


def test_the_study_that_was_run_last_speaks(tmp_path: Path) -> None:
    made = kept(tmp_path / "r", {"a": noisy(LEVEL, 8), "b": noisy(LEVEL, 8)}, study())
    keys = [(r.id, {"label": r.experiment.parameters["label"]}) for r in all_results(made.contents)]
    made.keep(study(repeat=RepeatPolicy(budget_s=600.0)), keys)
    (result,) = study_results(made.contents)
    assert result.study.repeat.budget_s == 600.0


def test_scaling_and_best_of_are_made_where_a_study_asks(tmp_path: Path) -> None:
    both = study(compare=None, best_of=BestOf(("label",), "fma"), scaling=None)
    rates = {"a": noisy(LEVEL, 12), "b": noisy(LEVEL * 1.2, 12, seed=2)}
    (result,) = study_results(kept(tmp_path / "r", rates, both).contents)
    (best,) = result.best_of
    assert best.contenders[0].parameters["label"] == "b" and best.is_beyond_noise and best.repeats == 24
    numbers = study(compare=None, axes=(Axis("label", (1, 2)),), scaling=Scaling("strong", "label"))
    made = MadeUpFolder(tmp_path / "s")
    keys = [(made.add(noisy(LEVEL * n, 12, seed=n), label=n), {"label": n}) for n in (1, 2)]
    made.keep(numbers, keys)
    (result,) = study_results(made.contents)
    assert [round(point.speedup or 0, 1) for point in result.scaling[0].points] == [1.0, 2.0]


def test_an_axis_that_nothing_varies_along_is_refused_with_those_that_do(tmp_path: Path) -> None:
    made = folder(tmp_path / "a", 1.0, 1.1)
    with pytest.raises(UnknownNameError, match="axis") as caught:
        compare_along(made.contents, "lable", 0.02)
    assert "label" in caught.value.todo
    with pytest.raises(UnknownNameError):
        compare_along(made.contents, "precision", 0.02)


def test_what_follows_from_the_axis_does_not_part_what_is_compared(tmp_path: Path) -> None:
    """Arrays that grow with the threads: each value of the axis goes with one of theirs."""
    made = MadeUpFolder(tmp_path / "r")
    for threads, array in ((1, 64), (2, 128)):
        made.add(noisy(LEVEL * threads, 10, seed=threads), threads=threads, array_B=array)
    (found,) = compare_along(made.contents, "threads", 0.02).compared
    assert found.comparisons[0].verdict is Verdict.FASTER and found.baseline == "threads 1"


def contained(image: str, digest: str, runtime: str, **own: object) -> dict[str, object]:
    document = {"image": image, "digest": f"sha256:{digest * 64}", "kind": "folder", "runtime": runtime, **own}
    return {"name": "gcc 12 -O3", "flags": ["-O3"], "container": document}


def in_containers(path: Path, *, rates: Mapping[str, float]) -> MadeUpFolder:
    """The same point in each of these environments, and bare, measured without a study."""
    made = MadeUpFolder(path)
    documents = {
        "app": contained("app", "a", "Charliecloud"),
        "wrapped": contained("app", "a", "bubblewrap"),
        "other": contained("app", "b", "Charliecloud"),
    }
    for key in rates.keys() - {"env"}:
        made.folder.put("environments", key, documents[key])
    for number, (key, rate) in enumerate(rates.items()):
        made.add(noisy(rate, 10, seed=number), environment=key)
    return made


def test_a_folder_is_compared_along_the_container_without_a_study(tmp_path: Path) -> None:
    """As along any other setting of the environment; no container is the baseline."""
    made = in_containers(tmp_path / "r", rates={"app": LEVEL * 0.8, "env": LEVEL})
    (found,) = compare_along(made.contents, "environment.container", 0.02).compared
    assert (found.baseline, found.candidate) == ("no container", "container app")
    assert found.comparisons[0].ratio == pytest.approx(0.8, rel=0.01)


def test_without_a_container_is_the_baseline_of_each_runtime(tmp_path: Path) -> None:
    made = in_containers(tmp_path / "r", rates={"env": LEVEL, "app": LEVEL * 0.8, "wrapped": LEVEL * 0.9})
    (found,) = compare_along(made.contents, "environment.container", 0.02).compared
    assert sorted(round(one.ratio, 1) for one in found.comparisons) == [0.8, 0.9]
    (runtimes,) = compare_along(made.contents, "environment.container_runtime", 0.02).compared
    assert {runtimes.baseline, runtimes.candidate} == {
        f"environment.container_runtime {name}" for name in ("Charliecloud", "bubblewrap")
    }


def test_two_images_of_one_name_are_told_apart(tmp_path: Path) -> None:
    made = in_containers(tmp_path / "r", rates={"app": LEVEL, "other": LEVEL * 0.9})
    (found,) = compare_along(made.contents, "environment.container", 0.02).compared
    assert found.baseline.endswith(f"app {'a' * 12}") and found.candidate.endswith(f"app {'b' * 12}")
    with pytest.raises(UnknownNameError) as caught:
        compare_along(made.contents, "environment.contain", 0.02)
    assert "environment.container" in caught.value.todo


def test_figures_are_relative_to_one_system(tmp_path: Path) -> None:
    """Each system is a machine of its own, with as many threads as it has."""
    made = MadeUpFolder(tmp_path / "r")
    for number, (system, threads) in enumerate((("gold:all", 20), ("platinum:all", 24)), 1):
        rates = noisy(LEVEL * number, 10, seed=number)
        made.add(rates, host=f"n{number}", seen={"system": system}, threads=threads)
    made.add(noisy(LEVEL, 10), host="n3", cores="all")  # measured without a system
    (found,) = compare_along(made.contents, "system", 0.02).compared
    (one,) = found.comparisons
    assert (found.baseline, found.candidate) == ("system gold:all", "system platinum:all")
    assert one.ratio == pytest.approx(2, rel=0.02) and "Two machines, n1 and n2" in found.scope


def test_a_reference_gives_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    own = next(r for r in all_references() if r.benchmark == "cpu.peak" and r.figure == "fma")
    made = MadeUpFolder(tmp_path / "r")
    made.add(noisy(LEVEL, 20), **own.parameters)
    name = f"reference:{own.id}"
    found = compare_with_reference(name, "mine", {"mine": made.contents}, 0.02)
    (one,) = found.comparisons
    assert one.baseline.is_reference and one.ci95 is None and one.verdict is Verdict.AMBIGUOUS
    assert one.ratio == pytest.approx(LEVEL / own.value, rel=0.005)
    other = next(r for r in all_references() if r.benchmark != "cpu.peak")
    with pytest.raises(UsageError, match="contains no figure"):
        compare_with_reference("mine", f"reference:{other.id}", {"mine": made.contents}, 0.02)
    with pytest.raises(UsageError, match="two published"):
        compare_with_reference(name, name, {}, 0.02)


def test_a_copy_is_no_second_measurement(tmp_path: Path) -> None:
    first = folder(tmp_path / "a", 1.0)
    with pytest.raises(UsageError, match="the same 20 repeats"):
        compare_folders(first, NamedFolder("copy", first.contents))


def test_what_came_out_on_one_side_only_is_named(tmp_path: Path) -> None:
    good, bad = MadeUpFolder(tmp_path / "a"), MadeUpFolder(tmp_path / "b")
    good.add(noisy(LEVEL, 8))
    bad.add(noisy(LEVEL, 1), outcome=Outcome.invalid("residual", "too large"))
    found = compare_folders(NamedFolder("a", good.contents), NamedFolder("b", bad.contents))
    assert not found.comparisons and found.lost == ("cpu.peak of b: invalid: residual: too large",)


def test_studies_of_one_name_that_ask_for_something_else_are_both_told(tmp_path: Path) -> None:
    made = kept(tmp_path / "r", {"a": noisy(LEVEL, 8), "b": noisy(LEVEL, 8, seed=2)}, study())
    other = study(axes=(Axis("label", ("b", "c")),), compare=Compare("label", "b"))
    third = made.add(noisy(LEVEL, 8, seed=3), label="c", blocks=side_by_side(8), seen={"study": "s"})
    second = next(r.id for r in all_results(made.contents) if r.experiment.parameters["label"] == "b")
    made.keep(other, [(second, {"label": "b"}), (third, {"label": "c"})])
    assert len(study_results(made.contents)) == 2
    along = compare_along(made.contents, "label", 0.02).compared
    assert {(one.baseline, one.candidate) for one in along} == {("label a", "label b"), ("label b", "label c")}


def test_a_side_is_not_compared_with_itself(tmp_path: Path) -> None:
    """Two values of an axis may be one experiment: blas auto and openblas, an MPI and its alias."""
    folder = MadeUpFolder(tmp_path)
    one, other = folder.add(noisy(LEVEL, 8)), folder.add(noisy(LEVEL * 1.2, 8, seed=2), label="c")
    study = Study("s", "?", (), (Axis("label", ("a", "b", "c")),), compare=Compare("label", "a"))
    folder.keep(study, [(one, {"label": "a"}), (one, {"label": "b"}), (other, {"label": "c"})])
    (result,) = study_results(folder.contents)
    itself, real = result.compared
    assert not itself.comparisons
    assert itself.lost == ("cpu.peak: label a and label b are one experiment on this machine",)
    assert len(real.comparisons) == 1 and not real.lost
    text = study_text(result)
    assert "not compared: cpu.peak: label a and label b are one experiment" in text
    assert compare_document(result.compared)["not_compared"] == list(itself.lost)


def test_results_of_several_machines_copied_together_stay_apart(tmp_path: Path) -> None:
    for host in ("n1", "n2", "n3"):
        MadeUpFolder(tmp_path / host).add(noisy(LEVEL, 8), host=host)
        shutil.copytree(tmp_path / host, tmp_path / "all", dirs_exist_ok=True)
    trials = results(tmp_path / "all").trials
    assert len(trials) == 3 and all(len(trial.results) == 1 for trial in trials)


def test_a_coarse_timer_gives_no_verdict_and_says_so(tmp_path: Path) -> None:
    """Every repeat reads the same: a step of 10 % may hide a difference of 10 %, however many repeats there are."""
    made = MadeUpFolder(tmp_path / "r")
    for label, step_s in (("a", 0.1), ("b", 0.1)):
        made.add([LEVEL] * 20, label=label, blocks=side_by_side(20), seen={"clock_step_s": step_s})
    (found,) = compare_along(made.contents, "label", 0.02).compared
    (one,) = found.comparisons
    assert one.verdict is Verdict.AMBIGUOUS and one.ratio == 1.0
    assert one.resolution == pytest.approx(1.05**2 - 1.0) and "too coarse for this margin" in one.note
    assert one.ci95 == (pytest.approx(1.05**-2), pytest.approx(1.05**2))
    assert compare_document([found])["comparisons"][0]["resolution"] == pytest.approx(one.resolution)
    assert "too coarse for this margin" in compare_text([found])
    (wide,) = compare_along(made.contents, "label", 0.2).compared
    assert wide.comparisons[0].verdict is Verdict.SAME and "coarse" not in wide.comparisons[0].note


def test_a_coarse_side_widens_the_difference_of_folders(tmp_path: Path) -> None:
    fine, coarse = MadeUpFolder(tmp_path / "a"), MadeUpFolder(tmp_path / "b")
    fine.add(noisy(LEVEL, 20, seed=1))
    coarse.add(noisy(LEVEL, 20, seed=2), seen={"clock_step_s": 0.1})
    (one,) = compare_folders(NamedFolder("a", fine.contents), NamedFolder("b", coarse.contents)).comparisons
    assert one.ci95 is not None and one.ci95[0] < 0.96 and one.ci95[1] > 1.04 and one.resolution == pytest.approx(0.05)


def test_a_study_that_states_equivalence_is_judged_by_two_one_sided_tests(tmp_path: Path) -> None:
    """Its own comparison, and along its axis where no other margin is given; in words, as JSON, on the page."""
    asks = study(compare=Compare("label", "a", 0.01, asks_equivalence=True))
    made = kept(tmp_path / "r", {"a": noisy(LEVEL, 20), "b": noisy(LEVEL, 20, seed=2)}, asks)
    (result,) = study_results(made.contents)
    (along,) = compare_along(made.contents, "label", None).compared
    (one,) = result.compared[0].comparisons
    assert along.comparisons[0].verdict is one.verdict is Verdict.EQUIVALENT and one.asks_equivalence
    assert one.ci90_family and one.ci95_family and one.ci90 and one.ci95
    assert one.ci95_family[0] < one.ci90_family[0] < one.ci90_family[1] < one.ci95_family[1]
    assert one.simultaneous == one.ci90_family and one.plain == one.ci90
    document = compare_document(result.compared)["comparisons"][0]
    assert (document["verdict"], document["equivalence"], document["margin"]) == ("equivalent", 0.01, 0.01)
    assert tuple(document["ci90_family"] or ()) == one.ci90_family
    text = study_text(result)
    assert "are equivalent within 1 %" in text and "90 % simultaneous" in text
    assert "are the same within" not in text
    page = compare_page(result.compared)
    assert "are equivalent within 1 %" in page and "two one-sided tests" in page and "squares are equivalent" in page
    (given,) = compare_along(made.contents, "label", 0.01).compared
    assert given.comparisons[0].verdict is Verdict.SAME and given.comparisons[0].ci90 is None
    (wide,) = compare_along(made.contents, "label", 1e-5, equivalence=True).compared
    assert wide.comparisons[0].verdict is Verdict.AMBIGUOUS


def test_a_study_without_equivalence_keeps_its_key(tmp_path: Path) -> None:
    plain = kept(tmp_path / "p", {"a": noisy(LEVEL, 8), "b": noisy(LEVEL, 8, seed=2)}, study())
    asks = study(compare=Compare("label", "a", asks_equivalence=True))
    asked = kept(tmp_path / "q", {"a": noisy(LEVEL, 8), "b": noisy(LEVEL, 8, seed=2)}, asks)
    stored = [next((made.folder.path / "studies").glob("*.json")).read_text() for made in (plain, asked)]
    assert ["asks_equivalence" in text for text in stored] == [False, True]


def test_alternating_sessions_may_be_equivalent(tmp_path: Path) -> None:
    first = _alternating(tmp_path / "a", 8, 1.0, 0.0, 0.001)
    second = _alternating(tmp_path / "b", 8, 1.0, 500.0, 0.001)
    (one,) = compare_folders(first, second, 0.02, equivalence=True).comparisons
    assert one.verdict is Verdict.EQUIVALENT and one.design.sessions == 8
    apart = compare_folders(folder(tmp_path / "c", 1.0), folder(tmp_path / "d", 1.0), 0.02, equivalence=True)
    assert apart.comparisons[0].verdict is Verdict.AMBIGUOUS


def test_other_axes_of_the_environment_tell_the_rows_apart(tmp_path: Path) -> None:
    """They are no parameters: rows of two libraries had one name, and the answer counted both as sizes."""
    made = MadeUpFolder(tmp_path / "r")
    points: list[tuple[str, Mapping[str, object]]] = []
    axes = {"runtime": ("charliecloud", "bubblewrap"), "mpi": ("openmpi", "mpich")}
    for number, (runtime, mpi, threads) in enumerate(itertools.product(*axes.values(), (1, 4))):
        environment = runtime + mpi
        made.folder.put("environments", environment, {"name": environment, "flags": ["-O3"]})
        given = {"environment.container_runtime": runtime, "environment.mpi": mpi, "threads": threads}
        rates = noisy(LEVEL * (1.1 if runtime == "bubblewrap" else 1.0), 12, seed=number)
        key = made.add(rates, blocks=side_by_side(12), environment=environment, threads=threads)
        points.append((key, given))
    asked = study(
        axes=(
            Axis("environment.container_runtime", axes["runtime"]),
            Axis("environment.mpi", axes["mpi"]),
            Axis("threads", (1, 4)),
        ),
        compare=Compare("environment.container_runtime", "charliecloud"),
    )
    made.keep(asked, points)
    (result,) = study_results(made.contents)
    names = subjects(result.compared)
    assert len(set(names)) == 4 and all("environment.mpi" in name and "threads" in name for name in names)
    assert "environment.mpi mpich at both values of threads" in answer_line(answer_of_study(result))
    (document,) = [one for one in compare_document(result.compared)["comparisons"] if one["family"] == 4][:1]
    assert document["parameters"]["environment.mpi"] == "openmpi"


@pytest.mark.parametrize(
    ("busy", "verdict", "said"),
    [((0.999, 0.998), Verdict.SAME, "did not wait for it (0.1 % of their time, and 0.2 %)"),
     ((0.99, 0.80), Verdict.SLOWER, "waited for it (1.0 % of their time, and 20 %)")],
)  # fmt: skip
def test_an_input_pipeline_that_is_a_fifth_slower_is_named_with_what_the_steps_waited(
    busy: tuple[float, float], verdict: Verdict, said: str
) -> None:
    def match(name: str, better: Better, values: tuple[float, float]) -> Match:
        names = {k: f"block:{k}" for k in range(9)}
        made_at = lambda value: made(value, None, name=name, better=better)  # noqa: E731
        sides = [MeasuredSide(f"s{n}", f"e{n}", made_at(value), blocks=names) for n, value in enumerate(values)]
        return Match("training.pytorch", {}, *sides, "s", better, name)

    matches = [match("input_pipeline", Better.LOWER, (0.1, 0.12)), match("busy", Better.HIGHER, busy)]
    pipeline, waits = compared(matches, 0.02)
    assert pipeline.verdict is Verdict.SLOWER and pipeline.ratio == pytest.approx(1.2)
    assert said in pipeline.note and waits.verdict is verdict
