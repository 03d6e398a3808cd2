"""The chosen parts of an environment as text, in the form that `--set` accepts."""

from __future__ import annotations

from seatrial.model.environment.choice import EnvironmentChoice

_WORDS = (
    *("mpi", "compiler", "container", "container_runtime", "container_mpi", "container_mounts", "container_devices"),
    *("container_build", "vm"),
)


def choice_text(choice: EnvironmentChoice) -> str:
    """Such as "mpi=mpich transport=tcp flags=-O2"; "" if nothing was chosen."""
    words = [f"{name}={value}" for name in _WORDS if (value := getattr(choice, name))]
    words += [f"flags={' '.join(choice.flags)}"] if choice.flags else []
    words += [f"{name}={value}" for name, value in choice.mpi_settings]
    words += [f"{name}={value}" if value is not None else f"without {name}" for name, value in choice.variables]
    return " ".join(words)
