"""The expectations of a scenario: the values of its `[[expect]]` tables.

`rehearsal.judge.expectations` judges them against what happened.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Phrases: TypeAlias = tuple[Annotated[str, Field(min_length=1)], ...]


class _Expectation(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class _OfAnswer(_Expectation):
    """What is expected of the answer to the step `to`."""

    to: str


class ExpectEveryUtteranceHeardOnce(_Expectation):
    """Every spoken line became text exactly once.

    `may_miss`: the share of lines that may be missing (0.03 is 3 %). It is for recordings of strangers, because a small
    recogniser drops a few of those. Missing lines still count as word errors. `whole`: the steps whose line must be one
    utterance, whatever pauses it has.
    """

    kind: Literal["every_utterance_heard_once"]
    whole: tuple[str, ...] = ()
    may_miss: float = Field(default=0.0, ge=0.0, lt=1.0)


class ExpectAttributed(_Expectation):
    """Every line that became text was attributed to the person who said it."""

    kind: Literal["attributed"]


class ExpectMaxWer(_Expectation):
    """The word error rate of everything that was spoken is at most `value` (0.15 is 15 %)."""

    kind: Literal["max_wer"]
    value: float = Field(ge=0, le=1)


class ExpectDaveFailures(_Expectation):
    """At most `max` packets failed to decrypt end to end."""

    kind: Literal["dave_failures"]
    max: int = Field(default=0, ge=0)


class ExpectCompaction(_Expectation):
    """A compaction was stored that moved the cursor from `old_cursor` to `new_cursor`."""

    kind: Literal["compaction"]
    old_cursor: int = Field(ge=0)
    new_cursor: int = Field(ge=1)


class ExpectCompactionsUnbroken(_Expectation):
    """Compactions follow each other from turn 0 without a gap, and none failed."""

    kind: Literal["compactions_unbroken"]


class ExpectPromptsComplete(_Expectation):
    """Every answer has a prompt of at most `max_tokens`, and each earlier turn is in it or in its summary."""

    kind: Literal["prompts_complete"]
    max_tokens: int = Field(ge=1)


class ExpectAnswer(_OfAnswer):
    """The bot answered the step `to`, and another participant heard the words.

    The answer must have every word of `all_of` and at least one of `any_of` (when given), after Whisper's English
    normaliser. `heard` true: judge what another participant heard and recognised; a few letters may differ
    (`rehearsal.words.sounds_like`). `heard` false: judge the bot's own text, word for word. `after_ms`,
    `before_ms`: the earliest and latest time, from the end of the question, at which that participant may receive the
    first voiced sound.
    """

    kind: Literal["answer"]
    all_of: Phrases = ()
    any_of: Phrases = ()
    heard: bool = True
    after_ms: float | None = Field(default=None, gt=0)
    before_ms: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _expects_words(self) -> ExpectAnswer:
        if not (self.all_of or self.any_of):
            raise ValueError("an answer needs `all_of` or `any_of`")
        return self


class ExpectInterrupted(_OfAnswer):
    """The bot's answer to the step `to` was broken off (`value` true) or spoken to its end (`value` false).

    `by`: the step that interrupted it; the other participant must stop receiving the bot's voice after that step has
    begun, and within `within_ms` after 700 ms of it were voiced. Two seconds tell it from a step whose words or end
    did it; how soon it stops is measured by `bench reply`.
    """

    kind: Literal["interrupted"]
    value: bool = True
    by: str = ""
    within_ms: float = Field(default=2_000.0, gt=0)


class ExpectSilent(_Expectation):
    """Nobody received the bot's voice from `within_s` after the end of the step `since` until the step `until` began.

    Without `until` this lasts until the end of the run, which must come later.
    """

    kind: Literal["silent"]
    since: str
    until: str = ""
    within_s: float = Field(default=1.0, ge=0)


class ExpectThought(_Expectation):
    """The bot spoke without being asked, at least `after_s` after the step `since` ended.

    Another participant heard all words of `all_of` in what it said, as in `ExpectAnswer`.
    """

    kind: Literal["thought"]
    since: str
    after_s: float = Field(default=0.0, ge=0)
    all_of: Phrases = ()


class ExpectRecorded(_Expectation):
    """The timeline has a turn of `who` that contains this text (`value` true), or has none (`value` false).

    Small and capital letters are the same.

    `who`: a person's key or the bot's name.
    """

    kind: Literal["recorded"]
    who: str
    contains: str = Field(min_length=1)
    value: bool = True


class ExpectModelKnew(_OfAnswer):
    """The prompt for the answer to the step `to` contains this text."""

    kind: Literal["model_knew"]
    contains: str = Field(min_length=1)


class ExpectToolCalled(_Expectation):
    """A model called the tool `name`, and the results that were sent to the model have all `words`."""

    kind: Literal["tool_called"]
    name: str = Field(min_length=1)
    words: Phrases = ()


class ExpectTruncated(_OfAnswer):
    """The speech-to-speech model was informed where its answer to the step `to` was cut off, correct to `within_ms`."""

    kind: Literal["truncated"]
    within_ms: float = Field(default=300.0, gt=0)


class ExpectRealtimeSessions(_Expectation):
    """The bot opened exactly `count` speech-to-speech sessions."""

    kind: Literal["realtime_sessions"]
    count: int = Field(ge=0)


class ExpectFactOnlyInSummary(_OfAnswer):
    """In the prompt for the answer to the step `to`, only the summary has the words."""

    kind: Literal["fact_only_in_summary"]
    words: Phrases = Field(min_length=1)


class ExpectNoticePosted(_Expectation):
    """The bot wrote a message that contains this text, also in an embed (if empty: any message).

    `count`: exactly this many messages; None: one or more.
    """

    kind: Literal["notice_posted"]
    contains: str = ""
    count: int | None = Field(default=None, ge=0)


class ExpectNothingRaised(_Expectation):
    """No error was logged; with `warnings` true, no warning either."""

    kind: Literal["nothing_raised"]
    warnings: bool = False


class ExpectMinBotTurns(_Expectation):
    """Another participant heard the bot at least `count` times."""

    kind: Literal["min_bot_turns"]
    count: int = Field(ge=1)


class ExpectMaxBotTurns(_Expectation):
    """The bot spoke at most `count` times."""

    kind: Literal["max_bot_turns"]
    count: int = Field(ge=0)


class ExpectTurnsUnbroken(_Expectation):
    """The turn numbers of the whole run, restarts included, have no gap and no duplicate."""

    kind: Literal["turns_unbroken"]


class ExpectTimelineComplete(_Expectation):
    """Every word that the bot heard is in the timeline once, under its speaker."""

    kind: Literal["timeline_complete"]


Expectation: TypeAlias = (
    ExpectEveryUtteranceHeardOnce
    | ExpectAttributed
    | ExpectMaxWer
    | ExpectDaveFailures
    | ExpectCompaction
    | ExpectCompactionsUnbroken
    | ExpectPromptsComplete
    | ExpectAnswer
    | ExpectInterrupted
    | ExpectSilent
    | ExpectThought
    | ExpectRecorded
    | ExpectModelKnew
    | ExpectToolCalled
    | ExpectTruncated
    | ExpectRealtimeSessions
    | ExpectFactOnlyInSummary
    | ExpectNoticePosted
    | ExpectNothingRaised
    | ExpectMinBotTurns
    | ExpectMaxBotTurns
    | ExpectTurnsUnbroken
    | ExpectTimelineComplete
)

# Each kind by its name.
EXPECTATION_KINDS: dict[str, type[_Expectation]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(Expectation)
}
