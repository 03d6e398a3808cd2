"""Logs of training: real ones, made-up ones with what goes wrong in them, and damaged ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import zip_longest
from random import Random

import pytest
from applications import training_texts as texts
from applications.log_damage import figures_of, refused
from applications.training_texts import TIMES_S
from conftest import SHARED_DATA

from seatrial.applications.readers import reader_of
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment
from seatrial.model.results.record import readings

STEADY_S = sum(TIMES_S[1:])
LATER = texts.BEGIN + timedelta(seconds=600)
SLOW = tuple(2 * time_s for time_s in TIMES_S)
REAL: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("megatron", "training/megatron-mixtral-16xh100-issue756"): {
        "rate samples": 3 * 128 / 16.6973, "step": 5.5338, "model_flops": 234.636e12,
    },
    ("megatron", "applications/superbench/megatron-deepspeed"): {
        "rate samples": 27.2902, "rate tokens": 2048 * 27.2902, "rate_per_device samples": 27.2902 / 16,
        "first_step": 76.0153, "step": 75.216,
    },
    ("deepspeed", "applications/superbench/megatron-deepspeed"): {"rate samples": 2 * 2048 / 149.679},
    ("torchtitan", "training/torchtitan-rank0-prefix-pr3393"): {"rate_per_device tokens": 7302.19},
    ("torchtitan", "training/torchtitan-memory-zero-pr1437"): {"rate_per_device tokens": 34080.0},
    ("nanogpt", "training/nanogpt-compile-first-step-pr392"): {"first_step": 7.96194, "step": 22.135e-3},
    ("hf-trainer", "training/hf-trainer-step-runtime-pr7"): {"rate samples": 4 * 36 / 2.5789, "step": 0.63825},
    ("mllog", "training/mllog-llama31_8b-mi355x-v6.0"): {"wall": 5178.14, "rate samples": 184320 / 5178.14},
    ("mllog", "applications/mllog/mlperf-v0.5-resnet-intel-1node"): {"wall": 628081.0},
    ("mllog", "applications/mllog/mlperf-v5.1-llama2-amd-mi300x"): {"wall": 2035.848, "rate samples": 3840 / 2035.848},
    ("mllog", "applications/mllog/mlperf-hpc-v3.0-cosmoflow-eos"): {
        "wall": 571.851, "rate samples": 7 * 524288 / 571.851, "rate_per_device samples": 7 * 524288 / 571.851 / 32,
    },
    ("mllog", "applications/mllog/mlperf-multiworkers-perfkit"): {"wall": 1229.453, "rate samples": 2853312 / 1229.453},
    ("dllogger", "applications/dllogger/horovod-resnet-deeplearningexamples"): {
        "mean_of_rates": 6638.003508, "rate images": 6536.167, "rate_per_device images": 817.021,
    },
    ("horovod", "applications/horovod/pytorch-synthetic-8gpu"): {"rate images": 14281.2, "mean_of_rates": 14281.2},
    ("tf-cnn-benchmarks", "applications/tf_cnn_benchmarks/resnet50-fp16-2gpu-xla"): {"rate images": 1464.72},
    ("tf-cnn-benchmarks", "applications/tf_cnn_benchmarks/resnet50-fp16-inference-1gpu"): {"rate images": 3330.51},
    ("mxnet", "applications/tpu-and-mxnet/mxnet_output"): {"rate samples": 540.024, "rate_per_device samples": 270.012},
    ("tf-estimator", "applications/tpu-and-mxnet/inception3_output"): {
        "rate examples": 1024 * 3500 / (352.586 + 346.685 + 347.390 + 346.219 + 346.816 + 347.412 + 346.204),
    },
    ("tf-estimator", "applications/tpu-and-mxnet/resnet_output"): {
        "rate examples": 1024 * 3753 / (343.006 + 339.058 + 340.590), "rate_per_device examples": 469.737,
    },
}  # fmt: skip
"""Figures of real logs, computed from their numbers by hand."""
WRONG = {
    ("deepspeed", "training/deepspeed-v08-running-curr-issue2629"): "all 2 steps were skipped (overflow)",
    ("nemo", "training/nemo-lightning-bar-nan-issue7957"): "the loss is nan",
    ("tf-cnn-benchmarks", "applications/tf_cnn_benchmarks/alexnet-fp16-2gpu-a100-noisy"): "the loss is nan in step 1",
}
REFUSED = {
    ("mllog", "training/mllog-prefixed-variants"): "no `run_start`",
    ("mllog", "applications/mllog/mlperf-bert-incorrect"): "no line with `:::MLLOG",
}
needs_samples = pytest.mark.skipif(
    not (SHARED_DATA / "training").is_dir(), reason="the logs of real trainings (shared/data/training) are not here"
)


def real(name: str) -> bytes:
    return (SHARED_DATA / f"{name}.txt").read_bytes()


def values(experiment: ImportedExperiment) -> dict[str, float]:
    """Figure, with what it counts -> its value."""
    benchmark = benchmark_named(experiment.benchmark)
    found = readings(benchmark, Machine("m"), benchmark.point(experiment.parameters), experiment.samples)
    return {f"{one.figure.name} {one.point.get('counts', '')}".strip(): one.value for one in found}


def experiments(kind: str, text: str | bytes) -> tuple[ImportedExperiment, ...]:
    return reader_of(kind).read(text.encode() if isinstance(text, str) else text).experiments


def only(kind: str, text: str | bytes) -> ImportedExperiment:
    (experiment,) = experiments(kind, text)
    return experiment


def of(kind: str, text: str | bytes) -> dict[str, float]:
    """The figures of the only experiment, which is right."""
    experiment = only(kind, text)
    assert not experiment.failed
    return values(experiment)


def near(expected: float) -> object:
    return pytest.approx(expected, rel=2e-4)


@needs_samples
@pytest.mark.parametrize(("kind", "name"), REAL)
def test_figures_of_real_logs(kind: str, name: str) -> None:
    found = of(kind, real(name))
    for figure, value in REAL[kind, name].items():
        assert found[figure] == near(value), figure
    definitions = only(kind, real(name)).notes["definitions"]
    assert isinstance(definitions, dict) and definitions.keys() == {figure.split()[0] for figure in found}


@needs_samples
def test_real_logs_without_a_figure() -> None:
    for (kind, name), why in WRONG.items():
        assert why in only(kind, real(name)).failed
    for (kind, name), why in REFUSED.items():
        refused(kind, real(name), why)


@needs_samples
def test_two_generations_in_one_text_are_two_runs() -> None:
    found = experiments("maxtext", real("training/maxtext-step-lines-pr761-pr2232"))
    assert [values(one)["rate_per_device tokens"] for one in found] == [near(36653.244), near(8672.758)]


@needs_samples
def test_settings_of_superbench() -> None:
    found = experiments("superbench", real("applications/superbench/sb-exec-log"))
    by_model = {(one.parameters["model"], one.parameters["precision"]): one for one in found}
    vgg = by_model["pytorch-vgg11", "fp16"]
    assert vgg.parameters["micro_batch"] == 32, "33.2 by the mean of rates"
    assert values(vgg)["rate_per_device samples"] == near(32 / 0.3143566)
    assert "gpt2-large ended with return code 4" in found[0].remarks[0]


@needs_samples
def test_a_log_of_another_tool_is_refused() -> None:
    both = {("deepspeed", "megatron"), ("megatron", "deepspeed")}
    for kind in texts.TEXTS:
        for other, text in texts.TEXTS.items():
            if kind != other and (kind, other) not in both:
                with pytest.raises(ParseError):
                    reader_of(kind).read(text.encode())


def test_counts_over_the_time_of_the_steady_steps() -> None:
    steady = len(TIMES_S) - 1
    found = of("megatron", texts.megatron())
    assert found["rate tokens"] == near(256 * 4096 * steady / STEADY_S) and found["first_step"] == 40.0
    assert found["rate_per_device samples"] == near(256 * steady / STEADY_S / 16)
    found = of("torchtitan", texts.torchtitan())
    assert found["rate_per_device tokens"] == near(4 * 2048 * steady / STEADY_S)
    assert found["rate samples"] == near(32 * steady / STEADY_S) and found["step"] == near(2.5)
    assert of("nanogpt", texts.nanogpt())["rate tokens"] == near(491520 * steady / STEADY_S)
    assert of("maxtext", texts.maxtext())["rate tokens"] == near(256 * 24576 * steady / STEADY_S)
    assert of("deepspeed", texts.deepspeed())["rate samples"] == near(64 * 8 / sum(TIMES_S[2:]))
    for is_json in (False, True):
        found = of("dllogger", texts.dllogger(is_json=is_json))
        assert found["rate images"] == near(2048 * steady / STEADY_S) and found["rate images"] < found["mean_of_rates"]
    assert of("mxnet", texts.mxnet())["rate samples"] == near(512 * steady / STEADY_S)
    assert of("tf-estimator", texts.tf_estimator())["rate_per_device examples"] == near(128 * steady / STEADY_S)
    assert of("nemo", texts.nemo())["rate samples"] == near(90 * 256 / 900)
    assert of("hf-trainer", texts.hf_trainer())["rate samples"] == near(60 * 32 / 71.5487)
    assert of("hf-trainer", texts.trainer_state())["rate samples"] == near(60 * 8 / 71.5487)
    assert of("superbench", texts.superbench((250.0, 250.0)).replace("fp16", "fp32"))["step_mean"] == 0.25


def test_steps_that_are_not_steady() -> None:
    """Compilation again, and a step that was not waited for, are left out; an evaluation is counted apart."""
    found = of("maxtext", texts.maxtext((40.0, 0.3, 9.0, 2.5, 2.5, 2.5, 2.5, 2.5)))
    assert found["rate_per_device tokens"] == near(24576 / 2.5) and found["step_max"] == near(2.5)
    evaluated = texts.nanogpt((40.0, 2.5, 2.5, 9.0, 2.5), evaluated=(0, 3))
    assert of("nanogpt", evaluated)["step_max"] == near(2.5)
    assert only("nanogpt", evaluated).notes["iterations_with_an_evaluation"] == 1


def test_one_step_at_the_end_does_not_decide_what_is_steady() -> None:
    few = texts.tf_estimator((2.5, 2.5))
    assert only("tf-estimator", few).notes["steady_lines"] == 2
    assert of("megatron", texts.megatron((40.0, 2.5, 9.0)))["rate samples"] == near(2 * 256 / 11.5)


def test_a_log_of_every_tenth_step() -> None:
    lines = texts.torchtitan(times_s=TIMES_S[:1] + 30 * (2.5,)).splitlines(keepends=True)
    steps = [line for line in lines if "step:" in line]
    kept = "".join(line for line in lines if line not in steps or steps.index(line) in (0, 9, 19, 29))
    assert of("torchtitan", kept)["rate_per_device tokens"] == near(4 * 2048 / 2.5)
    assert only("torchtitan", kept).notes["steady_steps"] == 29


def test_other_forms_of_lines() -> None:
    """Seconds in place of milliseconds, two rates beside each other, another logger, only the lines themselves."""
    text = texts.megatron()
    found = re.sub(r"\(ms\): (\d+)\.0", lambda one: f"(s): {int(one[1]) / 1e3:.3f}", text)
    assert of("megatron", found)["step"] == near(2.5)
    assert of("megatron", re.sub(r"\(ms\): (\d+\.0)", r"(ms): \1/2600.0", text)) == of("megatron", text)
    text = texts.torchtitan(devices=0)
    rate = of("torchtitan", text)
    header = r"\[titan\] (\S+ \S+) - root - INFO - "
    assert of("torchtitan", re.sub(header, r"[\1][I][components/metrics:437:log] ", text)) == rate
    assert of("torchtitan", re.sub(header, "", text)) == rate
    validated = text.replace("step:  5 ", "validate step:  5 ", 1).replace("  ", "  ")
    assert only("torchtitan", validated).notes["lines_of_steps"] == 9
    two = "".join(f"[rank0]:{line}\n" for line in text.splitlines()[-2:])
    assert of("torchtitan", two)["rate_per_device tokens"] == near(2 * 4 * 2048 / sum(TIMES_S[-2:]))


def test_the_peak_that_a_share_is_of() -> None:
    peak = "[titan] 2025-03-01 10:00:00,000 - root - INFO - Peak FLOPS used for computing MFU: 9.890e+14\n"
    assert only("torchtitan", peak + texts.torchtitan()).notes["mfu_is_share_of_flops"] == 989e12
    refused("torchtitan", (peak.replace("9.89", "3.12") + texts.torchtitan()).encode(), "are a peak of 9.89e+14")


def test_an_iteration_that_warms_up_and_a_rate_of_old_versions() -> None:
    lines = texts.horovod().replace("Iter #0: 1785.8", "Iter #0: 448.0").replace("1785.1 +-4.0", "1784.8 +-4.5")
    mean = re.sub(r"14280\.\d \+-\S+", "14278.4 +-36.1", lines).replace("1785.0 +-4.0", "1784.8 +-4.5")
    assert of("horovod", mean)["rate images"] == near(8 * 3 / sum(1 / rate for rate in (1787.9, 1782.4, 1784.1)))
    old = "{'train_runtime': 110.5948, 'train_samples_per_second': 1.808, 'epoch': 0.69}\n"
    refused("hf-trainer", old.encode(), "print steps as samples per second")
    added = texts.mllog_line("cache_clear", -texts.BEGIN.timestamp(), True)
    assert '"time_ms": 0,' in added and of("mllog", added + texts.mllog()) == of("mllog", texts.mllog())


def labelled(form: str, *copies: str) -> str:
    """The lines of several ranks, mixed, with a label each."""
    rows = zip_longest(*(text.splitlines() for text in copies))
    return "".join(f"{form.format(rank=k)}{line}\n" for row in rows for k, line in enumerate(row) if line is not None)


FORMS = (
    "{rank}: ",
    "[{rank}] ",
    "[rank{rank}]:",
    "[1,{rank}]<stdout>:",
    "trainer-{rank}  | ",
    "node{rank}: [default0]:",
)


@pytest.mark.parametrize("kind", ("megatron", "torchtitan", "deepspeed", "nanogpt", "maxtext", "mllog", "hf-trainer"))
def test_lines_of_every_rank_count_once(kind: str) -> None:
    text = texts.TEXTS[kind]
    wanted = values(only(kind, text))
    for form in FORMS:
        assert values(only(kind, labelled(form, text, text, text))) == wanted, form
    assert kind == "hf-trainer" or values(only(kind, labelled("", text, text))) == wanted


@pytest.mark.parametrize(
    "label", ("stdout: ", "(Worker pid=71, ip=10.0.0.7) ", "I0820 21:26:20.590034 1399 log.py:44] ")
)
def test_labels_of_one_process(label: str) -> None:
    for kind in texts.TEXTS.keys() - {"superbench"}:  # of one line, no label is known
        text = texts.TEXTS[kind]
        assert of(kind, labelled(label, text)) == of(kind, text), kind


def test_the_slowest_rank_counts() -> None:
    found = of("torchtitan", labelled("[rank{rank}]:", texts.torchtitan(), texts.torchtitan(tps_off=0.985)))
    assert found["rate_per_device tokens"] == near(0.985 * 4 * 2048 * 9 / STEADY_S)


def test_copies_of_a_program_are_not_ranks() -> None:
    """Each has its own loss."""
    losses = tuple(f"{9 - k / 7:.4f}" for k in range(10))
    for devices in (0, 8):
        ranks = texts.torchtitan(devices=devices), texts.torchtitan(SLOW, devices=devices, losses=losses)
        found = experiments("torchtitan", labelled("node{rank}: ", *ranks))
        assert [values(one)["rate_per_device tokens"] for one in found] == [
            of("torchtitan", rank)["rate_per_device tokens"] for rank in ranks
        ]
    refused("torchtitan", labelled("", *ranks).encode(), "steps of another run")
    stages = texts.torchtitan(), texts.torchtitan(losses=10 * ("-1.00000",))
    assert of("torchtitan", labelled("[rank{rank}]:", *stages)) == of("torchtitan", texts.torchtitan())
    two = experiments("torchtitan", labelled("node{rank}: ", texts.torchtitan(), texts.torchtitan(SLOW, losses=losses)))
    assert len(two) == 2


NOT_FINITE: Mapping[str, Callable[[], str]] = {
    "megatron": lambda: texts.megatron(nan=(7,)),
    "torchtitan": lambda: texts.torchtitan(losses=("8.0", "nan")),
    "nanogpt": lambda: texts.nanogpt().replace("iter 6: loss 8.4615", "iter 6: loss nan"),
    "maxtext": lambda: re.sub(r"loss: 8\.\d+", "loss: inf", texts.maxtext(), count=1),
    "hf-trainer": lambda: texts.hf_trainer(loss="nan"),
    "nemo": lambda: texts.nemo(loss="nan.0"),
    "dllogger": lambda: texts.dllogger().replace("total_ips", "train.loss : nan total_ips", 1),
    "tf-cnn-benchmarks": lambda: texts.tf_cnn_benchmarks(loss="nan"),
    "tf-estimator": lambda: texts.tf_estimator().replace("loss = 9.166667", "loss = nan"),
    "mllog": lambda: texts.mllog(values=(0.3, float("nan"), 0.7)),
}


@pytest.mark.parametrize("kind", NOT_FINITE)
def test_a_loss_that_is_not_finite_leaves_no_figure(kind: str) -> None:
    file = reader_of(kind).read(NOT_FINITE[kind]().encode())
    assert "nan" in file.experiments[0].failed or "inf" in file.experiments[0].failed
    assert not figures_of(file)


def test_an_overflow_of_the_Trainer_and_a_skipped_step_without_a_loss() -> None:
    broken = texts.hf_trainer().replace("'loss': 5.5000, 'grad_norm': 0.46723", "'loss': 0.0, 'grad_norm': nan")
    assert "its gradient nan" in only("hf-trainer", broken).failed
    skipped = re.sub(r"(iteration +4/.*)lm loss: [^|]*", r"\1lm loss: inf ", texts.megatron(skipped=(4,)))
    assert "lm loss: inf" in skipped and of("megatron", skipped)


@pytest.mark.parametrize(
    "label", ("2024-05-07T12:00:01.123456789Z [rank0]:", "pod-0  | 0: ", "> [pod/job-0/main] ", "> ")
)
def test_several_labels_before_a_line(label: str) -> None:
    for kind in ("megatron", "torchtitan", "deepspeed", "nanogpt", "hf-trainer", "mllog"):
        assert of(kind, labelled(label, texts.TEXTS[kind])) == of(kind, texts.TEXTS[kind]), kind


def test_an_inference_has_no_loss() -> None:
    text = texts.tf_cnn_benchmarks(loss="nan", mode="forward only")
    assert only("tf-cnn-benchmarks", text).parameters["mode"] == "inference" and of("tf-cnn-benchmarks", text)


def test_skipped_steps_are_counted_apart() -> None:
    assert only("megatron", texts.megatron(skipped=(3, 5))).notes["skipped_steps"] == 2
    text = texts.deepspeed(overflows=(5, 6))
    assert only("deepspeed", text).notes["skipped_steps"] == 2
    assert of("deepspeed", text)["rate samples"] == near(64 * 6 / (sum(TIMES_S[2:]) - TIMES_S[4] - TIMES_S[5]))
    assert "all 8 steps" in only("deepspeed", texts.deepspeed(overflows=range(3, 11))).failed


CONTRADICTIONS: Mapping[str, tuple[str, str, str, str]] = {
    "a digit of tps": ("torchtitan", "tps: 3,277", "tps: 3,577", "FLOP of a token"),
    "a length": ("torchtitan", "length 2048", "length 4096", "by batch and length"),
    "consumed samples": ("megatron", "        1280 |", "        1380 |", "the consumed samples rise"),
    "a time": ("megatron", "(ms): 2510.0", "(ms): 2610.0", "FLOP"),
    "a mean of rates": ("deepspeed", "SamplesPerSec=25.6, C", "SamplesPerSec=29.6, C", "another rate"),
    "rate and time": ("maxtext", "seconds: 2.510", "seconds: 2.910", "of a device"),
    "steps per second": ("hf-trainer", "steps = 60", "steps = 61", "are not the 61 steps"),
    "a batch of the Trainer": ("hf-trainer", "accumulation) = 32", "accumulation) = 16", "samples by rate"),
    "a batch of DLLogger": ("dllogger", "Size 256", "Size 512", "by the batch"),
    "a throughput": ("superbench", "128.0", "168.0", "not a batch of"),
    "an iteration": ("horovod", "1787.9 img", "1797.9 img", "the mean of the iterations"),
    "devices": ("horovod", "GPUs: 8", "GPUs: 4", "8 devices, but 4"),
    "seconds of a line": ("tf-estimator", "(251.000 sec)", "(351.000 sec)", "no global_step/sec beside it fits"),
    "a rate of examples": ("tf-estimator", "examples/sec: 409.6\n", "examples/sec: 509.6\n", "several batches"),
    "a speed": ("mxnet", "Speed: 204.80", "Speed: 104.80", "took"),
    "a batch of devices": ("tf-cnn-benchmarks", "48 per", "32 per", "are not 96 global"),
    "a mean of steps": ("tf-cnn-benchmarks", "total images/sec: 1", "total images/sec: 2", "the mean of the steps"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_statements_that_contradict_each_other(name: str) -> None:
    kind, old, new, why = CONTRADICTIONS[name]
    assert old in texts.TEXTS[kind]
    refused(kind, texts.TEXTS[kind].replace(old, new).encode(), why)


def test_other_statements_that_contradict_each_other() -> None:
    state = texts.trainer_state().replace('"max_steps": 60', '"max_steps": 90')
    refused("hf-trainer", state.encode(), "of max_steps")
    duration = texts.mllog_line("run_duration", 700.0, "500.0s -> 8 minutes")
    refused("mllog", (texts.mllog() + duration).encode(), "run_duration is 500 s")
    rate = texts.mllog_line("overall_throughput", 700.0, 30.7)
    refused("mllog", (texts.mllog() + rate).encode(), "76800 samples in 600 s are 128")
    unknown = texts.deepspeed(says_batch=False, timer_share=0.1)
    refused("deepspeed", unknown.encode(), "cannot be checked")
    refused("torchtitan", texts.torchtitan(tps_off=2.0).encode(), "by batch and length")
    doubled = texts.megatron().replace("(ms): 2500.0", "(ms): 5000.0").replace("GPU): 240.0", "GPU): 120.0")
    refused("megatron", doubled.encode(), "do not fit between time stamps")


def test_a_timer_that_sees_a_part_of_the_step_is_not_believed() -> None:
    """As DeepSpeed's does beside Megatron."""
    text = texts.deepspeed(timer_share=0.1)
    assert of("deepspeed", text)["rate samples"] == pytest.approx(64 / 2.5, rel=2e-3)
    assert "the printed 256 samples/s do not fit" in only("deepspeed", text).remarks[1]


def test_a_training_that_went_on_counts_the_steps_it_made() -> None:
    assert of("hf-trainer", texts.hf_trainer(resumed=20))["rate samples"] == near(40 * 32 / 71.5487)
    assert of("hf-trainer", texts.trainer_state(made=30))["rate samples"] == near(30 * 8 / 71.5487)


def test_keys_of_mllog_that_are_not_what_they_are_called() -> None:
    falling = only("mllog", texts.mllog(values=(0.938, 0.931, 0.923)))
    assert falling.notes["evaluation"] == {"key": "eval_accuracy", "value": 0.923, "is": "loss"}
    counted = re.sub(r'"samples_count": (\d+)', r'"epoch_num": \1', texts.mllog())
    assert of("mllog", counted)["rate samples"] == near(128.0)
    assert "epoch_num counts samples" in only("mllog", counted).remarks[0]
    blocks = texts.mllog().replace('"samples_count": 51200}', '"samples_count": 25600}', 1)
    assert '"block_stop"' in blocks and of("mllog", blocks)["rate samples"] == near(128.0), "those of a block"
    again = texts.mllog() + texts.mllog_line("cache_clear", 700.0, True)
    assert not only("mllog", again).remarks
    epochs = re.sub(r'"samples_count": (\d+)00', lambda found: f'"epoch_num": {int(found[1]) // 256}', texts.mllog())
    assert "rate samples" not in of("mllog", epochs)
    assert "aborted" in only("mllog", texts.mllog(status="aborted")).failed


@pytest.mark.parametrize(("samples", "is_read"), [(25600, True), (100, False)])
def test_samples_of_an_epoch_that_may_be_batches(samples: int, is_read: bool) -> None:
    lines = [texts.mllog_line("train_samples", 0.0, samples), texts.mllog_line("run_start", 60.0)]
    for epoch in (1, 2):
        begin = 60.0 + 210 * (epoch - 1)
        lines += [
            texts.mllog_line("epoch_start", begin, epoch_num=epoch),
            texts.mllog_line("eval_start", begin + 200, epoch_num=epoch),
            texts.mllog_line("eval_stop", begin + 210, epoch_num=epoch),
            texts.mllog_line("epoch_stop", begin + 210, epoch_num=epoch),
            texts.mllog_line("tracked_stats", begin + 210, {"throughput": 128.0}),
        ]
    found = of("mllog", "".join(lines) + texts.mllog_line("run_stop", 480.0, status="success", epoch_num=2))
    assert found["wall"] == 420.0
    assert found.get("rate samples") == (near(2 * 25600 / 420) if is_read else None)
    assert found.get("train_rate samples") == (near(128.0) if is_read else None)


def test_goodput_of_a_run_with_a_restart() -> None:
    """Three iterations were made twice; the first one after each start counts with the median."""
    again = texts.BEGIN + timedelta(seconds=160)
    parts = texts.megatron(last=16), texts.megatron((20.0, *TIMES_S[1:]), first=8, last=17, begin=again, resumed=True)
    found = only("megatron", "".join(parts))
    lost_s, wall_s = sum(TIMES_S[7:]), 160 + 30 + 20 + STEADY_S
    useful_s = 2 * (2.5 + STEADY_S) - lost_s
    assert found.notes["lost_steps"] == 3 and found.notes["starts"] == 2
    assert found.notes["useful_s"] == near(useful_s)
    assert values(found)["goodput"] == pytest.approx(useful_s / wall_s, rel=0.01)
    assert values(found)["rate samples"] == near(2 * 9 * 256 / (2 * STEADY_S))
    titan = (
        texts.torchtitan(total=16),
        texts.torchtitan((20.0, *TIMES_S[1:]), first=8, total=17, begin=again, resumed=True),
    )
    assert only("torchtitan", "".join(titan)).notes["lost_steps"] == 3


def test_goodput_of_MLPerf() -> None:
    assert of("mllog", texts.mllog())["goodput"] == near(570 / 660)


TWO: Mapping[str, tuple[str, str, str]] = {
    "megatron": (texts.megatron(), texts.megatron(SLOW, begin=LATER), "rate samples"),
    "torchtitan": (texts.torchtitan(), texts.torchtitan(SLOW, begin=LATER), "rate_per_device tokens"),
    "nanogpt": (texts.nanogpt(), texts.nanogpt(SLOW), "rate tokens"),
    "maxtext": (texts.maxtext(), texts.maxtext(SLOW), "rate_per_device tokens"),
    "hf-trainer": (texts.hf_trainer(), texts.hf_trainer(runtime_s=90.1234), "rate samples"),
    "nemo": (texts.nemo(), texts.nemo(((10, 300), (50, 900), (100, 1900))), "rate samples"),
    "mllog": (texts.mllog(), texts.mllog(run_s=900.0), "rate samples"),
    "dllogger": (texts.dllogger(), texts.dllogger(SLOW[1:]), "rate images"),
    "horovod": (texts.horovod(), texts.horovod((100.0, 101.0, 99.0)), "rate images"),
    "tf-cnn-benchmarks": (texts.tf_cnn_benchmarks(), texts.tf_cnn_benchmarks(rate=900.0), "rate images"),
    "mxnet": (texts.mxnet(), texts.mxnet(SLOW[1:]), "rate samples"),
    "tf-estimator": (texts.tf_estimator(), texts.tf_estimator(SLOW[1:]), "rate examples"),
}


@pytest.mark.parametrize("kind", TWO)
def test_two_runs_in_one_text_stay_apart(kind: str) -> None:
    one, other, figure = TWO[kind]
    found = [values(experiment)[figure] for experiment in experiments(kind, one + other)]
    assert found == [of(kind, one)[figure], of(kind, other)[figure]]


def rates(kind: str, data: bytes) -> list[float]:
    """The rates that a text gives; none if it is refused, or says that it is wrong."""
    try:
        file = reader_of(kind).read(data)
    except ParseError as error:
        assert str(error).strip()
        return []
    names = ("rate", "rate_per_device", "wall", "mean_of_rates")
    return [value for name, own in figures_of(file).items() if name in names for value in own]


@pytest.mark.parametrize("kind", texts.TEXTS)
def test_a_text_that_was_cut_or_mixed_has_true_rates_or_none(kind: str) -> None:
    """The times of the steady steps are within 2 % of each other, so that fewer of them have nearly the same rate."""
    text = texts.TEXTS[kind].encode()
    true = rates(kind, text)
    lines = text.splitlines(keepends=True)
    assert true
    for number in range(60):
        rng = Random(f"{kind} {number}")
        own, at, other = list(lines), rng.randrange(len(lines)), rng.randrange(len(lines))
        match number % 5:
            case 0:
                data = b"".join(own[:at])
            case 1:
                data = text[: rng.randrange(len(text))]
            case 2:
                del own[at]
                data = b"".join(own)
            case 3:
                own[at], own[other] = own[other], own[at]
                data = b"".join(own)
            case _:
                own.insert(at, own[other])
                data = b"".join(own)
        for value in rates(kind, data) if data.strip() else ():
            assert any(abs(value - one) <= 0.02 * one for one in true), (number, value, true)


def test_texts_that_gave_a_wrong_rate_or_no_clear_error() -> None:
    """A row that ends in its rate, a number of commas, states of a bar that do not fit its own timing."""
    cut = texts.dllogger().splitlines(keepends=True)[3]
    refused("dllogger", cut[: cut.index("total_ips : 8") + 13].encode(), "no line such as")
    refused("dllogger", cut.encode(), "the rates cannot be checked")
    assert of("hf-trainer", texts.hf_trainer().replace("steps = 60", "steps = ,")) == of(
        "hf-trainer", texts.hf_trainer()
    )
    fast = texts.nemo(((10, 100), (50, 140), (100, 190)))
    refused("nemo", fast.encode(), "of 9.5 s by train_step_timing")


def test_what_is_missing_at_the_end_is_said() -> None:
    text = "".join(texts.megatron().splitlines(keepends=True)[:-3])
    assert "to step 8 of 10" in only("megatron", text).remarks[0]
    crashed = text + "Traceback (most recent call last):\nRuntimeError: CUDA error: out of memory\n"
    assert "Traceback" in only("megatron", crashed).remarks[0]
    refused("mllog", texts.mllog().rpartition(":::MLLOG")[0].encode(), "no `run_stop`")
    refused("hf-trainer", texts.hf_trainer().partition("{'train_runtime")[0].encode(), "has not ended")
    refused("horovod", texts.horovod().partition("Total img")[0].encode(), "there is no `Total img/sec`")
