"""apps.wrf: WRF, a weather model, on published inputs; its rsl.out.0000 is read as by `seatrial import wrf=FILE`."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.wrf import BENCHMARK as IMPORTED
from seatrial.model.given_input import InputCase

_SITE = "https://www2.mmm.ucar.edu/wrf/users/benchmark/"
_FILES = ("namelist.input", "wrfbdy_d01")

BENCHMARK = application(
    "apps.wrf",
    "How long does WRF take for a step of the outermost domain?",
    IMPORTED,
    tool="WRF",
    programs=("wrf.exe",),
    install="build WRF (https://github.com/wrf-model/WRF) and put wrf.exe on PATH; its tables belong to the input",
    arguments=lambda params: [],
    output="rsl.out.0000",
    cases=(
        InputCase("conus12km", "the continental United States at 12 km", _SITE, files=_FILES),
        InputCase("conus2.5km", "the continental United States at 2.5 km", _SITE, files=_FILES),
    ),
    has_start=False,
    evidence=FORMAT_SEEN,
)
