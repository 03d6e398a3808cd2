"""A network of layers (networks/layers.py) as a PyTorch module."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def build(document: dict, *, recompute: bool) -> nn.Module:
    """The module. With `recompute`, the activations inside of blocks are computed again in the backward pass."""
    return _Stack(document["layers"], tuple(document["size"]), recompute)


class _Stack(nn.Module):
    """Layers one after another; `size` becomes that of their output."""

    def __init__(self, layers: list, size: tuple, recompute: bool, embedding: nn.Module | None = None) -> None:
        super().__init__()
        built = []
        for layer in layers:
            module, size = _KINDS[layer["op"]](layer, size, recompute, embedding)
            if isinstance(module, _Embedding):
                embedding = module
            built.append(module)
        self.layers = nn.ModuleList(built)
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class _Block(nn.Module):
    """Paths with the same input, whose outputs are added or joined."""

    def __init__(self, parts: list, recompute: bool, joins: bool) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.recompute, self.joins = recompute, joins

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.recompute and self.training:
            return checkpoint(self._made, x, use_reentrant=False)
        return self._made(x)

    def _made(self, x: torch.Tensor) -> torch.Tensor:
        outputs = [part(x) for part in self.parts]
        return torch.cat(outputs, 1) if self.joins else sum(outputs[1:], outputs[0])


class _Embedding(nn.Module):
    def __init__(self, layer: dict) -> None:
        super().__init__()
        self.tokens = nn.Embedding(layer["vocabulary"], layer["width"])
        self.positions = nn.Embedding(layer["positions"], layer["width"])
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=layer["std"])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))


class _TiedHead(nn.Module):
    def __init__(self, embedding: _Embedding) -> None:
        super().__init__()
        self.tokens = embedding.tokens

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.tokens.weight)


class _Attention(nn.Module):
    def __init__(self, width: int, layer: dict) -> None:
        super().__init__()
        self.heads = layer["heads"]
        self.inputs = _linear(width, 3 * width, layer["std"])
        self.output = _linear(width, width, layer["out_std"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        items, length, width = x.shape
        parts = self.inputs(x).view(items, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(items, length, width))


class _Bags(nn.Module):
    """Sums of rows that are looked up; only these rows get gradients."""

    def __init__(self, layer: dict) -> None:
        super().__init__()
        self.rows, self.tables = layer["rows"], layer["tables"]
        self.table = nn.EmbeddingBag(self.tables * self.rows, layer["width"], mode="sum", sparse=True)
        nn.init.normal_(self.table.weight, std=layer["std"])

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        items, tables, lookups = numbers.shape
        first = self.rows * torch.arange(tables, device=numbers.device).view(1, tables, 1)
        return self.table((numbers + first).view(items * tables, lookups)).view(items, -1)


def _linear(into: int, out: int, std: float) -> nn.Linear:
    module = nn.Linear(into, out)
    nn.init.normal_(module.weight, std=std)
    nn.init.zeros_(module.bias)
    return module


def _conv(layer: dict, size: tuple, recompute: bool, embedding: object) -> tuple:
    module = nn.Conv2d(size[0], layer["out"], layer["kernel"], layer["stride"], layer["padding"], bias=layer["bias"])
    nn.init.normal_(module.weight, std=layer["std"])
    if layer["bias"]:
        nn.init.zeros_(module.bias)
    height, width = (
        (length + 2 * padding - kernel) // layer["stride"] + 1
        for length, kernel, padding in zip(size[1:], layer["kernel"], layer["padding"], strict=True)
    )
    return module, (layer["out"], height, width)


def _pool(layer: dict, size: tuple, recompute: bool, embedding: object) -> tuple:
    window = (layer["kernel"], layer["stride"], layer["padding"])
    if layer["kind"] == "max":
        module: nn.Module = nn.MaxPool2d(*window, ceil_mode=layer["up"])
    else:
        module = nn.AvgPool2d(*window, ceil_mode=layer["up"])
    rounded = math.ceil if layer["up"] else int
    lengths = (rounded((length + 2 * layer["padding"] - layer["kernel"]) / layer["stride"]) + 1 for length in size[1:])
    return module, (size[0], *lengths)


def _residual(layer: dict, size: tuple, recompute: bool, embedding: object) -> tuple:
    parts = [_Stack(part, size, recompute=False) for part in (layer["body"], layer["shortcut"])]
    return _Block(parts, recompute, joins=False), parts[0].size


def _branches(layer: dict, size: tuple, recompute: bool, embedding: object) -> tuple:
    parts = [_Stack(part, size, recompute=False) for part in layer["parts"]]
    return _Block(parts, recompute, joins=True), (sum(part.size[0] for part in parts), *parts[0].size[1:])


def _embedding(layer: dict, size: tuple, recompute: bool, embedding: object) -> tuple:
    return _Embedding(layer), (*size, layer["width"])


class _Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))


_KINDS = {
    "conv": _conv,
    "linear": lambda layer, size, *_: (_linear(size[-1], layer["out"], layer["std"]), (*size[:-1], layer["out"])),
    "pool": _pool,
    "norm": lambda layer, size, *_: (nn.BatchNorm2d(size[0], layer["epsilon"]), size),
    "layer_norm": lambda layer, size, *_: (nn.LayerNorm(size[-1]), size),
    "relu": lambda layer, size, *_: (nn.ReLU(inplace=True), size),
    "gelu": lambda layer, size, *_: (nn.GELU(approximate="tanh"), size),
    "flatten": lambda layer, size, *_: (nn.Flatten(), (math.prod(size),)),
    "mean": lambda layer, size, *_: (_Mean(), size[:1]),
    "residual": _residual,
    "branches": _branches,
    "embedding": _embedding,
    "attention": lambda layer, size, *_: (_Attention(size[-1], layer), size),
    "tied_head": lambda layer, size, recompute, embedding: (_TiedHead(embedding), size),
    "bags": lambda layer, size, *_: (_Bags(layer), (layer["tables"] * layer["width"],)),
}
