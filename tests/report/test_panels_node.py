"""The node on the page: the drawing, the matrix, bindings; findings with their devices and commands."""

from __future__ import annotations

import dataclasses
import re

from report.page_samples import HOSTILE, vm_machine
from report.page_samples_node import gpu_machine
from report.test_page import page_without_records

from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.limit import pcie_bandwidth
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine, NamedLimit, Path, PeerAccess
from seatrial.model.study.result import Trial
from seatrial.report.pages.page import page
from seatrial.report.panels.node import bindings_table
from seatrial.report.panels.path_matrix import PathMatrix, matrix


def bare(machine: Machine, **changes) -> Trial:
    return dataclasses.replace(Trial(machine, (), (), (), {}), **changes)


def test_the_drawing_is_first_and_the_tables_are_folded_below_it():
    html = page_without_records("whole node")
    node = html[html.index('class="panel node"') :]
    assert node.index('id="m1-topology"') < node.index("<details") < node.index("Processors, memory and caches")
    drawing = node[node.index("<svg") : node.index("</svg>")]
    assert 'role="img"' in drawing and "trained 31.5 of" in drawing
    assert "<style>#m1" not in html[: html.index("</head>")]  # its rules stay in its own element


def test_two_machines_have_two_drawings_with_ids_of_their_own():
    html = page([bare(vm_machine("a")), bare(vm_machine("b"))])
    assert 'id="m1-topology"' in html and 'id="m2-topology"' in html


def test_the_matrix_has_gpus_first_and_the_class_of_each_pair_on_both_sides():
    made = matrix(gpu_machine())
    assert isinstance(made, PathMatrix)
    names = [row[0].text for row in made.table.rows]
    assert names == [f"gpu-{n}" for n in range(8)] + [f"mlx5_{n}" for n in range(8)]
    cells = {(a, b): row[1 + n] for a, row in zip(names, made.table.rows, strict=True) for n, b in enumerate(names)}
    assert cells["gpu-0", "gpu-7"].text == cells["gpu-7", "gpu-0"].text == "NV18"
    assert cells["gpu-0", "mlx5_0"].text == "PIX" and cells["gpu-0", "mlx5_0"].tone == "path-near"
    assert cells["gpu-0", "mlx5_3"].text == "NODE" and cells["mlx5_4", "gpu-0"].text == "SYS"
    assert cells["gpu-3", "gpu-3"].text == "X" and cells["mlx5_4", "gpu-0"].tone == "path-far"
    assert [cell.text for cell in made.table.rows[5][-2:]] == ["64-127,192-255", "1"]
    assert (made.legend[0][0].text, made.legend[0][1]) == ("NV#", "number of NVLinks")
    assert [cell.text for cell, _ in made.legend] == ["NV#", "PIX", "NODE", "SYS"]
    assert made.peer_access == "Peer access between GPUs: OK for all 28 pairs that the driver reports."


def test_what_no_source_tells_is_a_question_mark_and_in_the_legend():
    devices = tuple(Device(name, DeviceKind.GPU, name) for name in ("GPU0", "GPU1", "GPU2"))
    paths = (Path("GPU0", "GPU1", "PHB"), Path("GPU0", "GPU2", None), Path("GPU1", "GPU2", "XGMI", 1))
    made = matrix(Machine("m", devices, paths=paths))
    assert [cell.text for cell in made.table.rows[0][1:4]] == ["X", "PHB", "?"]
    assert [cell.text for cell in made.table.rows[1][1:4]] == ["PHB", "X", "XGMI1"]
    assert [cell.text for cell, _ in made.legend] == ["XGMI#", "PHB", "?"]
    assert [column.title for column in made.table.columns] == ["Device", "GPU0", "GPU1", "GPU2"]
    some = matrix(Machine("m", devices, paths=paths, affinity=(Affinity("GPU1", None, 1),)))
    assert [row[-1].text for row in some.table.rows] == ["?", "1", "?"] and some.table.columns[-1].title == "NUMA"


def test_refused_peer_access_names_the_pairs():
    machine = gpu_machine()
    refused = (PeerAccess("gpu-0", "gpu-1", "CNS", "OK"), *machine.p2p[1:])
    made = matrix(dataclasses.replace(machine, p2p=refused))
    assert made.peer_access == (
        "Peer access between GPUs is not OK for 1 of 28 pairs: gpu-0 and gpu-1 (read CNS, write OK)."
    )


def test_no_matrix_without_two_devices_and_a_sentence_for_a_crowd():
    assert matrix(vm_machine()) is None
    assert "Paths between GPUs" not in page_without_records("virtual machine")
    names = [f"GPU{n}" for n in range(60)]
    paths = tuple(Path(names[0], name, "SYS") for name in names[1:])
    crowd = Machine("m", tuple(Device(name, DeviceKind.GPU, name) for name in names), paths=paths)
    assert "60 GPUs and adapters" in matrix(crowd)
    options = '<span class="part">--format</span> json'
    assert f"<code>seatrial discover {options}</code>" in page([bare(crowd)])


def test_devices_with_the_same_binding_share_a_row():
    table = bindings_table(gpu_machine())
    assert [[cell.text for cell in row[:4]] for row in table.rows] == [
        [", ".join(f"gpu-{n}, mlx5_{n}" for n in range(4)), "0", "0-63,128-191", "numactl --cpunodebind=0 --membind=0"],
        [", ".join(f"gpu-{n}, mlx5_{n}" for n in range(4, 8)), "1", "64-127,192-255",
         "numactl --cpunodebind=1 --membind=1"],
    ]  # fmt: skip
    assert all(cell.is_code for row in table.rows for cell in row[3:])
    assert table.rows[0][4].text.startswith("mpirun --bind-to none numactl")
    mask = int(re.search(r"0x[0-9a-f]+", table.rows[1][5].text)[0], 16)
    assert [cpu for cpu in range(256) if mask >> cpu & 1] == [*range(64, 128), *range(192, 256)]


def test_where_all_cpus_are_near_there_is_nothing_to_bind():
    assert bindings_table(vm_machine()) is None
    assert "Bindings for each device" not in page_without_records("virtual machine")


def test_links_with_the_same_limit_share_a_line():
    wide, narrow = pcie_bandwidth(32.0, 16), pcie_bandwidth(32.0, 8)
    named = [NamedLimit(f"pcie.gpu-{n}", narrow if n == 3 else wide) for n in range(5)]
    html = page([bare(dataclasses.replace(gpu_machine(), limits=(NamedLimit("cpu.fp64", wide), *named)))])
    names = re.findall(r'<th scope="row">((?:pcie|cpu)\.[^<]*)</th>', html)
    assert names == ["cpu.fp64", "pcie.gpu-0 to gpu-2", "pcie.gpu-3", "pcie.gpu-4"]


def test_names_of_devices_are_escaped_in_drawing_matrix_and_bindings():
    named = {"gpu-0": HOSTILE}
    devices = [dataclasses.replace(d, id=named.get(d.id, d.id)) for d in gpu_machine().devices]
    paths = tuple(dataclasses.replace(path, a=named.get(path.a, path.a)) for path in gpu_machine().paths)
    html = page([bare(dataclasses.replace(gpu_machine(HOSTILE), devices=tuple(devices), paths=paths))])
    assert "<img" not in html and "</script" not in html
    assert html.count("&lt;/script&gt;") > 5


def test_a_finding_shows_severity_devices_and_a_command_to_select():
    finding = Finding(
        "link-degraded", Severity.ERROR, ("gpu-5", "mlx5_2"), "The link is narrow.", "A slot.", "Run `sudo lspci -vv`.",
        "trained at 31.5 GB/s", 0.5,
    )  # fmt: skip
    html = page([bare(gpu_machine(), findings=(finding,))])
    entry = html[html.index('<li class="finding error">') :]
    entry = entry[: entry.index("</li>")]
    assert "at <code>gpu-5</code>, <code>mlx5_2</code>" in entry
    assert '<code>sudo lspci <span class="part">-vv</span></code>' in entry and entry.index("<details") > entry.index(
        "sudo lspci"
    )
    assert "trained at 31.5 GB/s" in entry[entry.index("<details") :]
    assert ".remedy code, .command { user-select: all; }" in html
