"""The local servers that a scenario may bring along, as a person writes them: `[servers.model]` and its kin.

A scenario without any is played with what the operator has configured. What the servers do is `rehearsal.servers`;
who starts them and points the bot at them is `rehearsal.runner.local_servers`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rehearsal.servers.chat import ChatMode
from rehearsal.servers.realtime_conduct import RealtimeMode
from rehearsal.servers.speech import SpeechMode

# How every server behaves unless told otherwise.
WELL = "answer"
# What a step may tell a speech-to-speech server besides: its sessions end now.
EXPIRE = "expire"
# What each server can be told, by its name in a scenario.
CONDUCTS: dict[str, frozenset[str]] = {
    "model": frozenset(ChatMode),
    "fallback": frozenset(ChatMode),
    "speech": frozenset(SpeechMode),
    "realtime": frozenset(RealtimeMode),
}


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerSpec(_Value):
    """What the scripted model answers where the last thing said has all of the words `asked`, and all that it was sent
    has all of the words `knew`.

    `tool` with `arguments`: it calls that first. `{found}` in `say` is then what somebody said that is most about
    the arguments, of what the tool told.
    """

    asked: tuple[str, ...] = ()
    knew: tuple[str, ...] = ()
    say: str = Field(min_length=1)
    tool: str = ""
    arguments: dict[str, str | int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_something(self) -> AnswerSpec:
        if not (self.asked or self.knew):
            raise ValueError("an answer needs `asked` or `knew`: words that it is the answer to")
        return self


class ModelSpec(_Value):
    """A language model that answers by a script. `otherwise`: what it says where no answer fits.

    `first_token_s`: how long it thinks.
    """

    conduct: str = WELL
    answers: tuple[AnswerSpec, ...] = ()
    otherwise: str = Field(default="I am listening.", min_length=1)
    first_token_s: float = Field(default=0.0, ge=0, le=60)


class SpeechSpec(_Value):
    """A speech endpoint that has the embedded voice behind it."""

    conduct: str = WELL


class RealtimeSpec(_Value):
    """A speech-to-speech endpoint with ears, a mind and a voice.

    `expires_in_response`: the session ends in the middle of the sound of this answer, counted from 1.
    """

    conduct: str = WELL
    expires_in_response: int | None = Field(default=None, ge=1)


class ServersSpec(_Value):
    """Which servers there are; None: the operator's own configuration holds. `fallback`: the model behind `model`."""

    model: ModelSpec | None = None
    fallback: ModelSpec | None = None
    speech: SpeechSpec | None = None
    realtime: RealtimeSpec | None = None

    @model_validator(mode="after")
    def _falls_back_from_something(self) -> ServersSpec:
        if self.fallback is not None and self.model is None:
            raise ValueError("`fallback` is the model behind `model`, so it needs [servers.model]")
        return self
