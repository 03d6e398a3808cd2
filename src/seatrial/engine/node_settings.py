"""Clocks, governors and limits of the node as an experiment asks for them (axes `environment.turbo`, ...): part of its
identity, set while its repeats run, read back and compared with the clock of the run, and put back by a guard
(environments/settings/).
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec.structs import replace

from seatrial.engine.ready import NotPreparedError, Ready, Refused
from seatrial.environments.settings.change import Settings, guarded
from seatrial.environments.settings.gpus import busy_clocks_Hz, gpus_here
from seatrial.environments.settings.knobs import NotAllowedError, refuse_forbidden, writes_of
from seatrial.environments.settings.node import OTHERS_TOO, root_in_force, why_not_ours
from seatrial.machine.files import FileTree
from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS, settings_wanted
from seatrial.model.results.record import content_key
from seatrial.model.results.sample import Outcome, Sample
from seatrial.model.spelling import show
from seatrial.probes.clocks import ClockLooks, clocks_within, nominal_clock_Hz
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import on_path

_log = logging.getLogger(__name__)
CHECK = "setting"
CHOSEN = "machine_settings"
_TOLERANCE = 0.05
"""Clocks differ by less than this from what was set: they are set in steps of 25 to 100 MHz."""
_BUSY_PERCENT = 90.0
_FORBIDDEN = tuple(map(os.strerror, (errno.EACCES, errno.EPERM, errno.EROFS)))
_SLURM_SETS = ("governor", "cpu_frequency")
_SLURM_ASKS = "SLURM_CPU_FREQ_REQ"
"""srun(1): as `--cpu-freq`, MINIMUM-MAXIMUM:GOVERNOR in kHz."""
_SLURM_LIMIT_S = 10.0
_GOVERNORS = re.compile(r"^CpuFreqGovernors\s*=\s*(\S+)", re.MULTILINE)


def with_settings(found: Ready | Refused, chosen: EnvironmentChoice) -> Ready | Refused:
    """The experiment of a point without its settings, as that with them. Refused where this node does not have or
    allow them."""
    settings = dict(chosen.machine_settings)
    words = " ".join(f"{name}={text}" for name, text in settings.items())
    document: dict[str, Any] = {"name": "not available here", **(found.environment or {}), CHOSEN: settings}
    document["name"] = f"{document['name']} {words}"
    key = content_key({"environment": found.experiment.environment, CHOSEN: settings})
    point = replace(found.point, environment=chosen)
    experiment = replace(found.experiment, environment=key)
    if isinstance(found, Refused):
        return replace(found, point=point, experiment=experiment, environment=document)
    try:
        of_node, variables = _how_set(found, settings_wanted(settings))
    except NotAllowedError as error:
        why = Outcome.unsupported(error.need, f"{error.message}; {error.todo}")
        return Refused(point, experiment, why, document)
    return replace(
        found,
        point=point,
        experiment=experiment,
        environment=document,
        node_settings=tuple(of_node.items()),
        variables=(*found.variables, *variables),
    )


def _how_set(ready: Ready, wanted: Mapping[str, Value]) -> tuple[Mapping[str, Value], tuple[tuple[str, str], ...]]:
    """What is set on this node by its files, and the variables by which Slurm sets the rest. Raises NotAllowedError."""
    if ready.machine is not None:
        raise NotAllowedError("the program runs in a guest", "settings of its host were never tried", "vm")
    is_elsewhere = len(ready.point.hosts) > 1
    if is_elsewhere:
        refused = NotAllowedError("its ranks run on several nodes", "settings are changed on one node only", "node")
    else:
        try:
            writes = writes_of(wanted, root_in_force())
            refuse_forbidden(writes, root_in_force())
            if why := why_not_ours():
                raise NotAllowedError(why, f"{OTHERS_TOO}, then give --shared", "exclusive")
            return wanted, ()
        except NotAllowedError as error:
            refused = error
    if (is_elsewhere or refused.need in ("root", "permission")) and (asked := _asked_of_slurm(ready, wanted)):
        return {}, ((_SLURM_ASKS, asked),)
    raise refused


def _asked_of_slurm(ready: Ready, wanted: Mapping[str, Value]) -> str | None:
    """The value of `--cpu-freq` by which srun sets these; None if it does not start the ranks, cannot, or may not."""
    if ready.mpi is None or "SLURM_JOB_ID" not in os.environ or not set(wanted) <= set(_SLURM_SETS):
        return None
    launcher = ready.mpi.launcher
    if (launcher.name if launcher is not None else "srun") != "srun":
        return None
    allowed = {name.lower(): name for name in _governors_of_slurm()}
    governor = str(wanted.get("governor", "performance")).lower()
    if governor not in allowed:
        return None
    clock = wanted.get("cpu_frequency")
    kHz = round(clock / 1e3) if isinstance(clock, int | float) else None
    return allowed[governor] if kHz is None else f"{kHz}-{kHz}:{allowed[governor]}"


def _governors_of_slurm() -> list[str]:
    """Those that jobs may ask for (slurm.conf(5), CpuFreqGovernors)."""
    tool = on_path("scontrol")
    if tool is None:
        return []
    try:
        done = output_of([tool, "show", "config"], dict(os.environ), _SLURM_LIMIT_S)
    except (OSError, OutOfTimeError):
        return []
    found = _GOVERNORS.search(done.stdout.decode("utf-8", "replace"))
    return [] if done.returncode != 0 or found is None else found[1].split(",")


class NodeSettings:
    """The settings of this node while an engine runs. The guard is started for the first repeat that needs it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._settings: Settings | None = None

    def close(self) -> None:
        """All is put back. Never fails: what cannot be put back is logged."""
        try:
            self._open.close()
        except OSError as error:
            _log.warning("settings of this node: %s; `seatrial settings` shows what is changed", error)
        self._settings = None

    @contextmanager
    def during(self, repeats: Sequence[Ready]) -> Iterator[None]:
        """As repeats that run at once ask for; put back afterwards. Raises NotPreparedError if one did not act."""
        wanted = dict(repeats[0].node_settings)
        if not wanted:
            yield
            return
        try:
            self._change(wanted)
            yield
        finally:
            self._restore()

    def _change(self, wanted: Mapping[str, Value]) -> None:
        try:
            if self._settings is None:
                self._settings = self._open.enter_context(guarded(root_in_force()))
            failed = self._settings.change(wanted)
        except NotAllowedError as error:
            raise NotPreparedError(f"{error.message}; {error.todo}", "", error.need) from error
        except OSError as error:
            raise NotPreparedError(f"settings of this node: {error.strerror or error}", "") from error
        for path, why in failed.items():
            if why in _FORBIDDEN or "permission" in why.lower():
                need = "permission" if os.geteuid() == 0 else "root"
                raise NotPreparedError(f"{path}: {why}", "", need)
            asked = ", ".join(f"{name}={MACHINE_SETTINGS[name].text_of(value)}" for name, value in wanted.items())
            raise NotPreparedError(f"{asked} did not act: {path}: {why}", "", check=CHECK)

    def _restore(self) -> None:
        if self._settings is None:
            return
        try:
            kept = self._settings.restore()
        except OSError:
            self.close()  # the guard was killed: this process puts everything back
            return
        for path, why in kept.items():
            _log.warning("%s: %s", path, why)


@contextmanager
def looked_at(repeats: Sequence[Ready]) -> Iterator[ClockLooks]:
    """The clocks of repeats that run at once, if they ask for settings of the machine."""
    chosen = dict(repeats[0].point.environment.machine_settings)
    if not chosen:
        yield ClockLooks()
        return
    gpus = gpus_here(os.environ) if any(MACHINE_SETTINGS[name].of_gpus for name in chosen) else []
    uuids = [] if isinstance(gpus, str) else [gpu.uuid for gpu in gpus]
    cpus = repeats[0].point.cpus or tuple(sorted(os.sched_getaffinity(0)))
    read = (lambda: busy_clocks_Hz(uuids, _BUSY_PERCENT)) if uuids else None
    with clocks_within(cpus, root_in_force(), read) as looks:
        yield looks


def of_record(ready: Ready, looks: ClockLooks) -> dict[str, Any]:
    """What the record of a repeat has of its settings: what was asked for, and the clocks that were seen."""
    chosen = dict(ready.point.environment.machine_settings)
    if not chosen:
        return {}
    seen = looks.seen()
    clocks = {"clock_Hz": seen.cpu_Hz, "gpu_clock_Hz": seen.gpu_Hz}
    return {CHOSEN: chosen, **{name: clock for name, clock in clocks.items() if clock is not None}}


def setting_that_did_not_act(ready: Ready, looks: ClockLooks, samples: Sequence[Sample]) -> Outcome | None:
    """`invalid(setting)` if the program ran at another clock than was asked for; None if not, or if that is unknown."""
    wanted = settings_wanted(dict(ready.point.environment.machine_settings))
    if not wanted:
        return None
    seen = looks.seen()
    if "governor" in wanted and looks.governors and looks.governors != {str(wanted["governor"])}:
        found = ", ".join(sorted(looks.governors))
        return Outcome.invalid(CHECK, f"governor: {wanted['governor']} was asked for, the CPUs had {found}")
    counted = _counted_clock_Hz(samples)
    cpu_Hz, by = (seen.cpu_Hz, "the kernel reports") if counted is None else (counted, "the program counted")
    for name, clock, who in (("cpu_frequency", cpu_Hz, by), ("gpu_clock", seen.gpu_Hz, "nvidia-smi reports")):
        asked = wanted.get(name)
        if isinstance(asked, int | float) and clock is not None and abs(clock / asked - 1.0) > _TOLERANCE:
            return Outcome.invalid(CHECK, f"{name}: {show(asked, 'Hz')} was asked for, {who} {show(clock, 'Hz')}")
    nominal = nominal_clock_Hz(FileTree(root_in_force()))
    if wanted.get("turbo") is False and cpu_Hz is not None and nominal and cpu_Hz > nominal * (1.0 + _TOLERANCE):
        return Outcome.invalid(
            CHECK, f"turbo: off was asked for, {by} {show(cpu_Hz, 'Hz')}, above the nominal {show(nominal, 'Hz')}"
        )
    return None


def _counted_clock_Hz(samples: Sequence[Sample]) -> float | None:
    """The highest clock that a program counted with chains of additions, one a cycle (cpu.peak); None without them."""
    found = [
        sample.extra["add_ops"] / time_s
        for sample in samples
        if "add_ops" in sample.extra
        for time_s in sample.extra.get("add_s", ())
        if time_s > 0
    ]
    return max(found, default=None)
