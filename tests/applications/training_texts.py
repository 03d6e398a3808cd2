"""Made-up logs of training, printed as each tool prints them, from numbers that fit together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import fmean, pstdev

BEGIN = datetime(2025, 3, 1, 10, 0, 0, tzinfo=UTC)
TIMES_S = (40.0, 2.5, 2.51, 2.49, 2.52, 2.5, 2.48, 2.5, 2.53, 2.5)
"""Of the steps of a run: the first one compiles."""


def _loss(step: int) -> float:
    return 11.0 / (1.0 + 0.05 * step)


def megatron(
    times_s: Sequence[float] = TIMES_S,
    *,
    first: int = 1,
    last: int = 0,
    batch: int = 256,
    flop: float = 9.6e15,
    skipped: Sequence[int] = (),
    nan: Sequence[int] = (),
    begin: datetime = BEGIN,
    resumed: bool = False,
    banner: bool = True,
) -> str:
    """Iterations from `first` on, of 16 devices. `flop`: those of a batch."""
    last = last or first + len(times_s) - 1
    at = begin + timedelta(seconds=30)
    lines = []
    if banner:
        lines = [
            "using world size: 16, data-parallel size: 4, context-parallel size: 1",
            f"[before the start of training step] datetime: {begin:%Y-%m-%d %H:%M:%S} ",
            "------------------------ arguments ------------------------",
            "  bf16 ............................................ True",
            "  seq_length ...................................... 4096",
            "  world_size ...................................... 16",
            "-------------------- end of arguments ---------------------",
        ]
    if resumed:
        lines.append(f"  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration {first - 1}")
    for k, time_s in enumerate(times_s):
        step = first + k
        at += timedelta(seconds=time_s)
        rate = flop / time_s / 16 / 1e12
        is_nan, is_skipped = int(step in nan), int(step in skipped)
        loss = "" if is_nan else f"lm loss: {_loss(step):.6E} | "
        lines.append(
            f" [{at:%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/{last:8d} | consumed samples: {step * batch:12d} |"
            f" elapsed time per iteration (ms): {time_s * 1e3:.1f} | throughput per GPU (TFLOP/s/GPU): {rate:.1f} |"
            f" learning rate: 3.000000E-04 | global batch size: {batch:5d} | {loss}loss scale: 1.0 | grad norm: 1.250 |"
            f" number of skipped iterations: {is_skipped:3d} | number of nan iterations: {is_nan:3d} |"
        )
    if first + len(times_s) - 1 == last:
        lines.append(f"[after training is done] datetime: {at:%Y-%m-%d %H:%M:%S} ")
    return "\n".join(lines) + "\n"


def torchtitan(
    times_s: Sequence[float] = TIMES_S,
    *,
    first: int = 1,
    total: int = 0,
    devices: int = 8,
    local: int = 4,
    length: int = 2048,
    begin: datetime = BEGIN,
    losses: Sequence[str] = (),
    resumed: bool = False,
    tps_off: float = 1.0,
) -> str:
    """Steps of `devices` devices that share no batch; without devices, only the lines of steps."""
    total = total or first + len(times_s) - 1
    at = begin + timedelta(seconds=12)
    stamp = f"[titan] {begin:%Y-%m-%d %H:%M:%S},000 - root - INFO - "
    lines = [f"{stamp}Starting job: Llama 3 debug"] if devices else []
    if devices:
        lines.append(f"{stamp}Building 1-D device mesh with ['dp_shard'], [{devices}]")
    if resumed:
        lines.append(f"{stamp}Loading the checkpoint from outputs/checkpoint/step-{first - 1}.")
    if devices:
        lines.append(
            f"{stamp}Training starts at step {first}, with local batch size {local}, "
            f"global batch size {local * devices}, "
            f"sequence length {length}, total steps {total} (warmup 2)"
        )
    for k, time_s in enumerate(times_s):
        at += timedelta(seconds=time_s)
        tps = local * length / time_s * tps_off
        loss = losses[k] if k < len(losses) else f"{_loss(first + k):7.4f}"
        lines.append(
            f"[titan] {at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} - root - INFO - "
            f"\x1b[31mstep: {first + k:2d}  "
            f"\x1b[32mloss: {loss}  \x1b[38;2;180;60;0mgrad_norm:  1.2500  \x1b[34mmemory: 30.50GiB(38.50%)  "
            f"\x1b[36mtps: {round(tps):,}  \x1b[36mtflops: {tps * 50.9e9 / 1e12:,.2f}  "
            f"\x1b[35mmfu: {tps * 50.9e9 / 989e12 * 100:.2f}%\x1b[39m"
        )
    if devices and first + len(times_s) - 1 == total:
        lines.append(f"[titan] {at:%Y-%m-%d %H:%M:%S},999 - root - INFO - Training completed")
    return "\n".join(lines) + "\n"


def deepspeed(
    times_s: Sequence[float] = TIMES_S,
    *,
    batch: int = 64,
    says_batch: bool = True,
    overflows: Sequence[int] = (),
    timer_share: float = 1.0,
) -> str:
    """Steps from 1 on; the timer prints from the third on. `timer_share`: of a step that the timer sees."""
    at = BEGIN
    lines = [f"[{at:%Y-%m-%d %H:%M:%S},000] [INFO] [launch.py:163:main] dist_world_size=8"]
    if says_batch:
        lines.append(
            f"[{at:%Y-%m-%d %H:%M:%S},000] [INFO] [config.py:978:print]   train_batch_size ............. {batch}"
        )
    total = 0.0
    for k, time_s in enumerate(times_s, start=1):
        at += timedelta(seconds=time_s)
        stamp = f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] [INFO]"
        if k in overflows:
            lines.append(
                f"{stamp} [stage3.py:1816:_overflow_clean_up] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
                f"Attempted loss scale: {2.0 ** (32 - k)}, reducing to {2.0 ** (31 - k)}"
            )
        if k > 2:
            total += time_s * timer_share
            running, current = batch * (k - 2) / total, batch / (time_s * timer_share)
            lines.append(
                f"{stamp} [timer.py:260:stop] epoch=0/micro_step={k}/global_step={k}, "
                f"RunningAvgSamplesPerSec={running}, "
                f"CurrSamplesPerSec={current}, MemAllocated=7.79GB, MaxMemAllocated=10.55GB"
            )
    return "\n".join(lines) + "\n"


def nanogpt(times_s: Sequence[float] = TIMES_S, *, tokens: int = 491520, evaluated: Sequence[int] = (0,)) -> str:
    """Iterations from 0 on."""
    lines = [f"tokens per iteration will be: {tokens:,}", "number of parameters: 123.59M"] if tokens else []
    for k, time_s in enumerate(times_s):
        if k in evaluated:
            lines.append(f"step {k}: train loss {_loss(k):.4f}, val loss {_loss(k) + 0.01:.4f}")
        mfu = 41.25 if k >= 5 else -100.0
        lines.append(f"iter {k}: loss {_loss(k):.4f}, time {time_s * 1e3:.2f}ms, mfu {mfu:.2f}%")
    return "\n".join(lines) + "\n"


def maxtext(times_s: Sequence[float] = TIMES_S, *, tokens: int = 24576, devices: int = 256, first: int = 0) -> str:
    """Steps from 0 on; `tokens` of a device in each."""
    lines = [f"Num_devices: {devices}, shape [1, 1, {devices}, 1]"] if devices else []
    lines += [
        f"completed step: {first + k}, seconds: {time_s:.3f}, TFLOP/s/device: {540.0 / time_s:.3f}, "
        f"Tokens/s/device: {tokens / time_s:.3f}, total_weights: 6291456, loss: {_loss(k):.3f}"
        for k, time_s in enumerate(times_s)
    ]
    return "\n".join(lines) + "\n"


def hf_trainer(
    *, steps: int = 60, batch: int = 32, runtime_s: float = 71.5487, resumed: int = 0, loss: str = ""
) -> str:
    """A training with a bar, an evaluation and the summary."""
    rate, pace = steps * batch / runtime_s, steps / runtime_s
    lines = [
        "***** Running training *****",
        f"  Instantaneous batch size per device = {batch // 4}",
        f"  Total train batch size (w. parallel, distributed & accumulation) = {batch}",
        "  Gradient Accumulation steps = 1",
        f"  Total optimization steps = {steps}",
    ]
    if resumed:
        lines.append(f"  Continuing training from global step {resumed}")
    lines += [
        f"{{'loss': {loss or f'{_loss(k):.4f}'}, 'grad_norm': 0.46723, 'learning_rate': 1.09e-05, 'epoch': {k / 20}}}"
        for k in range(10, steps + 1, 10)
    ]
    lines.append("{'eval_loss': 1.25, 'eval_runtime': 3.5, 'eval_samples_per_second': 400.0, 'epoch': 3.0}")
    lines.append(
        f"{{'train_runtime': {runtime_s:.4f}, 'train_samples_per_second': {rate:.3f}, "
        f"'train_steps_per_second': {pace:.3f}, 'train_loss': 0.7607600097854932, 'epoch': 3.0}}"
    )
    lines.append(f"100%|{'█' * 20}| {steps}/{steps} [01:11<00:00,  1.19s/it]")
    return "\n".join(lines) + "\n"


def trainer_state(*, made: int = 60, planned: int = 60, batch: int = 8, runtime_s: float = 71.5487) -> str:
    """trainer_state.json."""
    history = [{"epoch": k / 20, "loss": _loss(k), "step": k} for k in range(10, made + 1, 10)]
    summary = {
        "epoch": 3.0, "step": made, "total_flos": 1.5e15, "train_loss": 0.76, "train_runtime": runtime_s,
        "train_samples_per_second": round(planned * batch / runtime_s, 3),
        "train_steps_per_second": round(planned / runtime_s, 3),
    }  # fmt: skip
    document = {
        "global_step": made,
        "max_steps": planned,
        "train_batch_size": batch,
        "log_history": [*history, summary],
    }
    return json.dumps(document, indent=2) + "\n"


def nemo(
    states: Sequence[tuple[int, int]] = ((10, 100), (50, 500), (100, 1000)), *, loss: str = "4.350", of: int = 100
) -> str:
    """States of one bar, (iterations, seconds), with carriage returns between them."""

    def bar(done: int, clock_s: int) -> str:
        clock = (
            f"{clock_s // 3600}:{clock_s // 60 % 60:02d}:{clock_s % 60:02d}"
            if clock_s >= 3600
            else (f"{clock_s // 60:02d}:{clock_s % 60:02d}")
        )
        return (
            f"Epoch 0: : {100 * done // of:3d}%|{'█' * (done * 10 // of):10s}| {done}/{of} [{clock}<00:30, v_num=0-56, "
            f"reduced_train_loss={loss}, global_step={done - 1}.00, consumed_samples={done * 256}.0, "
            f"train_step_timing in s=9.500]"
        )

    return "\r".join(bar(*state) for state in states) + "\n"


def mllog_line(key: str, at_s: float, value: object = None, **metadata: object) -> str:
    """A line `at_s` seconds after the begin."""
    event = {
        "namespace": "", "time_ms": round((BEGIN.timestamp() + at_s) * 1000), "event_type": "POINT_IN_TIME", "key": key,
        "value": value, "metadata": {"file": "train.py", "lineno": 7, **metadata},
    }  # fmt: skip
    return f":::MLLOG {json.dumps(event)}\n"


def mllog(
    *, run_s: float = 600.0, status: str = "success", values: Sequence[float] = (0.3, 0.6, 0.72), batch: int = 256
) -> str:
    """A run with 60 s of initialisation and three evaluations of 10 s; 100 batches before each."""
    begin = 60.0
    lines = [
        mllog_line("cache_clear", 0.0, True),
        mllog_line("init_start", 0.1),
        mllog_line("submission_benchmark", 0.1, "bert"),
        mllog_line("submission_platform", 0.1, "2xNODE"),
        mllog_line("number_of_nodes", 0.1, 2),
        mllog_line("accelerators_per_node", 0.1, 8),
        mllog_line("global_batch_size", 0.1, batch),
        mllog_line("init_stop", begin - 0.1),
        mllog_line("run_start", begin),
    ]
    for k, value in enumerate(values, start=1):
        at = begin + run_s * k / len(values)
        count = 100 * batch * k
        lines += [
            mllog_line("block_stop", at - 10.0, samples_count=count),
            mllog_line("eval_start", at - 10.0, samples_count=count),
            mllog_line("eval_accuracy", at, value, samples_count=count),
            mllog_line("eval_stop", at, samples_count=count),
        ]
    count = 100 * batch * len(values)
    lines.append(mllog_line("run_stop", begin + run_s, status=status, samples_count=count))
    return "".join(lines)


def dllogger(times_s: Sequence[float] = TIMES_S[1:], *, is_json: bool = False) -> str:
    """Steps of 8 devices with 256 images each, and the summary."""
    at = BEGIN
    batch = 8 * 256
    lines = ["Num GPUs 8", "Per-GPU Batch Size 256"]

    def line(step: str, data: dict[str, float]) -> str:
        if is_json:
            event = {"timestamp": f"{at.timestamp()}", "elapsedtime": "1.0", "datetime": f"{at:%Y-%m-%d %H:%M:%S.%f}",
                     "type": "LOG", "step": json.loads(f"[{step[1:-1]}]"), "data": data}  # fmt: skip
            return f"DLLL {json.dumps(event)}"
        values = " ".join(f"{key} : {value} " for key, value in data.items())
        return f"DLL {at:%Y-%m-%d %H:%M:%S.%f} - {step} {values}"

    for k, time_s in enumerate(times_s):
        at += timedelta(seconds=time_s)
        lines.append(line(f"(0, {k})", {"total_ips": batch / time_s}))
    lines.append(line("()", {"train_throughput": fmean(batch / time_s for time_s in times_s)}))
    return "\n".join(lines) + "\n"


def superbench(times_ms: Sequence[float] = (250.0, 125.0), batch: int = 32) -> str:
    """A summary with ResNet-50 in two precisions, and a micro-benchmark."""
    found: dict[str, float] = {"gpu-copy-bw/cpu_to_gpu0:0": 25.5}
    for precision, time_ms in zip(("fp32", "fp16"), times_ms, strict=True):
        key = f"model-benchmarks:resnet/pytorch-resnet50/{precision}_train"
        found |= {f"{key}_step_time:0": time_ms, f"{key}_throughput:0": batch / time_ms * 1e3 * 1.0005}
    return json.dumps({"node": "n1", **found}) + "\n"


def horovod(rates: Sequence[float] = (1785.8, 1787.9, 1782.4, 1784.1), *, devices: int = 8, batch: int = 96) -> str:
    """Iterations with these rates."""
    mean, spread = fmean(rates), 1.96 * pstdev(rates)
    lines = [
        "Model: resnet50",
        f"Batch size: {batch}",
        f"Number of GPUs: {devices}",
        "Running warmup...",
        "Running benchmark...",
    ]
    lines += [f"Iter #{k}: {rate:.1f} img/sec per GPU" for k, rate in enumerate(rates)]
    lines += [
        f"Img/sec per GPU: {mean:.1f} +-{spread:.1f}",
        f"Total img/sec on {devices} GPU(s): {devices * mean:.1f} +-{devices * spread:.1f}",
    ]
    return "\n".join(lines) + "\n"


def tf_cnn_benchmarks(*, rate: float = 1464.72, loss: str = "7.734", mode: str = "training") -> str:
    """A run of two devices with 48 images each."""
    lines = [
        "TensorFlow:  1.15", "Model:       resnet50", "Dataset:     imagenet (synthetic)", f"Mode:        {mode}",
        "Batch size:  96 global", "             48 per device", "Num batches: 100", "Devices:     ['/gpu:0', '/gpu:1']",
        "Running warm up", "Done warm up", "Step\tImg/sec\ttotal_loss",
        *(f"{k}\timages/sec: {rate * 1.001 + k / 100:.1f} +/- 1.8 (jitter = 9.0)\t{loss}" for k in (1, 10, 50, 100)),
        "-" * 64, f"total images/sec: {rate:.2f}", "-" * 64,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def mxnet(times_s: Sequence[float] = TIMES_S[1:], *, batch: int = 512) -> str:
    """Two epochs of one worker with two devices, a line for each 20 batches."""
    lines = [
        f"INFO:root:start with arguments Namespace(batch_size={batch}, disp_batches=20, gpus='0,1', kv_store='device')"
    ]
    for epoch in (0, 1):
        lines += [
            f"INFO:root:Epoch[{epoch}] Batch [{20 * k}-{20 * k + 20}]\tSpeed: {batch / time_s:.2f} samples/sec\t"
            f"accuracy={0.1 + k / 100:.6f}"
            for k, time_s in enumerate(times_s, start=1)
        ]
        lines.append(f"INFO:root:Epoch[{epoch}] Time cost={20 * (sum(times_s) + 3.0):.3f}")
    return "\n".join(lines) + "\n"


def tf_estimator(times_s: Sequence[float] = TIMES_S[1:], *, batch: int = 1024, each: int = 100) -> str:
    """Lines for each 100 steps of 8 TPU cores; the first has no time, the last is of one step."""
    lines = ["Using config: {'_save_checkpoints_secs': 0}", "*** Num TPU Cores: 8", f"loss = 9.956678, step = {each}"]
    for k, time_s in enumerate(times_s, start=2):
        lines += [
            f"loss = {_loss(k):.6f}, step = {each * k} ({each * time_s:.3f} sec)",
            f"global_step/sec: {1 / time_s:.6g}",
            f"examples/sec: {batch / time_s:.6g}",
        ]
    last = each * (len(times_s) + 1)
    lines += [f"loss = 5.1234, step = {last + 1} (6.500 sec)", "Loss for final step: 5.1234."]
    return "\n".join(lines) + "\n"


TEXTS = {
    "megatron": megatron(),
    "torchtitan": torchtitan(),
    "deepspeed": deepspeed(),
    "nanogpt": nanogpt(),
    "maxtext": maxtext(),
    "hf-trainer": hf_trainer(),
    "nemo": nemo(),
    "mllog": mllog(),
    "dllogger": dllogger(),
    "superbench": superbench(),
    "horovod": horovod(),
    "tf-cnn-benchmarks": tf_cnn_benchmarks(),
    "mxnet": mxnet(),
    "tf-estimator": tf_estimator(),
}
"""A text of each kind."""
