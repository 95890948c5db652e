"""Settings of the bot's identity and of how soon it answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_USUAL_NAMES = ("Roomtone", "Room tone")


class BrainSettings(BaseModel):
    """The bot's identity: its name, the names it answers to, its instructions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=60,
            description="The bot's own name, in transcripts and prompts.",
        ),
    ] = "Roomtone"
    wake_names: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="Names that people call the bot by. Mishearings close to them count too. If only brain.name is "
            "set, people call it by that.",
        ),
    ] = _USUAL_NAMES
    instructions: Annotated[
        str,
        Field(
            max_length=4000,
            description="Sentences added to the system prompt: a persona, house rules.",
        ),
    ] = ""

    @model_validator(mode="before")
    @classmethod
    def _called_by_its_name(cls, values: object) -> object:
        """Let people call the bot by the name that it is given, unless they have others for it."""
        if isinstance(values, dict) and "wake_names" not in values:
            name = values.get("name")
            if isinstance(name, str) and name not in _USUAL_NAMES and _can_be_said(name):
                return {**values, "wake_names": [name]}
        return values

    @field_validator("wake_names")
    @classmethod
    def _none_is_mute(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if mute := [name for name in names if not _can_be_said(name)]:
            raise ValueError(f"{mute[0]!r} has no letter or digit, so nobody can say it")
        return names


def _can_be_said(name: str) -> bool:
    return any(char.isalnum() for char in name)
