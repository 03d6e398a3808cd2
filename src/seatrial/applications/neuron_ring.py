"""The script of apps.neuron: rings of nerve cells. An interpreter that has NEURON starts it; the result goes to a file.

    python neuron_ring.py OUTPUT REFERENCE RINGS CELLS SEGMENTS TIME_MS THREADS

A cell is a soma with the channels of Hodgkin and Huxley, and a passive dendrite of SEGMENTS compartments with an
excitatory synapse. Each cell excites the next one of its ring; the first cell of each ring gets one more pulse at the
start, from which a spike runs round for ever. Ranks have the cells in turns, so each spike crosses to another rank;
NEURON deals the cells of a rank to its threads.

Only `psolve` is timed, one call for all steps. The spikes of all ranks go into the result. With a REFERENCE that exists
(the output of a run with one rank), it states how many spikes differ; `-` compares with nothing.
It imports nothing of seatrial, and NEURON only when it runs.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_DELAY_MS, _WEIGHT_US = 1.0, 0.01
_SETTLED_MV = -65.0
_TIMESTEP_MS = 0.025


def main(words: list[str]) -> None:
    """Simulate and write the result."""
    output, reference = words[0], words[1]
    rings, cells, segments = map(int, words[2:5])
    time_ms, threads = float(words[5]), int(words[6])
    if library := os.environ.get("MPI_LIB_NRN_PATH"):
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)  # else NEURON takes the first libmpi.so that the loader finds
    h = importlib.import_module("neuron").h
    h.nrnmpi_init()
    context = h.ParallelContext()
    rank, ranks = int(context.id()), int(context.nhost())
    held: list[Any] = []
    synapses: dict[int, Any] = {}
    for gid in range(rank, rings * cells, ranks):
        soma, synapse = _cell(h, gid, segments)
        synapses[gid] = synapse
        context.set_gid2node(gid, rank)
        spikes = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
        spikes.threshold = 0.0
        context.cell(gid, spikes)
        held += [soma, synapse, spikes]
    for gid, synapse in synapses.items():
        ring, place = divmod(gid, cells)
        link = context.gid_connect(ring * cells + (place - 1) % cells, synapse)
        link.delay, link.weight[0] = _DELAY_MS, _WEIGHT_US
        held.append(link)
        if place == 0:
            pulse = h.NetStim()
            pulse.number, pulse.start = 1, 0.0
            first = h.NetCon(pulse, synapse)
            first.delay, first.weight[0] = _DELAY_MS, _WEIGHT_US  # threads exchange spikes once in the least delay
            held += [pulse, first]
    times, gids = h.Vector(), h.Vector()
    context.spike_record(-1, times, gids)
    h.dt = _TIMESTEP_MS
    context.nthread(threads)
    context.set_maxstep(10)
    h.finitialize(_SETTLED_MV)
    context.barrier()
    begin = time.perf_counter()
    context.psolve(time_ms)
    context.barrier()
    elapsed_s = time.perf_counter() - begin
    own = [[int(gid), float(at)] for at, gid in zip(times, gids, strict=True)]
    found = context.py_allgather(own) if ranks > 1 else [own]
    if rank == 0:
        spikes = sorted(spike for part in found for spike in part)
        result: dict[str, Any] = {
            "version": str(h.nrnversion(0)),
            "ranks": ranks,
            "threads": int(context.nthread()),
            "cells": rings * cells,
            "rings": rings,
            "steps": round(time_ms / _TIMESTEP_MS),
            "elapsed_s": elapsed_s,
            "spikes": spikes,
            "spikes_differ": None,
        }
        if reference != "-":
            expected = json.loads(Path(reference).read_text())["spikes"]
            same = sum(1 for a, b in zip(spikes, expected, strict=False) if a == b)
            result["spikes_differ"] = max(len(spikes), len(expected)) - same
        Path(output).write_text(json.dumps(result) + "\n")
    context.barrier()
    h.quit()


def _cell(h: Any, gid: int, segments: int) -> tuple[Any, Any]:
    """The soma of a cell and the synapse on its dendrite. Lengths in um, resistivity in ohm cm."""
    soma = h.Section(name=f"soma{gid}")
    soma.L = soma.diam = 20.0
    soma.insert("hh")
    dendrite = h.Section(name=f"dendrite{gid}")
    dendrite.L, dendrite.diam, dendrite.nseg = 100.0, 2.0, segments
    dendrite.insert("pas")
    for segment in dendrite:
        segment.pas.g, segment.pas.e = 0.001, _SETTLED_MV
    dendrite.connect(soma(1))
    for section in (soma, dendrite):
        section.Ra = 100.0
    synapse = h.ExpSyn(dendrite(0.5))
    synapse.tau, synapse.e = 2.0, 0.0
    _KEPT.append(dendrite)
    return soma, synapse


_KEPT: list[Any] = []
"""NEURON deletes a section that no variable of Python names."""


if __name__ == "__main__":
    sys.path.pop(0)  # its own folder, whose neuron.py is another module
    main(sys.argv[1:])
