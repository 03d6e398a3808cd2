"""Settings of the machine that an experiment asks for (clocks, governors, limits): their names, what they take, and
their values as text. `environments/settings/` changes them and puts them back."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.units import Unit, parse_quantity

UNCHANGED = "unchanged"
"""The value of such an axis that leaves the machine as it is."""
WORD, TRUTH = "word", "truth"
_WORDS = {"true": True, "false": False}
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_LONGEST_WORD = 64


class MachineSetting(Frozen):
    """A setting. `takes` is WORD, TRUTH or the unit of a quantity; `accepts` says it to users. `of_gpus`: of the GPUs
    that programs use. `is_verified`: it was changed on a real machine, not only on a made-up one."""

    name: str
    accepts: str
    takes: Unit = WORD
    of_gpus: bool = False
    is_verified: bool = False

    def value_of(self, text: str) -> Value:
        """The value of a text, a quantity in its SI unit. Raises UsageError."""
        if self.takes == WORD:
            if not text.isprintable() or not 0 < len(text) <= _LONGEST_WORD or " " in text:
                raise self._refused(text)
            return text
        if self.takes == TRUTH:
            if text.lower() not in _WORDS:
                raise self._refused(text)
            return _WORDS[text.lower()]
        quantity = parse_quantity(text)
        if quantity.unit != self.takes or quantity.value < 0.0:
            raise self._refused(text)
        return quantity.value

    def text_of(self, value: Value) -> str:
        """The one text of a value: 2500MHz is "2.5GHz"."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str) or not isinstance(value, int | float):
            return str(value)
        scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s * (1 - 1e-12)), (1.0, ""))
        return f"{value / scale:.10g}{prefix}{self.takes}"

    def _refused(self, text: str) -> UsageError:
        return UsageError(f"{self.name} cannot be {text[:_LONGEST_WORD]!r}", f"it takes {self.accepts}")


MACHINE_SETTINGS: Mapping[str, MachineSetting] = {
    one.name: one
    for one in (
        MachineSetting("turbo", "true or false: clocks above the nominal one", TRUTH),
        MachineSetting("governor", "how the kernel chooses clocks, such as performance"),
        MachineSetting("cpu_frequency", "the clock of all CPUs, such as 2.5GHz", "Hz"),
        MachineSetting("energy_preference", "speed against energy, such as balance_performance"),
        MachineSetting("uncore_frequency", "the clock of the uncore, such as 1.8GHz", "Hz"),
        MachineSetting("power_limit", "the power of each package, such as 200W", "W"),
        MachineSetting(
            "cpu_idle",
            "the longest wake-up time of idle states, such as 10us; 0s: no idle state",
            "s",
            is_verified=True,
        ),
        MachineSetting("gpu_clock", "the clock of the GPUs, such as 1.4GHz", "Hz", of_gpus=True),
        MachineSetting("gpu_power_limit", "the power of each GPU, such as 300W", "W", of_gpus=True),
    )
}
"""In the order in which they are changed: a governor resets what is set after it."""


def setting_of(name: str, text: str) -> Value:
    """The value of a setting, from text such as "2.5GHz". Raises UsageError."""
    if name not in MACHINE_SETTINGS:
        raise UnknownNameError("setting", name, MACHINE_SETTINGS)
    return MACHINE_SETTINGS[name].value_of(text)


def settings_wanted(chosen: Mapping[str, str]) -> dict[str, Value]:
    """The values of chosen settings, in the order in which they are changed."""
    return {name: one.value_of(chosen[name]) for name, one in MACHINE_SETTINGS.items() if name in chosen}
