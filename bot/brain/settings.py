"""Settings of `bot.brain`. Each description gives the unit, the reason for the default, and when a change applies."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class BrainSettings(BaseModel):
    """When the bot answers, and how it speaks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=60,
            description="The bot's own name, in transcripts and prompts. Takes effect at the next join.",
        ),
    ] = "Roomtone"
    wake_names: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="Names that address the bot; mis-hearings close to them count. Takes effect at the next join.",
        ),
    ] = ("Roomtone", "Room tone")
    instructions: Annotated[
        str,
        Field(
            max_length=4000,
            description="Sentences added to the system prompt: a persona, house rules. Takes effect at the next reply.",
        ),
    ] = ""
    guild_instructions: Annotated[
        dict[str, Annotated[str, Field(max_length=4000)]],
        Field(
            description="Sentences added to the system prompt on one server, by its id: "
            '{ 123456789012345678 = "Speak German." }. What its moderators set with /persona comes after them. Takes '
            "effect at start."
        ),
    ] = Field(default_factory=dict)
    head_start: Annotated[
        bool,
        Field(
            description="Ask the model in a pause that sounds like the end, before the end is sure. Its answer comes "
            "sooner by as long as the text stood before: 0.03 to 0.2 s where the end is soon sure, half a second where "
            "it is not. About one such call in six is wasted; all count towards the hour's ceiling. Nothing is said, "
            "recorded or done before. Takes effect at the next join."
        ),
    ] = True
    reply_timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=120,
            description="Seconds after which a reply that has not begun to sound is given up. Default 20: "
            "later than that the talk has moved on. Takes effect at the next reply.",
        ),
    ] = 20.0
