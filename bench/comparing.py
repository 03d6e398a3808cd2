"""Code shared by the scripts that test comparisons: runs one study through the command line, and keeps a list of
trials that grows with each call."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seatrial


@dataclass(frozen=True)
class Trial:
    """The result of one comparison."""

    kind: str
    verdict: str
    ratio: float
    interval: Sequence[float] | None
    blocks: int
    stopped: str
    elapsed_s: float
    load_before: float

    def document(self) -> dict[str, Any]:
        """As written to JSON."""
        return {
            "kind": self.kind,
            "verdict": self.verdict,
            "ratio": round(self.ratio, 5),
            "interval": None if self.interval is None else [round(bound, 5) for bound in self.interval],
            "blocks": self.blocks,
            "stopped": self.stopped,
            "elapsed_s": round(self.elapsed_s, 2),
            "load_before": round(self.load_before, 2),
        }


def run_comparison(kind: str, study: Mapping[str, Any]) -> Trial:
    """Run a study with one comparison in its own folder, through the command line. The study is written as
    JSON, which is valid YAML. Exits if the run fails."""
    with tempfile.TemporaryDirectory() as where:
        file = Path(where) / "study.yaml"
        file.write_text(json.dumps(study), encoding="utf-8")
        load = os.getloadavg()[0]
        start = time.perf_counter()
        done = seatrial.run(file, results=None)
        elapsed_s = time.perf_counter() - start
    for experiment in done.experiments:
        if not experiment.outcome.is_ok:
            raise SystemExit(f"{kind}: {experiment.outcome.state}: {experiment.outcome.reason}")
    comparisons = [] if done.study is None else [one for side in done.study.compared for one in side.comparisons]
    if len(comparisons) != 1:
        raise SystemExit(f"{kind}: {len(comparisons)} comparisons instead of one")
    (found,) = comparisons
    design = found.design
    return Trial(
        kind,
        found.verdict,
        found.ratio,
        found.ci95_family,
        design.blocks,
        design.stopped,
        elapsed_s,
        load,
    )


def recorded(output: Path | None) -> list[dict[str, Any]]:
    """The trials of earlier calls."""
    if output is None or not output.exists():
        return []
    trials: list[dict[str, Any]] = json.loads(output.read_text(encoding="utf-8"))["trials"]
    return trials


def keep(output: Path | None, document: Mapping[str, Any]) -> None:
    """Replace the record atomically."""
    if output is not None:
        private = output.with_name(f".{output.name}.{os.getpid()}")
        private.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        private.replace(output)


def counted(trials: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Verdict -> number of trials."""
    verdicts = [str(trial["verdict"]) for trial in trials]
    return {verdict: verdicts.count(verdict) for verdict in ("faster", "same", "slower", "ambiguous")}
