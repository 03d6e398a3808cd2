from __future__ import annotations

import math
import random

import pytest

from seatrial.stats.fits import amdahl, amdahl_speedup, gustafson, gustafson_speedup

WORKERS = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("f", [0.0, 0.003, 0.05, 0.4, 1.0])
def test_a_law_without_noise_is_found_exactly(f: float) -> None:
    strong = amdahl([(p, amdahl_speedup(p, f)) for p in WORKERS])
    weak = gustafson([(p, gustafson_speedup(p, f)) for p in WORKERS])
    for fitted in (strong, weak):
        assert fitted.share == pytest.approx(f, abs=1e-12) and fitted.standard_error == pytest.approx(0, abs=1e-9)
        assert max(map(abs, fitted.residuals)) < 1e-9 and len(fitted.residuals) == len(WORKERS)


def test_known_speedups() -> None:
    assert amdahl_speedup(16, 0.1) == pytest.approx(6.4)  # 1 / (0.1 + 0.9 / 16)
    assert gustafson_speedup(1024, 0.004) == pytest.approx(1019.9, abs=0.01)
    assert amdahl_speedup(64, -0.1) == math.inf


def test_below_five_points_nothing_is_fitted() -> None:
    points = [(p, amdahl_speedup(p, 0.1)) for p in WORKERS]
    assert amdahl(points[:4]) is None and gustafson(points[:4]) is None
    assert amdahl(points[:5]) is not None
    assert amdahl([(1.0, 1.0)] * 6) is None  # nothing differs


def test_hand_computed_slope_and_error() -> None:
    points = [(1.0, 1.0), (2.0, 1.5), (4.0, 3.0), (8.0, 4.0), (16.0, 6.0)]
    lines = [(1 - 1 / p, 1 / s - 1 / p, s * s) for p, s in points]
    f = sum(w * x * y for x, y, w in lines) / sum(w * x * x for x, _, w in lines)
    rest = sum(w * (y - f * x) ** 2 for x, y, w in lines)
    found = amdahl(points)
    assert found.share == pytest.approx(f)
    assert found.standard_error == pytest.approx(math.sqrt(rest / 3 / sum(w * x * x for x, _, w in lines)))
    assert found.residuals[4] == pytest.approx(6.0 - 1 / (f + (1 - f) / 16))


@pytest.mark.parametrize(("law", "speedup"), [(amdahl, amdahl_speedup), (gustafson, gustafson_speedup)])
def test_the_standard_error_is_the_spread_of_the_fits(law, speedup) -> None:
    """With 2 % noise on every speedup but the baseline's."""
    source = random.Random(3)
    fits = [
        law([(p, speedup(p, 0.05) * (math.exp(source.gauss(0, 0.02)) if p > 1 else 1.0)) for p in WORKERS])
        for _ in range(600)
    ]
    spread = math.sqrt(sum((fit.share - 0.05) ** 2 for fit in fits) / len(fits))
    told = math.sqrt(sum(fit.standard_error**2 for fit in fits) / len(fits))
    assert sum(fit.share for fit in fits) / len(fits) == pytest.approx(0.05, abs=0.002)
    assert told == pytest.approx(spread, rel=0.15)


def test_superlinear_speedup_is_a_negative_share_and_slowdown_more_than_one() -> None:
    assert amdahl([(p, p**1.1) for p in WORKERS]).share < 0
    assert amdahl([(p, p**-0.2) for p in WORKERS]).share > 1


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_speedup_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        amdahl([(1, 1), (2, 2), (3, 3), (4, 4), (5, wrong)])
