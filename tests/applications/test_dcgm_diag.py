"""dcgmi diag: what passed, failed or did not run on each GPU, and the figures in its information."""

from __future__ import annotations

import pytest
from applications.result_texts import as_bytes, dcgm, dcgm_json, dcgm_row

from seatrial.applications.readers import reader_of
from seatrial.engine.importing import Given, ResultFile, read_repeats
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedExperiment
from seatrial.model.results.sample import State


def results(data: bytes) -> dict[tuple[str, str], ImportedExperiment]:
    """The experiments by test and GPU."""
    experiments = reader_of("dcgm-diag").read(data).experiments
    return {(str(e.parameters["test"]), str(e.parameters["gpu"])): e for e in experiments}


def values(experiment: ImportedExperiment) -> dict[str, float]:
    return {s.series: s.work.get("amount", s.elapsed_s) for s in experiment.samples}


def test_the_table_has_results_and_figures_of_each_GPU() -> None:
    found = results(dcgm().encode())
    assert values(found["Denylist", "all"]) == {"passed": 1.0}
    assert values(found["PCIe", "1"]) == {
        "passed": 1.0, "to_host": 13.11e9, "to_device": 12.37e9, "bidirectional": 22.42e9,
        "to_host_latency": 2.028e-6, "to_device_latency": 2.127e-6, "bidirectional_latency": 3.865e-6,
    }  # fmt: skip
    assert values(found["Diagnostic", "1"])["flops"] == 21688.18 * 2**30
    assert values(found["Targeted Stress", "0"]) == {"passed": 1.0, "stress_level": 1929.0}
    assert found["EUD Test", "all"].skipped == "DCGM reports Skip for EUD Test"


def test_a_test_that_failed_on_a_GPU_has_no_figure_of_it() -> None:
    data = dcgm(("Pass - GPU: 0", "Fail - GPU: 1")).encode()
    found = results(data)
    assert found["Targeted Stress", "1"].failed.startswith("DCGM reports Fail for Targeted Stress on GPU 1: GPU 1 Max")
    repeats = read_repeats((ResultFile("dcgm-diag", "a.txt", data),), Given())
    states = {(r.experiment.parameters["test"], r.experiment.parameters["gpu"]): r.outcome.state for r in repeats}
    assert states["Targeted Stress", "0"] is State.OK and states["Targeted Stress", "1"] is State.INVALID
    assert states["EUD Test", "all"] is State.SKIPPED


def test_the_JSON_of_DCGM_4() -> None:
    found = results(b"Successfully ran diagnostic for group.\n" + as_bytes(dcgm_json("Fail", "Fail")))
    assert found["memory", "1"].failed == (
        "DCGM reports Fail for memory on GPU 1: An uncorrectable ECC error was found on GPU 1."
    )
    assert values(found["pcie", "0"]) == {"passed": 1.0, "to_host": 24.02e9, "to_host_latency": 3.024e-6}
    assert found["pcie", "0"].parameters["device"] == "165120"


def test_the_JSON_of_earlier_versions() -> None:
    copies = [f"GPU {gpu} GPU to Host bandwidth:\t\t13.0{gpu} GB/s" for gpu in range(2)]
    pcie = {"name": "pcie", "results": [{"gpu_ids": "0,1", "status": "PASS", "info": copies}]}
    skipped = {"name": "targeted_power", "results": [{"gpu_ids": "0,1", "status": "SKIP", "warnings": None}]}
    alloc = {"name": "memory", "results": [{"gpu_id": "1", "status": "Pass", "warnings": ["Could not allocate"]}]}
    text = "GPU 0 GPU to Host bandwidth:\t\t24.02 GB/s, GPU 0 GPU to Host latency:\t\t3.024 us"
    one_line = {"name": "PCIe", "results": [{"gpu_id": "0", "status": "Pass", "info": text}]}
    tests = [{"category": "Integration", "tests": [pcie, skipped, alloc, one_line]}]
    found = results(as_bytes({"DCGM GPU Diagnostic": {"test_categories": tests, "version": "1.7"}}))
    assert [values(found["pcie", gpu])["to_host"] for gpu in ("0", "1")] == [13.0e9, 13.01e9]
    assert found["targeted_power", "1"].skipped and not found["targeted_power", "1"].samples
    assert found["memory", "1"].remarks == ("passed, but DCGM warns: Could not allocate",)
    assert values(found["PCIe", "0"]) == {"passed": 1.0, "to_host": 24.02e9, "to_host_latency": 3.024e-6}


def test_results_of_GPUs_in_the_table_of_DCGM_4() -> None:
    rows = "\n".join((dcgm_row("memory", "Fail"), dcgm_row("", "GPU0: Pass"), dcgm_row("", "GPU1: Fail")))
    text = dcgm().replace(dcgm_row("Denylist", "Pass"), rows)
    found = results(text.encode())
    assert values(found["memory", "0"]) == {"passed": 1.0} and found["memory", "1"].failed
    with pytest.raises(ParseError, match="contradicts itself"):
        results(text.replace(dcgm_row("memory", "Fail"), dcgm_row("memory", "Pass")).encode())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (dcgm(end=False).encode(), "no end"),
        (dcgm().replace("| Pass - All ", "| Passed     ", 1).encode(), "is not a result"),
        (dcgm().replace("GPU 1 GPU to Host b", "GPU 0 GPU to Host b").encode(), "twice"),
        (dcgm().replace(dcgm_row("Targeted Stress", "Pass - All") + "\n", "").encode(), "not a result of Diagnostic"),
        (dcgm().replace("13.11 GB/s", "3.11 GB/s").encode(), "another width"),
        (dcgm().partition("| Diagnostic  ")[0].encode(), "no header"),
        (as_bytes(dcgm_json("Fail")), "contradicts itself"),
        (as_bytes(dcgm_json("Broken", "Fail")), "the result of memory is 'broken'"),
        (as_bytes({"DCGM Diagnostic": {"runtime_error": "no GPU"}}), "reports an error: no GPU"),
        (as_bytes({"other": 1}), "no object 'DCGM Diagnostic'"),
    ],
)
def test_damaged_results_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        reader_of("dcgm-diag").read(data)
