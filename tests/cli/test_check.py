"""`seatrial check`: the answer, its exit status, and whose results are judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from analysis.made_up_nodes import beside, cpu_tree, facts, gpu, nic
from analysis.test_rules_expectation import limit, made, result
from cli.in_process import seatrial_here
from published_schemas import check
from report.terminals import COLOURED

from seatrial.analysis import folder
from seatrial.analysis.folder import machine_in, trial_of
from seatrial.analysis.rank_layout import bindings, rank_layout
from seatrial.analysis.rules import findings
from seatrial.cli.check import Failing, check_machine, status
from seatrial.cli.output import Format, Output
from seatrial.errors import UsageError
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Outcome
from seatrial.model.study.result import Trial
from seatrial.report.documents.check import check_document
from seatrial.report.text.check import check_text
from seatrial.report.text.terminal import PLAIN

JSON = Output(output_format=Format.JSON)
NODE = Machine(
    "node",
    (*cpu_tree(), gpu("gpu-0", 0), gpu("gpu-1", 1), nic("mlx5_0")),
    facts(thp_enabled="never", ecc="none", smt_active=True),
    affinity=(beside("gpu-0", (0, 1, 2, 3, 8, 9, 10, 11), 0),),
)


def finding(severity: Severity, rule: str = "a-rule", **more: str) -> Finding:
    words = {"observation": "Seen.", "diagnosis": "Means.", "remedy": "Do", "evidence": "known", **more}
    return Finding(rule, severity, (), **words)


def answer(text: str) -> dict[str, object]:
    document = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    check(document, "check-1")
    return document


def trial(machine: Machine, *results: object) -> Trial:
    return Trial(machine=machine, results=results, findings=(), not_measured=(), environments={}, places={}, seen={})


def test_the_document_follows_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_machine(NODE, None, 4, None, JSON) == 0
    document = answer(capsys.readouterr().out)
    rules = [entry["rule"] for entry in document["findings"]]
    assert rules == [found.rule for found in findings(NODE, ())] and {"memory-ecc-off", "smt-on"} <= set(rules)
    first, second, adapter = document["bindings"]
    assert first == {
        "device": "gpu-0", "cpus": [0, 1, 2, 3, 8, 9, 10, 11], "numa": 0,
        "numactl": "numactl --cpunodebind=0 --membind=0",
        "mpirun": "mpirun --bind-to none numactl --cpunodebind=0 --membind=0",
        "srun": "srun --cpu-bind=mask_cpu:0xf0f --mem-bind=local",
        "mpich": "mpiexec -n 1 -bind-to user:0+1+2+3+8+9+10+11",
    }  # fmt: skip
    assert second["cpus"] == [4, 5, 6, 7, 12, 13, 14, 15]
    assert adapter == dict.fromkeys(first) | {"device": "mlx5_0"}
    (layout,) = document["layouts"]
    assert [place["device"] for place in layout["places"]] == ["gpu-0", "gpu-0", "gpu-1", "gpu-1"]
    assert layout["rankfile"].splitlines()[1:] == [f"rank {k}=localhost slot={2 * k}-{2 * k + 1}" for k in range(4)]


def test_without_ranks_there_is_no_layout() -> None:
    assert set(check_document((), ())) == {"schema", "findings", "bindings"}


@pytest.mark.parametrize(
    ("worst", "fail_on", "expected"),
    [
        (None, "warning", 0),
        ("info", "warning", 0),
        ("warning", "warning", 1),
        ("error", "warning", 1),
        ("warning", "error", 0),
        ("error", "error", 1),
        ("error", None, 0),
    ],
)
def test_the_exit_status_follows_the_worst_finding(worst: str | None, fail_on: str | None, expected: int) -> None:
    found = () if worst is None else (finding(Severity.INFO), finding(Severity(worst)))
    assert status(found, None if fail_on is None else Failing(fail_on)) == expected


def test_a_command_fails_on_what_it_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_machine(NODE, None, None, Failing.WARNING, Output()) == 1
    assert check_machine(NODE, None, None, Failing.ERROR, Output()) == 0
    assert "warning huge-pages-never" in capsys.readouterr().out


def test_ranks_that_do_not_fit_are_refused_before_anything_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="9 ranks do not fit"):
        check_machine(NODE, None, 9, None, JSON)
    assert capsys.readouterr().out == ""


def test_the_text_shows_the_worst_first_and_wraps() -> None:
    found = (
        finding(Severity.INFO, "note"),
        finding(Severity.WARNING, "loss", observation="word " * 60 + "end.", diagnosis="a-b-" * 40 + "."),
        finding(Severity.ERROR, "broken", evidence="line\n" * 9),
    )
    text = check_text(found, bindings(NODE), rank_layout(NODE, 2))
    heads = [line for line in text.splitlines() if line.startswith(("error ", "warning ", "note "))]
    assert heads == ["error broken", "warning loss", "note note"]
    assert text.startswith("1 error, 1 warning, 1 note\n")
    assert "a-b-" * 40 in text, "no word is cut"
    assert all(len(line) <= PLAIN.width for line in text.splitlines() if "a-b-" not in line and "  mpirun" not in line)
    assert text.count("\n            line") == 1 and "all of it with --verbose" in text
    assert "  gpu-0: NUMA node 0, CPUs 0-3,8-11\n    numactl --cpunodebind=0 --membind=0" in text
    assert "mlx5_0: NUMA node unknown, CPUs unknown" in text
    assert "    rank 1=localhost slot=4-7" in text
    assert check_text((), ()) == "no findings"


def test_colours_are_for_terminals_and_names_cannot_add_any() -> None:
    hostile = finding(Severity.ERROR, observation="\x1b[2J\x07.", diagnosis="\x9b1m.", remedy="\x00", evidence="\u202e")
    plain = check_text([hostile], bindings(Machine("m", (gpu("\x1b[31m", 0),))))
    assert not [character for character in plain if not character.isprintable() and character != "\n"]
    assert "\x1b[1;31merror\x1b[0m" in check_text([hostile], (), style=COLOURED)


def test_results_of_this_machine_are_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    low, other = result(made(0.4, limit(1.0))), result(outcome=Outcome.timed_out(1.0))
    both = (trial(Machine("other"), other), trial(NODE, low))
    monkeypatch.setattr(folder, "trials_in", lambda path: both)
    assert check_machine(NODE, Path("r"), None, Failing.ERROR, JSON) == 0
    captured = capsys.readouterr()
    rules = {entry["rule"] for entry in answer(captured.out)["findings"]}
    assert "below-physical-limit" in rules and "experiment-timed-out" not in rules and captured.err == caplog.text == ""


def test_results_of_other_machines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    only, another = trial(Machine("one")), trial(Machine("two"))
    monkeypatch.setattr(folder, "trials_in", lambda path: (only,))
    assert trial_of(NODE, Path("r")) is only and machine_in(Path("r")) is only.machine
    assert "measured on one" in caplog.text
    monkeypatch.setattr(folder, "trials_in", lambda path: (only, another))
    assert trial_of(another.machine, Path("r")) is another and machine_in(Path("r")) is None
    with pytest.raises(UsageError, match=r"2 machines \(one, two\), but not of this one"):
        trial_of(NODE, Path("r"))


@pytest.mark.real
def test_this_machine_is_checked(tmp_path: Path) -> None:
    done = seatrial_here("check", "--format", "json", "--ranks", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = answer(done.stdout)
    severities = {entry["severity"] for entry in document["findings"]}
    assert len(document["layouts"]) == 1 and list(tmp_path.iterdir()) == []
    for fail_on, worse in (("warning", {"warning", "error"}), ("error", {"error"})):
        assert seatrial_here("check", "--fail-on", fail_on, cwd=tmp_path).returncode == bool(severities & worse)
    refused = seatrial_here("check", "--ranks", "100000", cwd=tmp_path)
    assert refused.returncode == 2 and "do not fit" in refused.stderr and refused.stdout == ""
    nowhere = seatrial_here("check", "--results", "nowhere", cwd=tmp_path)
    assert nowhere.returncode == 2 and "nowhere" in nowhere.stderr and "Traceback" not in nowhere.stderr


@pytest.mark.real
@pytest.mark.lab
def test_measurements_are_checked_with_the_machine(tmp_path: Path) -> None:
    measured = seatrial_here("run", "cpu.peak", "--set", "cores=one", "--budget", "2s", cwd=tmp_path)
    assert measured.returncode == 0, measured.stderr
    done = seatrial_here("check", "--results", "seatrial-results", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", "the same machine, as it is now"
    answer(done.stdout)
