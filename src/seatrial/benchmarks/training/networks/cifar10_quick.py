"""CIFAR-10 quick: the small network of Caffe's examples (cifar10_quick_train_test.prototxt, A. Krizhevsky).

Parameters begin as He et al. (2015) advise: with those of Caffe, the first hundred steps learn nothing.
"""

from seatrial.benchmarks.training.networks.layers import FLATTEN, RELU, Network, conv, linear, pool

NETWORK = Network(
    name="cifar10-quick",
    counts="images",
    size=(3, 32, 32),
    classes=10,
    layers=[
        conv(32, 5, padding=2, std=0.16),
        pool("max", 3, 2, up=True),
        RELU,
        conv(32, 5, padding=2, std=0.05),
        RELU,
        pool("average", 3, 2, up=True),
        conv(64, 5, padding=2, std=0.05),
        RELU,
        pool("average", 3, 2, up=True),
        FLATTEN,
        linear(64, 0.04),
        linear(10, 0.01),
    ],
    parameters=145_578,
    source="Caffe, examples/cifar10",
    first_loss=2.3026,
    batch=100,
    steps=40,
    optimizer="momentum",
    learning_rate=0.01,
    task_steps=40,
    task_loss=2.0,
)
