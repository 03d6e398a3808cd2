"""What seatrial's training script adds to a step: its steps and those of a plain loop on the same network, data and
optimizer, in alternating blocks of one process.

PYTHON_WITH_TORCH bench/training_steps.py SCRIPTS SETTINGS [BLOCKS]

SCRIPTS is src/seatrial/benchmarks/training/scripts, SETTINGS the training.json of a run with one process. Prints one
JSON object: seconds of a step, by block.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

_STEPS = 5


def main(scripts: str, settings_file: str, blocks: str = "40") -> None:
    """Measure and print."""
    sys.path.insert(0, scripts)
    import run_pytorch
    import torch
    from harness.process import Process
    from torch.nn import functional

    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    torch.set_num_threads(settings["threads"])
    run = run_pytorch.TorchTraining(settings, Process([], settings["threads"]), torch.device("cpu"), None)

    def plain() -> None:
        inputs, labels = next(run.data)
        run.optimizer.zero_grad()
        loss = functional.cross_entropy(run.plain(inputs), labels)
        loss.backward()
        run.optimizer.step()

    times: dict[str, list[float]] = {"seatrial": [], "plain loop": []}
    for number in range(2 * int(blocks)):
        name, step = list({"seatrial": run.step, "plain loop": plain}.items())[(number + number // 2) % 2]
        begun = time.perf_counter()
        for _ in range(_STEPS):
            step()
        times[name].append((time.perf_counter() - begun) / _STEPS)
    print(json.dumps(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
