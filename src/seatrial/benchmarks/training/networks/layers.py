"""Networks as data: layers, the number of their parameters, and the work of a training step.

Every framework builds a network from the same layers, which its script gets as JSON. A layer is a mapping with `op` and
its settings. Sizes are written channels first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod, sqrt
from typing import Any, Literal

from seatrial.model.frozen import Frozen

Layer = Mapping[str, Any]
Size = tuple[int, ...]
Pair = int | tuple[int, int]

PASSES = 3
"""Work of a training step over that of a forward pass: the backward pass makes two products for each (Narayanan et al.,
SC 2021, appendix)."""


class Network(Frozen):
    """A network and the data that it is trained on.

    `parameters` is the published number of parameters, `first_loss` the loss that random parameters give. After
    `task_steps` training steps on data that can be learnt, the loss must be at most `task_loss`, with `learning_rate`.
    `size`: channels, height and width of an image; of tokens the sequence length; of look-ups their number.
    """

    name: str
    counts: Literal["images", "tokens", "samples"]
    size: Size
    classes: int
    layers: Sequence[Layer]
    parameters: int
    source: str
    first_loss: float
    batch: int
    steps: int
    optimizer: str
    learning_rate: float
    task_steps: int
    task_loss: float

    def document(self, size: Size | None = None) -> dict[str, Any]:
        """What a script builds it from."""
        return {
            "name": self.name,
            "counts": self.counts,
            "size": list(size or self.size),
            "classes": self.classes,
            "layers": list(self.layers),
        }

    def counted(self) -> int:
        """The number of parameters of its layers."""
        return _walk(self.layers, self.size).parameters

    def step_flop(self, size: Size | None = None) -> float:
        """Floating-point operations of a training step for one image, sequence or sample: PASSES times the products of
        convolutions, matrices and attention in a forward pass, a multiplication and an addition each. Activations
        that are computed again do not count (model FLOP; Chowdhery et al., PaLM, 2022, appendix B)."""
        return 2.0 * PASSES * _walk(self.layers, size or self.size).products

    def units(self, size: Size | None = None) -> int:
        """How many images, tokens or samples one item of a batch counts as."""
        return (size or self.size)[0] if self.counts == "tokens" else 1


def conv(out: int, kernel: Pair, stride: int = 1, padding: Pair = 0, *, std: float | None = None) -> Layer:
    """A convolution; with `std` it has a bias, as networks without batch normalization do. Parameters are normal with
    that standard deviation, or that of He et al. (2015) over the outputs."""
    height, width = _pair(kernel)
    return {
        "op": "conv",
        "out": out,
        "kernel": [height, width],
        "stride": stride,
        "padding": list(_pair(padding)),
        "bias": std is not None,
        "std": sqrt(2.0 / (out * height * width)) if std is None else std,
    }


def linear(out: int, std: float) -> Layer:
    """A matrix with a bias, over the last dimension."""
    return {"op": "linear", "out": out, "std": std}


def pool(kind: Literal["max", "average"], kernel: int, stride: int, padding: int = 0, *, up: bool = False) -> Layer:
    """The largest value or the mean of a window. `up`: a window that begins inside counts, as in Caffe."""
    return {"op": "pool", "kind": kind, "kernel": kernel, "stride": stride, "padding": padding, "up": up}


def norm(epsilon: float = 1e-5) -> Layer:
    """Batch normalization."""
    return {"op": "norm", "epsilon": epsilon}


def residual(body: Sequence[Layer], shortcut: Sequence[Layer] = ()) -> Layer:
    """The sum of two paths; an empty one passes its input on."""
    return {"op": "residual", "body": list(body), "shortcut": list(shortcut)}


def branches(*parts: Sequence[Layer]) -> Layer:
    """Paths with the same input, whose outputs are joined by channel."""
    return {"op": "branches", "parts": [list(part) for part in parts]}


RELU: Layer = {"op": "relu"}
GELU: Layer = {"op": "gelu"}
FLATTEN: Layer = {"op": "flatten"}
MEAN: Layer = {"op": "mean"}
"""The mean over height and width."""
LAYER_NORM: Layer = {"op": "layer_norm"}


def embedding(vocabulary: int, width: int, positions: int, std: float) -> Layer:
    """Tokens and their positions as vectors."""
    return {"op": "embedding", "vocabulary": vocabulary, "width": width, "positions": positions, "std": std}


def attention(heads: int, std: float, out_std: float) -> Layer:
    """Causal attention: one matrix makes queries, keys and values, another one the output."""
    return {"op": "attention", "heads": heads, "std": std, "out_std": out_std}


def tied_head() -> Layer:
    """The scores of all tokens, by the matrix of the embedding."""
    return {"op": "tied_head"}


def bags(tables: int, rows: int, width: int, std: float) -> Layer:
    """Tables whose rows are looked up; the rows of each table are summed."""
    return {"op": "bags", "tables": tables, "rows": rows, "width": width, "std": std}


class _Walk(Frozen):
    """What layers make of a size: the new one, their parameters, and the multiplications of a forward pass."""

    size: Size
    parameters: int = 0
    products: int = 0
    vocabulary: int = 0


def _walk(layers: Sequence[Layer], size: Size, vocabulary: int = 0) -> _Walk:
    parameters = products = 0
    for layer in layers:
        done = _KINDS[layer["op"]](layer, size, vocabulary)
        size, vocabulary = done.size, done.vocabulary or vocabulary
        parameters, products = parameters + done.parameters, products + done.products
    return _Walk(size, parameters, products, vocabulary)


def _conv(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    height, width = (
        (length + 2 * padding - kernel) // layer["stride"] + 1
        for length, kernel, padding in zip(size[1:], layer["kernel"], layer["padding"], strict=True)
    )
    each = size[0] * prod(layer["kernel"]) * layer["out"]
    return _Walk((layer["out"], height, width), each + layer["bias"] * layer["out"], each * height * width)


def _linear(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    each = size[-1] * layer["out"]
    return _Walk((*size[:-1], layer["out"]), each + layer["out"], each * prod(size[:-1]))


def _pool(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    rounded = ceil if layer["up"] else int
    height, width = (
        rounded((length + 2 * layer["padding"] - layer["kernel"]) / layer["stride"]) + 1 for length in size[1:]
    )
    return _Walk((size[0], height, width))


def _residual(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    body, shortcut = _walk(layer["body"], size), _walk(layer["shortcut"], size)
    return _Walk(body.size, body.parameters + shortcut.parameters, body.products + shortcut.products)


def _branches(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    parts = [_walk(part, size) for part in layer["parts"]]
    channels = sum(part.size[0] for part in parts)
    return _Walk(
        (channels, *parts[0].size[1:]), sum(part.parameters for part in parts), sum(part.products for part in parts)
    )


def _embedding(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    rows = layer["vocabulary"] + layer["positions"]
    return _Walk((*size, layer["width"]), rows * layer["width"], vocabulary=layer["vocabulary"])


def _attention(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    length, width = size
    matrices = 4 * width * width
    scores = 2 * length * length * width  # of all pairs: the causal half is not left out, as in PaLM's formula
    return _Walk(size, matrices + 4 * width, matrices * length + scores)


def _bags(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    return _Walk((layer["tables"] * layer["width"],), layer["tables"] * layer["rows"] * layer["width"])


def _same(layer: Layer, size: Size, vocabulary: int) -> _Walk:
    return _Walk(size)


_KINDS: Mapping[str, Callable[[Layer, Size, int], _Walk]] = {
    "conv": _conv,
    "linear": _linear,
    "pool": _pool,
    "norm": lambda layer, size, vocabulary: _Walk(size, 2 * size[0]),
    "layer_norm": lambda layer, size, vocabulary: _Walk(size, 2 * size[-1]),
    "relu": _same,
    "gelu": _same,
    "flatten": lambda layer, size, vocabulary: _Walk((prod(size),)),
    "mean": lambda layer, size, vocabulary: _Walk(size[:1]),
    "residual": _residual,
    "branches": _branches,
    "embedding": _embedding,
    "attention": _attention,
    "tied_head": lambda layer, size, vocabulary: _Walk((size[0], vocabulary), 0, prod(size) * vocabulary),
    "bags": _bags,
}


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value
