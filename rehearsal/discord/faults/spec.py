"""The form of a fault: what it does, and the numbers that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.discord.guild.payloads import Json


@dataclass(frozen=True, slots=True)
class OptionRange:
    """An option of a fault: its default and its range."""

    default: float
    least: float
    most: float


# An option that is on (1) or off (0).
ON, OFF = OptionRange(default=1, least=0, most=1), OptionRange(default=0, least=0, most=1)


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One fault: its description, the method of its injector that causes it, and its options."""

    description: str
    act: Callable[..., Json | None]
    options: Mapping[str, OptionRange]

    def checked(self, name: str, options: Mapping[str, Any]) -> dict[str, float]:
        """Return the value of each option. Raises `LocalDiscordError` for one that the fault `name` does not take."""
        checked = {key: option.default for key, option in self.options.items()}
        for key, value in options.items():
            option = self.options.get(key)
            if option is None:
                there = ", ".join(self.options) or "none"
                raise LocalDiscordError(f"The fault {name} has no option {key!r}. Its options: {there}.")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not option.least <= value <= option.most:
                raise LocalDiscordError(
                    f"{key} of the fault {name} is a number from {option.least:g} to {option.most:g}; {value!r} is not."
                )
            checked[key] = value
        return checked
