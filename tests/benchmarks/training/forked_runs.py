"""Runs a training script many times in processes that share one import of the framework: a run then takes a second.

    python forked_runs.py MODULE SCRIPT < RUNS

RUNS is a JSON list of {scripts, folder, processes, cpus}; each folder has the settings. Prints the exit statuses.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import traceback

_LOADED = {
    "torch": ("torch", "torch._dynamo", "torch.distributed.fsdp", "torch.nn.parallel", "torch.utils.checkpoint"),
    "jax": ("jax", "jax.experimental"),
    "tensorflow": ("numpy",),
}
"""What a framework loads when it is used first, which takes seconds. JAX and TensorFlow start threads when they compute
first, after the fork."""


def run(scripts: str, folder: str, processes: int, cpus: str, script: str) -> list[int]:
    """Exit statuses of the processes of one run."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    children = []
    for number in range(processes):
        child = os.fork()
        if child:
            children.append(child)
            continue
        status = 1
        try:
            os.chdir(folder)
            sys.path.insert(0, scripts)
            if processes > 1:
                where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
                os.environ.update(where, RANK=str(number), LOCAL_RANK=str(number), PMI_RANK=str(number))
            importlib.import_module(script).main("training.json", "training.jsonl", cpus)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


if __name__ == "__main__":
    for name in _LOADED[sys.argv[1]]:
        importlib.import_module(name)
    print(json.dumps([run(script=sys.argv[2], **one) for one in json.load(sys.stdin)]))
