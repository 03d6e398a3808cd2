"""Studies with the axis `system`: each part is measured on its own system of the site file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.jobs.where import Where, where_jobs_go
from seatrial.model.study.study import SYSTEM, Study
from seatrial.plan.site_file import site_of
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import is_study_file, only_study, with_declared


def systems_of(targets: Sequence[str], settings: Collection[str], site: Path | None) -> tuple[str, ...]:
    """The systems of the study that these targets name, as its file has them; () if it has no such axis, or they name
    no study. Raises UsageError as `only_study` does."""
    if not any(map(is_study_file, targets)):
        return ()
    with at_site(site, None):
        study = only_study(with_declared(targets), settings)
    return () if study is None else study.systems


def places_for(
    site: Path | None, system: str | None, targets: Sequence[str], settings: Collection[str] = ()
) -> tuple[Where, ...]:
    """Where a command submits jobs to: one place with `--system`; those of the axis `system` of a study that has it; ()
    if it submits none. Raises UsageError."""
    if system is None and (systems := systems_of(targets, settings, site)):
        return places_of_systems(site, systems)
    where = where_jobs_go(site, system)
    return () if where is None else (where,)


def places_of_systems(site: Path | None, systems: Sequence[str]) -> tuple[Where, ...]:
    """Where the parts of a study with these systems are submitted to; () if nothing is submitted from here. Raises
    UsageError if that is so for some only, for one place under two names, and as `where_jobs_go` does."""
    found = [(system, where_jobs_go(site, system)) for system in systems]
    places = tuple(where for _, where in found if where is not None)
    without = [system for system, where in found if where is None]
    if places and without:
        raise UsageError(
            f"{', '.join(without)}: no batch system is known, so the part of the study for it cannot be submitted",
            "add `batch: slurm` (or pbs, lsf, flux) to the system in the site file; or measure each part where its "
            "system is, into one results folder: seatrial run STUDY --system NAME",
        )
    texts = [where.text for where in places]
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise UsageError(f"two values of the axis system are {twice}", "name each partition once")
    return places


def part_here(study: Study, site: Path | None, system: str | None) -> Study:
    """What is measured of a study on this system; all of it if it has no axis `system`. Raises UsageError if it has
    that axis, and this system is none of its values."""
    if not study.systems:
        return study
    values = ", ".join(study.systems)
    if system is None:
        raise UsageError(
            f"study {study.name} varies {SYSTEM} ({values}), and which of them this is is not known",
            "name it: --system NAME[:PARTITION]; from a login node, where each system has a batch system in the site "
            "file, the study without --system is submitted to all",
        )
    known = site_of(site)
    here = known.place(system)
    value = next((value for value in study.systems if known.place(value) == here), None)
    if value is None:
        raise UsageError(f"study {study.name} is not for system {system}: it varies {SYSTEM} over {values}",
                         "give one of these, or add it to the axis")  # fmt: skip
    return study.part_at(value)
