"""A network of layers (networks/layers.py) as functions of JAX: parameters and running statistics in, results out.

Parameters and statistics are those of numpy_network.py. Batch normalization returns new running statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy_network
from jax import lax

_LAYER_NORM_EPSILON = 1e-5


@dataclass
class Options:
    """How a network computes: products in `dtype`; `recompute`: activations inside of blocks again in the backward
    pass; `sums`: where the sum of all bit patterns of each layer's output is added, if anywhere."""

    dtype: Any = jnp.float32
    channels_last: bool = True
    recompute: bool = False
    sums: list | None = None
    tokens: Any = None


def apply(layers: list, parameters: list, statistics: list, x: Any, options: Options) -> tuple:
    """The output, and the new statistics."""
    new = []
    for layer, own, seen in zip(layers, parameters, statistics, strict=True):
        if layer["op"] in _BLOCKS:
            x, seen = _block(layer, own, seen, x, options)
        elif layer["op"] == "norm":
            x, seen = _norm(layer, own, seen, x, options)
        else:
            x = _DONE[layer["op"]](layer, own, x, options)
        if options.sums is not None and layer["op"] not in _BLOCKS:
            options.sums.append(jnp.sum(lax.bitcast_convert_type(x.astype(jnp.float32), jnp.int32)))
        new.append(seen)
    return x, new


def loss_of(outputs: Any, labels: Any) -> Any:
    """The mean cross entropy, in fp32."""
    scores = jax.nn.log_softmax(outputs.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(scores, labels[..., None], -1))


def _block(layer: dict, own: list, seen: list, x: Any, options: Options) -> tuple:
    inside = replace(options, recompute=False)

    def made(own: list, seen: list, x: Any) -> tuple:
        done = [
            apply(path, mine, its, x, inside)
            for path, mine, its in zip(numpy_network.paths(layer), own, seen, strict=True)
        ]
        outputs = [one[0] for one in done]
        joined = jnp.concatenate(outputs, _channel_axis(options)) if layer["op"] == "branches" else sum(outputs)
        return joined, [one[1] for one in done]

    return (jax.checkpoint(made) if options.recompute else made)(own, seen, x)


def _channel_axis(options: Options) -> int:
    return 3 if options.channels_last else 1


def _by_channel(values: Any, options: Options) -> Any:
    return values if options.channels_last else values[:, None, None]


def _norm(layer: dict, own: dict, seen: dict, x: Any, options: Options) -> tuple:
    axes = (0, 1, 2) if options.channels_last else (0, 2, 3)
    wide = x.astype(jnp.float32)
    mean, variance = jnp.mean(wide, axes), jnp.var(wide, axes)
    scale = own["weight"] * lax.rsqrt(variance + layer["epsilon"])
    out = wide * _by_channel(scale, options) + _by_channel(own["bias"] - mean * scale, options)
    count = x.size // mean.size
    new = {"mean": mean, "variance": variance * (count / (count - 1))}
    mixed = {
        name: lax.stop_gradient(seen[name] + numpy_network.STATISTICS_CHANGE * (new[name] - seen[name])) for name in new
    }
    return out.astype(x.dtype), mixed


def _conv(layer: dict, own: dict, x: Any, options: Options) -> Any:
    order = "NHWC" if options.channels_last else "NCHW"
    out = lax.conv_general_dilated(
        x.astype(options.dtype),
        own["weight"].astype(options.dtype),
        (layer["stride"], layer["stride"]),
        [(padding, padding) for padding in layer["padding"]],
        dimension_numbers=(order, "HWIO", order),
    )
    return out + _by_channel(own["bias"].astype(options.dtype), options) if layer["bias"] else out


def _product(own: dict, x: Any, options: Options) -> Any:
    return x.astype(options.dtype) @ own["weight"].astype(options.dtype) + own["bias"].astype(options.dtype)


def _pool(layer: dict, own: dict, x: Any, options: Options) -> Any:
    sides = (1, 2) if options.channels_last else (2, 3)
    found = {axis: numpy_network.windows(layer, x.shape[axis]) for axis in sides}
    window, strides, padding = [1] * 4, [1] * 4, [(0, 0)] * 4
    for axis in sides:
        window[axis], strides[axis] = layer["kernel"], layer["stride"]
        padding[axis] = (layer["padding"], found[axis][1])
    if layer["kind"] == "max":
        return lax.reduce_window(x, -jnp.inf, lax.max, tuple(window), tuple(strides), padding)
    total = lax.reduce_window(x, 0.0, lax.add, tuple(window), tuple(strides), padding)
    counted = np.outer(found[sides[0]][2], found[sides[1]][2])
    return total / (counted[:, :, None] if options.channels_last else counted).astype(x.dtype)


def _attention(layer: dict, own: dict, x: Any, options: Options) -> Any:
    items, length, width = x.shape
    parts = _product(own["inputs"], x, options).reshape(items, length, 3, layer["heads"], width // layer["heads"])
    mixed = jax.nn.dot_product_attention(*(parts[:, :, number] for number in range(3)), is_causal=True)
    return _product(own["output"], mixed.reshape(items, length, width), options)


def _embedding(layer: dict, own: dict, x: Any, options: Options) -> Any:
    options.tokens = own["tokens"]
    return own["tokens"][x] + own["positions"][: x.shape[1]]


def _tied_head(layer: dict, own: dict, x: Any, options: Options) -> Any:
    return x.astype(options.dtype) @ options.tokens.astype(options.dtype).T


def _layer_norm(layer: dict, own: dict, x: Any, options: Options) -> Any:
    wide = x.astype(jnp.float32)
    apart = wide - jnp.mean(wide, -1, keepdims=True)
    scale = lax.rsqrt(jnp.mean(jnp.square(apart), -1, keepdims=True) + _LAYER_NORM_EPSILON)
    return apart * scale * own["weight"] + own["bias"]


def _flatten(layer: dict, own: dict, x: Any, options: Options) -> Any:
    if options.channels_last and x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    return x.reshape(x.shape[0], -1)


_BLOCKS = ("residual", "branches")
_DONE = {
    "conv": _conv,
    "linear": lambda layer, own, x, options: _product(own, x, options),
    "pool": _pool,
    "layer_norm": _layer_norm,
    "relu": lambda layer, own, x, options: jax.nn.relu(x),
    "gelu": lambda layer, own, x, options: jax.nn.gelu(x, approximate=True),
    "flatten": _flatten,
    "mean": lambda layer, own, x, options: jnp.mean(x, (1, 2) if options.channels_last else (2, 3)),
    "embedding": _embedding,
    "attention": _attention,
    "tied_head": _tied_head,
}
