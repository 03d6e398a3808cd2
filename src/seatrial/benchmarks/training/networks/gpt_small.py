"""The smallest GPT-2 (Radford et al., 2019): 12 blocks, 768 wide, 12 heads; without dropout, as it is trained today."""

from math import sqrt

from seatrial.benchmarks.training.networks.layers import (
    GELU,
    LAYER_NORM,
    Network,
    attention,
    embedding,
    linear,
    residual,
    tied_head,
)

_BLOCKS, _WIDTH, _STD = 12, 768, 0.02
_OUT_STD = _STD / sqrt(2 * _BLOCKS)
_BLOCK = (
    residual([LAYER_NORM, attention(12, _STD, _OUT_STD)]),
    residual([LAYER_NORM, linear(4 * _WIDTH, _STD), GELU, linear(_WIDTH, _OUT_STD)]),
)

NETWORK = Network(
    name="gpt-small",
    counts="tokens",
    size=(1024,),
    classes=50257,
    layers=[embedding(50257, _WIDTH, 1024, _STD), *(_BLOCKS * _BLOCK), LAYER_NORM, tied_head()],
    parameters=124_439_808,
    source="Radford et al., 2019; OpenAI, gpt-2 (124M)",
    first_loss=10.8249,
    batch=1,
    steps=6,
    optimizer="adamw",
    learning_rate=6e-4,
    task_steps=10,
    task_loss=8.5,
)
