"""What `up` does when a guest stays silent or ends, and what a state file tells."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from published_schemas import check

from seatrial.errors import UsageError
from seatrial.model.machine.guest import GuestDevice, GuestNode, GuestPart, GuestTopology
from seatrial.places.guest import up
from seatrial.places.guest.home import ALIVE, GuestHome, GuestState, guest_home_path
from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.up import GuestStatus, read_guest_status
from seatrial.places.guest.words import CONSOLE
from seatrial.places.owned_folder import STATE, write_state
from seatrial.report.documents.places import guest_document
from seatrial.report.text.places import guest_text
from seatrial.report.text.terminal import PLAIN

_STATE = GuestState(
    GuestTopology(
        (GuestNode(1, 1 << 29), GuestNode(1, 1 << 29)), 1, ((10, 20), (20, 10)),
        (GuestDevice(GuestPart.SWITCH, 1, None, 0, (GuestDevice(GuestPart.NVME, 0, 1 << 26, 2),)),),
    ),
    1, "tcg", "as asked", "6.1", 9.5,
)  # fmt: skip


def test_an_emulator_that_ends_is_told_with_its_words(tmp_path: Path) -> None:
    (tmp_path / CONSOLE).touch()
    (tmp_path / up.LOG).write_bytes(b"qemu: \x1b[31mno such bus\n")
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        with pytest.raises(GuestError) as raised:
            up._wait_for_agent(tmp_path, ended.pid, 5.0)
    assert "QEMU ended" in str(raised.value) and str(raised.value).endswith("qemu: no such bus")


def test_only_processes_with_the_file_open_are_the_guests(tmp_path: Path) -> None:
    home = GuestHome(tmp_path)
    assert home.members() == set()
    with (tmp_path / ALIVE).open("w") as mark, subprocess.Popen(["sleep", "60"]) as other:
        with subprocess.Popen(["sleep", "60"], pass_fds=[mark.fileno()]) as member:
            assert home.members() == {member.pid}
            home.end_members()
            assert home.members() == set() and other.poll() is None
        other.kill()
    home.remove()
    assert not tmp_path.exists()
    tmp_path.mkdir()


def test_a_pause_of_this_process_is_not_taken_for_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with a high load, or while its group is frozen, a minute passes between two steps of `down`."""
    home, clock = GuestHome(tmp_path), iter(range(0, 1 << 20, 60))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with (tmp_path / ALIVE).open("w") as mark, subprocess.Popen(["sleep", "60"], pass_fds=[mark.fileno()]) as member:
        home.end_members()
        monkeypatch.undo()
        assert home.members() == set() and not Path("/proc", str(member.pid)).exists()


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_state(tmp_path, _STATE)
    assert GuestHome(tmp_path).read_state() == _STATE
    tmp_path.chmod(0o700)
    assert read_guest_status(tmp_path).condition == "incomplete", "no process has its file open"
    written = (tmp_path / STATE).read_text()
    for text in ("", "[]", "{}", written[:-20], written.replace('"switch"', '"swatch"')):
        (tmp_path / STATE).write_text(text)
        assert GuestHome(tmp_path).read_state() is None


def test_its_document_is_json_of_the_published_shape(tmp_path: Path) -> None:
    document = guest_document(GuestStatus(tmp_path, "up", _STATE))
    check(json.loads(json.dumps(document)), "vm-1")
    assert [(one["kind"], one["node"], one["behind_switch"]) for one in document["devices"]] == [
        ("switch", 1, None), ("nvme", 1, 0),
    ]  # fmt: skip
    text = guest_text(document, PLAIN)
    assert "no time measured in it means anything" in text and "  nvme" in text


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match="others can write"):
        read_guest_status(tmp_path)
    with pytest.raises(UsageError, match="absolute path"):
        guest_home_path({"SEATRIAL_VM": "guest"})
