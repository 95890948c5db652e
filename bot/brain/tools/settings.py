"""Settings of tools. Each description gives the unit, the reason for the default, and when a change applies."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ToolsSettings(BaseModel):
    """What the language model may call while it answers (docs/tools.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: Annotated[
        int,
        Field(
            ge=0,
            le=8,
            description="Times in one reply that the model may call tools and read what they found. Default 2: each "
            "one is a model call that the listeners wait for. 0 offers it no tools. Takes effect at the next reply.",
        ),
    ] = 2
    filler: Annotated[
        str,
        Field(
            max_length=120,
            description="What the bot says while a tool takes long, once a reply and only where it has said nothing "
            "yet and is sure to answer. Empty: it stays silent. Takes effect at start.",
        ),
    ] = "Let me look."
    filler_after_s: Annotated[
        float,
        Field(
            gt=0,
            le=30,
            description="Seconds that a tool runs before the filler is said. Default 1.0: in a shorter pause nobody "
            "wonders. Takes effect at start.",
        ),
    ] = 1.0
    memory: Annotated[
        bool,
        Field(description="Offer memory_search and recall_turns: what was said, word for word. Takes effect at start."),
    ] = True
    attachments: Annotated[
        bool,
        Field(
            description="Offer read_attachment: text files that people dropped in the channel's chat. Discord shows "
            "the bot files of messages that mention it; for all others set discord.message_content. Takes effect at "
            "start."
        ),
    ] = True
    attachment_kb: Annotated[
        int,
        Field(
            ge=1,
            le=4_096,
            description="Kilobytes of a file above which it is not read. Default 512: a long text, no disk image. "
            "Takes effect at start.",
        ),
    ] = 512
    links: Annotated[
        bool,
        Field(
            description="Offer post_link: a link or a few words into the channel's chat, when somebody in the channel "
            "asks for it. Takes effect at start."
        ),
    ] = True
    link_words: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="Words of which who asks must have said one, or post_link does not run; of longer words the "
            "beginning is enough. Add those of your language. Not 'share': who asks about a shared screen wants "
            "nothing posted. Takes effect at start.",
        ),
    ] = ("post", "link", "url", "send", "paste")
