"""A step of apps.spectral compared with its transforms alone: 12 inverse and 6 forward transforms of the whole box by
FFTW, three-dimensional, real to complex and back (FFTW_MEASURE), on the same CPU.

A round runs FFTW alone, then the step with FFTW and with our own transform, in an order that rotates. The best of the
rounds is compared, because disturbances only make a run slower. The goal is a step of at most 1.5 x the transforms
alone.

The one-dimensional transforms of the step, which leave out what dealiasing sets to zero, are reported beside it, both
as they take part in the step and in their own loop. The loop can be slower: in the step, their data have just come
into a cache.

python bench/spectral.py [--rounds 5] [--n 128] [--precision fp64] [-o docs/results/spectral.json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import live_machine, measure, provenance, ready, write

from seatrial.environments.loaded_libraries import choose_fft

_GOALS = {"step_over_transforms_alone": 1.5}
_INVERSE, _FORWARD = 12, 6
_TRIES = 20
_MEASURE = 0  # FFTW_MEASURE


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--n", type=int, default=128, help="points along each edge of the box")
    parser.add_argument("--precision", choices=("fp64", "fp32"), default="fp64")
    parser.add_argument("--alone", nargs=2, metavar=("LIBRARY", "CPU"), help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.alone is not None:
        library, cpu = options.alone
        os.sched_setaffinity(0, {int(cpu)})
        print(json.dumps(_alone(library, options.n, options.precision)))
        return

    library = choose_fft("auto", options.precision)
    if library is None:
        raise SystemExit("FFTW is missing: apt install libfftw3-double3 libfftw3-single3")
    machine = live_machine()
    settings = {"n": str(options.n), "precision": options.precision, "ranks": "1"}
    items = {fft: ready(machine, "apps.spectral", fft=fft, **settings) for fft in ("fftw", "own")}
    cpu = items["fftw"].point.cpus[0]
    rounds: list[dict[str, Any]] = []
    names = ["alone", *items]
    for number in range(options.rounds):
        result: dict[str, Any] = {}
        for name in names[number % 3 :] + names[: number % 3]:
            if name == "alone":
                result[name] = _alone_in_a_process(str(library.path), cpu, options.n, options.precision)
            else:
                record = measure(items[name], machine)
                result[name] = {
                    series: min(s.elapsed_s / s.work["steps"] for s in record.samples if s.series == series)
                    for series in ("step", "transforms")
                }
                result[name]["loop"] = next(s.extra["alone_s"] for s in record.samples if s.series == "transforms")
        rounds.append(result)
        alone = result["alone"]["step"]
        print(f"alone: {alone * 1e3:.0f} ms ", *(f"{n}: {result[n]['step'] * 1e3:.0f} ms " for n in items), flush=True)

    alone_s = min(result["alone"]["step"] for result in rounds)
    best = {name: {key: min(r[name][key] for r in rounds) for key in rounds[0][name]} for name in items}
    write(
        "spectral",
        {
            "provenance": {
                **provenance(machine, items["fftw"]),
                "parameters": dict(items["fftw"].point.parameters),
                "fftw": str(library.path.resolve().name),
            },
            "goals": _GOALS,
            "transforms_alone_s": alone_s,
            "best": best,
            "step_over_transforms_alone": {name: best[name]["step"] / alone_s for name in items},
            "step_over_its_own_transforms": {name: best[name]["step"] / best[name]["transforms"] for name in items},
            "step_over_their_loop": {name: best[name]["step"] / best[name]["loop"] for name in items},
            "rounds": rounds,
        },
        options.output,
    )


def _alone_in_a_process(library: str, cpu: int, n: int, precision: str) -> dict[str, float]:
    words = [sys.executable, __file__, "--alone", library, str(cpu), "--n", str(n), "--precision", precision]
    found: dict[str, float] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found


def _alone(path: str, n: int, precision: str) -> dict[str, float]:
    """The fastest transform in either direction, in seconds, and the time of as many as a step has."""
    library = ctypes.CDLL(path)
    real_B, prefix = (8, "fftw_") if precision == "fp64" else (4, "fftwf_")
    complex_B = 2 * real_B * n * n * (n // 2 + 1)

    def function(name: str) -> Any:
        found = getattr(library, prefix + name)
        found.restype = ctypes.c_void_p
        return found

    points = ctypes.c_void_p(function("malloc")(ctypes.c_size_t(real_B * n**3)))
    waves = ctypes.c_void_p(function("malloc")(ctypes.c_size_t(complex_B)))
    forward = ctypes.c_void_p(function("plan_dft_r2c_3d")(n, n, n, points, waves, _MEASURE))
    inverse = ctypes.c_void_p(function("plan_dft_c2r_3d")(n, n, n, waves, points, _MEASURE))
    execute = function("execute")
    ctypes.memset(points, 0, real_B * n**3)
    ctypes.memset(waves, 0, complex_B)
    (ctypes.c_float if real_B == 4 else ctypes.c_double).from_address(points.value or 0).value = 1.0
    fastest = {"forward": float("inf"), "inverse": float("inf")}
    for _ in range(_TRIES):
        for name, plan in (("forward", forward), ("inverse", inverse)):
            start = time.perf_counter()
            execute(plan)
            fastest[name] = min(fastest[name], time.perf_counter() - start)
    return {**fastest, "step": _FORWARD * fastest["forward"] + _INVERSE * fastest["inverse"]}


if __name__ == "__main__":
    main()
