"""The chosen parts of an environment as text, in the form that `--set` accepts."""

from __future__ import annotations

from seatrial.model.environment_choice import EnvironmentChoice


def choice_text(choice: EnvironmentChoice) -> str:
    """Such as "mpi=mpich transport=tcp flags=-O2"; "" if nothing was chosen."""
    words = [f"{name}={value}" for name, value in (("mpi", choice.mpi), ("compiler", choice.compiler)) if value]
    in_container = (
        ("container", choice.container),
        ("container_runtime", choice.container_runtime),
        ("container_mpi", choice.container_mpi),
        ("container_mounts", choice.container_mounts),
        ("container_devices", choice.container_devices),
        ("container_build", choice.container_build),
        ("vm", choice.vm),
    )
    words += [f"{name}={value}" for name, value in in_container if value]
    words += [f"flags={' '.join(choice.flags)}"] if choice.flags else []
    words += [f"{name}={value}" for name, value in choice.mpi_settings]
    words += [f"{name}={value}" if value is not None else f"without {name}" for name, value in choice.variables]
    return " ".join(words)
