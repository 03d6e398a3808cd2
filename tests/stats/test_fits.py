from __future__ import annotations

import math

import pytest

from seatrial.stats.fits import AMDAHL, GUSTAFSON, amdahl_speedup, gustafson_speedup

WORKERS = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("f", [0.0, 0.003, 0.05, 0.4, 1.0])
def test_a_law_without_noise_is_found_exactly(f: float) -> None:
    strong = AMDAHL.fit([(p, amdahl_speedup(p, f)) for p in WORKERS])
    weak = GUSTAFSON.fit([(p, gustafson_speedup(p, f)) for p in WORKERS])
    for fitted in (strong, weak):
        assert fitted.share == pytest.approx(f, abs=1e-12)
        assert max(map(abs, fitted.residuals)) < 1e-9 and len(fitted.residuals) == len(WORKERS)


def test_known_speedups() -> None:
    assert amdahl_speedup(16, 0.1) == pytest.approx(6.4)  # 1 / (0.1 + 0.9 / 16)
    assert gustafson_speedup(1024, 0.004) == pytest.approx(1019.9, abs=0.01)
    assert amdahl_speedup(64, -0.1) == math.inf


def test_below_five_points_nothing_is_fitted() -> None:
    points = [(p, amdahl_speedup(p, 0.1)) for p in WORKERS]
    assert AMDAHL.fit(points[:4]) is None and GUSTAFSON.fit(points[:4]) is None
    assert AMDAHL.fit(points[:5]) is not None
    assert AMDAHL.fit([(1.0, 1.0)] * 6) is None  # nothing differs


def test_hand_computed_slope() -> None:
    points = [(1.0, 1.0), (2.0, 1.5), (4.0, 3.0), (8.0, 4.0), (16.0, 6.0)]
    lines = [(1 - 1 / p, 1 / s - 1 / p, s * s) for p, s in points]
    f = sum(w * x * y for x, y, w in lines) / sum(w * x * x for x, _, w in lines)
    found = AMDAHL.fit(points)
    assert found.share == pytest.approx(f)
    assert found.residuals[4] == pytest.approx(6.0 - 1 / (f + (1 - f) / 16))


def test_superlinear_speedup_is_a_negative_share_and_slowdown_more_than_one() -> None:
    assert AMDAHL.fit([(p, p**1.1) for p in WORKERS]).share < 0
    assert AMDAHL.fit([(p, p**-0.2) for p in WORKERS]).share > 1


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_speedup_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        AMDAHL.fit([(1, 1), (2, 2), (3, 3), (4, 4), (5, wrong)])
