"""Made-up data as torch_data.py makes it, of the same kind and difficulty, for frameworks that take NumPy's arrays.

Images are channels first here; a framework orders them as it likes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

_PATTERN = 8
_LEARNT_CLASSES = 10
_LEARNT_TOKENS = 64
_RANDOM = 0.2
"""Of labels and tokens; a loss below 0.8 is not reached without learning the items by heart."""


def worst_apart(before: list, expected: list, found: list) -> float:
    """How far arrays of parameters are from what they should have become, over how far they should have moved: the
    largest over all arrays; one that should not have moved counts as 1 if it did."""
    worst = 0.0
    for old, right, new in zip(before, expected, found, strict=True):
        moved, apart = np.linalg.norm(right - old), np.linalg.norm(np.asarray(new) - right)
        worst = max(worst, float(apart / moved if moved else apart > 0))
    return worst


def made_up(document: dict, count: int, seed: int) -> tuple:
    """Inputs and labels of `count` items. Every seed gives other items of the same kind."""
    items = np.random.default_rng(seed)
    kind, size = document["counts"], document["size"]
    if kind == "images":
        shape = (_LEARNT_CLASSES, size[0], _PATTERN, _PATTERN)
        patterns = np.random.default_rng(0).standard_normal(shape, np.float32)
        labels = items.integers(_LEARNT_CLASSES, size=count)
        rows, columns = (np.arange(length) * _PATTERN // length for length in size[1:])
        coarse = patterns[labels][:, :, rows][:, :, :, columns]
        images = np.float32(0.7) * (coarse + items.standard_normal((count, *size), np.float32))
        return images, _partly_random(labels, _LEARNT_CLASSES, items)
    if kind == "tokens":
        tokens = np.empty((count, size[0] + 1), np.int32)
        tokens[:, 0] = items.integers(_LEARNT_TOKENS, size=count)
        for at in range(1, size[0] + 1):
            tokens[:, at] = (5 * tokens[:, at - 1] + 1) % _LEARNT_TOKENS
        return tokens[:, :-1].copy(), _partly_random(tokens[:, 1:], _LEARNT_TOKENS, items)
    half = next(layer["rows"] for layer in document["layers"] if layer["op"] == "bags") // 2
    labels = items.integers(2, size=count)
    numbers = items.integers(half, size=(count, *size)) + half * labels[:, None, None]
    return numbers.astype(np.int32), _partly_random(labels, 2, items)


def _partly_random(labels: np.ndarray, classes: int, items: np.random.Generator) -> np.ndarray:
    other = items.random(labels.shape) < _RANDOM
    return np.where(other, items.integers(classes, size=labels.shape), labels).astype(np.int32)


def digests_of_items(batch: np.ndarray) -> list:
    """A hash of each item of a batch."""
    return [hashlib.sha256(np.ascontiguousarray(item).tobytes()).hexdigest()[:16] for item in batch]


class MadeUp:
    """Batches from a pool of `batches`, in turn. `place` brings an array to the device; it is called once for each
    batch if they are to lie there (`on_device`), else whenever one is needed."""

    def __init__(
        self, document: dict, batch: int, batches: int, seed: int, place: Callable[[np.ndarray], Any], on_device: bool
    ) -> None:
        self._place, self._on_device = place, on_device
        made = [made_up(document, batch, seed + number) for number in range(batches)]
        self._digests = digests_of_items(made[0][0])
        self._pool = [self._placed(one) for one in made] if on_device else made
        self._next = 0

    def _placed(self, batch: tuple) -> tuple:
        inputs, labels = batch
        return self._place(inputs), self._place(labels)

    def digests(self) -> list:
        """Hashes of the items of the first batch."""
        return self._digests

    def __next__(self) -> tuple:
        batch = self._pool[self._next % len(self._pool)]
        self._next += 1
        return batch if self._on_device else self._placed(batch)
