"""The energy that Slurm accounts: of this node (`scontrol show node`), and of the job here (`sstat`).

Slurm's documentation of acct_gather.conf and slurm.conf: AcctGatherEnergyType names who measures, AcctGatherNodeFreq
how often slurmd does, JobAcctGatherFrequency (energy=) how often steps do. The plugin `rapl` adds up packages and
memory, and its counters must be read within 300 s, since they wrap; `gpu` adds up GPUs; `ipmi`, `xcc` and `pm_counters`
are of the node. All are of the whole node: of a job that shares it, they have the energy of others too.

slurmctld answers for the whole cluster, so it is asked once a minute at most.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.model.spelling import show
from seatrial.probes.power.credentials import without_passwords
from seatrial.probes.power.source import Reading, Sensor, timed
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import on_path

LEAST_PERIOD_S = 60.0
_WRAPS_AFTER_S = 300.0
_LIMIT_S = 10.0
_ASSIGNED = re.compile(r"^(\w+)\s*= (.*)$", re.MULTILINE)
_VALUE = re.compile(r"\b(CurrentWatts|ConsumedJoules|OverSubscribe)=(\S+)")
_NO_VALUES = frozenset({4294967294, 4294967295, 18446744073709551614, 18446744073709551615})
"""NO_VAL and INFINITE in Slurm's slurm.h, of 32 and 64 bits."""
_SCOPES = {"ipmi": Scope.NODE, "xcc": Scope.NODE, "pm_counters": Scope.NODE, "ibmaem": Scope.NODE, "gpu": Scope.DEVICE}
_NAMES = {"rapl": "packages and memory", "gpu": "all GPUs"}
Ask = Callable[[Sequence[str]], str]
"""What a command of Slurm prints; raises OSError if it fails."""


class Gathering(Frozen):
    """How Slurm measures energy: the plugins (none: ()), and how often the node and the steps do, in seconds; None:
    never."""

    plugins: tuple[str, ...]
    node_s: float | None
    step_s: float | None


def read_gathering(text: str) -> Gathering:
    """From what `scontrol show config` prints."""
    stated = dict(_ASSIGNED.findall(text))
    named = stated.get("AcctGatherEnergyType", "").strip()
    plugins = [one.rpartition("/")[2] for one in named.split(",")]
    step = re.search(r"\benergy=(\d+)", stated.get("JobAcctGatherFrequency", ""))
    return Gathering(
        tuple(one for one in plugins if one not in ("", "none", "(null)")),
        _seconds(stated.get("AcctGatherNodeFreq", "")),
        _seconds(step[1] if step else ""),
    )


def read_values(text: str) -> dict[str, float]:
    """CurrentWatts and ConsumedJoules in what `scontrol show node` prints, where they have a value."""
    return {name: found for name, word in _VALUE.findall(text) if (found := _whole(word)) is not None}


def read_steps(text: str) -> float | None:
    """The energy of all steps, in J, from `sstat -n -P -o ConsumedEnergyRaw`; None if none is stated."""
    found = [value for line in text.splitlines() if (value := _whole(line.strip())) is not None]
    return float(sum(found)) if found else None


def sensors(ask: Ask | None = None) -> list[Sensor]:
    """The node's power and energy, and the energy of the job that this process is in; nothing without Slurm."""
    if ask is None:
        if on_path("scontrol") is None:
            return []
        ask = _asked
    try:
        gathering = read_gathering(ask(("scontrol", "show", "config")))
        node = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
        shown = ask(("scontrol", "show", "node", node))
    except OSError:  # no cluster, or not a node of it
        return []
    scope, of = _measured_by(gathering.plugins)
    job = os.environ.get("SLURM_JOB_ID", "")
    why = _why_not(gathering, _shares(ask, job))
    why_node = why or _of_node_alone(gathering)
    ask_node = partial(_of_node, ask, node)
    power = Sensor(
        f"slurm:{node}/power",
        scope,
        SourceKind.GAUGE,
        of,
        partial(ask_node, "CurrentWatts"),
        refresh_s=max(LEAST_PERIOD_S, gathering.node_s or 0.0),
        quantum=1.0,
        unusable=why_node,
        is_remote=True,
    )
    found = [power]
    if "ConsumedJoules" in shown:  # of older versions
        counter = partial(ask_node, "ConsumedJoules")
        found.append(_counter(f"slurm:{node}/energy", power, counter, gathering.node_s, why_node))
    if job and os.environ.get("SLURM_JOB_NUM_NODES", "1") == "1":
        none = "" if gathering.step_s else "steps do not read it (JobAcctGatherFrequency without energy=)"
        found.append(_counter(f"slurm:job {job}", power, partial(_of_job, ask, job), gathering.step_s, why or none))
    return found


def _counter(name: str, power: Sensor, read: Callable[[], Reading], every_s: float | None, unusable: str) -> Sensor:
    refresh_s = max(LEAST_PERIOD_S, every_s or 0.0)
    kind = SourceKind.COUNTER
    return Sensor(
        name, power.scope, kind, power.of, read, refresh_s=refresh_s, quantum=1.0, unusable=unusable, is_remote=True
    )


def _measured_by(plugins: Sequence[str]) -> tuple[Scope, str]:
    scopes = {_SCOPES.get(one, Scope.PART) for one in plugins}
    of = " and ".join(_NAMES.get(one, "the node") for one in plugins)
    by = ", ".join(plugins)
    return (scopes.pop() if len(scopes) == 1 else Scope.PART), f"{of}, by Slurm ({by})" if of else "the node, by Slurm"


def _why_not(gathering: Gathering, shares: bool) -> str:
    if not gathering.plugins:
        return "Slurm has no energy plugin here (AcctGatherEnergyType)"
    if shares:
        return "the job shares its node, and this has the energy of the other jobs too: use --exclusive"
    return ""


def _of_node_alone(gathering: Gathering) -> str:
    if not gathering.node_s:
        return "slurmd does not read it regularly (AcctGatherNodeFreq=0)"
    if "rapl" in gathering.plugins and gathering.node_s > _WRAPS_AFTER_S:
        return f"is read every {show(gathering.node_s, 's')} only: RAPL's counters wrap unseen in more than 300 s"
    return ""


def _shares(ask: Ask, job: str) -> bool:
    """Whether other jobs may be on the nodes of this one."""
    if not job:
        return False
    try:
        found = dict(_VALUE.findall(ask(("scontrol", "show", "job", job))))
    except OSError:
        return True
    return found.get("OverSubscribe") not in ("NO", "EXCLUSIVE")


def _of_node(ask: Ask, node: str, key: str) -> Reading:
    try:
        with timed() as request:
            found = read_values(ask(("scontrol", "show", "node", node))).get(key)
    except OSError as error:
        return request.reading(fault=f"no answer: {error}")
    if found is None:
        return request.reading(fault="reports no value")
    return request.reading(**{"watts" if key == "CurrentWatts" else "joules": found})


def _of_job(ask: Ask, job: str) -> Reading:
    try:
        with timed() as request:
            found = read_steps(ask(("sstat", "-n", "-P", "-a", "-j", job, "-o", "ConsumedEnergyRaw")))
    except OSError as error:
        return request.reading(fault=f"no answer: {error}")
    return request.reading(fault="reports no value") if found is None else request.reading(joules=found)


def _asked(words: Sequence[str]) -> str:
    program = on_path(words[0])
    if program is None:
        raise OSError(0, f"{words[0]}: not found")
    try:
        answer = output_of([program, *words[1:]], {**without_passwords(os.environ), "LC_ALL": "C"}, _LIMIT_S)
    except OutOfTimeError:
        raise OSError(0, f"{Path(program).name} did not end in {_LIMIT_S:g} s") from None
    if answer.returncode:
        raise OSError(0, f"{Path(program).name}: exit status {answer.returncode}")
    return answer.stdout.decode("utf-8", "replace")


def _seconds(text: str) -> float | None:
    """Of "30 sec" or "30"; None for 0 and other texts."""
    found = re.match(r"\s*(\d+)", text)
    return float(found[1]) or None if found else None


def _whole(word: str) -> float | None:
    return float(word) if word.isascii() and word.isdigit() and int(word) not in _NO_VALUES else None
