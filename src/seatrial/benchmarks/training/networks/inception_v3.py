"""Inception-V3 (Szegedy et al., 2015) without the auxiliary classifier, as tf_cnn_benchmarks trains it."""

from collections.abc import Sequence

from seatrial.benchmarks.training.networks.layers import (
    MEAN,
    RELU,
    Layer,
    Network,
    Pair,
    branches,
    conv,
    linear,
    norm,
    pool,
)

_AVERAGE = pool("average", 3, 1, 1)
_HALVED = pool("max", 3, 2)


def _unit(out: int, kernel: Pair, stride: int = 1, padding: Pair = 0) -> list[Layer]:
    return [conv(out, kernel, stride, padding), norm(1e-3), RELU]


def _a(pooled: int) -> Layer:
    return branches(
        _unit(64, 1),
        [*_unit(48, 1), *_unit(64, 5, padding=2)],
        [*_unit(64, 1), *_unit(96, 3, padding=1), *_unit(96, 3, padding=1)],
        [_AVERAGE, *_unit(pooled, 1)],
    )


def _row(out: int) -> list[Layer]:
    return _unit(out, (1, 7), padding=(0, 3))


def _column(out: int) -> list[Layer]:
    return _unit(out, (7, 1), padding=(3, 0))


def _c(width: int) -> Layer:
    return branches(
        _unit(192, 1),
        [*_unit(width, 1), *_row(width), *_column(192)],
        [*_unit(width, 1), *_column(width), *_row(width), *_column(width), *_row(192)],
        [_AVERAGE, *_unit(192, 1)],
    )


def _split(before: Sequence[Layer]) -> list[Layer]:
    return [*before, branches(_unit(384, (1, 3), padding=(0, 1)), _unit(384, (3, 1), padding=(1, 0)))]


def _e() -> Layer:
    return branches(
        _unit(320, 1),
        _split(_unit(384, 1)),
        _split([*_unit(448, 1), *_unit(384, 3, padding=1)]),
        [_AVERAGE, *_unit(192, 1)],
    )


NETWORK = Network(
    name="inception-v3",
    counts="images",
    size=(3, 299, 299),
    classes=1000,
    layers=[
        *(*_unit(32, 3, 2), *_unit(32, 3), *_unit(64, 3, padding=1), _HALVED),
        *(*_unit(80, 1), *_unit(192, 3), _HALVED),
        *(_a(32), _a(64), _a(64)),
        branches(_unit(384, 3, 2), [*_unit(64, 1), *_unit(96, 3, padding=1), *_unit(96, 3, 2)], [_HALVED]),
        *(_c(128), _c(160), _c(160), _c(192)),
        branches(
            [*_unit(192, 1), *_unit(320, 3, 2)],
            [*_unit(192, 1), *_row(192), *_column(192), *_unit(192, 3, 2)],
            [_HALVED],
        ),
        *(_e(), _e()),
        MEAN,
        linear(1000, 0.01),
    ],
    parameters=23_834_568,
    source="Szegedy et al., arXiv:1512.00567; torchvision, inception_v3 without the auxiliary classifier",
    first_loss=6.9078,
    batch=4,
    steps=8,
    optimizer="momentum",
    learning_rate=0.001,
    task_steps=14,
    task_loss=6.2,
)
