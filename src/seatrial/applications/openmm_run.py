"""The script of apps.openmm: one simulation, started by an interpreter that has OpenMM; what it found goes to a file.

    python openmm_run.py OUTPUT TOPOLOGY COORDINATES PLATFORM PRECISION THREADS STEPS TIMESTEP_FS START_K

Only `step` is timed, one call for all steps. The energy that is asked for before and after it waits for the device.
It imports nothing of seatrial, and OpenMM only when it runs.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

_SETTLING_STEPS = 50
_SEED = 87287
_EWALD_TOLERANCE, _CONSTRAINT_TOLERANCE = 5e-4, 1e-6
_PRECISIONS = {"fp32": "single", "mixed": "mixed", "fp64": "double"}


def main(words: list[str]) -> None:
    """Simulate and write the result."""
    output, topology, coordinates, platform, precision, threads, steps, timestep_fs, start_k = words
    mm, app, unit = (importlib.import_module(name) for name in ("openmm", "openmm.app", "openmm.unit"))
    structure = app.AmberPrmtopFile(topology)
    start = app.AmberInpcrdFile(coordinates)
    system = structure.createSystem(
        nonbondedMethod=app.PME,
        nonbondedCutoff=0.8 * unit.nanometer,
        constraints=app.HBonds,
        rigidWater=True,
        ewaldErrorTolerance=_EWALD_TOLERANCE,
    )
    energy = unit.kilocalorie_per_mole

    def made(name: str, properties: dict[str, str]) -> Any:
        integrator = mm.VerletIntegrator(float(timestep_fs) * unit.femtosecond)
        integrator.setConstraintTolerance(_CONSTRAINT_TOLERANCE)
        context = mm.Context(system, integrator, mm.Platform.getPlatformByName(name), properties)
        if start.boxVectors is not None:
            context.setPeriodicBoxVectors(*start.boxVectors)
        context.setPositions(start.positions)
        return context

    def energies(context: Any) -> tuple[float, float]:
        state = context.getState(getEnergy=True)
        return state.getPotentialEnergy().value_in_unit(energy), state.getKineticEnergy().value_in_unit(energy)

    properties = {}
    if platform == "CPU":
        properties["Threads"] = threads
    elif platform != "Reference":
        properties["Precision"] = _PRECISIONS[precision]
    reference = energies(made("Reference", {}))[0]
    context = made(platform, properties)
    potential = energies(context)[0]
    context.applyConstraints(_CONSTRAINT_TOLERANCE)
    context.setVelocitiesToTemperature(float(start_k) * unit.kelvin, _SEED)
    integrator = context.getIntegrator()
    integrator.step(_SETTLING_STEPS)
    before = energies(context)
    begin = time.perf_counter()
    integrator.step(int(steps))
    after = energies(context)
    elapsed_s = time.perf_counter() - begin
    free = 3 * sum(1 for i in range(system.getNumParticles()) if system.getParticleMass(i)._value > 0)
    degrees = free - system.getNumConstraints()
    kelvin = 2 * after[1] / (degrees * unit.MOLAR_GAS_CONSTANT_R.value_in_unit(energy / unit.kelvin))
    used = context.getPlatform()
    seen = {name: used.getPropertyValue(context, name) for name in used.getPropertyNames()}
    result = {
        "version": mm.version.full_version,
        "platform": used.getName(),
        "properties": {name: str(value)[:200] for name, value in seen.items()},
        "atoms": system.getNumParticles(),
        "steps": int(steps),
        "elapsed_s": elapsed_s,
        "start_energy": potential,
        "reference_energy": reference,
        "total_energy": [sum(before), sum(after)],
        "kinetic_energy": after[1],
        "temperature_K": kelvin,
    }
    Path(output).write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    sys.path.pop(0)  # its own folder, whose openmm.py is another module
    main(sys.argv[1:])
