"""apps.dlio: DLIO, which reads the data of a training as its framework does, and sleeps in place of the computation;
its summary.json is read as `seatrial import dlio=FILE` does.

The data are made before each run, by the same program, and read from where they are: files of the published size in as
many as `files`. They may still be in memory then, if they fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.imported.dlio import BENCHMARK as IMPORTED
from seatrial.model.benchmark import Skip
from seatrial.model.given_input import CASE, OWN, InputCase
from seatrial.model.parameter import Parameter, ParameterKind, Params

_WORKLOADS = {
    "unet3d_a100": "3D U-Net, images of 140 MB, an A100",
    "resnet50_a100": "ResNet-50, records of 150 KB, an A100",
    "cosmoflow_a100": "CosmoFlow, samples of 2.6 MB, an A100",
}


def _arguments(params: Params, *, is_made: bool) -> Sequence[str]:
    parts = {"generate_data": not is_made, "train": is_made}
    workflow = [f"++workload.workflow.{part}={value}" for part, value in parts.items()]
    dataset = ["++workload.dataset.data_folder=data", f"++workload.dataset.num_files_train={params['files']}"]
    return [f"workload={params[CASE]}", *workflow, *dataset, f"hydra.run.dir={'output' if is_made else 'generated'}"]


def _prepare(params: Params) -> Params:
    if params[CASE] == OWN:
        raise Skip("workloads of your own need a configuration folder of DLIO: run it yourself, and import dlio=FILE")
    return params


BENCHMARK = application(
    "apps.dlio",
    "How fast is a training fed with data?",
    IMPORTED,
    tool="DLIO",
    programs=("dlio_benchmark",),
    install="install DLIO (python -m pip install dlio-benchmark) and put dlio_benchmark on PATH",
    arguments=lambda params: _arguments(params, is_made=True),
    preparation=lambda params: (_arguments(params, is_made=False),),
    output="output/summary.json",
    cases=tuple(InputCase(name, what, "") for name, what in _WORKLOADS.items()),
    made=Made(
        inputs=lambda params: {},
        parameters=(Parameter("files", ParameterKind.INTEGER, 16, "files of the data set", minimum=1),),
        prepare=_prepare,
    ),
    has_start=False,
    stated={"accelerators": "ranks"},
    evidence=FORMAT_SEEN,
)
