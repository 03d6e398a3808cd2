"""Causes of slow repeats: each from made-up signals, with its control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from analysis.test_rules_expectation import made, result
from made_up import made_up_machine

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.finding import Case
from seatrial.diagnosis.disturbance.cause import RepeatCause, remedy, sentence
from seatrial.diagnosis.disturbance.diagnose import disturbances
from seatrial.diagnosis.disturbance.signals import signals
from seatrial.model.study.result import PerRepeat
from seatrial.profiler import cause as profile

GROUP = "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us"


def repeat(wall_s: float = 1.0, cpu_s: float = 1.0, delay_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """A repeat of a program with one thread on two CPUs that nobody else uses."""
    return {
        "program_s": wall_s,
        "affinity": [[0], [1]],
        "used": {"cpu_s": cpu_s, "leader_cpu_s": cpu_s, "leader_delay_s": delay_s, "major_faults": 0},
        "cpu_window_s": 2 * wall_s,
        "others_s": 0.0,
        "steal_s": 0.0,
        "busy_s": {"0": cpu_s, "1": 0.0},
        "pressure": {"cpu_some_s": delay_s, "io_some_s": 0.0, "memory_some_s": 0.0},
        **more,
    }


def causes(*repeats: dict[str, Any]) -> list[tuple[str, float | None]]:
    known = signals(repeats)
    assert known is not None
    found = disturbances(known)
    for one in found:
        assert sentence(one).endswith(".") and not remedy(one).endswith(".")
    return [(one.cause.value, None if one.share is None else round(one.share, 2)) for one in found]


def quota(cpus: float, throttled_s: float, throttled: int = 9) -> dict[str, Any]:
    return {"cpus": cpus, "file": GROUP, "periods": 10, "throttled_periods": throttled, "throttled_s": throttled_s}


def looks(wait_s: float, kind: str, file_system: str = "ext4", options: tuple[str, ...] = ()) -> dict[str, Any]:
    place = {"type": file_system, "mount_point": "/data", "options": list(options)}
    wait = {"in": kind, "path": "/data/file", "wait_s": wait_s, "file_system": place}
    return {"threads": 1, "cpu_s": 0.1, "delay_s": 0.0, "covered_s": 1.0, "allowed": "0-1", "waits": [wait]}


def io_limit(moved: float | None, limit: float = 1e7) -> list[dict[str, Any]]:
    keys = {"file": "/sys/fs/cgroup/io.max", "device": "8:0", "direction": "write", "unit": "B/s"}
    return [{**keys, "limit": limit, "moved": moved}]


def _case(**seen: Any) -> Case:
    even = result(made(1.0, None))
    return Case(made_up_machine(), (even,), {(even.id, number): repeat(**seen) for number in range(6)})


CASES = {
    "repeats-waited-for-cpu": _case(cpu_s=0.3, delay_s=0.7, quota=quota(0.3, 0.7)),
    "io-limited": _case(cpu_s=0.1, pressure={"io_some_s": 0.9}, io_limits=io_limit(9e6)),
    "slow-file-system": _case(cpu_s=0.1, looks=looks(0.6, "write", "fuse.sshfs")),
    "synchronised-io": _case(cpu_s=0.1, looks=looks(0.6, "sync")),
    "memory-short": _case(
        used={"cpu_s": 0.3, "leader_cpu_s": 0.3, "leader_delay_s": 0.0, "major_faults": 500},
        pressure={"io_some_s": 0.1, "memory_some_s": 0.5},
    ),
}
"""A case for each rule."""


@pytest.mark.parametrize("rule", CASES)
def test_repeats_that_are_alike_have_a_finding_with_its_values(rule):
    case = CASES[rule]
    (finding,) = (one for one in findings(case.machine, case.results, case.seen) if one.causes)
    assert finding.rule == rule and finding.causes[0].share
    if rule == "repeats-waited-for-cpu":
        assert GROUP in finding.observation and "90 % of its periods" in finding.observation


def test_names_are_those_of_profiles():
    shared = {RepeatCause.CPU_QUOTA, RepeatCause.STEAL, RepeatCause.OTHER_PROCESSES, RepeatCause.NO_CPU}
    assert {one.value for one in shared} <= {one.value for one in profile.Cause}


@pytest.mark.parametrize(
    "undisturbed",
    [
        repeat(),
        repeat(cpu_s=0.01),  # it sleeps
        repeat(delay_s=0.05),
        repeat(quota=quota(1.5, 0.0, throttled=0)),
        repeat(others_s=1.0, busy_s={"0": 1.0, "1": 1.0}),  # on the other CPU
        repeat(cpu_s=0.1, looks=looks(0.8, "write")),
        repeat(cpu_s=0.1, looks=looks(0.05, "sync")),
        repeat(pressure={"io_some_s": 0.0, "memory_some_s": 0.5}),  # memory of others: it had no page faults
    ],
)
def test_a_control_has_no_cause(undisturbed):
    assert causes(undisturbed, undisturbed) == []


def test_what_took_cpus_from_some_of_the_repeats_is_not_hidden_by_the_others():
    """On average, 1.3 CPUs were idle: a neighbour of a second in five."""
    taken = repeat(cpu_s=0.4, delay_s=0.6, others_s=1.6, busy_s={"0": 1.0, "1": 1.0})
    each = [taken if n % 5 == 3 else repeat() for n in range(20)]
    assert causes(*each) == [("other-processes", 0.12)]
    (found,) = disturbances(signals(each))
    assert sentence(found).endswith("other processes used 1.6 of its 2 CPUs during 4 of 20 repeats.")


def test_a_quota():
    assert causes(repeat(cpu_s=0.3, delay_s=0.7, quota=quota(0.3, 0.7))) == [("cpu-quota", 0.7)]
    assert causes(repeat(cpu_s=0.0, delay_s=0.8, quota=quota(0.3, 0.8))) == [("cpu-quota", 0.8)]
    threads = repeat(cpu_s=1.0, delay_s=0.5, quota=quota(1.0, 1.0), busy_s={"0": 0.5, "1": 0.5})
    assert causes(threads) == [("cpu-quota", 0.5)]


def test_other_processes_on_the_same_cpus():
    spinner = repeat(cpu_s=0.5, delay_s=0.5, others_s=1.5, busy_s={"0": 1.0, "1": 1.0})
    assert causes(spinner) == [("other-processes", 0.5)]
    bound = repeat(cpu_s=0.5, delay_s=0.5, others_s=0.5, busy_s={"0": 1.0, "1": 0.0}, affinity=[[0]])
    assert causes(bound) == [("other-processes", 0.5)]


def test_waiting_that_nothing_explains_is_not_known():
    assert causes(repeat(cpu_s=0.5, delay_s=0.5, busy_s={"0": 0.5, "1": 0.0})) == [("no-cpu", 0.5)]


def test_threads_that_share_cpus():
    threads = {"threads": 4, "cpu_s": 2.0, "delay_s": 2.0}
    crowded = repeat(cpu_s=2.0, looks=threads, busy_s={"0": 1.0, "1": 1.0})
    assert causes(crowded) == [("more-threads-than-cpus", 0.5)]


def test_a_quota_and_other_processes_are_both_named():
    both = repeat(cpu_s=0.3, delay_s=0.7, quota=quota(0.5, 0.4), others_s=1.3, busy_s={"0": 0.8, "1": 0.8})
    assert causes(both) == [("cpu-quota", 0.4), ("other-processes", 0.3)]


def test_steal():
    assert causes(repeat(steal_s=0.6)) == [("steal", 0.3)]


def test_waiting_is_unknown_where_the_counted_thread_is_not_the_one_that_computes():
    """The main thread of a launcher waits for others: only CPUs that were all busy say something."""
    used = {"cpu_s": 1.0, "leader_cpu_s": 0.01, "leader_delay_s": 0.0}
    busy = {"0": 1.0, "1": 1.0}
    assert causes(repeat(used=used, others_s=1.0, busy_s=busy)) == [("other-processes", None)]
    assert causes(repeat(used=used, others_s=0.5, busy_s={"0": 1.0, "1": 0.5})) == []


def test_a_limit_on_io_is_named_where_it_was_reached():
    waiting = {"io_some_s": 0.9}
    slow = repeat(cpu_s=0.1, pressure=waiting, io_limits=io_limit(9e6))
    assert causes(slow) == [("io-limit", 0.9)]
    assert causes(repeat(cpu_s=0.1, pressure=waiting, io_limits=io_limit(9e6, limit=1e9))) == []
    assert causes(repeat(cpu_s=0.1, pressure=waiting, io_limits=io_limit(None))) == []
    half = repeat(cpu_s=0.1, pressure=waiting, io_limits=io_limit(3e6))  # the device is slower than the limit
    assert causes(half) == []


def test_a_limit_is_named_where_the_program_computes_between_its_writes():
    """It computes for 7 s and waits for 3 s, in turn: the kernel's 2.65 s are no share of a waiting that is longer."""
    waited = {**looks(3.0, "write"), "cpu_s": 7.0, "covered_s": 10.0}
    limits = {"io_limits": io_limit(30e6), "pressure": {"io_some_s": 2.65}}
    assert causes(repeat(wall_s=10.0, cpu_s=7.0, looks=waited, **limits)) == [("io-limit", 0.3)]


def test_a_limit_is_not_named_where_the_kernel_writes_while_the_program_computes():
    waited = {**looks(0.0, "write"), "cpu_s": 10.0, "covered_s": 10.0}
    limits = {"io_limits": io_limit(50e6), "pressure": {"io_some_s": 0.1}}
    assert causes(repeat(wall_s=10.0, cpu_s=10.0, looks=waited, **limits)) == []


def test_waiting_for_io_on_one_cpu_beside_others_that_compute_is_not_diluted():
    """0.9 s of waiting beside 9 s of computing: the kernel counts 0.9 * 0.9 / 9.9 s."""
    busy = {str(cpu): 1.0 for cpu in range(9)}
    limits = io_limit(3e6)
    diluted = repeat(cpu_s=0.1, pressure={"io_some_s": 0.0818}, io_limits=limits, busy_s=busy, cpu_window_s=10.0)
    assert causes(diluted) == []


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        (looks(0.6, "write", "fuse.sshfs"), "file-system"),
        (looks(0.6, "read", "nfs4"), "file-system"),
        (looks(0.6, "write", "ext4", ("sync",)), "file-system"),
        (looks(0.6, "sync"), "synchronised-io"),
    ],
)
def test_waiting_for_files(seen, cause):
    assert causes(repeat(cpu_s=0.1, looks=seen)) == [(cause, 0.6)]


def test_memory_shortage_needs_page_faults_of_the_program():
    used = {"cpu_s": 0.3, "leader_cpu_s": 0.3, "leader_delay_s": 0.0, "major_faults": 500}
    pressure = {"io_some_s": 0.1, "memory_some_s": 0.5}
    assert causes(repeat(used=used, pressure=pressure)) == [("memory-shortage", 0.5)]


def test_less_than_a_second_says_nothing():
    assert signals([repeat(0.02)] * 10) is None
    assert signals([]) is None
    assert signals([{"load_1m": 0.3}]) is None  # a record of an earlier version


def test_the_time_of_command_is_that_of_its_program():
    """The measuring program itself computes, too: it identifies files and libraries."""
    own = {**looks(0.0, "read"), "program_s": 1.0, "program_cpu_s": 0.1, "major_faults": 0}
    known = signals([repeat(1.5, cpu_s=0.6, looks=own)])
    assert known is not None and (known.wall_s, known.cpu_s) == (1.0, 0.1)


def test_damaged_values_are_not_used():
    odd = repeat(busy_s=None, looks={"threads": 1, "allowed": "0-99999999", "waits": None}, pressure=None)
    assert causes(odd) == []


def code(spots: Sequence[tuple[int, str, str]] = (), returns: Sequence[tuple[int, str]] = ()) -> dict[str, Any]:
    """Samples of code every 4 ms: their number, and what is before and behind the address."""

    def place(samples: int, before: str, behind: str) -> dict[str, Any]:
        own = bytes.fromhex(before)
        text = (b"\xcc" * (64 - len(own)) + own + bytes.fromhex(behind)).ljust(128, b"\xcc").hex()
        return {"file": "/app", "offset": 0x100 + len(own) - 2, "samples": samples, "code": text}

    return {
        "samples": 250,
        "period_s": 4e-3,
        "spots": [place(*one) for one in spots],
        "returns": [place(samples, before, "") for samples, before in returns],
    }


def program(
    cpu_s: float = 1.0,
    wall_s: float = 1.0,
    system_s: float = 0.0,
    faults: int = 100,
    name: str = "solver",
    calls: int = 0,
    moved_B: float = 0.0,
    started: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """A repeat of `command` that was looked at ten times a second."""
    process = {
        "name": name,
        "processes": 1,
        "seen_s": wall_s,
        "cpu_s": cpu_s,
        "system_s": system_s,
        "minor_faults": faults,
        "waits_for": [],
    }
    seen = {
        "program_s": wall_s,
        "program_cpu_s": cpu_s,
        "program_system_s": system_s,
        "runs": 1,
        "minor_faults": faults,
        "voluntary": 10,
        "max_resident_B": 4096 * 100,
        "covered_s": wall_s,
        "looks": 10,
        "sleep_s": 0.0,
        "sleep_looks": 0,
        "locks": locks(0.0, 0),
        "processes": [process],
        "waits": [],
        **more,
    }
    found = repeat(wall_s, cpu_s, looks=seen, started_tasks=started)
    found["used"] |= {"read_calls": calls, "write_calls": 0, "read_B": moved_B, "written_B": 0}
    return found


def locks(wait_s: float, looks: int, turns: int = 0, others: int = 0) -> dict[str, Any]:
    """`others`: looks in which the same threads waited for something else."""
    return {
        "threads": 2,
        "looks": looks,
        "wait_s": wait_s,
        "blocked_looks": looks + others,
        "blocked_s": wait_s + others / 10,
        "turns": turns,
    }


def waits_for(child: str, wait_s: float, own_s: float, name: str = "solver") -> list[dict[str, Any]]:
    times = {"seen_s": 1.0, "cpu_s": own_s, "system_s": 0.0, "minor_faults": 0, "processes": 1}
    waits = [{"name": child, "looks": round(10 * wait_s), "wait_s": wait_s}]
    return [{"name": name, **times, "waits_for": waits}]


def waits_on(where: str, wait_s: float, own_s: float, *, is_child: bool = False, **more: Any) -> list[dict[str, Any]]:
    """A process that waits for another one, which runs meanwhile."""
    n = round(10 * wait_s)
    other = {"in": where, "name": "maker", "path": "/data/a", "is_child": is_child, "looks": n, "ran": n, **more}
    return [{**waits_for("", 0.0, own_s)[0], "waits_for": [], "waits_on": [{**other, "wait_s": wait_s}]}]


MANY = 4
"""Repeats with enough looks."""
TEAM = {"threads": 2, "most_threads": 2, "thread_wait_s": 0.5, "thread_waits": 5}


@pytest.mark.parametrize(
    ("seen", "found", "words"),
    [
        (
            program(cpu_s=1.8, system_s=0.9, locks=locks(0.1, 1, turns=500)),
            ("lock-contention", 0.52),
            "up to 47 % in the kernel",
        ),
        (
            program(system_s=0.8, voluntary=20_000, started=20_000, threads=12, most_threads=3),
            ("thread-starts", 0.79),
            "up to 20 000 threads in each run",
        ),
        (
            program(
                system_s=0.1,
                voluntary=3000,
                started=2000,
                most_processes=2,
                processes=[
                    {**waits_for("grep", 0.0, 0.1)[0], "waits_for": []},
                    {**waits_for("", 0.0, 0.0, name="grep")[0], "processes": 12, "waits_for": []},
                ],
            ),
            ("process-starts", 0.9),
            "mostly grep and solver",
        ),
        (
            program(system_s=0.8, calls=200_000, moved_B=4e6, openings=3, opened="/data/table"),
            ("file-openings", 0.79),
            "12 of 40 looks found one that was open at that look only, such as /data/table",
        ),
        (
            program(system_s=0.8, calls=1_000_000, moved_B=16e6),
            ("small-calls", 0.78),
            "1 000 000 reads and writes of 16 B on average, 0.78 µs for each.",
        ),
        (
            program(system_s=0.8, calls=200_000, moved_B=16e5),
            ("small-calls", 0.79),
            "4 µs for each: more than a small one takes, so other calls are made besides",
        ),
        (program(system_s=0.6, faults=1000), ("kernel-time", 0.59), "for which calls is unknown"),
        (
            # A pool whose workers wait for work by condition variables, and sometimes for its mutex:
            program(system_s=0.4, voluntary=10_000, locks=locks(0.1, 3, turns=9000, others=9)),
            ("kernel-time", 0.39),
            "waited for each other very often (10 000 voluntary switches a second)",
        ),
        (
            # One thread in one process cannot wait for another one, however often it blocks.
            program(system_s=0.4, voluntary=20_000, most_threads=1, most_processes=1),
            ("kernel-time", 0.39),
            "for which calls is unknown",
        ),
        (
            # Each small write goes to the device: the time in the kernel is that of these calls, too.
            program(cpu_s=0.6, system_s=0.4, voluntary=20_000, waits=looks(0.2, "sync")["waits"]),
            ("synchronised-io", 0.2),
            "in fsync and similar calls",
        ),
        (
            program(system_s=0.6, faults=1000, code=code(returns=((12, "b801010000 0f05"),))),
            ("kernel-time", 0.59),
            "it was openat in 100 % of 48 samples",
        ),
        (
            # mov flag(%rip),%eax; cmp %eax,%edx; je: back to the first
            program(code=code(spots=((60, "8b05ce2d000039c2", "74f6"), (20, "8b05ce2d0000", "39c274f6")))),
            ("waiting-loop", 0.32),
            "A loop that only waits, in /app at 0x104, had at least 32 % of the CPU time",
        ),
        (
            program(cpu_s=1.5, thread_cpu_s=[1.0, 0.5], **TEAM),
            ("uneven-threads", 0.25),
            "2 threads used 1.5 CPUs: one ran for 100 % of the time, the other one for 50 %",
        ),
    ],
)
def test_where_the_kernel_time_goes_and_which_threads_wait(seen, found, words):
    repeats = [seen] * MANY
    assert causes(*repeats) == [found]
    known = signals(repeats)
    assert known is not None and words in sentence(disturbances(known)[0])


@pytest.mark.parametrize(("delay_s", "share"), [(0.2, 0.15), (0.4, None)])
def test_threads_that_differ_beside_a_missing_cpu(delay_s: float, share: float | None) -> None:
    """While one of them waits for a CPU, the other may wait for it in a loop."""
    seen = program(cpu_s=1.5, thread_cpu_s=[1.0, 0.5], **TEAM)
    seen["looks"] |= {"cpu_s": 1.5, "delay_s": delay_s}
    assert dict(causes(*[seen] * MANY)).get("uneven-threads") == share


@pytest.mark.parametrize(
    "seen",
    [
        program(cpu_s=1.95, thread_cpu_s=[1.0, 0.95], **TEAM),  # balanced
        program(cpu_s=1.02, thread_cpu_s=[1.0, 0.02], **TEAM),  # a helper
        program(cpu_s=1.5, thread_cpu_s=[1.0, 0.5], **{**TEAM, "thread_wait_s": 0.1}),  # it waits for something else
        program(cpu_s=0.6, thread_cpu_s=[0.4, 0.2], **TEAM),  # all wait
        program(cpu_s=1.5, thread_cpu_s=[1.0, 0.5], **{**TEAM, "threads": 9}),  # threads came and went
        program(system_s=0.8, faults=150_000, voluntary=3000, started=3000, threads=3, most_threads=3),  # others start
    ],
)
def test_threads_that_differ_for_a_reason(seen):
    assert causes(*[seen] * MANY) == []


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (program(locks=locks(0.5, 5, turns=5000)), ("lock-contention", 0.33)),
        (program(system_s=0.4, voluntary=10_000, locks=locks(0.25, 3, turns=9000)), ("lock-contention", 0.52)),
        (program(system_s=0.6, faults=200_000), ("page-faults", 0.6)),
        (program(cpu_s=0.5, sleep_s=0.5, sleep_looks=5), ("sleep", 0.5)),
        (program(cpu_s=0.3, processes=waits_for("gzip", 0.7, 0.3)), ("child-process", 0.7)),
        (program(processes=waits_on("pipe", 0.9, 0.05)), ("waits-for-data", 0.9)),
        (program(processes=waits_on("full pipe", 0.6, 0.4)), ("waits-for-data", 0.6)),
        (program(processes=waits_on("socket", 0.6, 0.4, name="")), ("waits-for-data", 0.6)),
        (program(processes=waits_on("file lock", 0.6, 0.4, is_child=True)), ("file-lock", 0.6)),
        (program(processes=waits_on("file lock", 0.6, 0.4, name="solver")), ("file-lock", 0.6)),
    ],
)
def test_what_a_program_does_itself(seen, found):
    assert causes(seen, seen) == [found]


def test_another_process_that_is_waited_for_is_named():
    def said(**more: Any) -> str:
        (found,) = disturbances(signals([program(processes=waits_on(**more))] * 2))
        return f"{sentence(found)} {remedy(found)}."

    assert said(where="pipe", wait_s=0.9, own_s=0.05) == (
        "solver waited 90 % of its time for data of maker (a pipe); maker ran in 100 % of that time. Make maker "
        "faster, or divide its work: the program cannot be faster than it."
    )
    assert "measure it alone with" in said(where="pipe", wait_s=0.9, own_s=0.05, ran=0)
    assert "for data of a process that is unknown (a socket). See which" in said(
        where="socket", wait_s=0.9, own_s=0.1, name=""
    )
    assert "for a lock on /data/a (flock, fcntl), which another solver held; that one ran in" in said(
        where="file lock", wait_s=0.9, own_s=0.1, name="solver"
    )


def test_a_handler_for_page_faults_is_a_hint_where_the_reason_for_kernel_time_is_unknown():
    (found,) = disturbances(signals([program(system_s=0.6, catches_faults=True)] * MANY))
    assert found.cause is RepeatCause.KERNEL_TIME
    assert sentence(found).endswith("It catches SIGSEGV: page faults that end in a signal are not counted.")
    assert "signal=SIGSEGV" in remedy(found)


@pytest.mark.parametrize(
    "seen",
    [
        program(),
        program(locks=locks(0.05, 3, turns=5000)),  # a lock that is rarely fought over
        program(locks=locks(0.9, 9, turns=4)),  # one long wait: until the thread is let go
        program(system_s=0.6, faults=150_000, max_resident_B=4096 * 150_000),  # each page was touched once
        program(system_s=0.15),
        program(wall_s=10.0, cpu_s=1.0, system_s=0.9),  # it waits
        program(system_s=0.3, runs=100),  # a short program: to start it takes time in the kernel
        program(system_s=0.6, calls=2000, moved_B=600e6),  # large reads and writes are copied
        program(system_s=0.6, faults=200_000, cpu_s=1.0, processes=[]),  # a shell starts many programs
        program(sleep_s=0.05, sleep_looks=5),
        program(cpu_s=0.0, processes=waits_for("solver", 1.0, 0.01, name="sh")),  # a launcher
        program(cpu_s=0.0, processes=waits_on("pipe", 1.0, 0.05, is_child=True)),  # it reads what its child prints
        program(cpu_s=0.0, processes=waits_on("pipe", 1.0, 0.001)),  # it passes data on: tee, cat
    ],
)
def test_what_a_program_may_do(seen):
    assert causes(seen, seen) == []


def test_a_rule_names_what_a_program_does_and_no_spread_is_explained_by_it():
    seen = program(cpu_s=0.3, processes=waits_for("gzip", 0.7, 0.3))
    even = result(made(1.0, None))
    case = Case(made_up_machine(), (even,), {(even.id, number): seen for number in range(6)})
    (finding,) = (one for one in findings(case.machine, case.results, case.seen) if one.causes)
    assert finding.rule == "waits-for-child" and finding.severity.value == "info" and finding.loss is None
    assert "gzip" in finding.observation


class _Counted(dict[str, dict[int, dict[str, Any]]]):
    """What was observed, by experiment; counts how often it is read: of a large folder, that makes all records."""

    reads = 0

    def __getitem__(self, key: str) -> dict[int, dict[str, Any]]:
        self.reads += 1
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)

    def items(self) -> Any:
        self.reads += len(self)
        return super().items()


def test_all_rules_together_read_what_was_observed_once():
    even = result(made(1.0, None))
    folder = {"folder": {"clock_s": 3.0, "clock_error_s": 0.01}, "host": "n1"}
    observed = _Counted({even.id: {n: {**repeat(cpu_s=0.3, delay_s=0.7), **folder} for n in range(6)}})
    found = {one.rule for one in findings(made_up_machine(), (even,), PerRepeat(observed))}
    assert {"repeats-waited-for-cpu", "clock-off"} <= found and observed.reads == 1


def test_threads_that_are_bound_to_one_cpu_each():
    """A spinner on one of them: the other is idle for half of the time, and nobody shares a CPU by choice."""
    bound = [
        {"cpus": "0", "threads": 1, "cpu_s": 0.5, "delay_s": 0.0},
        {"cpus": "1", "threads": 1, "cpu_s": 0.5, "delay_s": 0.5},
        {"cpus": "0-1", "threads": 1, "cpu_s": 0.001, "delay_s": 0.0},  # the shell that started it
    ]
    seen = {"threads": 3, "cpu_s": 1.0, "delay_s": 0.5, "covered_s": 1.0, "allowed": "1", "bound": bound}
    found = repeat(cpu_s=1.0, looks=seen, others_s=0.5, busy_s={"0": 0.5, "1": 1.0})
    assert causes(found, found) == [("other-processes", 0.5)]
    known = signals([found, found])
    assert known is not None and "bound to CPU 1" in sentence(disturbances(known)[0])
    alone = {**seen, "bound": [{"cpus": "1", "threads": 2, "cpu_s": 1.0, "delay_s": 1.0}], "delay_s": 1.0}
    crowded = repeat(cpu_s=1.0, looks=alone, busy_s={"0": 0.0, "1": 1.0})
    assert causes(crowded, crowded) == [("more-threads-than-cpus", 0.5)]
