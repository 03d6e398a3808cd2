"""Batches for training with PyTorch: made-up data that can be learnt, resident on the device or in host memory.

Images are noise around one coarse pattern for each of ten classes; sequences follow a rule; of look-ups, low numbers
mean one class and high ones the other. Values have the range of normalized real data, and a part of the labels is
random, so that the loss does not vanish: zeros and denormal numbers change how fast processors compute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch.nn import functional

_PATTERN = 8
_LEARNT_CLASSES = 10
_LEARNT_TOKENS = 64
_RANDOM = 0.2
"""Of labels and tokens; a loss below 0.8 is not reached without learning the items by heart."""


def made_up(document: dict, count: int, seed: int) -> tuple:
    """Inputs and labels of `count` items, on the host. Every seed gives other items of the same kind."""
    items = torch.Generator().manual_seed(seed)
    kind, size = document["counts"], document["size"]
    if kind == "images":
        patterns = torch.randn(_LEARNT_CLASSES, size[0], _PATTERN, _PATTERN, generator=torch.Generator().manual_seed(0))
        labels = torch.randint(_LEARNT_CLASSES, (count,), generator=items)
        coarse = functional.interpolate(patterns[labels], size=size[1:])
        images = 0.7 * coarse + 0.7 * torch.randn(count, *size, generator=items)
        return images, _partly_random(labels, _LEARNT_CLASSES, items)
    if kind == "tokens":
        length = size[0] + 1
        tokens = torch.empty(count, length, dtype=torch.long)
        tokens[:, 0] = torch.randint(_LEARNT_TOKENS, (count,), generator=items)
        for at in range(1, length):
            tokens[:, at] = (5 * tokens[:, at - 1] + 1) % _LEARNT_TOKENS
        return tokens[:, :-1].contiguous(), _partly_random(tokens[:, 1:], _LEARNT_TOKENS, items).contiguous()
    rows = next(layer["rows"] for layer in document["layers"] if layer["op"] == "bags")
    labels = torch.randint(2, (count,), generator=items)
    half = rows // 2
    numbers = torch.randint(half, (count, *size), generator=items) + half * labels.view(-1, 1, 1)
    return numbers, _partly_random(labels, 2, items)


def _partly_random(labels: torch.Tensor, classes: int, items: torch.Generator) -> torch.Tensor:
    other = torch.rand(labels.shape, generator=items) < _RANDOM
    return torch.where(other, torch.randint(classes, labels.shape, generator=items), labels)


class MadeUp:
    """Batches from a pool of `batches`, in turn. `on_device`: they lie there; else each is copied when it is needed."""

    def __init__(
        self,
        document: dict,
        batch: int,
        batches: int,
        seed: int,
        device: torch.device,
        place: Callable,
        on_device: bool,
    ) -> None:
        self._device, self._place, self._on_device = device, place, on_device
        self._pool = []
        for number in range(batches):
            inputs, labels = made_up(document, batch, seed + number)
            inputs = place(inputs)
            if on_device:
                inputs, labels = inputs.to(device), labels.to(device)
            elif device.type == "cuda":
                inputs, labels = inputs.pin_memory(), labels.pin_memory()
            self._pool.append((inputs, labels))
        self._next = 0
        self.first = self._pool[0][0]

    def digests(self) -> list:
        """A hash of each item of the first batch."""
        return [hashlib.sha256(item.cpu().numpy().tobytes()).hexdigest()[:16] for item in self.first.contiguous()]

    def __next__(self) -> tuple:
        inputs, labels = self._pool[self._next % len(self._pool)]
        self._next += 1
        if self._on_device:
            return inputs, labels
        if self._device.type == "cuda":
            return inputs.to(self._device, non_blocking=True), labels.to(self._device, non_blocking=True)
        return inputs.clone(), labels.clone()
