"""ResNet-50 (He et al., 2015), with the stride in the 3 x 3 convolution, as frameworks train it today (v1.5)."""

from collections.abc import Iterator

from seatrial.benchmarks.training.networks.layers import MEAN, RELU, Layer, Network, conv, linear, norm, pool, residual


def _block(width: int, stride: int, *, is_first: bool) -> list[Layer]:
    body = [
        *(conv(width, 1), norm(), RELU),
        *(conv(width, 3, stride, 1), norm(), RELU),
        *(conv(4 * width, 1), norm()),
    ]
    return [residual(body, [conv(4 * width, 1, stride), norm()] if is_first else []), RELU]


def _stages() -> Iterator[Layer]:
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            yield from _block(64 << stage, 2 if stage and not block else 1, is_first=not block)


NETWORK = Network(
    name="resnet50",
    counts="images",
    size=(3, 224, 224),
    classes=1000,
    layers=[conv(64, 7, 2, 3), norm(), RELU, pool("max", 3, 2, 1), *_stages(), MEAN, linear(1000, 0.01)],
    parameters=25_557_032,
    source="He et al., arXiv:1512.03385; torchvision, resnet50",
    first_loss=6.9078,
    batch=4,
    steps=8,
    optimizer="momentum",
    learning_rate=0.001,
    task_steps=14,
    task_loss=6.2,
)
