"""The guests that a run uses: found, started or reached by ssh before it plans, and ended after it.

In a guest that is reached by ssh the agent is brought once, and further commands share the connection. Nothing stays
there: the agent ends with our end of its standard input, whatever ends this process, and the shell that started it then
removes the folder with all our files.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec.structs import replace

from seatrial.errors import SeatrialError, UnknownNameError, UsageError
from seatrial.machine.attachment import ATTACHMENT
from seatrial.machine.copied import PATTERNS, discover_copied
from seatrial.model.environment.site import SiteGuest
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import OrNull, Text, published
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.machine.guest import NO_GUEST, RUNNING, Guest
from seatrial.model.machine.identity import QEMU_TCG, is_emulated
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.study.study import Study
from seatrial.places.guest.inside import pack, unpack
from seatrial.places.guest.kernel import KERNEL, find_busybox, find_kernel
from seatrial.places.guest.qemu import GuestError, find_emulator
from seatrial.places.guest.session import AGENT, PORT, SSH, Channel, Streams, ssh_words, talk
from seatrial.plan.environment_axes import VM, environment_value
from seatrial.plan.files import YamlNode
from seatrial.plan.points import Settings, values_of
from seatrial.plan.site_in_force import site_in_force
from seatrial.processes.own_folder import temporary_folder
from seatrial.processes.start import Running
from seatrial.processes.working_folder import on_path

if TYPE_CHECKING:
    from seatrial.places.guest.home import GuestState

ANY_TOPOLOGY = "/FILE.yaml"
"""Stands for the path of a topology file."""


@published("Guest")
class OfferedGuest(Frozen):
    """A virtual machine that programs can run in.

    A value of `environment.vm`. `running`: it is up; `fails`: with the reason in `need`.
    """

    name: Annotated[Text, "The value of environment.vm that selects it; /FILE.yaml: the path of a topology file"]
    title: Annotated[str, "What it is, or is started from"]
    state: Annotated[
        Literal["running", "startable", "unreached", "fails"],
        "startable: what it is started from is here; unreached: ssh would reach it, which was not tried",
    ]
    need: Annotated[OrNull[str], "Why it cannot be used"] = ""


def offered_guests(of_site: Sequence[SiteGuest], home: Path) -> list[OfferedGuest]:
    """All of them; `home` is the folder of the guest that may be up. None is started or reached."""
    return [*_running(home), *map(_of_site, of_site), _startable(ANY_TOPOLOGY, "", None)]


def _running(home: Path) -> Iterator[OfferedGuest]:
    if not home.exists():
        return
    from seatrial.places.guest.up import running_guest  # few have a guest

    try:
        state = running_guest(home)
    except SeatrialError as error:
        yield OfferedGuest(RUNNING, "the guest that was started here", "fails", _need(error))
        return
    title = f"the guest that is up: {_processors(state.why_emulated)}, Linux {state.kernel}"
    yield OfferedGuest(RUNNING, title, "running")


def _of_site(guest: SiteGuest) -> OfferedGuest:
    if guest.ssh is not None:
        return OfferedGuest(guest.name, f"ssh {guest.ssh}", "unreached")
    return _startable(guest.name, f"{guest.topology}: ", guest.kernel)


def _startable(name: str, before: str, kernel: Path | None) -> OfferedGuest:
    """A guest that a run starts and ends."""
    named = kernel or (Path(os.environ[KERNEL]) if os.environ.get(KERNEL) else None)
    try:
        emulator, found = find_emulator(), find_kernel(named)
        find_busybox()
    except SeatrialError as error:
        return OfferedGuest(name, f"{before}started for a run", "fails", _need(error))
    title = f"{before}started for a run: {_processors(emulator.why_not_kvm)}, Linux {found.version}"
    return OfferedGuest(name, title, "startable")


def _processors(why_emulated: str) -> str:
    return f"emulated processors ({why_emulated})" if why_emulated else "KVM"


def _need(error: SeatrialError) -> str:
    return f"{error.message}; {error.todo}" if error.todo else error.message


_NAME = "copy_facts"


def copied_facts(channel: Channel, program: Path, patterns: Sequence[str]) -> bytes:
    """The archive of the files that match these patterns. `program` needs no libraries. Raises GuestError."""
    with channel.opened() as guest, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        with pack(program, _NAME) as archive:
            unpack(guest, archive, channel.there)
        given.write("".join(f"{pattern}\n" for pattern in patterns).encode())
        given.seek(0)
        copy = f"{channel.there}/{_NAME}"
        with tempfile.TemporaryFile() as said:
            streams = Streams(given.fileno(), printed.fileno(), said.fileno())
            status = guest.run([copy], streams, {}, "/")
        guest.run(["rm", "-f", "--", copy], Streams(None, 2, 2), {}, "/")
        if status:
            raise GuestError(f"the guest could not say what it is: exit status {status}", "seatrial vm status")
        printed.seek(0)
        return printed.read()


_BLOCK_B = 1 << 16
_ANSWER_WITHIN_S = 60.0
_LONGEST_CONTROL = 85
"""Characters: ssh appends 17 to the name of a socket while it makes it, which may have 107."""
_LONGEST_SAID = 400


@contextmanager
def reached_by_ssh(host: str, agent: bytes) -> Iterator[Channel]:
    """A guest for the duration of the block. `agent` is the program guest_agent, linked statically. Raises
    GuestError."""
    if on_path("ssh") is None:
        raise GuestError("ssh is not installed", "on Debian: apt install openssh-client")
    blocks = -(-len(agent) // _BLOCK_B)
    ours, its = socket.socketpair()
    with temporary_folder("ssh") as private, ours, tempfile.TemporaryFile() as said:
        control = str(private / "c")
        if len(control) > _LONGEST_CONTROL:
            control = ""  # each command then connects anew
        with its:
            options = ("-M", "-S", control) if control else ()
            words = [*ssh_words(host, *options), shlex.join(["sh", "-c", _script(blocks)])]
            running = Running(words, dict(os.environ), (its.fileno(), its.fileno(), said.fileno()))
        try:
            there = _folder(ours, agent.ljust(blocks * _BLOCK_B, b"\0"), host, said.fileno())
            yield Channel(SSH, host, there, control)
        finally:
            ours.close()
            running.wait(_ANSWER_WITHIN_S)
            running.end()


def _script(blocks: int) -> str:
    machine = os.uname().machine
    return "; ".join(
        [
            f'test "$(uname -m)" = {machine} || {{ echo "it is $(uname -m), not {machine}" >&2; exit 1; }}',
            'd=$(mktemp -d "${TMPDIR:-/tmp}/seatrial-XXXXXX") || exit 1',
            "trap 'cd /; rm -rf \"$d\"' EXIT",
            "trap 'exit 1' HUP INT TERM",
            f'dd bs={_BLOCK_B} count={blocks} iflag=fullblock of="$d/{AGENT}" 2>/dev/null || exit 1',
            f'chmod 700 "$d/{AGENT}" && cd "$d" && ./{AGENT} --serve',
        ]
    )


def _folder(stream: socket.socket, agent: bytes, host: str, said: int) -> str:
    """Send the agent, and ask it for its folder."""
    with tempfile.TemporaryFile() as printed:
        try:
            stream.settimeout(_ANSWER_WITHIN_S)
            stream.sendall(agent)
            streams = Streams(None, printed.fileno(), printed.fileno())
            status = talk(stream, ["pwd"], streams, {}, "", answer_within_s=_ANSWER_WITHIN_S)
        except (OSError, GuestError) as error:
            words = os.pread(said, 1 << 16, 0).decode("utf-8", "replace").split()
            why = " ".join(words)[-_LONGEST_SAID:] or str(error)
            raise GuestError(f"{host} cannot be reached by ssh: {why}", f"try: ssh {host} true") from error
        printed.seek(0)
        folder = printed.read(4096).decode("utf-8", "replace").strip()
    if status or not folder.startswith("/"):
        raise GuestError(f"the agent on {host} does not answer as it should", f"try: ssh {host} pwd")
    return folder


_log = logging.getLogger(__name__)


def guest_names(study: Study | None, settings: Settings) -> tuple[str, ...]:
    """The values of `environment.vm` that are guests, in order. Raises UsageError for one that cannot be a name."""
    if study is not None:
        axis = study.axis(VM)
        given = [*(axis.values if axis is not None else ()), *(entry.get(VM) for entry in study.include)]
    else:
        texts = [str(value) for value in values_of(settings).get(VM, ())]
        given = [environment_value(VM, YamlNode(text, 1, text)) for text in texts]
    return tuple(dict.fromkeys(str(value) for value in given if value not in (None, NO_GUEST)))


@contextmanager
def with_guests(machine: Machine, names: Sequence[str]) -> Iterator[Machine]:
    """The machine with its guests of these names. One that cannot be used is there with the reason: its experiments
    are unsupported, the others are measured. Raises UsageError for a name that is unknown, or a damaged topology."""
    if not names:
        yield machine
        return
    wanted = [_named(name) for name in names]
    with ExitStack() as held:
        yield replace(machine, guests=tuple(_usable(one, held) for one in wanted))


def _named(name: str) -> SiteGuest:
    """What a value of the axis stands for."""
    if name == RUNNING:
        return SiteGuest(name)
    if name.startswith("/"):
        return SiteGuest(name, topology=Path(name))
    known = {guest.name: guest for guest in site_in_force().guests}
    if name not in known:
        raise UnknownNameError("guest", name, [*known, RUNNING, NO_GUEST])
    return known[name]


def _usable(wanted: SiteGuest, held: ExitStack) -> Guest:
    with ExitStack() as own:
        try:
            guest = _reached(wanted, own)
        except UsageError as error:
            if wanted.topology is not None:
                raise
            return Guest(wanted.name, problem=error.message, todo=error.todo)
        except SeatrialError as error:
            return Guest(wanted.name, problem=error.message, todo=error.todo)
        held.push(own.pop_all())
        return guest


def _reached(wanted: SiteGuest, held: ExitStack) -> Guest:
    from seatrial.places.guest.home import guest_home_path
    from seatrial.places.guest.of_run import copied_facts
    from seatrial.places.guest.up import running_guest
    from seatrial.places.rank_helpers import helper

    state: GuestState | None = None
    if wanted.ssh is not None:
        channel = held.enter_context(reached_by_ssh(wanted.ssh, helper("guest_agent", is_static=True).read_bytes()))
        reached: dict[str, Any] = {"reached": f"ssh {wanted.ssh}"}
    else:
        if wanted.topology is None:
            home = guest_home_path(os.environ)
            state = running_guest(home)
        else:
            home, state = held.enter_context(_started(wanted.topology, wanted.kernel))
        channel = held.enter_context(_folder_there(Channel(PORT, str(home), f"/tmp/seatrial-{os.getpid()}")))  # noqa: S108
        reached = {"reached": "started here", "accelerator": state.accelerator, "kernel": state.kernel}
        if state.why_emulated:
            reached["why_emulated"] = state.why_emulated
    machine = discover_copied(copied_facts(channel, helper("copy_facts", is_static=True), PATTERNS))
    if state is not None and state.accelerator == "tcg" and not is_emulated(machine):
        known = Fact(QEMU_TCG, "seatrial, which started it")
        machine = replace(machine, facts=Facts({**machine.facts, "hypervisor": (known,)}))
    return Guest(wanted.name, machine, channel.words(), {"name": wanted.name, **reached, **_facts(machine)})


@contextmanager
def _started(topology: Path, kernel: Path | None) -> Iterator[tuple[Path, GuestState]]:
    """A guest that ends with this process. Raises UsageError, GuestError, BuildError, StoreError."""
    from seatrial.places.guest.up import guest_for_a_run, guest_parts
    from seatrial.plan.topology_file import topology_of

    wanted = topology_of(topology)
    with guest_for_a_run(wanted, guest_parts(wanted, kernel), lambda text: _log.warning("%s", text)) as started:
        yield started


@contextmanager
def _folder_there(channel: Channel) -> Iterator[Channel]:
    """With its folder in the guest."""
    from seatrial.places.guest.inside import output

    with channel.opened() as guest:
        output(guest, ("mkdir", "-p", "-m", "700", "--", channel.there))
    try:
        yield channel
    finally:
        with suppress(SeatrialError, OSError), channel.opened() as guest:
            output(guest, ("rm", "-rf", "--", channel.there))


def _facts(machine: Machine) -> Mapping[str, Any]:
    """What the guest shows of its host: which CPUs share what, how devices reach it, memory that can be taken back."""
    facts: dict[str, Any] = {
        "hypervisor": machine.facts.text("hypervisor"),
        "balloon": machine.facts.text("balloon"),
        "steal_share": machine.facts.number("steal_share"),
        **{f"{kind.value}s": len(machine.of_kind(kind)) for kind in (DeviceKind.PU, DeviceKind.CORE, DeviceKind.NUMA)},
        "packages": len(machine.of_kind(DeviceKind.PACKAGE)),
    }
    words = Counter(word for device in machine.devices if (word := device.facts.text(ATTACHMENT)) is not None)
    facts["devices"] = {word: words[word] for word in sorted(words)}
    return {name: value for name, value in facts.items() if value is not None}
