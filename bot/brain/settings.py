"""Settings of the bot's identity and of how soon it answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator


class BrainSettings(BaseModel):
    """The bot's identity: its name, the names it answers to, its instructions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=60)], ...],
        Field(
            min_length=1,
            description="Names that people call the bot by; the first is its own, in transcripts and prompts. "
            "Mishearings close to them count too.",
        ),
    ] = ("Roomtone", "Room tone")
    instructions: Annotated[
        str,
        Field(
            max_length=4000,
            description="Sentences added to the system prompt: a persona, house rules.",
        ),
    ] = ""

    @field_validator("names")
    @classmethod
    def _none_is_mute(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if mute := [name for name in names if not any(char.isalnum() for char in name)]:
            raise ValueError(f"{mute[0]!r} has no letter or digit, so nobody can say it")
        return names

    @property
    def name(self) -> str:
        """Return the bot's own name."""
        return self.names[0]
