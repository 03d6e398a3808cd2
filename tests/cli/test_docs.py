"""The pages that promise to be complete are: every key of a study, every benchmark, every format that is read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cli.in_process import seatrial_here

from seatrial.applications.readers import readers
from seatrial.benchmarks import registry
from seatrial.cli.commands import PURPOSES
from seatrial.cli.sources import KINDS
from seatrial.plan.files import read_yaml
from seatrial.plan.study_model import BestOfModel, CompareModel, RepeatModel, ScalingModel, StudyModel

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "study-files.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_has_every_key() -> None:
    for model in (StudyModel, CompareModel, ScalingModel, BestOfModel, RepeatModel):
        assert not [key for key in model.keys if not re.search(rf"^\| `{key}` |`{key}`", PAGE, re.MULTILINE)]
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(StudyModel.keys) | set(
        CompareModel.keys
    ) | set(RepeatModel.keys)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_are_planned(number: int, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(EXAMPLES[number])
    done = seatrial_here("plan", "s.yaml", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["count"] == [2, 8, 2, 4][number]


@pytest.mark.real
def test_the_complete_example_is_run(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(EXAMPLES[0])
    done = seatrial_here("run", "s.yaml", "--budget", "4s", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nontemporal" in json.loads(done.stdout)["study"]["answer"]["said"]


def test_a_new_study_names_every_key(tmp_path: Path) -> None:
    seatrial_here("init", "study", cwd=tmp_path, XDG_DATA_HOME=str(tmp_path))
    named = re.findall(r"^(?:# )?(\w+):(?= |$)", (tmp_path / "study.yaml").read_text(), re.MULTILINE)
    assert set(named) - {"Measure"} == set(StudyModel.keys)
    text = (tmp_path / "study.yaml").read_text()
    for model in (CompareModel, ScalingModel, BestOfModel, RepeatModel):
        assert not [key for key in model.keys if f"{key}: " not in text]
    shown = re.sub(r"^# (?=[a-z_]+: [\[{])", "", text, flags=re.MULTILINE)
    whole = StudyModel.of(read_yaml(shown.encode(), "study.yaml"))
    assert set(whole.values) == set(StudyModel.keys)  # what is commented out is valid as well


def test_words_that_contributing_excludes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In strings over several lines, f-strings, comments and documents; not in code, nor where the word is right."""
    monkeypatch.syspath_prepend(DOCS)
    check_words, draw_sentences = import_module("check_words"), import_module("draw_sentences")
    assert len(check_words.rules()) > 10
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "CONTRIBUTING.md").write_text((DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    (tmp_path / "docs/a.md").write_text("It was\ntold `the lab`.\n\nThere is no MPI: this is no longer so.\n")
    source = (
        'text = (\n    f"{told} here is "\n    "no folder"\n)  # it has a file of its own\ntold = "in place of this"\n'
    )
    (tmp_path / "src/a.py").write_text(source)
    for module in (check_words, draw_sentences):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    lines = check_words.found()
    assert [line.split(": ")[:2] for line in lines] == [
        ["docs/a.md:1", "'told'"],
        ["src/a.py:2", "'is no'"],
        ["src/a.py:4", "'a file of its own'"],
    ]


def test_sentences_are_drawn_by_a_seed() -> None:
    script = [sys.executable, "docs/draw_sentences.py", "--count", "5", "--seed"]
    first, again, other = (
        subprocess.run([*script, seed], cwd=DOCS.parent, capture_output=True, text=True, check=True).stdout
        for seed in ("7", "7", "8")
    )
    assert first == again != other and len(first.splitlines()) == 10


def test_a_page_has_every_benchmark_and_format() -> None:
    page = (DOCS / "what-it-measures.md").read_text(encoding="utf-8")
    in_groups = ("imported.", "mpi.", "gpu.")
    benchmarks = [name.removeprefix("apps.") for name in registry() if not name.startswith(in_groups)]
    assert not [name for name in (*benchmarks, *readers(), *KINDS) if f"`{name}`" not in page]


def test_readme_has_every_command_and_how_to_remove_everything() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*`) \|", readme, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z]+)`", row)} == set(PURPOSES)
    assert "pip install ." in readme and "seatrial cache clean" in readme
    links = re.findall(r"\]\(([\w/.-]+\.md)", readme)
    assert len(links) > 20 and not [link for link in links if not (DOCS.parent / link).exists()]


def test_one_script_makes_every_picture() -> None:
    script = (DOCS / "pictures.py").read_text(encoding="utf-8")
    pages = [DOCS.parent / "README.md", *DOCS.glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text(encoding="utf-8"))}
    assert shown == {file.stem for file in (DOCS / "images").iterdir()}
    assert not [name for name in shown if f'"{name}":' not in script]


def test_options_that_a_sentence_names_exist(tmp_path: Path) -> None:
    named: dict[str, set[str]] = {}
    for file in (DOCS.parent / "src/seatrial").rglob("*.py"):
        for command, words in re.findall(r"`seatrial ([a-z]+(?: up)?)( [^`\n]*)`", file.read_text(encoding="utf-8")):
            named.setdefault(command, set()).update(re.findall(r"(?<!\S)--[a-z-]+", words.split(" -- ")[0]))
    assert {"run", "profile"} <= named.keys()
    for command, options in named.items():
        shown = seatrial_here(*command.split(), "--help", cwd=tmp_path).stdout
        assert [option for option in options if option not in shown] == [], command
