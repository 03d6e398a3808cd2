"""The guests that `list` names, of which none is started or reached."""

from __future__ import annotations

from pathlib import Path

import pytest
from places.guest.made_up_kernel import VERSION, make_kernel_package

from seatrial.model.environment.site import SiteGuest
from seatrial.model.machine.guest import RUNNING
from seatrial.places.guest import of_run as offered
from seatrial.places.guest.kernel import KERNEL
from seatrial.places.guest.of_run import ANY_TOPOLOGY, offered_guests
from seatrial.places.guest.qemu import Emulator

OF_SITE = [SiteGuest("far", ssh="far.example"), SiteGuest("near", topology=Path("/site/near.yaml"))]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What guests are started from, whatever this machine has."""
    make_kernel_package(tmp_path)
    monkeypatch.setenv(KERNEL, str(tmp_path / "boot" / f"vmlinuz-{VERSION}"))
    monkeypatch.setattr(offered, "find_emulator", lambda: Emulator("/usr/bin/qemu", "/dev/kvm: it is missing"))
    monkeypatch.setattr(offered, "find_busybox", lambda: Path("/bin/busybox"))


def test_guests_that_can_be_started(parts: None, tmp_path: Path) -> None:
    far, near, any_file = offered_guests(OF_SITE, tmp_path / "no guest")
    assert (far.name, far.title, far.state, far.need) == ("far", "ssh far.example", "unreached", "")
    how = f"started for a run: emulated processors (/dev/kvm: it is missing), Linux {VERSION}"
    assert (near.name, near.title, near.state) == ("near", f"/site/near.yaml: {how}", "startable")
    assert (any_file.name, any_file.title, any_file.state) == (ANY_TOPOLOGY, how, "startable")


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    far, near, any_file = offered_guests(OF_SITE, tmp_path / "no guest")
    assert far.state == "unreached"
    for one in (near, any_file):
        assert one.state == "fails" and one.need.endswith("; on Debian: apt install qemu-system-x86")


def test_a_kernel_of_the_site_that_is_none(parts: None, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no kernel")
    (one, _) = offered_guests([SiteGuest("near", topology=Path("/t"), kernel=tmp_path / "text")], tmp_path / "no guest")
    assert one.state == "fails" and str(tmp_path / "text") in one.need


def test_a_guest_that_did_not_come_up(parts: None, tmp_path: Path) -> None:
    home = tmp_path / "guest"
    home.mkdir(mode=0o700)
    (home / "alive").touch(mode=0o600)
    first = offered_guests([], home)[0]
    assert (first.name, first.state) == (RUNNING, "fails") and "seatrial vm down, then up" in first.need
