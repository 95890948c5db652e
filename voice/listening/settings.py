"""The operator's settings for detecting the beginning and end of speech."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ListeningSettings(BaseModel):
    """How a person's speech is cut into utterances."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn_model: Literal["auto", "sound", "off"] = Field(
        default="auto",
        description="auto: in each pause the end-of-turn model (turn-smart), if it is there, judges whether the person "
        "sounds finished; and a small language model (turn-text), if it is there too and English may be spoken, "
        "whether the sentence is. sound: the first alone, for 180 MB less memory. off: silence alone decides, for "
        "languages in which they err.",
    )
    # Whether to start to recognise in a pause, before it is certain that the person has finished. The text comes about
    # 0.3 s sooner, for up to twice as much work of the recogniser: where they go on, the work is wasted.
    eager_recognition: bool = Field(default=True, json_schema_extra={"internal": True})
