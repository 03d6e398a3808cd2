"""seatrial: sea trials for HPC machines.

`discover`, `run`, `versus`, `results`, `compare` and `profile` do the same as the commands of these names (`versus`:
`run --versus`), `discover_fabric` as `discover` of a fabric. They raise `SeatrialError`; docs/python.md has examples.
Each name is loaded at its first use.
"""

from __future__ import annotations

from seatrial.version import __version__ as __version__

TYPE_CHECKING = False  # importing typing takes longer than importing everything else here
if TYPE_CHECKING:
    from seatrial.analysis.compare_along import Comparisons as Comparisons
    from seatrial.analysis.results import RunResult as RunResult
    from seatrial.engine.listener import Listener as Listener
    from seatrial.errors import SeatrialError as SeatrialError
    from seatrial.errors import UsageError as UsageError
    from seatrial.interface.machines import discover as discover
    from seatrial.interface.machines import discover_fabric as discover_fabric
    from seatrial.interface.profile import ProfileResult as ProfileResult
    from seatrial.interface.profile import profile as profile
    from seatrial.interface.results import Results as Results
    from seatrial.interface.results import compare as compare
    from seatrial.interface.results import results as results
    from seatrial.interface.run import run as run
    from seatrial.interface.run import versus as versus
    from seatrial.model.machine.fabric import Fabric as Fabric
    from seatrial.model.machine.fact import Finding as Finding
    from seatrial.model.machine.machine import Machine as Machine
    from seatrial.model.results.figure_result import ExperimentResult as ExperimentResult
    from seatrial.model.results.figure_result import FigureResult as FigureResult
    from seatrial.model.results.sample import Outcome as Outcome
    from seatrial.model.results.sample import State as State
    from seatrial.model.study.comparison import Comparison as Comparison
    from seatrial.model.study.comparison import Verdict as Verdict
    from seatrial.model.study.result import Compared as Compared
    from seatrial.model.study.result import StudyResult as StudyResult
    from seatrial.model.study.result import Trial as Trial
    from seatrial.profiler.profile import Profile as Profile
else:
    _HOMES = {
        "analysis.compare_along": ("Comparisons",),
        "analysis.results": ("RunResult",),
        "engine.listener": ("Listener",),
        "errors": ("SeatrialError", "UsageError"),
        "interface.machines": ("discover", "discover_fabric"),
        "interface.profile": ("ProfileResult", "profile"),
        "interface.results": ("Results", "compare", "results"),
        "interface.run": ("run", "versus"),
        "model.machine.fabric": ("Fabric",),
        "model.machine.fact": ("Finding",),
        "model.machine.machine": ("Machine",),
        "model.results.figure_result": ("ExperimentResult", "FigureResult"),
        "model.results.sample": ("Outcome", "State"),
        "model.study.comparison": ("Comparison", "Verdict"),
        "model.study.result": ("Compared", "StudyResult", "Trial"),
        "profiler.profile": ("Profile",),
    }
    _HOME = {name: module for module, names in _HOMES.items() for name in names}
    __all__ = ["__version__", *_HOME]

    def __getattr__(name: str) -> object:
        """A name of the interface, loaded at its first use (PEP 562)."""
        if name not in _HOME:
            raise AttributeError(f"module 'seatrial' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"seatrial.{_HOME[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
