"""When the bot takes part by itself, and what that may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class ParticipationSettings(BaseModel):
    """When the bot speaks, how long it stays in a conversation, and how much an hour of it may cost a server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    voice_mode: Annotated[
        Literal["name", "engaged", "free"],
        Field(
            description="When the bot speaks in company: name (only when it is called by name, also alone with "
            "somebody), engaged (also when somebody it has just answered goes on, and to every word alone with one "
            "person), free (also to questions to the room). A server's /voice-mode goes before. Takes effect at start."
        ),
    ] = "engaged"
    engagement_s: Annotated[
        float,
        Field(
            ge=0,
            le=600,
            description="Seconds after the bot's last word to somebody in which they can go on without its name. "
            "Default 35: what people take to think of the next question. 0 means never. Takes effect at the next join.",
        ),
    ] = 35.0
    quiet_thought_after_minutes: Annotated[
        float,
        Field(
            ge=0,
            le=240,
            description="Minutes of silence in the room after which the bot may say something of its own accord. "
            "Default 0: never. Needs a language model or speech-to-speech. Takes effect at the next join.",
        ),
    ] = 0.0
    quiet_thought_every_minutes: Annotated[
        float,
        Field(
            ge=1,
            le=1_440,
            description="Minutes in which there is at most one such thought. Default 30. Takes effect at the next "
            "join.",
        ),
    ] = 30.0
    max_calls_per_hour: Annotated[
        int,
        Field(
            ge=0,
            le=100_000,
            description="Most calls of the model for answers in any hour and server; then the bot says so once and is "
            "silent until it is less. Default 240: one every quarter of a minute. 0 means no ceiling. Takes effect "
            "at start.",
        ),
    ] = 240
    max_tokens_per_hour: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description="Most tokens of answers, prompts counted in, in any hour and server, as above. Default "
            "1000000: some tens of cents with a small model. Summaries are not counted. 0 means no ceiling. Takes "
            "effect at start.",
        ),
    ] = 1_000_000
    max_spoken_s_per_hour: Annotated[
        float,
        Field(
            ge=0,
            le=3_600,
            description="Most seconds the bot speaks in any hour and server, as above. Default 1800: half of the "
            "time is a monologue. 0 means no ceiling. Takes effect at start.",
        ),
    ] = 1_800.0
