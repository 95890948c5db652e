"""What an operator can tune in the voice: units, why the default, and when a change takes effect."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from voice.endpoint_settings import EndpointKey, EndpointUrl


class SpeakingSettings(BaseModel):
    """The bot's own voice. Every field takes effect when the bot next joins a channel, unless it says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["auto", "piper", "endpoint"] = Field(
        default="auto",
        description="Which voice speaks: piper (the embedded one), endpoint (speaking.base_url), auto (the endpoint if "
        "speaking.base_url or speaking.api_key is set, else the embedded one). Takes effect at start.",
    )
    stand_in: Literal["piper", "none"] = Field(
        default="piper",
        description="Who says what the endpoint cannot: piper (the embedded voice), none (nobody: it is written in the "
        "text channel). Default piper: another voice is better than silence. Takes effect at start.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that serves OpenAI's /audio/speech, for example http://127.0.0.1:8880/v1; "
        "empty with speaking.engine = endpoint means OpenAI itself. Takes effect at start.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key; without one llm.api_key serves where both are at the same address. Takes "
        "effect at start.",
    )
    model: str = Field(
        default="gpt-4o-mini-tts", min_length=1, description="The endpoint's speech model. Takes effect at start."
    )
    voice_name: str = Field(
        default="alloy", min_length=1, description="The endpoint's voice by name. Takes effect at start."
    )
    audio_format: Literal["pcm", "wav", "opus"] = Field(
        default="pcm",
        description="What sound the endpoint is asked for: pcm begins soonest and needs no decoding, opus is a tenth "
        "of the traffic. Whatever it sends is read. Takes effect at start.",
    )
    timeout_s: float = Field(
        default=8.0,
        gt=0,
        le=60,
        description="Seconds that the endpoint may take until a sentence begins to sound; then the embedded voice "
        "says it. Takes effect at start.",
    )
    stall_timeout_s: float = Field(
        default=2.0,
        gt=0,
        le=60,
        description="Seconds that the endpoint may hesitate in the middle of a sentence; then the embedded voice says "
        "the rest of it. What has come by then goes on sounding, so little of this is heard as a pause. Takes effect "
        "at start.",
    )
    speed: float = Field(
        default=1.0, ge=0.5, le=2, description="Pace of speech; 1 is the voice's own. Takes effect at start."
    )
    variety: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="How much the embedded voice says the same words otherwise each time; 1 as its makers chose, 0 "
        "always alike, as rehearsals have it so that they end alike. Takes effect at start.",
    )
    volume: float = Field(
        default=1.0,
        ge=0,
        le=4,
        description="Loudness of the bot's voice; 1 leaves it as the voice makes it, 0.5 halves it. What gets too loud "
        "is clipped.",
    )
    duck_after_s: float = Field(
        default=0.2,
        ge=0.05,
        le=5,
        description="Seconds that somebody speaks over the bot before it speaks more softly.",
    )
    duck_level: float = Field(
        default=0.3, ge=0, le=1, description="Loudness while somebody speaks over the bot; 1 is as loud as before."
    )
    stop_after_s: float = Field(
        default=0.7,
        ge=0.2,
        le=30,
        description="Seconds that somebody speaks over the bot before it falls silent. If it was no more than 'mm-hm' "
        "or a laugh it goes on where it was, else the rest is not said. Shorter: it yields to listeners' noises.",
    )
    blocked_words: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Words that the bot does not say aloud, by server id, or by `all` for every server: "
        '{ all = ["some phrase", "rude*"] }. Whole words, whatever their case; * stands for any letters. A sentence '
        "with one of them is left out, and people are told so in writing.",
    )
    moderation: Literal["off", "endpoint"] = Field(
        default="off",
        description="endpoint: every sentence is judged by the moderation API where the language model is "
        "(llm.base_url) before it is spoken; what is flagged, or cannot be judged, is not spoken. It costs each "
        "sentence a call of some 0.2 s. Takes effect at start.",
    )
    moderation_model: str = Field(
        default="omni-moderation-latest", min_length=1, description="The moderation model. Takes effect at start."
    )
    moderation_timeout_s: float = Field(
        default=3.0, gt=0, le=30, description="Seconds that one judgement may take. Takes effect at start."
    )
    pronunciations: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="How words are said that the voice gets wrong, by server id, or by `all` for every server: "
        '{ all = { Xiomara = "see oh mara" }, 123456789012345678 = { GG = "good game" } }. Whole words, whatever '
        "their case; a server's own go first. What is remembered keeps the word as it is written.",
    )

    @model_validator(mode="after")
    def _ducks_before_it_stops(self) -> SpeakingSettings:
        if self.duck_after_s > self.stop_after_s:
            raise ValueError(
                "duck_after_s must not be over stop_after_s, for example duck_after_s = 0.2 and stop_after_s = 0.7"
            )
        return self

    def blocked_in(self, guild_id: int) -> tuple[str, ...]:
        """Return the words that are not spoken in one server."""
        return tuple(word for place in ("all", str(guild_id)) for word in self.blocked_words.get(place, ()))

    def pronounced_in(self, guild_id: int) -> dict[str, str]:
        """Return the pronunciations of one server: word -> how it is said."""
        return {
            word.casefold(): said
            for place in ("all", str(guild_id))
            for word, said in self.pronunciations.get(place, {}).items()
        }
