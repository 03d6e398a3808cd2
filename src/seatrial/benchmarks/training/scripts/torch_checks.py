"""What a training run with PyTorch is checked by: gradients, data and results of all processes, and a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
import torch_data
import torch_network
from torch import distributed
from torch.nn import functional

_ITEMS, _STEPS = 2, 3


def loss_of(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean cross entropy, in fp32."""
    return functional.cross_entropy(outputs.float().flatten(0, -2), labels.flatten())


def fingerprint(document: dict, seed: int, device: torch.device) -> str:
    """A hash of the losses of a short deterministic run in fp32, and of the norms of its activations, bit for bit. It
    is the same on every healthy processor of one kind with the same library and threads."""
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(seed)
    network = torch_network.build(document, recompute=False).to(device)
    bits = hashlib.sha256()

    def add(module: object, inputs: object, output: torch.Tensor) -> None:
        bits.update(output.detach().double().norm().cpu().numpy().tobytes())

    for module in network.modules():
        if not list(module.children()):
            module.register_forward_hook(add)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    for step in range(_STEPS):
        inputs, labels = torch_data.made_up(document, _ITEMS, seed + step)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(network(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        bits.update(loss.detach().cpu().numpy().tobytes())
    torch.use_deterministic_algorithms(was)
    return bits.hexdigest()[:16]


def gradient_error(
    trained: torch.nn.Module, plain: torch.nn.Module, alone: torch.nn.Module, batch: tuple, forward: Callable
) -> float:
    """The largest relative difference, over parameters, between the gradients that training with `trained` leaves in
    `plain`, and the mean over processes of those that each computes by itself with `alone`."""

    def gradients(network: torch.nn.Module, owner: torch.nn.Module) -> list:
        owner.zero_grad(set_to_none=True)
        forward(network, batch).backward()
        found = [_whole(torch.zeros_like(one) if one.grad is None else one.grad) for one in owner.parameters()]
        owner.zero_grad(set_to_none=True)
        return found

    worst = 0.0
    for its, mine in zip(gradients(trained, plain), gradients(alone, alone), strict=True):
        distributed.all_reduce(mine)
        mine /= distributed.get_world_size()
        scale = float(mine.norm())
        worst = max(worst, float((its - mine).norm()) / scale if scale else float(its.norm() > 0))
    return worst


def copied(shared: torch.nn.Module, into: torch.nn.Module) -> torch.nn.Module:
    """The network `into` with the parameters of one of which each process has a part."""
    with torch.no_grad():
        for own, its in zip(into.parameters(), shared.parameters(), strict=True):
            own.copy_(_whole(its))
    return into


def _whole(tensor: Any) -> Any:
    """A dense copy of all of it, wherever its parts are."""
    if hasattr(tensor, "full_tensor"):
        return tensor.full_tensor().clone()
    return tensor.to_dense() if tensor.is_sparse else tensor.clone()
