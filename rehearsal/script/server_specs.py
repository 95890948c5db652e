"""The local model servers of a scenario: the values of its `[servers.*]` tables.

Without these tables the bot uses the servers that the operator has configured. `rehearsal.servers` implements the
servers. `rehearsal.runner.local_servers` starts them and makes the bot use them.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rehearsal.servers.chat import ChatMode
from rehearsal.servers.realtime_behaviour import RealtimeMode
from rehearsal.servers.speech import SpeechMode

# A step may also ask a speech-to-speech server to end its sessions now.
EXPIRE_SESSIONS = "expire"
# The behaviours of each server, by its name in a scenario.
SERVER_BEHAVIOURS: dict[str, frozenset[str]] = {
    "model": frozenset(ChatMode),
    "fallback": frozenset(ChatMode),
    "speech": frozenset(SpeechMode),
    "realtime": frozenset(RealtimeMode),
}


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerSpec(_Value):
    """The answer of the scripted model when the last message has all words of `asked` and the prompt has all of `knew`.

    `tool` with `arguments`: the model calls that tool first. In `say`, `{found}` is then replaced by the line of the
    tool's result that fits the arguments best.
    """

    asked: tuple[str, ...] = ()
    knew: tuple[str, ...] = ()
    say: str = Field(min_length=1)
    tool: str = ""
    arguments: dict[str, str | int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_something(self) -> AnswerSpec:
        if not (self.asked or self.knew):
            raise ValueError("an answer needs `asked` or `knew`: the words that it answers")
        return self


class ModelSpec(_Value):
    """A language model that answers from a script. `otherwise`: what it says when no answer fits.

    `first_token_s`: the time until its first token.
    """

    conduct: ChatMode = ChatMode.ANSWER
    answers: tuple[AnswerSpec, ...] = ()
    otherwise: str = Field(default="I am listening.", min_length=1)
    first_token_s: float = Field(default=0.0, ge=0, le=60)


class SpeechSpec(_Value):
    """A speech endpoint that uses the embedded voice."""

    conduct: SpeechMode = SpeechMode.ANSWER


class RealtimeSpec(_Value):
    """A speech-to-speech endpoint built from the embedded recogniser and voice.

    `expires_in_response`: the number of the response, from 1, in whose audio the session expires.
    """

    conduct: RealtimeMode = RealtimeMode.ANSWER
    expires_in_response: int | None = Field(default=None, ge=1)


class ServersSpec(_Value):
    """The servers of a scenario. None means the server that the operator configured. `fallback` is used when `model`
    fails.
    """

    model: ModelSpec | None = None
    fallback: ModelSpec | None = None
    speech: SpeechSpec | None = None
    realtime: RealtimeSpec | None = None

    @model_validator(mode="after")
    def _falls_back_from_something(self) -> ServersSpec:
        if self.fallback is not None and self.model is None:
            raise ValueError("`fallback` is used when `model` fails, so it needs [servers.model]")
        return self
