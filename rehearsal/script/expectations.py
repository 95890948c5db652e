"""What a scenario may expect of a run: declarative values that a person writes as `[[expect]]`.

These are only the words; `rehearsal.judge.expectations` judges them against what happened.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Words: TypeAlias = tuple[Annotated[str, Field(min_length=1)], ...]


class _Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class EveryUtteranceHeardOnce(_Wanted):
    """Every live utterance became text once: none missing, none twice.

    `may_miss`: the share of them that may be missing all the same (0.03 is 3 %). Recordings of strangers hold some
    that a small recogniser is rightly unsure of; what it misses still counts as word errors.
    """

    kind: Literal["every_utterance_heard_once"]
    may_miss: float = Field(default=0.0, ge=0.0, lt=1.0)


class Attributed(_Wanted):
    """Every live utterance that became text was written down under the person who said it."""

    kind: Literal["attributed"]


class MaxWer(_Wanted):
    """The word error rate of all live speech is at most `value` (0.15 is 15 %)."""

    kind: Literal["max_wer"]
    value: float = Field(ge=0, le=1)


class DaveFailures(_Wanted):
    """At most `max` packets failed to decrypt end to end."""

    kind: Literal["dave_failures"]
    max: int = Field(default=0, ge=0)


class Compaction(_Wanted):
    """A compaction landed that took the cursor from `old_cursor` to `new_cursor`."""

    kind: Literal["compaction"]
    old_cursor: int = Field(ge=0)
    new_cursor: int = Field(ge=1)


class Answer(_Wanted):
    """The bot answered the step `to`, and another participant heard the words.

    Every word of `all_of` and at least one of `any_of` (when given) must be in it, after Whisper's English
    normaliser. `heard`: judge what another participant heard and recognised, where a few letters may differ from what
    was said (`rehearsal.judge.evidence.sounds_like`), or else what the bot wrote, word for word. `after_ms`,
    `before_ms`: so long after the end of the question, at least and at most, that participant received the first
    voiced sound of it.
    """

    kind: Literal["answer"]
    to: str
    all_of: Words = ()
    any_of: Words = ()
    heard: bool = True
    after_ms: float | None = Field(default=None, gt=0)
    before_ms: float | None = Field(default=None, gt=0)


class Interrupted(_Wanted):
    """The bot's answer to the step `to` was broken off (`value` true) or spoken to its end (`value` false).

    `by`: the step that broke in. Then no other participant received the bot's voice any more `within_ms` after 700 ms
    of that step had been voiced.
    """

    kind: Literal["interrupted"]
    to: str
    value: bool = True
    by: str = ""
    within_ms: float = Field(default=250.0, gt=0)


class Silent(_Wanted):
    """From `within_s` after the step `since` ended, nobody received the bot's voice, until the step `until` began.

    Without `until`: until the end.
    """

    kind: Literal["silent"]
    since: str
    until: str = ""
    within_s: float = Field(default=1.0, ge=0)


class Thought(_Wanted):
    """The bot said something that nobody had asked for, `after_s` after the step `since` ended or later.

    Another participant heard all words of `all_of` in it, as in `Answer`.
    """

    kind: Literal["thought"]
    since: str
    after_s: float = Field(default=0.0, ge=0)
    all_of: Words = ()


class Recorded(_Wanted):
    """The timeline has a turn of `who` (a person's key or the bot's name) that contains these words as they are."""

    kind: Literal["recorded"]
    who: str
    contains: str = Field(min_length=1)
    value: bool = True


class ModelKnew(_Wanted):
    """What a model was sent for the answer to the step `to` contains these words as they are."""

    kind: Literal["model_knew"]
    to: str
    contains: str = Field(min_length=1)


class ToolCalled(_Wanted):
    """A model's call of the tool `name` was carried out, and what it was told of it has all `words`."""

    kind: Literal["tool_called"]
    name: str = Field(min_length=1)
    words: Words = ()


class Truncated(_Wanted):
    """The speech-to-speech model was told up to where its answer to the step `to` was heard, `within_ms` exactly."""

    kind: Literal["truncated"]
    to: str
    within_ms: float = Field(default=300.0, gt=0)


class RealtimeSessions(_Wanted):
    """The bot opened so many speech-to-speech sessions."""

    kind: Literal["realtime_sessions"]
    count: int = Field(ge=0)


class FactOnlyInSummary(_Wanted):
    """What was sent to the model for the answer to the step `to` had the words in the summary alone."""

    kind: Literal["fact_only_in_summary"]
    to: str
    words: Words = Field(min_length=1)


class NoticePosted(_Wanted):
    """The bot wrote a message in the text channel that contains these words (any message, if empty).

    `count`: exactly so many; None: one or more.
    """

    kind: Literal["notice_posted"]
    contains: str = ""
    count: int | None = Field(default=None, ge=0)


class NothingRaised(_Wanted):
    """Nothing was logged as an error; with `warnings`, nothing as a warning either."""

    kind: Literal["nothing_raised"]
    warnings: bool = False


class MinBotTurns(_Wanted):
    """The bot spoke at least `count` times."""

    kind: Literal["min_bot_turns"]
    count: int = Field(ge=1)


class MaxBotTurns(_Wanted):
    """The bot spoke at most `count` times: it did not interrupt what was not meant for it."""

    kind: Literal["max_bot_turns"]
    count: int = Field(ge=0)


class MaxLatency(_Wanted):
    """The given percentile of a latency is at most `ms`."""

    kind: Literal["max_latency"]
    stage: Literal["end_to_text_ms", "end_to_first_audio_ms"]
    percentile: Literal[50, 95] = 95
    ms: float = Field(gt=0)


class TurnsUnbroken(_Wanted):
    """Turn numbers of the whole run, restarts included, have no gap and no number twice."""

    kind: Literal["turns_unbroken"]


class TimelineComplete(_Wanted):
    """Every word that was heard stands in the timeline under its speaker, once."""

    kind: Literal["timeline_complete"]


Wanted: TypeAlias = (
    EveryUtteranceHeardOnce
    | Attributed
    | MaxWer
    | DaveFailures
    | Compaction
    | Answer
    | Interrupted
    | Silent
    | Thought
    | Recorded
    | ModelKnew
    | ToolCalled
    | Truncated
    | RealtimeSessions
    | FactOnlyInSummary
    | NoticePosted
    | NothingRaised
    | MinBotTurns
    | MaxBotTurns
    | MaxLatency
    | TurnsUnbroken
    | TimelineComplete
)

KINDS: dict[str, type[_Wanted]] = {
    "every_utterance_heard_once": EveryUtteranceHeardOnce,
    "attributed": Attributed,
    "max_wer": MaxWer,
    "dave_failures": DaveFailures,
    "compaction": Compaction,
    "answer": Answer,
    "interrupted": Interrupted,
    "silent": Silent,
    "thought": Thought,
    "recorded": Recorded,
    "model_knew": ModelKnew,
    "tool_called": ToolCalled,
    "truncated": Truncated,
    "realtime_sessions": RealtimeSessions,
    "fact_only_in_summary": FactOnlyInSummary,
    "notice_posted": NoticePosted,
    "nothing_raised": NothingRaised,
    "min_bot_turns": MinBotTurns,
    "max_bot_turns": MaxBotTurns,
    "max_latency": MaxLatency,
    "turns_unbroken": TurnsUnbroken,
    "timeline_complete": TimelineComplete,
}
