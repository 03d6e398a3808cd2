"""The command line of a program of seatrial: from the parameters of its benchmark, and what has to be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from seatrial.model.benchmark.benchmark import Native
from seatrial.model.benchmark.parameter import Parameter, Params

Words = Sequence[str] | Callable[[Params], Sequence[str]]
"""Arguments that are always the same, or that follow from the resolved parameters."""


class _Abilities(TypedDict, total=False):
    """What `Native` says about a program beside its source and arguments."""

    library: Literal["blas", "fft", "gpu"] | None
    variables: tuple[str, ...]
    commands: Callable[[Params], Sequence[str]] | None
    inputs: Callable[[Params], Sequence[str]] | None
    takes_turns: bool
    starts_containers: bool


def native_program(
    file: str, parameters: Sequence[Parameter], *words: Words, **abilities: Unpack[_Abilities]
) -> Native:
    """The program beside the declaration `file`, with the same stem. It gets the options that the parameters declare,
    then `words`."""

    def arguments(params: Params) -> list[str]:
        computed = (part(params) if callable(part) else part for part in words)
        own = (parameter.arguments(params) for parameter in parameters)
        return [word for part in (*own, *computed) for word in part]

    return Native(Path(file).with_suffix(".cpp"), arguments, **abilities)
