"""Real outputs of HPL and HPCG, also of NVIDIA's builds: each is read, or refused for what is wrong with it."""

from __future__ import annotations

import pytest
from applications.log_damage import APPLICATIONS, check_mutants, counted_once, figures, log, needs_logs, refused
from conftest import SHARED_DATA

from seatrial.applications.readers import reader_of
from seatrial.benchmarks import benchmark_named
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Device, DeviceKind, Machine, NamedLimit

HPL = {  # rate in flop/s, time in s
    "hpl/hpl-intel-results.txt": (6.68032e11, 551.89),
    "hpl/hpl-superbench-several-N.txt": (8.1261e12, 4645.37),
    "hpl-nvidia/hpl-nvidia25-h100-1gpu.txt": (4.208e13, 12.40),
    "hpl-nvidia/hpl-nvidia1.0-a100-4gpu.txt": (8.237e11, 2267.03),
}
CUT = "hpl-nvidia/hpl-nvidia1.0-truncated.txt"
H100 = "hpl-nvidia/hpl-nvidia25-h100-1gpu.txt"
HPCG = "hpcg-nvidia/hpcg-nvidia25.4-h100-1gpu.txt"
MXP = "hpl-mxp/hpl-mxp-nvidia-h100-4gpu.txt"
SIX_RUNS = "hpcg/hpcg-5800x-linux.txt"
OLD_BUILD = "hpcg/hpcg-virtualclient.txt"


def names_in(*folders: str) -> set[str]:
    return {f"{folder}/{path.name}" for folder in folders for path in (APPLICATIONS / folder).glob("*.txt")}


@needs_logs
def test_every_real_output_is_tested_here() -> None:
    assert names_in("hpl", "hpl-nvidia") == {*HPL, CUT}
    assert names_in("hpcg", "hpcg-nvidia") == {HPCG, SIX_RUNS, OLD_BUILD}


@needs_logs
@pytest.mark.parametrize("name", HPL)
def test_the_row_of_HPL_counts(name: str) -> None:
    rate, time_s = HPL[name]
    assert figures("hpl", log(name)) == {"rate": [rate], "time": [time_s]}


@needs_logs
def test_the_build_of_NVIDIA_has_two_titles_and_a_short_variant() -> None:
    file = reader_of("hpl").read(log(H100))
    (experiment,) = file.experiments
    assert file.version == "2.1 (HPL-NVIDIA 25.4.0)"
    assert experiment.parameters == {"n": 92160, "nb": 1024, "p": 1, "q": 1, "ranks": 1, "variant": "WC0"}


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"4.208e+04 ( 4", b"4.308e+04 ( 4", "is not the work of N = 92160"),
        (b"...... PASSED", b"...... FAILED", "the summary counts 1 passed"),
        (b"\nWC0 ", b"\nXC0 ", "a residual before any test"),
        (b"\nHPLinpack 2.1", b"\nHPL-NVIDIA 25.4.0  --\nHPLinpack 2.1", "no summary `Finished N tests`"),
    ],
)
def test_a_damaged_HPL_of_NVIDIA(old: bytes, new: bytes, why: str) -> None:
    refused("hpl", log(H100).replace(old, new), why)


@needs_logs
def test_the_builds_of_NVIDIA_are_kinds_of_their_own() -> None:
    """The same reader: other builds are refused, and their figures are those of GPUs."""
    for name in (H100, "hpl-nvidia/hpl-nvidia1.0-a100-4gpu.txt"):
        (experiment,) = reader_of("hpl-nvidia").read(log(name)).experiments
        assert experiment.benchmark == "imported.hpl-nvidia"
        assert figures("hpl-nvidia", log(name)) == figures("hpl", log(name))
    file = reader_of("hpcg-nvidia").read(log(HPCG))
    assert file.version == "3.1 (HPCG-NVIDIA 25.4.0)" and file.experiments[0].benchmark == "imported.hpcg-nvidia"
    assert figures("hpcg-nvidia", log(HPCG)) == figures("hpcg", log(HPCG))
    refused("hpl-nvidia", log("hpl/hpl-intel-results.txt"), "`import hpl=FILE` reads others")
    refused("hpcg-nvidia", log(OLD_BUILD), "`import hpcg=FILE` reads others")
    refused("hpl-nvidia", log(CUT), "summary")


@needs_logs
def test_a_run_of_HPL_that_did_not_end() -> None:
    refused("hpl", log(CUT), "no summary `Finished N tests`")
    counted_once("hpl", log(H100))


@needs_logs
def test_of_five_ratings_the_valid_one_counts() -> None:
    found = figures("hpcg", log(HPCG))
    assert (found["rating"], found["time"]) == ([515.269e9], [1800.35])
    (experiment,) = reader_of("hpcg").read(log(HPCG)).experiments
    assert experiment.parameters == {"ranks": 1, "threads": 1, "nx": 256, "ny": 256, "nz": 256}
    assert experiment.notes["submission_valid"] is True


@needs_logs
def test_a_local_nz_that_is_not_stated_is_a_whole_share_of_the_global_one() -> None:
    text = log(HPCG).replace(b"npz=1", b"npz=3")
    (experiment,) = reader_of("hpcg").read(text).experiments
    assert "nz" not in experiment.parameters


@needs_logs
def test_a_report_whose_overheads_differ_for_rate_and_bandwidth() -> None:
    assert figures("hpcg", log(OLD_BUILD))["rating"] == [1.94783e9]


@needs_logs
def test_reports_of_HPCG_that_are_no_result() -> None:
    share = log(HPCG).replace(b"515.269", b"495.269")
    refused("hpcg", share, "overheads leave 89.76% of the raw rate in this rating, but 93.39%")
    refused("hpcg", log(HPCG).replace(b"rating of=515.269", b"rating of=518.024"), "differs from that of the GFLOP/s")


@needs_logs
@pytest.mark.skipif(not (SHARED_DATA / "outputs").is_dir(), reason="the third-party samples are not here")
def test_a_last_line_without_its_line_break_is_whole_if_it_ends_as_reports_do() -> None:
    short = (SHARED_DATA / "outputs" / "hpcg_openmpi_2x64.txt").read_bytes().rstrip()
    official = log(HPCG).partition(b"Job finished")[0].rstrip()
    assert short.endswith(b"=1800") and official.endswith(b"=http://hpcg-benchmark.org")
    for data in (short, official):
        assert figures("hpcg", data) == figures("hpcg", data + b"\n")
        refused("hpcg", data[:-1], "cut off")


@pytest.mark.parametrize(("name", "figure"), [("imported.hpl", "rate"), ("imported.hpcg", "rating")])
def test_the_peak_of_the_cores_is_no_limit_where_a_GPU_may_have_computed(name: str, figure: str) -> None:
    benchmark = benchmark_named(name)
    (limit_of,) = (one.limit for one in benchmark.figures if one.name == figure)
    peak = NamedLimit("cpu.fp64", Limit(1e12, "flop/s", "cores x clock x flop per cycle", Basis.PHYSICAL))
    gpu = Device("gpu0", DeviceKind.GPU, "H100")
    assert limit_of is not None
    assert limit_of(Machine("m", limits=(peak,)), benchmark.point({}), ()).value == 1e12
    assert limit_of(Machine("m", (gpu,), limits=(peak,)), benchmark.point({}), ()).value is None


@needs_logs
@pytest.mark.parametrize(("kind", "name"), [("hpl", H100), ("hpcg", HPCG), ("hpl-mxp", MXP)])
def test_noise_is_survived(kind: str, name: str) -> None:
    tagged = b"".join(b"[1,0]<stdout>:" + line for line in log(name).splitlines(keepends=True))
    noisy = b"\xff\xfe\xe9 caf\n\x1b[31mwarning\x1b[0m\n" + tagged.replace(b"\n", b"\r\n")
    assert figures(kind, noisy) == figures(kind, log(name))


@needs_logs
def test_damaged_outputs_of_HPL() -> None:
    check_mutants("hpl", tuple(HPL))


@needs_logs
def test_damaged_outputs_of_HPCG() -> None:
    check_mutants("hpcg", (HPCG,))
