"""How long a sensor averages, from the shape in which it shows a load that starts and ends at known times.

An average over the last `w` seconds shows a step as a ramp of `w`, at the start and at the end of the load alike. Of
all windows and delays, the one with the least squares is taken. A load that rises slowly itself ends at once, so its
fall does not have this shape.
"""

from __future__ import annotations

from collections.abc import Sequence

_FEWEST_POINTS = 12
_FEWEST_AFTER = 3
_MOST_WINDOWS = 80
_MOST_DELAYS = 6
_LEAST_INTERVALS = 3
"""A ramp within so many intervals of the values may be a step between two of them."""
_UNEXPLAINED = 0.02
"""The share of the variance that may be left."""
_BETTER = 4.0
"""Without a window, so many times as much of the variance is left."""


def averaging_window(
    at_s: Sequence[float], watts: Sequence[float], loads: Sequence[tuple[float, float]]
) -> float | None:
    """The window in seconds of a sensor that shows these values at these times (rising). `loads`: from when to when the
    program may have drawn its power. None if the values do not show a window of three of their intervals or more."""
    import numpy as np

    times, values = np.asarray(at_s, float), np.asarray(watts, float)
    if len(times) < _FEWEST_POINTS or float(np.ptp(values)) <= 0.0:
        return None
    step_s = float(np.median(np.diff(times)))
    centred = values - values.mean()
    whole = float(centred @ centred)
    best: tuple[float, float] = (whole, 0.0)
    without = whole
    for start_s, end_s in loads:
        if end_s - start_s <= step_s or int((times > end_s).sum()) < _FEWEST_AFTER:
            continue
        most = min(_MOST_WINDOWS, int(2 * (end_s - start_s) / step_s))
        delays_s = step_s * np.arange(_MOST_DELAYS)[:, None]
        for number in range(1, most + 1):
            window_s = number * step_s
            until = times[None, :] - delays_s
            overlap = np.minimum(until, end_s) - np.maximum(until - window_s, start_s)
            shape = np.clip(overlap, 0.0, None) / window_s
            shape -= shape.mean(axis=1, keepdims=True)
            power = (shape**2).sum(axis=1)
            left = whole - np.where(power > 0, (shape @ centred).clip(0.0) ** 2 / np.where(power > 0, power, 1.0), 0.0)
            least = float(left.min())
            if number == 1:
                without = min(without, least)
            best = min(best, (least, window_s))
    left_best, window_s = best
    is_shown = left_best <= _UNEXPLAINED * whole and without >= _BETTER * left_best
    return window_s if is_shown and window_s >= _LEAST_INTERVALS * step_s else None
