"""A scenario: who is there, who says what and when, what goes wrong, and what is expected.

These are the values of the file that docs/scenarios.md describes. `rehearsal.script.scenario_file` reads them;
nothing here plays anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rehearsal.script.expectations import Wanted
from rehearsal.script.servers import ServersSpec

SettingValue: TypeAlias = str | int | float | bool | list[str]
OptionValue: TypeAlias = str | int | float | bool

# People get made-up snowflakes of the size real ones have, so that nothing depends on small numbers.
FIRST_PERSON_ID = 410_000_000_000_000_001

# A breath between one speaker's end and the next one's start.
SPEECH_GAP_S = 0.6
WAIT_TIMEOUT_S = 30.0
MOST_WAIT_S = 600.0

# `after` may name these instead of a step.
AFTER_REPLY = "reply"
AFTER_HEARD = "heard"
AFTER_VOICE = "voice"
AFTER_EVENTS = (AFTER_REPLY, AFTER_HEARD, AFTER_VOICE)


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PersonSpec(_Value):
    """Somebody in the room. `present`: already in the voice channel when the scenario starts.

    `moderator`: may do what only moderators may; the first person of a file always may.
    """

    key: str
    name: str = Field(min_length=1)
    id: int = Field(gt=0)
    voice: str = ""
    locale: str = "en-US"
    present: bool = True
    moderator: bool = False


class BotSpec(_Value):
    """The companion as Discord shows it."""

    name: str = Field(default="Roomtone", min_length=1)


class NetworkSpec(_Value):
    """What the network does to voice packets, as shares from 0 to 1.

    A few are padded on a good network too: Discord pads, and who forgets to strip it should learn it here.
    """

    loss: float = Field(default=0.0, ge=0, le=1)
    padding: float = Field(default=0.05, ge=0, le=1)
    reorder: float = Field(default=0.0, ge=0, le=1)


class HistoryTurn(_Value):
    """One turn of the stored part. `at`: seconds relative to the live start, so negative.

    `speaker` is a key of `people` or the name of a person; the bot's own turns have kind `assistant`.
    """

    speaker: str
    text: str = Field(min_length=1)
    at: float = Field(lt=0)
    kind: Literal["speech", "membership", "effect", "assistant"] = "speech"


class _Step(_Value):
    """When a step starts: `at` seconds after the live start, or `gap_s` after something, or overlapping it.

    Without any, it follows the step before it in the file.
    """

    id: str = ""
    at: float | None = Field(default=None, ge=0)
    after: str = ""
    gap_s: float | None = Field(default=None, ge=0)
    overlap_s: float | None = Field(default=None, gt=0)
    timeout_s: float = Field(default=WAIT_TIMEOUT_S, gt=0, le=MOST_WAIT_S)

    @model_validator(mode="after")
    def _one_time(self) -> _Step:
        if self.at is not None and (self.after or self.gap_s is not None or self.overlap_s is not None):
            raise ValueError("`at` is a fixed moment, so it cannot stand beside `after`, `gap_s` or `overlap_s`")
        if self.gap_s is not None and self.overlap_s is not None:
            raise ValueError("`gap_s` waits and `overlap_s` hurries; a step can have one of them")
        return self


class Say(_Step):
    """Somebody says something; `say` is the reference text of what is in the `audio` file.

    `answered`: whether the bot is to speak in answer to it; left out where either will do.
    """

    who: str
    say: str = Field(min_length=1)
    audio: Path
    answered: bool | None = None


class Command(_Step):
    """Somebody uses a slash command. `join` ends when the bot hears the room."""

    who: str
    command: str = Field(min_length=1)
    options: dict[str, OptionValue] = Field(default_factory=dict)


class Join(_Step):
    """Somebody enters the voice channel."""

    who: str
    join: Literal[True]


class Leave(_Step):
    """Somebody leaves the voice channel."""

    who: str
    leave: Literal[True]


class Show(_Step):
    """Somebody shows a picture (a JPEG) of their screen on the bot's page, which they open with `/watch start` first.

    Ends when the bot has noted something of it.
    """

    who: str
    shows: Path


class StopSharing(_Step):
    """Somebody stops sharing their screen."""

    who: str
    stops_sharing: Literal[True]


class SetNetwork(_Step):
    """From here on, voice packets fare like this."""

    network: NetworkSpec


class Fault(_Step):
    """The local Discord misbehaves once, by name: towards `who`, or towards the bot."""

    fault: str = Field(min_length=1)
    who: str = ""
    options: dict[str, float] = Field(default_factory=dict)


class Conduct(_Step):
    """From here on one of the scenario's own servers behaves like this; `expire` ends speech-to-speech sessions now.

    `first_token_s`: how long the model thinks from here on.
    """

    server: Literal["model", "fallback", "speech", "realtime"]
    conduct: str = Field(min_length=1)
    first_token_s: float | None = Field(default=None, ge=0, le=60)

    @model_validator(mode="after")
    def _only_models_think(self) -> Conduct:
        if self.first_token_s is not None and self.server not in {"model", "fallback"}:
            raise ValueError('`first_token_s` belongs to `server = "model"` and `"fallback"` alone')
        return self


class WaitFor(_Step):
    """Nothing goes on until it has happened; not happening within `timeout_s` fails the run's report.

    `reply`: the bot has spoken since the step before. `heard`: everything said so far became text.
    `compaction`: one landed (with `new_cursor`, one that reached it).
    """

    wait_for: Literal["reply", "heard", "compaction"]
    new_cursor: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _cursor_belongs_to_compaction(self) -> WaitFor:
        if self.new_cursor is not None and self.wait_for != "compaction":
            raise ValueError('`new_cursor` belongs to `wait_for = "compaction"` alone')
        return self


class Bot(_Step):
    """The bot's process: `kill` ends it at once, `restart` starts it again on what it had stored."""

    bot: Literal["kill", "restart"]


Step: TypeAlias = Say | Command | Join | Leave | Show | StopSharing | SetNetwork | Fault | Conduct | WaitFor | Bot

# The key that tells one kind of step from another.
STEP_KINDS: dict[str, type[Step]] = {
    "say": Say,
    "command": Command,
    "join": Join,
    "leave": Leave,
    "shows": Show,
    "stops_sharing": StopSharing,
    "network": SetNetwork,
    "fault": Fault,
    "server": Conduct,
    "wait_for": WaitFor,
    "bot": Bot,
}


class Premises(_Value):
    """Where it plays: everything of a scenario but people, steps, history and expectations."""

    title: str = Field(min_length=1)
    guild: str = Field(default="The Rehearsal", min_length=1)
    channel: str = Field(default="Lounge", min_length=1)
    text_channel: str = Field(default="general", min_length=1)
    bot: BotSpec = BotSpec()
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    network: NetworkSpec = NetworkSpec()
    servers: ServersSpec = ServersSpec()
    # The longest quiet at the end, in which the last words become text and the last reply is spoken.
    settle_s: float = Field(default=20.0, ge=0, le=600)


class Scenario(Premises):
    """A whole evening in miniature, checked and ready to be played. Paths are absolute."""

    people: tuple[PersonSpec, ...] = Field(min_length=1)
    history: tuple[HistoryTurn, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1)
    expect: tuple[Wanted, ...] = ()

    def person(self, key: str) -> PersonSpec:
        """Return the person with this key or display name. Raises `KeyError`."""
        for spec in self.people:
            if key in (spec.key, spec.name):
                return spec
        raise KeyError(key)

    @property
    def says(self) -> tuple[Say, ...]:
        """Return the spoken steps, in the order of the file."""
        return tuple(step for step in self.steps if isinstance(step, Say))

    def with_settings(self, settings: dict[str, SettingValue]) -> Scenario:
        """Return the same scenario with these settings of the bot over its own."""
        return self.model_copy(update={"settings": {**self.settings, **settings}})

    def with_network(self, network: NetworkSpec) -> Scenario:
        """Return the same scenario on another network."""
        return self.model_copy(update={"network": network})

    def with_patience(self, times: float) -> Scenario:
        """Return the same scenario with every wait so many times as long, as far as a wait may be."""
        steps = [step.model_copy(update={"timeout_s": min(step.timeout_s * times, MOST_WAIT_S)}) for step in self.steps]
        return self.model_copy(update={"steps": tuple(steps), "settle_s": self.settle_s * times})
