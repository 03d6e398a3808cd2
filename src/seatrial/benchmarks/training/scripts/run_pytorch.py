"""Trains a network with PyTorch, and writes what it measured.

    python run_pytorch.py SETTINGS OUTPUT CPUS
    python -m torch.distributed.run --standalone --nproc-per-node N run_pytorch.py SETTINGS OUTPUT CPUS

It runs in the interpreter of the site, which needs PyTorch and nothing of seatrial. Processes bind themselves to their
share of the CPUs before PyTorch starts threads. A step is timed by the clock of the host on CPUs and by events on a
device, which waits for the host only at the ends of a block.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import nullcontext
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.data_set import DataSet, Unusable, made
from harness.formats import Damaged
from harness.process import Process
from harness.training import MOMENTUM, POOL, Training, data_seed, on_storage, write_skip

_AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}


def main(settings_file: str, output: str, cpus: str) -> None:
    """Train and write the record, by the first process."""
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    process = Process([int(cpu) for cpu in cpus.split(",") if cpu], settings["threads"], settings["cpus_of_workers"])
    try:
        data_set = made(settings["data_set"]) if settings["data_set"] else None
    except Unusable as reason:
        write_skip(settings, process, output, str(reason), reason.need)
        return
    except Damaged as error:
        raise SystemExit(str(error)) from None
    known = data_set.cached_for(settings["cache"]) if data_set and process.number_here == 0 else {}
    begun = time.perf_counter()
    is_bound = process.bind()
    import torch
    from torch import distributed

    if settings["device"] == "cuda" and not torch.cuda.is_available():
        write_skip(settings, process, output, "this PyTorch finds no GPU", "gpu")
        return
    torch.set_num_threads(settings["threads"])
    torch.set_num_interop_threads(settings["interop_threads"])
    device = torch.device("cuda", process.number_here) if settings["device"] == "cuda" else torch.device("cpu")
    if process.count > 1:
        distributed.init_process_group(settings["backend"], timeout=timedelta(seconds=300))
    run = TorchTraining(settings, process, device, data_set)
    try:
        run.measure(begun)
    except torch.OutOfMemoryError:
        why = f"batch={settings['batch']} does not fit into the memory of the device; {run.largest_batch()}"
        write_skip(settings, process, output, why)
        run.data = None  # ends the processes that read
        sys.stderr.flush()
        os._exit(0)
    found = run.gathered(is_bound, known)
    if process.number == 0:
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
        run.report(found, output, "PyTorch", torch.__version__, name)
    if process.count > 1:
        distributed.barrier()
        # Gloo's threads abort at the end of a process whose peer has gone (seen with PyTorch 2.13 on two nodes).
        sys.stderr.flush()
        os._exit(0)


class TorchTraining(Training):
    """A network with its data and optimizer, and what is seen of it."""

    def __init__(self, settings: dict, process: Process, device: Any, data_set: DataSet | None) -> None:
        import torch
        import torch_checks

        super().__init__(settings, process)
        self.device, self.torch, self.checks = device, torch, torch_checks
        self._set()
        begun = time.perf_counter()
        self.fingerprint = torch_checks.fingerprint(self.document, 1, device)
        self.fingerprint_s = time.perf_counter() - begun
        torch.manual_seed(settings["seed"])
        self.plain = self._built()
        self.parameters = sum(one.numel() for one in self.plain.parameters())
        self.network = self._distributed()
        if settings["compiled"]:
            self.network = torch.compile(self.network)
        self.optimizer = self._optimizer()
        self.scaler = torch.amp.GradScaler(device.type, enabled=settings["precision"] == "fp16")
        self.data = self._data(data_set)

    def _data(self, data_set: DataSet | None) -> Any:
        settings = self.settings
        if data_set is not None:
            import torch_input

            return torch_input.Pipeline(self.document, settings, data_set, self.process, self.device, self._placed)
        import torch_data

        seed = data_seed(settings, self.process)
        is_resident = settings["data"] == "device"
        return torch_data.MadeUp(self.document, settings["batch"], POOL, seed, self.device, self._placed, is_resident)

    def _set(self) -> None:
        """The settings that change the speed silently; `seen` is what PyTorch reports of them afterwards."""
        torch, settings = self.torch, self.settings
        is_tf32 = settings["precision"] == "tf32"
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = is_tf32
            torch.backends.cudnn.allow_tf32 = is_tf32
            torch.backends.cudnn.benchmark = settings["autotune"]
        torch.backends.mkldnn.set_flags(settings["onednn"])
        torch.use_deterministic_algorithms(settings["deterministic"], warn_only=True)
        torch.set_flush_denormal(False)
        self.seen = {
            "tf32": self.device.type == "cuda" and torch.backends.cudnn.allow_tf32,
            "autotune": torch.backends.cudnn.benchmark,
            "onednn": bool(torch.backends.mkldnn.enabled),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }

    def _is_image(self) -> bool:
        return bool(self.document["counts"] == "images")

    def _memory_format(self) -> Any:
        return (
            self.torch.channels_last
            if self.settings["memory_format"] == "channels-last"
            else (self.torch.contiguous_format)
        )

    def _placed(self, inputs: Any) -> Any:
        return inputs.contiguous(memory_format=self._memory_format()) if self._is_image() else inputs

    def _built(self) -> Any:
        import torch_network

        network = torch_network.build(self.document, recompute=self.settings["recompute"])
        order = self._memory_format() if self._is_image() else self.torch.contiguous_format
        return network.to(self.device, memory_format=order)

    def _distributed(self) -> Any:
        if self.process.count == 1:
            return self.plain
        if self.settings["strategy"] == "fsdp":
            from torch.distributed.fsdp import fully_shard

            fully_shard(self.plain)
            return self.plain
        from torch.nn.parallel import DistributedDataParallel

        ids = [self.process.number_here] if self.device.type == "cuda" else None
        return DistributedDataParallel(self.plain, device_ids=ids)

    def _optimizer(self) -> Any:
        kind, rate = self.settings["optimizer"], self.settings["learning_rate"]
        of = self.plain.parameters()
        if kind == "adamw":
            return self.torch.optim.AdamW(of, lr=rate)
        return self.torch.optim.SGD(of, lr=rate, momentum=MOMENTUM if kind == "momentum" else 0.0)

    def _autocast(self) -> Any:
        name = _AUTOCAST.get(self.settings["precision"])
        return nullcontext() if name is None else self.torch.autocast(self.device.type, getattr(self.torch, name))

    def loss(self, network: Any, batch: Any) -> Any:
        """The loss of a batch, in the precision of the run."""
        with self._autocast():
            outputs = network(batch[0])
        return self.checks.loss_of(outputs, batch[1])

    def step(self, *, is_local: bool = False) -> None:
        """One training step. `is_local`: without the exchange of gradients; nothing is updated then."""
        settings = self.settings
        self.optimizer.zero_grad(set_to_none=True)
        total = None
        waited_s = 0.0
        for part in range(settings["accumulate"]):
            begun = time.perf_counter()
            batch = next(self.data)
            waited_s += time.perf_counter() - begun
            with self._exchange(is_last=part == settings["accumulate"] - 1 and not is_local):
                loss = self.loss(self.network, batch) / settings["accumulate"]
                self.scaler.scale(loss).backward()
            total = loss.detach() if total is None else total + loss.detach()
        if not is_local:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.losses.append(total)
        self.wait_s.append(waited_s)

    def _exchange(self, *, is_last: bool) -> Any:
        if is_last or self.process.count == 1:
            return nullcontext()
        if self.settings["strategy"] == "fsdp":
            self.network.set_requires_gradient_sync(False)
            return _restored(lambda: self.network.set_requires_gradient_sync(True))
        return self.network.no_sync()

    def waited_for(self) -> float:
        """The time, once the device has done what it was asked for."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return time.perf_counter()

    def agreed(self, answer: bool) -> bool:
        """The answer of the first process, for all."""
        if self.process.count == 1:
            return answer
        said = self.torch.tensor([int(answer)], device=self.device)
        self.torch.distributed.broadcast(said, 0)
        return bool(said.item())

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.process.count > 1:
            self.torch.distributed.barrier()

    def each_step(self, steps: int, *, is_local: bool) -> list:
        """Make the steps; the time of each, by events on a device."""
        marks = [self._mark()]
        for _ in range(steps):
            self.step(is_local=is_local)
            marks.append(self._mark())
        self.waited_for()
        return [self._between(a, b) for a, b in pairwise(marks)]

    def block(self, steps: int, *, is_local: bool = False) -> tuple:
        """As for every framework. FSDP keeps gradients that were not exchanged and adds them to those of the next
        step, which is made here without an update."""
        seen = super().block(steps, is_local=is_local)
        if is_local and self.settings["strategy"] == "fsdp":
            self.loss(self.network, next(self.data)).backward()
            self.optimizer.zero_grad(set_to_none=True)
        return seen

    def _mark(self) -> Any:
        if self.device.type != "cuda":
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _between(self, start: Any, end: Any) -> float:
        return end - start if self.device.type != "cuda" else start.elapsed_time(end) / 1e3

    def largest_batch(self) -> str:
        """After memory ran out: the largest batch of which one process makes a step, found by halving the interval."""
        self.torch.cuda.empty_cache()
        fits, too_large = 0, self.settings["batch"]
        while too_large - fits > max(1, too_large // 16):
            tried = (fits + too_large) // 2
            try:
                self.optimizer.zero_grad(set_to_none=True)
                self.loss(self.plain, [one[:tried] for one in next(self.data)]).backward()
                fits = tried
            except self.torch.OutOfMemoryError:
                too_large = tried
            self.torch.cuda.empty_cache()
        return f"the largest tried batch that fits is {fits}" if fits else "not even one item fits"

    def reset_device_memory(self) -> None:
        """Forget the largest allocation so far."""
        if self.device.type == "cuda":
            self.torch.cuda.reset_peak_memory_stats()

    def device_memory_B(self) -> int:
        """The largest allocation on the device."""
        return self.torch.cuda.max_memory_allocated() if self.device.type == "cuda" else 0

    def gradients_apart(self) -> float:
        """The relative difference between the gradients in use and the mean of those of all processes."""
        alone = self.plain
        if self.settings["strategy"] == "fsdp":  # each process has a part of the network
            alone = self.checks.copied(self.plain, self._built())
        return self.checks.gradient_error(self.network, self.plain, alone, next(self.data), self.loss)

    def saves(self) -> bool:
        """With FSDP, every process has a part."""
        return self.process.number == 0 or self.settings["strategy"] == "fsdp"

    def save(self, path: Path) -> None:
        """Write parameters and state of the optimizer."""
        with path.open("wb") as file:
            self.torch.save({"model": self.plain.state_dict(), "optimizer": self.optimizer.state_dict()}, file)
            on_storage(file)

    def result(self) -> str:
        """The loss of one batch, the same for all processes, with the parameters as they are now."""
        import torch_data

        inputs, labels = torch_data.made_up(self.document, 2, 7)
        self.plain.train()
        with self.torch.no_grad():
            loss = self.loss(self.plain, (self._placed(inputs).to(self.device), labels.to(self.device)))
        return f"{float(loss):.17g}"

    def gathered_from_all(self, own: dict) -> list:
        """What each process saw, at the first one."""
        if self.process.count == 1:
            return [own]
        found: list = [None] * self.process.count
        self.torch.distributed.gather_object(own, found if self.process.number == 0 else None)
        return found


class _restored:
    """Calls a function at the end of a block."""

    def __init__(self, restore: Any) -> None:
        self._restore = restore

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._restore()


if __name__ == "__main__":
    main(*sys.argv[1:])
