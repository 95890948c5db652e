"""Settings of the model's tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from bot.texts.text import Text

# Said in the language of the question; an operator's own filler is said as it is.
DEFAULT_FILLER = Text("Let me look.")


class ToolsSettings(BaseModel):
    """The tools that the language model may call while it answers (docs/tools.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    filler: Annotated[
        str,
        Field(
            max_length=120,
            json_schema_extra={"internal": True},
            description="What the bot says while a tool takes longer than a second, once a reply, and only if it has "
            "said nothing yet and is sure to answer. Empty: it stays silent.",
        ),
    ] = DEFAULT_FILLER
    # How often the model may call tools and read the results in one reply. Each time is a model call that the listeners
    # wait for. 0 offers no tools.
    max_steps: Annotated[int, Field(ge=0, le=8, json_schema_extra={"internal": True})] = 2
    # Seconds that a tool runs before the filler is said: a shorter pause needs no filler.
    filler_after_s: Annotated[float, Field(gt=0, le=30, json_schema_extra={"internal": True})] = 1.0
