"""Tables of embeddings and a small network on top, as recommendation models have them (Naumov et al., DLRM, 2019).

Nearly all time goes into rows of memory that are read and updated, not into products.
"""

from seatrial.benchmarks.training.networks.layers import RELU, Network, bags, linear

_TABLES, _ROWS, _WIDTH, _LOOKUPS = 8, 100_000, 64, 32

NETWORK = Network(
    name="embedding",
    counts="samples",
    size=(_TABLES, _LOOKUPS),
    classes=2,
    layers=[bags(_TABLES, _ROWS, _WIDTH, 0.05), linear(64, 0.05), RELU, linear(2, 0.05)],
    parameters=_TABLES * _ROWS * _WIDTH + (_TABLES * _WIDTH + 1) * 64 + 65 * 2,
    source="its own definition, of the kind of DLRM (arXiv:1906.00091)",
    first_loss=0.6931,
    batch=1024,
    steps=40,
    optimizer="sgd",
    learning_rate=1.0,
    task_steps=40,
    task_loss=0.65,
)
