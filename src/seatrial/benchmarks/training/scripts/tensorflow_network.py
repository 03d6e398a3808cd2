"""A network of images (networks/layers.py) as functions of TensorFlow, with the parameters of numpy_network.py as
variables. Images are channels last: TensorFlow's kernels for CPUs have no other order. Batch normalization assigns its
running statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy_network
import tensorflow as tf


@dataclass
class Options:
    """How a network computes: products in `dtype`; `compiled`: by XLA; `sums`: where the sum of all bit patterns of
    each layer's output is added, if anywhere."""

    dtype: Any = tf.float32
    compiled: bool = False
    sums: list | None = None


def apply(layers: list, parameters: list, statistics: list, x: Any, options: Options) -> Any:
    """The output."""
    for layer, own, seen in zip(layers, parameters, statistics, strict=True):
        if layer["op"] in ("residual", "branches"):
            x = _block(layer, own, seen, x, options)
            continue
        x = _norm(layer, own, seen, x) if layer["op"] == "norm" else _DONE[layer["op"]](layer, own, x, options)
        if options.sums is not None:
            options.sums.append(tf.reduce_sum(tf.bitcast(tf.cast(x, tf.float32), tf.int32)))
    return x


def loss_of(outputs: Any, labels: Any) -> Any:
    """The mean cross entropy, in fp32."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.cast(outputs, tf.float32))
    )


def _block(layer: dict, own: list, seen: list, x: Any, options: Options) -> Any:
    paths = zip(numpy_network.paths(layer), own, seen, strict=True)
    outputs = [apply(path, mine, its, x, options) for path, mine, its in paths]
    return tf.concat(outputs, 3) if layer["op"] == "branches" else tf.add_n(outputs)


def _norm(layer: dict, own: dict, seen: dict, x: Any) -> Any:
    out, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=own["weight"],
        offset=own["bias"],
        mean=seen["mean"],
        variance=seen["variance"],
        epsilon=layer["epsilon"],
        exponential_avg_factor=numpy_network.STATISTICS_CHANGE,
        is_training=True,
    )
    seen["mean"].assign(mean)
    seen["variance"].assign(variance)
    return out


def _conv(layer: dict, own: dict, x: Any, options: Options) -> Any:
    sides = [[padding, padding] for padding in layer["padding"]]
    weight = tf.cast(own["weight"], options.dtype)
    out = tf.nn.conv2d(tf.cast(x, options.dtype), weight, layer["stride"], [[0, 0], *sides, [0, 0]])
    return tf.nn.bias_add(out, tf.cast(own["bias"], options.dtype)) if layer["bias"] else out


def _linear(layer: dict, own: dict, x: Any, options: Options) -> Any:
    weight, bias = (tf.cast(own[name], options.dtype) for name in ("weight", "bias"))
    return tf.matmul(tf.cast(x, options.dtype), weight) + bias


def _pool(layer: dict, own: dict, x: Any, options: Options) -> Any:
    found = [numpy_network.windows(layer, length) for length in x.shape[1:3]]
    sides = [[0, 0], *([layer["padding"], beyond] for _, beyond, _ in found), [0, 0]]
    window = layer["kernel"], layer["stride"]
    if layer["kind"] == "max" and not options.compiled and np.any(sides):
        return tf.nn.max_pool2d(x, *window, sides)  # XLA has no windows with padding
    if np.any(sides):
        x = tf.pad(x, sides, constant_values=x.dtype.min if layer["kind"] == "max" else 0)
    if layer["kind"] == "max":
        return tf.nn.max_pool2d(x, *window, "VALID")
    mean = tf.nn.avg_pool2d(x, *window, "VALID")
    counted = np.outer(found[0][2], found[1][2])
    if (counted == layer["kernel"] ** 2).all():
        return mean
    return mean * tf.cast(layer["kernel"] ** 2 / counted[:, :, None], x.dtype)


def _flatten(layer: dict, own: dict, x: Any, options: Options) -> Any:
    return tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (x.shape[0], -1))


_DONE = {
    "conv": _conv,
    "linear": _linear,
    "pool": _pool,
    "relu": lambda layer, own, x, options: tf.nn.relu(x),
    "flatten": _flatten,
    "mean": lambda layer, own, x, options: tf.reduce_mean(x, (1, 2)),
}
