"""`seatrial screen` on results folders."""

from __future__ import annotations

import json
import random
from pathlib import Path

import jsonschema
import pytest
from analysis.made_up_folders import MadeUpFolder
from analysis.made_up_sweeps import noisy
from cli.in_process import seatrial_here

from seatrial.jobs.folder import JobFolder
from seatrial.model.results.sample import Outcome, State
from seatrial.report.schemas import schema


def folder_of(path: Path, hosts: dict[str, float]) -> Path:
    source = random.Random(1)
    folder = MadeUpFolder(path)
    for host, share in hosts.items():
        folder.add(noisy(share * 1e9, 6, 0.005, source), host=host)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hosts = {f"n{k}": 0.8 if k == 10 else 1.0 for k in range(1, 13)}
    return folder_of(tmp_path_factory.mktemp("fleet") / "results", hosts)


def test_the_answer_names_the_odd_node(folder: Path) -> None:
    answer = seatrial_here("screen", "--from", str(folder), "--format", "json", cwd=folder.parent)
    document = json.loads(answer.stdout)
    jsonschema.validate(document, schema("screen-1"))
    assert answer.returncode == 0 and [node["name"] for node in document["nodes"]][:2] == ["n1", "n2"]
    (odd,) = document["odd"]
    assert (odd["kind"], odd["what"], odd["figure"], odd["false_alarm_rate"]) == ("node", "n10", "fma", 0.01)
    assert odd["ratio"] == pytest.approx(0.8, abs=0.01) and odd["sureness"] > 0.99
    assert odd["remedy"].startswith("scontrol update nodename=n10 state=drain")


def test_the_text_says_it_first_and_proposes(folder: Path) -> None:
    answer = seatrial_here("screen", "--from", str(folder), cwd=folder.parent)
    lines = answer.stdout.splitlines()
    assert lines[0] == "1 odd in 12 nodes: node n10"
    assert "cpu.peak fma" in lines[1] and "-20" in lines[1].replace("\N{MINUS SIGN}", "-")
    assert "to do: scontrol update nodename=n10 state=drain" in answer.stdout
    assert "at most 1 % of cases" in answer.stdout
    brief = seatrial_here("screen", "--from", str(folder), "--quiet", cwd=folder.parent)
    assert brief.stdout.splitlines()[0] == lines[0] and "to do" not in brief.stdout


def test_the_exit_status_says_whether_anything_is_odd(folder: Path, tmp_path: Path) -> None:
    given = ("screen", "--fail-on", "odd", "--from")
    assert seatrial_here(*given, str(folder), cwd=tmp_path).returncode == 1
    sound = folder_of(tmp_path / "sound", {f"n{k}": 1.0 for k in range(1, 13)})
    assert seatrial_here(*given, str(sound), cwd=tmp_path).returncode == 0
    assert seatrial_here("screen", "--fail-on", "even", "--from", str(sound), cwd=tmp_path).returncode == 2


def test_folders_of_one_node_each_are_screened_together(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / f"r{k}", {f"n{k}": 0.7 if k == 2 else 1.0}) for k in range(5)]
    options = [text for path in folders for text in ("--from", str(path))]
    answer = seatrial_here("screen", *options, "--format", "json", cwd=tmp_path)
    assert [odd["what"] for odd in json.loads(answer.stdout)["odd"]] == ["n2"]


def test_a_fabric_places_nodes_on_switches(folder: Path, tmp_path: Path) -> None:
    topology = tmp_path / "topology.txt"
    topology.write_text("SwitchName=s1 Nodes=n[1-6]\nSwitchName=s2 Nodes=n[7-12]\nSwitchName=top Switches=s[1-2]\n")
    given = ("--from", str(folder), "--from", f"slurm-topology={topology}", "--format", "json")
    document = json.loads(seatrial_here("screen", *given, cwd=tmp_path).stdout)
    assert {node["name"]: node["switch"] for node in document["nodes"]}["n7"] == "s2"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no results folder given"),
        (("--from", "nowhere"), "nowhere"),
        (("--from", "nothing=file"), "neither a results folder nor a dump of a fabric"),
        (("--margin", "5"), "--margin '5' is not a percentage"),
    ],
)
def test_what_cannot_be_screened_is_refused(folder: Path, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    given = ("--from", str(folder), *options) if "--margin" in options else options
    answer = seatrial_here("screen", *given, cwd=tmp_path)
    assert answer.returncode == 2 and said in answer.stderr


def test_a_single_node_cannot_be_screened(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "results", {"n1": 1.0})
    answer = seatrial_here("screen", "--from", str(path), cwd=tmp_path)
    assert answer.returncode == 2 and "one node (n1) cannot be screened" in answer.stderr


def test_failed_trials_and_counters_of_links_are_told(tmp_path: Path) -> None:
    folder = MadeUpFolder(tmp_path / "results")
    source = random.Random(2)
    errors = {"port": "mlx5_0 port 1", "counter": "symbol_error", "kind": "error", "grew_by": 50}
    for k in range(1, 7):
        seen = {"links": [errors]} if k == 5 else {}
        if k == 3:
            folder.add([1e9], host="n3", outcome=Outcome(State.TIMED_OUT, "ended after 30 s"))
        folder.add(noisy(1e9, 6, 0.005, source), host=f"n{k}", seen=seen, cores="all" if k == 3 else "one")
    answer = seatrial_here("screen", "--from", str(tmp_path / "results"), "--format", "json", cwd=tmp_path)
    document = json.loads(answer.stdout)
    jsonschema.validate(document, schema("screen-1"))
    assert document["not_screened"][0] == "cpu.peak timed out on n3: ended after 30 s"
    (odd,) = document["odd"]
    assert (odd["kind"], odd["what"], odd["value"]) == ("link", "link of n5", 300.0)
    (counter,) = document["link_counters"]
    assert (counter["node"], counter["grew_by"], counter["meaning"]) == ("n5", 300, "symbols that arrived damaged")
    text = seatrial_here("screen", "--from", str(tmp_path / "results"), cwd=tmp_path).stdout
    assert "mlx5_0 port 1 symbol_error grew by 300 where the others have none" in " ".join(text.split())


def test_a_node_that_was_odd_at_first_only_is_not_named_but_reported(tmp_path: Path) -> None:
    source = random.Random(3)
    folder = MadeUpFolder(tmp_path / "results")
    for k in range(1, 7):
        first = noisy(0.7e9 if k in (2, 4) else 1e9, 6, 0.005, source)
        later = noisy(0.7e9 if k == 4 else 1e9, 6, 0.005, source) if k in (2, 4) else []
        folder.add([*first, *later], host=f"n{k}", starts=[*range(6), *(1000 + 0.9 * k for k in range(len(later)))])
    for k in (2, 4):
        job = JobFolder.create(folder.folder, {"node": f"n{k}", "confirms": True, "time_s": 1.7e9 + 990}, lambda _: "")
        job.write_text("started", f"job=1\nhost=n{k}\ntime={1.7e9 + 995}\nstart=x\n")
        job.write_text("ended", f"status=0\ntime={1.7e9 + 1004:.0f}\n")  # the last repeat starts within the next second
    options = ("screen", "--from", str(tmp_path / "results"))
    document = json.loads(seatrial_here(*options, "--format", "json", cwd=tmp_path).stdout)
    jsonschema.validate(document, schema("screen-1"))
    assert [one["what"] for one in document["odd"]] == ["n4"]
    (once,) = document["not_seen_again"]
    assert once["what"] == "n2" and once["ratio"] == pytest.approx(0.7, abs=0.01)
    assert once["later"] == pytest.approx(1.0, abs=0.01)
    page = tmp_path / "page.html"
    text = seatrial_here(*options, "-o", str(page), cwd=tmp_path).stdout
    for shown in (" ".join(text.split()), page.read_text()):
        assert "node n2 was odd at first only" in shown.replace("\N{NO-BREAK SPACE}", " ")
    assert "; -30" in " ".join(text.split()) and "% when measured again" in " ".join(text.split())
