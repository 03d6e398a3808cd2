"""What stands before a program that runs in a guest: which files it brings, and what it keeps of the guest's kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.model.machine.guest import Guest
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import Inside
from seatrial.places.guest.inside import Request, guest_counters, write_counters
from seatrial.places.guest.of_run import guest_names, with_guests
from seatrial.places.guest.runtime import GuestRuntime
from seatrial.places.guest.session import PORT, Channel
from seatrial.plan.points import plan_points
from seatrial.plan.site_file import read_site

CHANNEL = Channel(PORT, "/run/guest", "/tmp/there")


def request(command: list[str], folders: list[Path], libraries: tuple[Path, ...] = ()) -> Request:
    runtime = GuestRuntime(CHANNEL, libraries)
    image = Image("g", ImageKind.GUEST, "")
    inside = Inside(image, runtime.mounts(image, folders), {"A": "b=c"})
    words = runtime.prefix(inside)
    start = words.index(PORT)
    return Request.of([*words[start:], *(inside.mapped(word) for word in command)])


def test_files_that_the_command_names_are_brought(tmp_path: Path) -> None:
    programs, repeat = tmp_path / "programs", tmp_path / "repeat"
    for folder in (programs / "1", repeat):
        folder.mkdir(parents=True)
    program = programs / "1" / "peak"
    program.touch()
    made = request([str(program), "--record", str(repeat), "-x", "/etc/passwd"], [repeat, programs])
    ((file, place),) = made.files()
    assert file == program and place == made.command[0] and place.startswith("/tmp/there/programs/")
    assert made.command[2] == made.folders[0][1] and made.folders[0][0] == str(repeat)
    assert made.command[3:] == ["-x", "/etc/passwd"] and made.variables == {"A": "b=c"}
    assert made.words() == made.command and made.channel == CHANNEL
    again = request([str(program)], [repeat, programs])
    assert next(again.files()) == (file, place), "the same place for each repeat"


def test_libraries_are_used_by_their_own_loader(tmp_path: Path) -> None:
    program = tmp_path / "peak"
    program.touch()
    libraries = (Path("/lib64/ld-linux-x86-64.so.2"), Path("/usr/lib/libm.so.6"))
    made = request([str(program), "--describe"], [tmp_path], libraries)
    assert made.folders[0][0] == "", "nothing is fetched"
    loader, option, folder, *command = made.words()
    assert command == made.command and option == "--library-path"
    assert loader == f"{folder}/ld-linux-x86-64.so.2"
    assert [Path(place).name for _, place in made.files()] == ["peak", "ld-linux-x86-64.so.2", "libm.so.6"]


def test_counters_of_the_kernel(tmp_path: Path) -> None:
    assert guest_counters(tmp_path) == {}
    before, after = (
        f"cpu  1 2 3 4 5 6 7 {ticks} 9 10\ncpu0 1\nMemTotal: {size} kB\n".encode()
        for ticks, size in ((8, 100), (58, 90))
    )
    write_counters(tmp_path, before, after)
    assert guest_counters(tmp_path) == {"steal_s": 0.5, "memory_before_B": 102400, "memory_after_B": 92160}
    for damaged in (b"[]", b'{"steal_s": "x"}', b"{"):
        (tmp_path / "guest.json").write_bytes(damaged)
        assert guest_counters(tmp_path) == {}


def test_points_of_a_guest_are_for_its_machine(made_machine: Machine) -> None:
    settings = {"environment.vm": ["none", "small", "absent"], "cores": ["all"]}
    assert guest_names(None, settings) == ("small", "absent")
    here, there, refused = plan_points(["cpu.peak"], settings, made_machine)
    assert (here.environment.vm, there.environment.vm, refused.environment.vm) == (None, "small", "absent")
    assert (len(here.cpus), len(there.cpus)) == (4, 1)
    assert refused.refusal is not None and refused.refusal.state is State.UNSUPPORTED
    assert refused.refusal.reason == "vm: the guest absent: it does not answer; try it"


@pytest.fixture
def made_machine() -> Machine:
    from dataclasses import replace

    from made_up import made_up_machine

    guest = Guest("small", made_up_machine(cores=1), CHANNEL.words())
    absent = Guest("absent", problem="it does not answer", todo="try it")
    return replace(made_up_machine(cores=4), guests=(guest, absent))


def test_names_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="nosuch"), with_guests(Machine("here"), ("nosuch",)):
        pass
    with pytest.raises(UsageError, match="is not a guest"):
        guest_names(None, {"environment.vm": ["-x"]})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "needs ssh or topology"),
        ("{ssh: a, topology: /b}", "not both"),
        ("{ssh: -oProxyCommand=x}", "takes the host"),
        ("{topology: b}", "begins with /"),
        ("{host: b}", "host"),
    ],
)
def test_guests_of_a_site_file_are_checked(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_site(f"guests:\n  g: {text}\n".encode(), "site.yaml")
    assert read_site(b"guests:\n  g: {ssh: root@n1}\n", "site.yaml").guests[0].ssh == "root@n1"
    with pytest.raises(UsageError, match="running"):
        read_site(b"guests:\n  running: {ssh: n1}\n", "site.yaml")
