"""A scenario: the people, who says what and when, the model servers, and the expectations.

docs/rehearsal.md describes the file with these values. `rehearsal.script.scenario_file` reads it. Without
`[servers.*]` tables the bot uses the servers that the operator has configured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from rehearsal.script.expectations import Expectation
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


SettingValue: TypeAlias = str | int | float | bool | list[str]
OptionValue: TypeAlias = str | int | float | bool

# People get ids as large as real Discord ids, so that nothing relies on small numbers.
FIRST_PERSON_ID = 410_000_000_000_000_001

# The pause between the end of one speaker and the start of the next.
SPEECH_GAP_S = 0.6
WAIT_TIMEOUT_S = 30.0
MAX_WAIT_S = 600.0

# The key `after` may name one of these events instead of a step.
AFTER_REPLY = "reply"
AFTER_VOICE = "voice"
AFTER_EVENTS = (AFTER_REPLY, AFTER_VOICE, "heard")


class PersonSpec(_Value):
    """One person.

    `present`: the person is already in the voice channel when the scenario starts. `moderator`: the person has a
    moderator's permissions. The first person of a file always has them.
    """

    key: str
    name: str = Field(min_length=1)
    id: int = Field(gt=0)
    locale: str = "en-US"
    present: bool = True
    moderator: bool = False


class BotSpec(_Value):
    """The bot as Discord shows it."""

    name: str = Field(default="Roomtone", min_length=1)


class NetworkSpec(_Value):
    """How the network treats voice packets, as shares from 0 to 1.

    Some packets are padded by default: Discord pads packets too, and a client must strip the padding.
    """

    loss: float = Field(default=0.0, ge=0, le=1)
    padding: float = Field(default=0.05, ge=0, le=1)
    reorder: float = Field(default=0.0, ge=0, le=1)


class HistoryTurn(_Value):
    """One turn of the history. `at`: seconds relative to the live start, so the value is negative.

    `speaker` is a key of `people` or the name of a person. The bot's own turns have the kind `assistant`.
    """

    speaker: str
    text: str = Field(min_length=1)
    at: float = Field(lt=0)
    kind: Literal["speech", "membership", "effect", "assistant"] = "speech"


class _Step(_Value):
    """When a step starts: `gap_s` after a step or event, or overlapping a step.

    Without any of these the step follows the step before it in the file.
    """

    id: str = ""
    after: str = ""
    gap_s: float | None = Field(default=None, ge=0)
    overlap_s: float | None = Field(default=None, gt=0)
    timeout_s: float = Field(default=WAIT_TIMEOUT_S, gt=0, le=MAX_WAIT_S)

    @model_validator(mode="after")
    def _one_time(self) -> _Step:
        if self.gap_s is not None and self.overlap_s is not None:
            raise ValueError("`gap_s` starts a step later and `overlap_s` earlier; a step can have one of them")
        return self


class _PersonalStep(_Step):
    """A step of somebody. `who`: their key."""

    who: str


class SayStep(_PersonalStep):
    """Somebody speaks. `say` is the text that is spoken in the `audio` file, or in a written scenario without one.

    `answered`: whether the bot must answer (true) or must not answer (false), or None if that does not matter.
    """

    say: str = Field(min_length=1)
    audio: Path | None = None
    answered: bool | None = None


class CommandStep(_PersonalStep):
    """Somebody uses a slash command. The step with the command `join` ends when the bot hears the channel."""

    command: str = Field(min_length=1)
    options: dict[str, OptionValue] = Field(default_factory=dict)


class JoinStep(_PersonalStep):
    """Somebody enters the voice channel."""

    join: Literal[True]


class LeaveStep(_PersonalStep):
    """Somebody leaves the voice channel."""

    leave: Literal[True]


class ShowStep(_PersonalStep):
    """Somebody shares a picture (a JPEG) of their screen on the bot's page, which they open with `/watch start`.

    The step ends when the bot has made a note about the picture.
    """

    shows: Path


class StopSharingStep(_PersonalStep):
    """Somebody stops sharing their screen."""

    stops_sharing: Literal[True]


class SendStep(_PersonalStep):
    """Somebody sends the recording `sends`, an Ogg Opus file, as a voice message in reply to the bot in the voice
    channel's chat. The step ends when the bot has answered it there.
    """

    sends: Path


class ServerStep(_Step):
    """Sets how one of the scenario's model servers behaves from now on. `expire` ends speech-to-speech sessions now.

    `first_token_s`: the time until the model's first token from now on.
    """

    server: Literal["model", "fallback", "speech", "realtime"]
    conduct: str = Field(min_length=1)
    first_token_s: float | None = Field(default=None, ge=0, le=60)

    @model_validator(mode="after")
    def _only_models_think(self) -> ServerStep:
        if self.first_token_s is not None and self.server not in {"model", "fallback"}:
            raise ValueError('`first_token_s` belongs to `server = "model"` and `"fallback"` alone')
        return self


class WaitStep(_Step):
    """Waits until something has happened. If it does not happen within `timeout_s`, the run fails.

    `reply`: the bot has spoken since the last line. `voice`: somebody hears it since then. `heard`: everything said so
    far became text. `quiet`: so it did, it was answered where it must be, and then nothing happened for a while.
    `compaction`: a compaction was stored (with `new_cursor`: one that reached this cursor). `posted`: a message of the
    bot has the text `contains`, also in an embed.
    """

    wait_for: Literal["reply", "voice", "heard", "quiet", "compaction", "posted"]
    new_cursor: int | None = Field(default=None, ge=1)
    contains: str = ""

    @model_validator(mode="after")
    def _has_what_belongs_to_it(self) -> WaitStep:
        if self.new_cursor is not None and self.wait_for != "compaction":
            raise ValueError('`new_cursor` belongs to `wait_for = "compaction"` alone')
        if bool(self.contains) is not (self.wait_for == "posted"):
            raise ValueError('`contains` belongs to `wait_for = "posted"`, which needs it')
        return self


ScenarioStep: TypeAlias = (
    SayStep | CommandStep | JoinStep | LeaveStep | ShowStep | StopSharingStep | SendStep | ServerStep | WaitStep
)

# What people do other than to speak, come and go.
PersonStep: TypeAlias = CommandStep | ShowStep | StopSharingStep | SendStep

# Each kind of step, by the key that only this kind has.
STEP_KINDS: dict[str, type[ScenarioStep]] = {
    "say": SayStep,
    "command": CommandStep,
    "join": JoinStep,
    "leave": LeaveStep,
    "shows": ShowStep,
    "stops_sharing": StopSharingStep,
    "sends": SendStep,
    "server": ServerStep,
    "wait_for": WaitStep,
}


def _step_kind(step: object) -> str | None:
    """Return the key that says what happens in a step; None if there is not exactly one."""
    if isinstance(step, _Step):
        return next(key for key, kind in STEP_KINDS.items() if isinstance(step, kind))
    kinds = [key for key in STEP_KINDS if isinstance(step, dict) and key in step]
    return kinds[0] if len(kinds) == 1 else None


_WrittenStep = Annotated[
    Annotated[SayStep, Tag("say")]
    | Annotated[CommandStep, Tag("command")]
    | Annotated[JoinStep, Tag("join")]
    | Annotated[LeaveStep, Tag("leave")]
    | Annotated[ShowStep, Tag("shows")]
    | Annotated[StopSharingStep, Tag("stops_sharing")]
    | Annotated[SendStep, Tag("sends")]
    | Annotated[ServerStep, Tag("server")]
    | Annotated[WaitStep, Tag("wait_for")],
    Discriminator(
        _step_kind, custom_error_type="step", custom_error_message=f"a step has one of {', '.join(STEP_KINDS)}"
    ),
]


class Scenario(_Value):
    """A whole scenario. Paths are absolute.

    `written`: it is played in the bot's real room without sound, on a virtual clock.
    """

    title: str = Field(min_length=1)
    written: bool = False
    guild: str = Field(default="The Rehearsal", min_length=1)
    channel: str = Field(default="Lounge", min_length=1)
    text_channel: str = Field(default="general", min_length=1)
    bot: BotSpec = BotSpec()
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    network: NetworkSpec = NetworkSpec()
    servers: ServersSpec = ServersSpec()
    # The longest time to wait at the end until the last words are text and the last reply is spoken.
    settle_s: float = Field(default=20.0, ge=0, le=600)
    people: tuple[PersonSpec, ...] = Field(min_length=1)
    history: tuple[HistoryTurn, ...] = ()
    steps: tuple[_WrittenStep, ...] = Field(min_length=1)
    expect: tuple[Annotated[Expectation, Field(discriminator="kind")], ...] = ()

    def person(self, key: str) -> PersonSpec:
        """Return the person with this key or display name. Raises `KeyError`."""
        for spec in self.people:
            if key in (spec.key, spec.name):
                return spec
        raise KeyError(key)

    def name_of(self, user_id: int) -> str:
        """Return the name of a person; for anybody else the id."""
        return next((spec.name for spec in self.people if spec.id == user_id), str(user_id))

    @property
    def says(self) -> tuple[SayStep, ...]:
        """Return the `say` steps, in the order of the file."""
        return tuple(step for step in self.steps if isinstance(step, SayStep))

    def with_network(self, network: NetworkSpec) -> Scenario:
        return self.model_copy(update={"network": network})
