"""What an operator can set about when the bot speaks, and what that may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class ServerLimits(BaseModel):
    """The hourly limits of one server. None: as for all servers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[int, Field(ge=1, description="Of the server.")]
    max_calls_per_hour: Annotated[int | None, Field(ge=0, le=100_000)] = None
    max_tokens_per_hour: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = None
    max_spoken_s_per_hour: Annotated[float | None, Field(ge=0, le=3_600)] = None


class ParticipationSettings(BaseModel):
    """When the bot speaks, and how much an hour of it may cost a server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    voice_mode: Annotated[
        Literal["name", "engaged", "free"],
        Field(description="When the bot speaks (docs/guide.md has the modes). A server's /settings override it."),
    ] = "engaged"
    quiet_thought_after_minutes: Annotated[
        float,
        Field(
            ge=0,
            le=240,
            description="Minutes of silence after which the bot may say something unasked, at most once in half an "
            "hour. 0: never. Needs a language model or speech-to-speech.",
        ),
    ] = 0.0
    max_calls_per_hour: Annotated[
        int,
        Field(
            ge=0,
            le=100_000,
            description=(
                "Most calls of the language model in an hour, for each server. At the limit the bot says so once and "
                "stays silent until enough time has passed. 0 means no limit."
            ),
        ),
    ] = 240
    max_tokens_per_hour: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description=(
                "Most tokens in an hour, for each server, with the same effect. Default 1000000: some tens of cents "
                "with gpt-4.1-mini. 0 means no limit."
            ),
        ),
    ] = 1_000_000
    max_spoken_s_per_hour: Annotated[
        float,
        Field(
            ge=0,
            le=3_600,
            description=(
                "Most seconds that the bot speaks in an hour, for each server, with the same effect. 0 means no limit."
            ),
        ),
    ] = 1_800.0
    max_tokens_per_day: Annotated[
        int,
        Field(
            ge=0,
            le=10_000_000_000,
            description="Most tokens of all servers together in a day (UTC). Then the bot is silent everywhere until "
            "midnight, and says why. 0: no limit.",
        ),
    ] = 0
    max_tokens_per_month: Annotated[
        int,
        Field(
            ge=0,
            le=100_000_000_000,
            description="The same for a calendar month (UTC).",
        ),
    ] = 0
    servers: Annotated[
        tuple[ServerLimits, ...],
        Field(
            description="Other hourly limits for single servers. `roomtone servers` shows what each uses.",
            examples=[[{"id": 123456789012345678, "max_tokens_per_hour": 50_000}]],
        ),
    ] = ()
