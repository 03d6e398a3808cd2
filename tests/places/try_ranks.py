"""Tries two ranks in a container, and prints how: python try_ranks.py IMAGE RUNTIME MPI PLACEMENT..."""

from __future__ import annotations

import json
import sys
from typing import Any

from seatrial.environments.cached_files import as_it_is
from seatrial.environments.chosen import chosen_environment
from seatrial.launch.allocation import machine_here
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.site import SiteContainer
from seatrial.model.machine.machine import Machine
from seatrial.places.containers import fitted as containers
from seatrial.places.containers.image import ContainerError


def main() -> None:
    """A list with the facts or the error of each MPI:PLACEMENT."""
    image, runtime, *ways = sys.argv[1:]
    containers._RANKS_LIMIT_S = 8.0  # one of them hangs
    machine = machine_here()
    print(json.dumps([tried(image, runtime, *way.split(":"), machine) for way in ways]))


def tried(image: str, runtime: str, library: str, placement: str, machine: Machine) -> dict[str, Any]:
    """The facts of two ranks, or their error with what was printed."""
    environment = chosen_environment(EnvironmentChoice(mpi=library), machine, with_mpi=True)
    assert environment.mpi is not None
    try:
        found = containers._found(SiteContainer("", image, runtime, None))
        return dict(containers._placed(found, environment, Layout(2), placement, as_it_is).facts)
    except ContainerError as error:
        return {"error": str(error), "output": error.output}


if __name__ == "__main__":
    main()
