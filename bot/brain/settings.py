"""Settings of the bot's identity and of how soon it answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


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
            description="Names that people call the bot by. Mishearings close to them count too.",
        ),
    ] = ("Roomtone", "Room tone")
    instructions: Annotated[
        str,
        Field(
            max_length=4000,
            description="Sentences added to the system prompt: a persona, house rules.",
        ),
    ] = ""
    guild_instructions: Annotated[
        dict[str, Annotated[str, Field(max_length=4000)]],
        Field(
            description="Sentences added to the system prompt on one server, by its id: "
            '{ 123456789012345678 = "Speak German." }. What its managers set with /persona comes after them.'
        ),
    ] = Field(default_factory=dict)
    preemptive_reply: Annotated[
        bool,
        Field(
            description="Ask the model in a pause that sounds like the end of a turn or lasts, before the end is "
            "certain, and synthesise the first sentence of its answer. The answer comes 0.03 to 0.5 s sooner. About "
            "one such call in five is wasted; all count towards participation.max_calls_per_hour. Nothing is said, "
            "recorded or done before the end is certain."
        ),
    ] = True
