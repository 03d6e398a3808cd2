"""The quick cases of the bench of causes about machines: planted faults named, controls clean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import seatrial

SCRIPT = Path(__file__).parents[2] / "bench"
PROGRAM = """
import json, sys
from pathlib import Path
from causes import dumps, machines
from seatrial.analysis.rules import findings
from seatrial.interface.machines import machine_of
from seatrial.report.documents.check import check_document

rows = []
for case, kind, text in [
    *((one, one.kind, machines.FORMATS[one.kind](one.machine)) for one in machines.TREES),
    *((one, "dmidecode", dumps.dmidecode(one.modules)) for one in machines.MEMORY),
]:
    file = Path(sys.argv[1]) / "dump.txt"
    file.write_text(text)
    document = check_document(findings(machine_of([(kind, file)]), ()), ())
    made = machines._tree(case) if isinstance(case, machines.Tree) else machines._memory(case)
    rows.append([kind, case.name, made.judge(machines._warnings(document), "quiet")])
print(json.dumps(rows))
"""


@pytest.mark.real
def test_faults_in_made_up_dumps_are_named_and_controls_are_clean(tmp_path: Path) -> None:
    """All of them, in one process: the script itself starts `seatrial check` for each."""
    source = f"{SCRIPT}:{Path(seatrial.__file__).parents[1]}"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    rows = json.loads(done.stdout)
    assert [row for row in rows if row[2] not in ("named", "clean")] == []
    assert sum(row[2] == "named" for row in rows) >= 25 and sum(row[2] == "clean" for row in rows) >= 10
