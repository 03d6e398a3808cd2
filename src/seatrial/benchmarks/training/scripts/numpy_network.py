"""Parameters of a network of layers (networks/layers.py) as NumPy's arrays, for frameworks that compute with functions.

Parameters and running statistics are nested lists with one entry for each layer: a mapping of arrays, or for a block a
list of its paths. Kernels of convolutions have the order height, width, input, output.
"""

from __future__ import annotations

import math

import numpy as np

STATISTICS_CHANGE = 0.1
"""The part of a batch in new running statistics."""


def init(layers: list, size: tuple, random: np.random.Generator) -> tuple:
    """Parameters and running statistics of each layer, and the size of the output."""
    parameters, statistics = [], []
    for layer in layers:
        own, seen, size = _MADE[layer["op"]](layer, size, random) if layer["op"] in _MADE else ({}, (), size)
        parameters.append(own)
        statistics.append(seen)
    return parameters, statistics, size


def windows(layer: dict, length: int) -> tuple:
    """How many windows there are along a side, how far the last one reaches beyond it, and the items that each counts:
    padding counts, what lies beyond it does not (as in PyTorch)."""
    kernel, stride, padding = layer["kernel"], layer["stride"], layer["padding"]
    rounded = math.ceil if layer["up"] else int
    count = rounded((length + 2 * padding - kernel) / stride) + 1
    beyond = max(0, (count - 1) * stride + kernel - length - padding)
    counted = [min(at * stride + kernel, length + 2 * padding) - at * stride for at in range(count)]
    return count, beyond, np.array(counted, np.float32)


def _normal(random: np.random.Generator, shape: tuple, std: float) -> np.ndarray:
    return np.float32(std) * random.standard_normal(shape, np.float32)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def _made_linear(random: np.random.Generator, into: int, out: int, std: float) -> dict:
    return {"weight": _normal(random, (into, out), std), "bias": _zeros(out)}


def _made_conv(layer: dict, size: tuple, random: np.random.Generator) -> tuple:
    own = {"weight": _normal(random, (*layer["kernel"], size[0], layer["out"]), layer["std"])}
    if layer["bias"]:
        own["bias"] = _zeros(layer["out"])
    lengths = (
        (length + 2 * padding - kernel) // layer["stride"] + 1
        for length, kernel, padding in zip(size[1:], layer["kernel"], layer["padding"], strict=True)
    )
    return own, (), (layer["out"], *lengths)


def _made_pool(layer: dict, size: tuple, random: np.random.Generator) -> tuple:
    return {}, (), (size[0], *(windows(layer, length)[0] for length in size[1:]))


def _made_norm(layer: dict, size: tuple, random: np.random.Generator) -> tuple:
    own = {"weight": _ones(size[0]), "bias": _zeros(size[0])}
    return own, {"mean": _zeros(size[0]), "variance": _ones(size[0])}, size


def _made_block(layer: dict, size: tuple, random: np.random.Generator) -> tuple:
    made = [init(path, size, random) for path in paths(layer)]
    channels = sum(one[2][0] for one in made) if layer["op"] == "branches" else made[0][2][0]
    out = (channels, *made[0][2][1:])
    return [one[0] for one in made], [one[1] for one in made], out


def _made_attention(layer: dict, size: tuple, random: np.random.Generator) -> tuple:
    width = size[-1]
    inputs = _made_linear(random, width, 3 * width, layer["std"])
    return {"inputs": inputs, "output": _made_linear(random, width, width, layer["out_std"])}, (), size


def _made_embedding(layer: dict, size: tuple, random: np.random.Generator) -> tuple:
    width = layer["width"]
    own = {
        "tokens": _normal(random, (layer["vocabulary"], width), layer["std"]),
        "positions": _normal(random, (layer["positions"], width), layer["std"]),
    }
    return own, (), (*size, width)


_MADE = {
    "conv": _made_conv,
    "pool": _made_pool,
    "norm": _made_norm,
    "residual": _made_block,
    "branches": _made_block,
    "attention": _made_attention,
    "embedding": _made_embedding,
    "linear": lambda layer, size, random: (
        _made_linear(random, size[-1], layer["out"], layer["std"]),
        (),
        (*size[:-1], layer["out"]),
    ),
    "layer_norm": lambda layer, size, random: ({"weight": _ones(size[-1]), "bias": _zeros(size[-1])}, (), size),
    "flatten": lambda layer, size, random: ({}, (), (math.prod(size),)),
    "mean": lambda layer, size, random: ({}, (), size[:1]),
}
"""Layers that have parameters or change the size; the others have none and leave it."""


def paths(layer: dict) -> list:
    """The layers of each path of a block."""
    return layer["parts"] if layer["op"] == "branches" else [layer["body"], layer["shortcut"]]
