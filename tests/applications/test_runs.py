"""Several runs in one text, and what the text says about the job beside them."""

from __future__ import annotations

from itertools import zip_longest

import pytest
from applications.result_texts import hpl, hpl_row, perftest, stream
from hostile.file_damage import samples

from seatrial.applications.readers import reader_of
from seatrial.applications.reading.commands import command_of, read_command, started_by
from seatrial.applications.reading.job import device_of, specified
from seatrial.engine.importing import Given, ImportedRepeat, ResultFile, read_repeats
from seatrial.errors import ParseError

KINDS = (
    *(
        "babelstream",
        "fio-json",
        "hpcc",
        "hpcg",
        "hpl",
        "hpl-nvidia",
        "imb",
        "ior",
        "iperf3",
        "lammps",
        "mdtest",
        "namd",
    ),
    *("nccl-tests", "nvbandwidth", "openfoam", "osu", "perftest", "qe", "stream", "thebandwidthbenchmark"),
)
RATES = (38000.0, 43000.0, 39000.0, 38000.0)


def repeats(kind: str, text: str, *, are_repeats: bool = False, **settings: str) -> tuple[ImportedRepeat, ...]:
    file = ResultFile(kind, "log.txt", text.encode(), 0.0)
    return read_repeats((file,), Given(settings=settings, are_repeats=are_repeats))


def experiments(found: tuple[ImportedRepeat, ...]) -> int:
    return len({repeat.experiment.id for repeat in found})


def osu(*times_us: float, program: str = "Allreduce Latency") -> str:
    rows = "".join(f"{4 << k:<18d}{time:>10.2f}\n" for k, time in enumerate(times_us))
    return f"# OSU MPI {program} Test v5.8\n# Size       Avg Latency(us)\n{rows}"


def test_every_kind_has_a_text_with_two_runs() -> None:
    """Each run has the figures that it has alone."""
    wrong = []
    for kind in KINDS:
        texts = [text.decode("utf-8-sig", "replace") for text in samples(f"import {kind}")]
        plain = [text for text in texts if len(reader_of(kind).read(text.encode()).runs) < 2][:2]
        if len(plain) < 2:
            continue
        file = reader_of(kind).read("\n".join(plain).encode())
        wanted = [e.samples for text in plain for e in reader_of(kind).read(text.encode()).experiments]
        if len(file.runs) != 2 or [e.samples for e in file.experiments] != wanted:
            wrong.append(kind)
    assert not wrong


def test_runs_started_by_equal_commands_are_repeats_and_others_are_not() -> None:
    log = "".join(
        f"[user@login1 bench]$ mpirun -np {ranks} --map-by ppr:32:node ./osu_allreduce\n" + osu(time, 2 * time)
        for ranks, time in ((64, 908.3), (128, 1908.3), (128, 1911.7))
    )
    found = repeats("osu", log)
    assert [(r.experiment.parameters["ranks"], r.experiment.parameters["nodes"]) for r in found] == [
        (64, 2), (128, 4), (128, 4),
    ]  # fmt: skip
    assert experiments(found) == 2


def test_runs_whose_commands_are_unknown_stay_apart() -> None:
    log = stream() + stream(rates_MBps=(38001.0, *RATES[1:]))
    assert experiments(repeats("stream", log)) == 2
    assert "none of which has its own command" in repeats("stream", log)[0].remarks[0]
    assert experiments(repeats("stream", log, are_repeats=True)) == 1
    loop = "$ for i in 1 2; do ./stream; done\n"
    assert experiments(repeats("stream", loop + log)) == 1
    assert experiments(repeats("stream", "$ for n in 0 1; do numactl -m $n ./stream; done\n" + log)) == 2
    assert experiments(repeats("stream", "+ mpirun -np 2 ./stream\n" + log)) == 2, "one command started both"


def copy_of(rank: int) -> str:
    return stream(rates_MBps=(38000.0 + rank, *RATES[1:]))


def labelled(*texts: str) -> str:
    """The lines of several processes, mixed, as srun -l prints them."""
    rows = zip_longest(*(text.splitlines() for text in texts))
    return "".join(f"{rank:2d}: {line}\n" for row in rows for rank, line in enumerate(row) if line is not None)


def test_copies_of_a_program_are_distinguished_by_their_labels() -> None:
    found = repeats("stream", labelled(*map(copy_of, range(96))))
    assert len(found) == experiments(found) == 96
    assert found[17].environment["copy"] == "17" and found[17].seen["remarks"] == ["the lines labelled 17"]
    assert "96 copies of the program, distinguished by the labels" in found[0].remarks[0]


def test_a_copy_that_was_cut_is_named() -> None:
    found = repeats("stream", labelled(copy_of(0), copy_of(1), copy_of(2).partition("Scale")[0]))
    assert len(found) == 2 and "those of 2 are not read" in found[0].remarks[0]


def test_the_same_results_of_all_ranks_count_once() -> None:
    (only,) = repeats("stream", labelled(*4 * [stream()]))
    assert "4 ranks or nodes printed the same results" in only.remarks[0]


def test_only_the_last_run_may_be_damaged() -> None:
    (first, second, third) = (osu(time, 2 * time) for time in (10.0, 20.0, 30.0))
    found = repeats("osu", first + second + third.partition("# Size")[0])
    assert len(found) == 2 and "the last of 3 runs, from line 9, is not read" in found[1].remarks[0]
    with pytest.raises(ParseError, match=r"line 5"):
        repeats("osu", first + second.partition("# Size")[0] + third)


def test_lines_in_statements_are_those_of_the_text() -> None:
    wrong = hpl(((hpl_row(20000, 55.5), True), (hpl_row(30000, 60.0), False)))
    file = reader_of("hpl").read((hpl() + wrong).encode())
    number = 1 + (hpl() + wrong).splitlines().index(hpl_row(30000, 60.0))
    assert f"line {number}" in file.experiments[-1].failed


def test_both_ends_of_a_test_of_perftest_are_not_repeats() -> None:
    text = perftest()
    found = repeats("perftest", text + "\n" + text.replace("23511.85", "23511.84"))
    assert experiments(found) == len(found) == 2


COMMANDS = {
    "mpirun -np 64 ./osu_allreduce": (64, None, None),
    "mpirun -n 4 --host a:2,b:2 ./x -n 7": (4, None, None),
    "mpirun -np 2 -H a,b ./x": (2, 2, None),
    "mpirun -np 128 --map-by ppr:32:node --bind-to core ./x": (128, 4, None),
    "mpirun --mca btl tcp,self -x UCX_TLS=rc -np 8 ./x": (8, None, None),
    "mpiexec.hydra -ppn 48 -n 96 -genv OMP_NUM_THREADS 2 ./x": (96, 2, 2),
    "srun -n2 -N2 -t00:8:00 --exclusive --cpu_bind=none -c2 osu_latency": (2, 2, None),
    "srun --nodes=4 --ntasks-per-node=32 ./x": (128, 4, None),
    "OMP_NUM_THREADS=8 srun -N 1 -n 4 ./x": (4, 1, 8),
    "aprun -n 64 -N 32 ./x": (64, 2, None),
    "jsrun -n 12 -a 4 -r 6 ./x": (48, None, None),
    "flux run -N 4 -n 128 ./x": (128, 4, None),
    "mpirun -np $NP ./x": (None, None, None),
    "mpirun -np 2 ./a : -np 2 ./b": (None, None, None),
    "./stream": (None, None, None),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_starts(command: str) -> None:
    started = read_command(command)
    assert (started.ranks, started.nodes, started.threads) == COMMANDS[command]


SHOWN = {
    "$ mpirun -np 4 ./x": "mpirun -np 4 ./x",
    "[user@host dir]$ srun -N 4 -n 128 x": "srun -N 4 -n 128 x",
    "user@host:~/omb$ ./osu_bw": "./osu_bw",
    "(base) root@host:/opt# mpirun -np 2 x": "mpirun -np 2 x",
    "+ srun -n 4 ./x": "srun -n 4 ./x",
    "### Running: srun -n2 osu_latency": "srun -n2 osu_latency",
    "mpirun -np 4 ./x": "mpirun -np 4 ./x",
    "mpirun was unable to launch the specified application": None,
    "srun: job 17 queued and waiting for resources": None,
    "# OSU MPI Latency Test v5.8": None,
    "[0] # OSU MPI Latency Test v5.8": None,
    "+ a list": None,
    "--------": None,
}


@pytest.mark.parametrize("line", SHOWN)
def test_a_line_that_shows_a_command(line: str) -> None:
    assert command_of(line) == SHOWN[line]


def test_commands_after_which_no_results_follow() -> None:
    assert [started_by(one) for one in ("cd omb", "cat log.txt", "module load openmpi", "export A=1")] == [None] * 4
    assert started_by("for i in 1 2; do ./x; done") == "./x"


SPECIFICATIONS = {
    "#SBATCH -N 4\n#SBATCH --ntasks-per-node=32": {"nodes": 4, "ranks": 128},
    "#SBATCH --nodes=2\n#SBATCH --ntasks=96": {"nodes": 2, "ranks": 96},
    "#PBS -l select=4:ncpus=36:mpiprocs=36": {"nodes": 4, "ranks": 144},
    "#PBS -l nodes=2:ppn=16": {"nodes": 2, "ranks": 32},
    "#BSUB -n 64": {"ranks": 64},
    "# flux: -N 2\n# flux: -n 64": {"nodes": 2, "ranks": 64},
    '{"resources": [{"type": "node", "count": 8, "with": [{"type": "slot", "count": 96, "with": [{"type": "core", '
    '"count": 1}], "label": "task"}]}]}': {"nodes": 8, "ranks": 768},
    "  slotsPerWorker: 8\n  mpiReplicaSpecs:\n    Worker:\n      replicas: 2": {"nodes": 2, "ranks": 16},
    '        - -np\n        - "16"': {"ranks": 16},
    "#SBATCH -N 4\n#SBATCH -N 8": {},
}


@pytest.mark.parametrize("text", SPECIFICATIONS)
def test_what_the_specification_of_a_job_states(text: str) -> None:
    assert {name: fact.value for name, fact in specified(text.splitlines()).items()} == SPECIFICATIONS[text]


def test_the_job_completes_what_the_results_state() -> None:
    (found,) = repeats("osu", osu(908.3, 1800.0) + "#SBATCH -N 4\n#SBATCH --ntasks-per-node=32\n")
    assert (found.experiment.parameters["ranks"], found.experiment.parameters["nodes"]) == (128, 4)
    (found,) = repeats("osu", "#SBATCH -N 4\n#SBATCH -n 128\n$ mpirun -np 2 ./osu_allreduce\n" + osu(908.3, 1800.0))
    assert found.experiment.parameters["ranks"] == 2 and found.experiment.parameters["nodes"] == "unknown"
    (found,) = repeats("osu", "$ mpirun -np 64 ./osu_allreduce\n" + osu(908.3, 1800.0), ranks="32")
    assert found.experiment.parameters["ranks"] == 32, "what the user states counts"


def test_a_job_that_contradicts_the_results_is_a_caution() -> None:
    (found,) = repeats("stream", "$ OMP_NUM_THREADS=7 ./stream\n" + stream())
    assert found.experiment.parameters["threads"] != 7
    assert "states threads=7, but the results state" in found.remarks[0]


DEVICES = {
    "Device 0: NVIDIA H100 80GB HBM3 (00000000:07:00)\nDevice 1: NVIDIA H100 80GB HBM3 (00000000:0a:00)": (
        "2 x NVIDIA H100 80GB HBM3"
    ),
    "Process 0 (worker-0): device 0: HGX GB200 (00000008:01:00)": "HGX GB200",
    "Using OpenCL device NVIDIA A40\nDriver: 550.54": "NVIDIA A40",
    "Using CUDA device NVIDIA A100-PCIE-40GB": "NVIDIA A100-PCIE-40GB",
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] NVIDIA A100\n#   Rank  1 Pid 2 on b device 1 [0x0a] Tesla V100": (
        "NVIDIA A100 and Tesla V100"
    ),
    "Using CUDA device 0": None,
    "Device: mlx5_0": None,
}


@pytest.mark.parametrize("text", DEVICES)
def test_devices_that_a_program_names(text: str) -> None:
    fact = device_of(text.splitlines())
    assert (fact.value if fact is not None else None) == DEVICES[text]


def bandwidth(device: str) -> str:
    return f"""nvbandwidth Version: v0.8

Device 0: {device} (00000000:07:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     55.16

SUM host_to_device_memcpy_ce 55.16
"""


def test_results_of_two_cards_or_of_unknown_buffers_are_not_repeats() -> None:
    text = bandwidth("NVIDIA A100") + bandwidth("NVIDIA H100").replace("55.16", "55.26")
    found = repeats("nvbandwidth", text, are_repeats=True, buffer="512")
    assert [one.experiment.parameters["device"] for one in found] == ["NVIDIA A100", "NVIDIA H100"]
    alike = "".join(
        f"$ ./nvbandwidth -t 0 -b {size}\n" + bandwidth("NVIDIA A100").replace("55.16", f"{rate}")
        for size, rate in ((64, 51.02), (512, 55.16), (512, 55.18))
    )
    assert [one.experiment.parameters["buffer"] for one in repeats("nvbandwidth", alike)] == ["64", "512", "512"]
    assert experiments(repeats("nvbandwidth", alike)) == 2
    unknown = bandwidth("NVIDIA A100") + bandwidth("NVIDIA A100").replace("55.16", "57.16")
    assert experiments(repeats("nvbandwidth", unknown)) == 2


def test_the_ranks_of_a_test_of_nccl_are_those_of_all_processes() -> None:
    options = reader_of("nccl-tests").options
    command = "mpirun -np 16 ./all_reduce_perf -b 8 -e 8G -f 2 -g 1"
    assert options.ranks(read_command(command)) == 16
    assert options.ranks(read_command("mpirun -np 2 ./all_reduce_perf -g 8")) == 16
    assert options.ranks(read_command("./build/all_reduce_perf -b 8 -e 128M -f 2 -g 4")) == 4


def test_startup_programs_of_OSU_and_times_of_the_shell_are_left_out() -> None:
    timed = "real 2.57\nuser 0.19\nsys 0.05\n\n"
    hello = f"# OSU MPI Hello World Test v5.8\nThis is a test with 8 processes\n{timed}"
    found = repeats("osu", osu(10.0, 11.0) + timed + hello + osu(12.0, 13.0, program="Bcast Latency") + timed)
    assert [len(repeat.samples) for repeat in found] == [2, 2]
    assert any("OSU MPI Hello World Test, of which no figure is read" in remark for remark in found[0].remarks)


@pytest.mark.parametrize("form", ["{}\t{}", "{:<9}{}"])
def test_rows_that_were_written_again_by_hand_fit_if_all_have_one_form(form: str) -> None:
    rows = [form.format(4, "908.30"), form.format(8, "1882.74"), form.format(16, "10.20")]
    text = "# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)\n"
    (found,) = repeats("osu", text + "\n".join(rows) + "\n")
    assert [sample.elapsed_s for sample in found.samples] == pytest.approx([908.30e-6, 1882.74e-6, 10.2e-6])
    with pytest.raises(ParseError):
        repeats("osu", text + "\n".join([*rows[:2], form.format(16, "10.2")]))


def test_a_specification_holds_for_commands_that_leave_the_sizes_to_it() -> None:
    text = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
    text += "+ srun -n 2 ./osu_latency\n" + osu(1.1, 1.2, program="Latency")
    text += "+ srun ./osu_allreduce\n" + osu(5.1, 6.2)
    pair, all_ranks = (one.experiment.parameters for one in repeats("osu", text))
    assert (pair["ranks"], pair["nodes"]) == (2, "unknown")
    assert (all_ranks["ranks"], all_ranks["nodes"]) == (8, 2)
    (found,) = repeats("osu", "#SBATCH -N 2 -n 8\n$ srun -N 2 -n 8 ./osu_latency\n" + osu(1.1, 1.2, program="Latency"))
    assert found.experiment.parameters["nodes"] == "unknown", "the two ranks may be on one node"
