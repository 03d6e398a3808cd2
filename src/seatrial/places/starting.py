"""How a program is started: directly, or by a launcher of ranks, and in a container or not."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from seatrial.environments.cached_files import private_top
from seatrial.environments.compiler import variables_with
from seatrial.launch.mpi import kept, placed, rank_command, rank_variables, shared
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.mpi import Mpi
from seatrial.model.frozen import Frozen
from seatrial.places.contained import Contained
from seatrial.places.containers.runtime import SHARED, Inside
from seatrial.places.rank_helpers import holder, rank_helpers

_LOADER = ("LD_PRELOAD", "LD_LIBRARY_PATH")
"""Variables with paths of the host, which the runtime's own program must not see."""

_SESSIONS = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
"""Where Open MPI's launcher and ranks meet, if a site or user has chosen that; it is seldom a folder of the image."""

_LAUNCHER_INSIDE = {"OMPI_MCA_plm": "isolated", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""Open MPI's launcher wants an ssh even if all ranks are on its own node, and small images have none; this way of
launching needs none. It refuses to work for root, and a user may be root inside. Other libraries ignore the variables,
Open MPI 5 the first one."""


class Start(Frozen):
    """`before` precedes the program's own command; `variables` is its whole environment. `launcher` starts the ranks;
    empty for a single process. `inside`: the container that the program is started in, `loader` the words that start it
    there with a loader that was brought."""

    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    launcher: str = ""
    inside: Inside | None = None
    loader: tuple[str, ...] = ()

    def words(self, words: Sequence[str]) -> list[str]:
        """The program and its arguments, with paths as they are where it runs."""
        return list(words) if self.inside is None else [*self.loader, *(self.inside.mapped(word) for word in words)]


def started(
    mpi: Mpi | None,
    layout: Layout | None,
    container: Contained | None,
    chosen: Sequence[tuple[str, str | None]],
    added: Mapping[str, str],
    folders: Sequence[Path],
    record: Path | None = None,
    works_in: Path | None = None,
) -> Start:
    """How a program is started. `chosen` variables are those of the environment, `added` are set for the program alone;
    a container has `folders`, and starts the program in `works_in`; `record`: see `placed`."""
    if container is not None:
        return _contained(mpi, layout, container, chosen, added, folders, record, works_in)
    if mpi is None or layout is None:
        return Start(variables=variables_with((*chosen, *added.items())))
    starter = rank_command(mpi, layout, [*(name for name, value in chosen if value is not None), *added])
    changes = (
        *((name, None) for name in rank_variables(os.environ)),
        *starter.variables.items(),
        *chosen,
        *added.items(),
    )
    helpers = rank_helpers()
    before = (*kept(helpers, os.getpid()), *starter.argv, *placed(helpers, starter, layout, record))
    return Start(before, variables_with(changes), starter.argv[0])


def _contained(
    mpi: Mpi | None,
    layout: Layout | None,
    container: Contained,
    chosen: Sequence[tuple[str, str | None]],
    added: Mapping[str, str],
    folders: Sequence[Path],
    record: Path | None,
    works_in: Path | None,
) -> Start:
    """In a container: placed outside of it, or, with the launcher inside, in it."""
    set_inside = {**{name: value for name, value in chosen if value is not None}, **added}
    outside = [*((name, None) for name in _LOADER), *container.runtime.variables().items(), ("TMPDIR", str(SHARED))]
    prefix = container.runtime.prefix
    if mpi is None or layout is None:
        inside = _mapped(container.inside(folders, set_inside), works_in)
        loader = _loader(container, inside)
        return Start(tuple(prefix(inside)), variables_with((*chosen, *outside)), inside=inside, loader=loader)
    helpers = rank_helpers()
    without = [(name, None) for name in rank_variables(os.environ)]
    keeps = kept(helpers, os.getpid())
    if not container.is_launcher_inside:
        sessions = {name: str(SHARED) for name in _SESSIONS if name in os.environ}
        of_runtime = {**container.runtime.variables(), "TMPDIR": str(SHARED), **sessions}
        # The others are set only inside: the runtime does that on every node.
        runtime = container.runtime
        launching = replace(mpi, launcher=Path(runtime.launcher)) if runtime.launcher else mpi
        starter = rank_command(launching, layout, [*(name for name, value in chosen if value is not None), *of_runtime])
        joins = container.is_joined and runtime.join_option
        needed = [holder()] if joins else [helpers.place] if runtime.launcher else []
        inside = _mapped(container.inside([*folders, *map(private_top, needed)], set_inside, of_ranks=True), works_in)
        placing = placed(helpers, starter, layout, record)
        if joins:
            name = f"seatrial-{os.getpid()}-{secrets.token_hex(8)}"  # a start of its own, also in the same folder
            enters = shared(helpers, name, joins, inside.mapped(str(holder())), prefix(inside))
            before = [*keeps, *starter.argv, *placing, *enters]
        else:
            before = [*keeps, *runtime.of_ranks(starter.argv, placing, inside)]
        changes = (*without, *starter.variables.items(), *chosen, *of_runtime.items())
        return Start(tuple(before), variables_with(changes), starter.argv[0], inside, _loader(container, inside))
    starter = rank_command(replace(mpi, launcher=container.launcher), layout, list(set_inside))
    of_starter = {name: value for name, value in starter.variables.items() if value is not None}
    of_starter |= _LAUNCHER_INSIDE | _session(folders[0])
    of_all = container.inside([*folders, private_top(helpers.place)], {**of_starter, **set_inside})
    inside = _mapped(of_all, works_in)
    ranks = [inside.mapped(word) for word in placed(helpers, starter, layout, record)]
    before = [*keeps, *prefix(inside), *starter.argv, *ranks]
    return Start(tuple(before), variables_with((*without, *chosen, *outside)), starter.argv[0], inside)


def _session(folder: Path) -> dict[str, str]:
    """Where Open MPI's launcher inside makes its folder. Its name has the node and the user, who may be root inside:
    then that of the real root, which others cannot use, is in its place."""
    try:
        owner = (SHARED / f"ompi.{platform.node().partition('.')[0]}.0").stat().st_uid
    except OSError:
        return {}
    return {"OMPI_MCA_orte_tmpdir_base": str(folder)} if owner != os.geteuid() else {}


def _mapped(inside: Inside, works_in: Path | None) -> Inside:
    """With paths of the host in its variables, single or in lists, as they are inside."""
    return replace(
        inside,
        variables={name: _list(value, inside) for name, value in inside.variables.items()},
        works_in=None if works_in is None else Path(inside.mapped(str(works_in))),
    )


def _list(text: str, inside: Inside) -> str:
    """A path, or several with colons between them, as they are inside."""
    return ":".join(inside.mapped(part) for part in text.split(":"))


def _loader(container: Contained, inside: Inside) -> tuple[str, ...]:
    """The words before a program that start it with a loader that was brought."""
    return () if container.brought is None else tuple(_list(word, inside) for word in container.brought.before)
