"""CIFAR-10 quick in PyTorch as its tutorials write a training loop: what seatrial's own script is measured beside.

    python bench/training_plain.py --batch 100 --threads 1 --warmup 10 --steps 40

Prints the images per second of the measured steps, as "images/s: 1234.5".
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


def main() -> None:
    """Train and print the rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("batch", "threads", "warmup", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        nn.ReLU(),
        nn.Conv2d(32, 32, 5, padding=2),
        nn.ReLU(),
        nn.AvgPool2d(3, 2, ceil_mode=True),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.AvgPool2d(3, 2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(1024, 64),
        nn.Linear(64, 10),
    )
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(options.batch, 3, 32, 32), torch.randint(10, (options.batch,))) for _ in range(8)]

    def train(steps: int) -> float:
        begun = time.perf_counter()
        for step in range(steps):
            inputs, labels = batches[step % len(batches)]
            optimizer.zero_grad()
            loss = loss_function(network(inputs), labels)
            loss.backward()
            optimizer.step()
        return time.perf_counter() - begun

    train(options.warmup)
    print(f"images/s: {options.steps * options.batch / train(options.steps):.6g}")


if __name__ == "__main__":
    main()
