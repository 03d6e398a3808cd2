"""The networks that are trained: every module of this package that defines a `NETWORK`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from seatrial.benchmarks.training.networks.layers import Network


@cache
def networks() -> Mapping[str, Network]:
    """Name -> network, sorted by name."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    known = [module.NETWORK for module in modules if hasattr(module, "NETWORK")]
    return {one.name: one for one in sorted(known, key=lambda one: one.name)}
