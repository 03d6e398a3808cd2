"""`seatrial cache`: what is kept below the home folder, and its removal beside a running measurement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.processes.own_folder import kernel_and_namespace, own_name

KEY = "0123456789abcdef"
MADE_AGAIN = (
    f"programs/{KEY}/stream",
    f"objects/{KEY}/stream.o",
    f"answers/{KEY * 4}.json",
    f"images/{KEY * 2}/etc/passwd",
    "completion.json",
)
OTHERS = ("programs/mine/stream", "answers/notes.txt", "photo.jpg")  # the cache may be a folder with other things


@pytest.fixture
def home(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder with all kinds of things."""
    monkeypatch.setenv("HOME", str(reachable))
    for name in ("SEATRIAL_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "BASH_COMPLETION_USER_DIR"):
        monkeypatch.delenv(name, raising=False)
    cache = reachable / ".cache/seatrial"
    data, config = reachable / ".local/share", reachable / ".config/seatrial"
    schema, script = data / "seatrial/schemas/study-1.json", data / "bash-completion/completions/seatrial"
    for path in (*(cache / name for name in (*MADE_AGAIN, *OTHERS)), schema, script, config / "site.yaml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 5000)
    yield reachable


def said(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return seatrial_here("cache", *words, cwd=home)


def files(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_all_kinds_are_listed_with_size_and_age(home: Path) -> None:
    found = json.loads(said(home, "list", "--format", "json").stdout)
    check(found, "cache-1")
    kinds = {one["kind"]: one for one in found["kinds"]}
    assert set(kinds) == {"programs", "objects", "answers", "images", "words", "schemas", "completion", "site"}
    assert kinds["programs"]["entries"] == 1 and kinds["programs"]["size_B"] >= 5000
    assert 0 <= kinds["programs"]["newest_s"] < 100 and found["folder"] == str(home / ".cache/seatrial")
    text = said(home, "list").stdout
    assert "in total" in text and str(home / ".cache/seatrial/programs") in text


def test_what_is_made_again_is_removed_and_nothing_else(home: Path) -> None:
    before = files(home)
    assert "nothing was removed" in said(home, "clean").stderr and said(home, "clean").returncode == 2
    shown = said(home, "clean", "--dry-run")
    assert shown.returncode == 0 and "would be removed" in shown.stdout and files(home) == before
    done = json.loads(said(home, "clean", "--yes", "--format", "json").stdout)
    check(done, "cache-1")
    assert done["removed"] and not done["stays"]
    kept = {".local/share/bash-completion/completions/seatrial", ".config/seatrial/site.yaml"}
    assert files(home) == kept | {f".cache/seatrial/{name}" for name in OTHERS}
    assert "nothing to remove" in said(home, "clean", "--yes").stdout
    assert said(home, "clean", "completion", "site", "--yes").returncode == 0 and not files(home) & kept


def test_kinds_and_ages_are_chosen(home: Path) -> None:
    assert "did you mean programs" in said(home, "clean", "program").stderr
    old = home / f".cache/seatrial/objects/{KEY}"
    os.utime(old, (1e9, 1e9))
    said(home, "clean", "--older-than", "30d", "--yes")
    assert not old.exists() and (home / f".cache/seatrial/programs/{KEY}").exists()
    said(home, "clean", "answers", "--yes")
    left = {one["kind"] for one in json.loads(said(home, "list", "--format", "json").stdout)["kinds"]}
    assert "programs" in left and not left & {"answers", "objects"}


def test_what_another_command_may_use_stays(home: Path) -> None:
    """A process that runs its copy of a program; then one that was killed, whose copies are leftovers."""
    code = (
        "from pathlib import Path; from seatrial.environments.cached_files import private_copy; "
        "print(private_copy(b'x', Path('p')), flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    copy = Path(child.stdout.readline().strip())
    done = said(home, "clean", "--yes")
    assert f"in use by process {child.pid}" in done.stdout and copy.exists()
    assert (home / f".cache/seatrial/programs/{KEY}").exists() and not (
        home / ".cache/seatrial/completion.json"
    ).exists()
    child.kill()
    child.communicate()
    assert said(home, "clean", "--yes").returncode == 0 and not copy.exists()
    assert not (home / f".cache/seatrial/programs/{KEY}").exists()


def test_a_process_of_another_host_counts_as_running_for_a_month(home: Path) -> None:
    elsewhere = home / ".cache/seatrial/running" / own_name().replace(kernel_and_namespace(), "0" * 8)
    elsewhere.mkdir(parents=True)
    assert "another host" in said(home, "clean", "--yes").stdout
    os.utime(elsewhere, (1e9, 1e9))
    assert "another host" not in said(home, "clean", "--yes").stdout and not elsewhere.exists()


def test_a_cache_that_others_can_write_is_refused(home: Path) -> None:
    (home / ".cache/seatrial").chmod(0o777)
    for words in (("list",), ("clean", "--yes")):
        assert said(home, *words).returncode == 2 and "can be written by everybody" in said(home, *words).stderr
