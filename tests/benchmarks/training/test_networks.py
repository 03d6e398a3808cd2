"""Networks as data: sizes and work as published, and as a framework's own modules have them."""

from __future__ import annotations

import pytest

from seatrial.benchmarks.training.networks import networks

PUBLISHED_GMAC = {"resnet50": 4.09, "inception-v3": 5.71}
"""Multiplications of a forward pass, as torchvision's documentation states them."""


@pytest.mark.parametrize("name", networks())
def test_a_network_has_its_published_number_of_parameters(name: str) -> None:
    network = networks()[name]
    assert network.counted() == network.parameters


@pytest.mark.parametrize(("name", "gmac"), PUBLISHED_GMAC.items())
def test_the_work_of_a_step_is_three_forward_passes(name: str, gmac: float) -> None:
    assert networks()[name].step_flop() == pytest.approx(3 * 2 * gmac * 1e9, rel=0.005)


def test_the_work_of_tokens_is_that_of_the_parameters_and_of_attention() -> None:
    """6 flop for each parameter of a matrix and token, and 12 x layers x width x length for attention (PaLM, B)."""
    network = networks()["gpt-small"]
    length, width, blocks = 128, 768, 12
    matrices = 12 * blocks * width**2 + 50257 * width
    assert network.step_flop((length,)) == length * (6 * matrices + 12 * blocks * width * length)
    assert network.units((length,)) == length
