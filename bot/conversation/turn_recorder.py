"""Records speech, replies and events of a room as numbered turns, each with one log line.

If the store fails, the turn stays in memory and is stored with a later write.
Of a reply it records the part that was played, and writes a message into the channel if it failed.
Log lines never contain what was said.
"""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.question import DueReminder, Question, asker_id_of
from bot.brain.reply import Lapse, Reply, elapsed_ms
from bot.brain.reply_life import Fate
from bot.texts.text import ENGLISH, Text, in_language, joined, sentence_of, verbatim
from compaction.errors import StoreError
from compaction.model import Seq, Turn, TurnKind, TurnPart, UtteredWords
from voice.asr.sound_effect import is_sound_effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.channel.participants import Participants
    from bot.channel.port import Person
    from bot.clock import Clock
    from bot.conversation.reminding import Reminding
    from bot.events import SpokenText
    from bot.participation.participation import Participation
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# The bot's own speaker id in turns; people have Discord's numbers.
OWN_ID = "assistant"
# A sound that a person repeats within this time is one turn. Hearing drops repeated words already.
SAME_EFFECT_S = 10.0


class TurnRecorder:
    """Records one session's turns. `own_name`: the bot's name in its turns. Not thread-safe."""

    def __init__(
        self,
        timeline: SessionTimeline,
        participants: Participants,
        *,
        own_name: str,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._timeline = timeline
        self._participants = participants
        # Reserved, so that nobody else's turns bear it.
        self._own_name = timeline.name_of(OWN_ID, own_name)
        self._clock = clock
        self._observe = observe
        self._store_failing = False

    async def record_speech(self, group: Sequence[SpokenText], *, called: bool = False) -> Turn | None:
        """Record a group of utterances as one turn. Returns None if it is a sound effect that repeats the last turn.

        `called`: all of it is said to the bot.
        """
        kind = TurnKind.EFFECT if all(is_sound_effect(spoken.text) for spoken in group) else TurnKind.SPEECH
        parts, started_at, ended_at = self._spoken(group)
        if kind is TurnKind.EFFECT and self._repeats(kind, parts, started_at):
            return None
        return await self._record(kind, parts, started_at, ended_at, utterances=tuple(group), called=called)

    def preview_speech(self, group: Sequence[SpokenText]) -> Turn:
        """Return the turn that a group of utterances would become now. Records nothing."""
        parts, started_at, ended_at = self._spoken(group)
        return Turn(Seq(self._timeline.total_turns), TurnKind.SPEECH, started_at, ended_at, parts)

    def _spoken(self, group: Sequence[SpokenText]) -> tuple[tuple[TurnPart, ...], float, float]:
        """Return what was said in a group of utterances, and from when to when, in Unix seconds."""
        began_at = [self._epoch(spoken.started_at) for spoken in group]
        parts = _parts(group, [self._participants.name(spoken.user_id) for spoken in group], began_at)
        return parts, min(began_at), self._epoch(max(spoken.ended_at for spoken in group))

    async def record_typed(self, person: Person, text: str) -> Turn:
        """Record what somebody has typed to the bot just now."""
        now = self._clock.now()
        part = TurnPart(str(person.id), self._timeline.name_of(str(person.id), person.name), text)
        return await self._record(TurnKind.TYPED, (part,), now, now)

    async def record_membership(self, person: Person, what: str) -> Turn:
        """Record that somebody joined or left. `what`: follows their name in a sentence."""
        now = self._clock.now()
        name = self._timeline.name_of(str(person.id), person.name)
        part = TurnPart(str(person.id), name, f"{name} {what}")
        return await self._record(TurnKind.MEMBERSHIP, (part,), now, now)

    async def record_reply(self, reply: Reply, first_audio_at: float) -> Turn:
        """Record the part of a reply that was heard, and log how long each stage took."""
        text = f"{reply.text} (interrupted)" if reply.interrupted else reply.text
        part = TurnPart(OWN_ID, self._own_name, text)
        turn = await self._record(
            TurnKind.ASSISTANT,
            (part,),
            self._epoch(first_audio_at),
            self._epoch(reply.ended_at),
            reply=reply,
        )
        asked = reply.spoken
        _log_reply(
            turn,
            reply.question,
            char_count=len(text),
            interrupted=reply.interrupted,
            model_first_token_ms=reply.model_first_token_ms,
            synthesis_first_audio_ms=reply.synthesis_first_audio_ms,
            end_to_first_audio_ms=None if asked is None else elapsed_ms(asked.ended_at, first_audio_at),
            spoken_s=round(reply.ended_at - first_audio_at, 2),
        )
        return turn

    async def record_written_reply(self, reply: Reply, text: str) -> Turn:
        """Record an answer, or the rest of one, that people read."""
        at, part = self._clock.now(), TurnPart(OWN_ID, self._own_name, text)
        turn = await self._record(TurnKind.ASSISTANT, (part,), at, at, reply=reply)
        _log_reply(turn, reply.question, char_count=len(text), written=True)
        return turn

    def _repeats(self, kind: TurnKind, parts: tuple[TurnPart, ...], started_at: float) -> bool:
        """Return whether the last turn has the same content and was a moment ago; log the omission if so."""
        turns = self._timeline.turns
        if not turns or turns[-1].kind is not kind or _said(turns[-1].parts) != _said(parts):
            return False
        if started_at - turns[-1].ended_at > SAME_EFFECT_S:
            return False
        log.info("turn_left_out", kind=kind.value, reason="duplicate", seq=turns[-1].seq)
        return True

    async def _record(
        self,
        kind: TurnKind,
        parts: tuple[TurnPart, ...],
        started_at: float,
        ended_at: float,
        *,
        utterances: tuple[SpokenText, ...] = (),
        called: bool = False,
        reply: Reply | None = None,
    ) -> Turn:
        """Append a turn to the timeline and the store, and emit it. Times are UTC epoch seconds. `reply`: its. One that
        is made of what was taken back meanwhile is recorded without its words.

        *Cancellation*: the turn is in memory, and stored with the next write or when the memory is closed, so it is
        emitted too.
        """
        seq = self._timeline.total_turns
        question = None if reply is None else reply.question
        asker_id = None if question is None else asker_id_of(question)
        try:
            turn = await self._timeline.append(
                kind,
                parts if reply is None or reply.lease.valid else (),
                started_at=started_at,
                ended_at=ended_at,
                answers=None if question is None else question.turn.seq,
                called=called,
                told_to=() if asker_id is None else (str(asker_id),),
                sources=question.sources if isinstance(question, DueReminder) else (),
            )
        except StoreError as error:
            # Other turns may have been appended while the store was busy.
            turn = self._timeline.turn(seq)
            self._emit(turn, utterances)
            self._report_failure(turn, error)
            return turn
        except asyncio.CancelledError:
            self._emit(self._timeline.turn(seq), utterances)
            raise
        self._store_failing = False
        self._emit(turn, utterances)
        return turn

    def _emit(self, turn: Turn, utterances: tuple[SpokenText, ...] = ()) -> None:
        self._observe(events.TurnRecorded(turn, self._clock.monotonic(), utterances))

    def _report_failure(self, turn: Turn, error: StoreError) -> None:
        """Tell the log and the observer that the store fails, unless it did so before."""
        if self._store_failing:
            return
        self._store_failing = True
        log.error("turn_not_stored", seq=turn.seq, problem=error)
        self._observe(events.Problem("store", sentence_of(error), self._clock.monotonic()))

    def _epoch(self, monotonic: float) -> float:
        return self._clock.now() - (self._clock.monotonic() - monotonic)


def _parts(group: Sequence[SpokenText], names: Sequence[str], began_at: Sequence[float]) -> tuple[TurnPart, ...]:
    """Return everybody's words in order; consecutive words of one person are one part."""
    parts = []
    in_order = zip(group, names, began_at, strict=True)
    for speaker_id, said in groupby(in_order, key=lambda each: str(each[0].user_id)):
        theirs = list(said)
        words = [UtteredWords(at, spoken.text, spoken.ended_at - spoken.started_at) for spoken, _, at in theirs]
        parts.append(TurnPart.spoken(speaker_id, theirs[0][1], words))
    return tuple(parts)


def _said(parts: Sequence[TurnPart]) -> list[tuple[str, str]]:
    return [(part.speaker_id, part.text) for part in parts]


def _log_reply(turn: Turn, question: Question, **figures: object) -> None:
    log.info(
        "turn_recorded",
        seq=turn.seq,
        kind=turn.kind.value,
        speaker_id=OWN_ID,
        answer_to=question.turn.seq,
        **figures,
    )


UNSPOKEN = Text("I wanted to say: {words}")


class FailureMessages:
    """The messages about failed replies in one room's channel. Pure.

    Words that could not be spoken are written each time, because somebody waits for them, and so is the reason why
    nothing at all was heard. Who has heard an apology reads its reason once until a reply is spoken again. Otherwise a
    voice or a model that fails for an evening would fill the channel with it.
    """

    def __init__(self) -> None:
        self._written_reasons: set[str] = set()

    def format(self, reply: Reply) -> Text:
        """Return the message about a finished reply; empty if it did not fail."""
        if reply.failure is None:
            if reply.text:
                self._written_reasons.clear()
            return verbatim("")
        # As people read it: what only the operator can tell apart is one reason.
        reason = in_language(reply.failure, ENGLISH)
        is_known = reason in self._written_reasons
        self._written_reasons.add(reason)
        if reply.unsaid:
            words = UNSPOKEN.fill(words=reply.unsaid)
            return words if is_known else joined((reply.failure, words), "\n")
        return verbatim("") if is_known and reply.text else reply.failure


class ReplyRecorder:
    """Records the replies of one room. `reminding`: told of the reminders among them."""

    def __init__(
        self,
        participation: Participation,
        turn_recorder: TurnRecorder,
        reminding: Reminding,
        *,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._reminding = reminding
        self._clock = clock
        self._observe = observe
        self._failure_messages = FailureMessages()

    async def record(self, reply: Reply) -> None:
        """Count the speech of a finished reply, record the part that was played or written, and have its failure
        written into the channel.
        """
        delivered = " ".join(filter(None, (reply.text, reply.unsaid)))
        self._participation.on_reply_ended(
            asker_id_of(reply.question),
            delivered,
            spoken_s=0.0 if reply.first_audio_at is None else reply.ended_at - reply.first_audio_at,
            # A model that failed has not found that somebody else is meant.
            skipped=reply.lapse is Lapse.SKIPPED,
        )
        if reply.skipped:
            log.info("reply_skipped", answer_to=reply.question.turn.seq)
        if reply.failure is not None:
            self._observe(events.Problem("reply", reply.failure, self._clock.monotonic()))
        if reply.text and reply.first_audio_at is not None:
            await self._record_spoken(reply, reply.first_audio_at)
        if reply.unsaid:
            await self._turn_recorder.record_written_reply(reply, reply.unsaid)
        # Not waited for: Discord may take seconds, and the next answer must not.
        if message := self._failure_messages.format(reply):
            self._participation.notices.add(message, lease=reply.lease if reply.unsaid else None)
        self._observe(_finished(reply))
        self._reminding.on_reply(reply)

    async def record_written(self, reply: Reply, text: str) -> None:
        """Record an answer in writing. `text`: the part that people can read."""
        self._participation.on_reply_ended(None, text, spoken_s=0.0, skipped=False)
        if text:
            await self._turn_recorder.record_written_reply(reply, text)

    async def _record_spoken(self, reply: Reply, first_audio_at: float) -> None:
        await self._turn_recorder.record_reply(reply, first_audio_at)
        self._observe(
            events.ReplySpoken(
                text=reply.text,
                answer_to=reply.question.turn.seq,
                utterance_id=None if reply.spoken is None else reply.spoken.utterance_id,
                first_audio_at=first_audio_at,
                ended_at=reply.ended_at,
                interrupted=reply.interrupted,
                model_first_token_ms=reply.model_first_token_ms,
                synthesis_first_audio_ms=reply.synthesis_first_audio_ms,
            )
        )


def _finished(reply: Reply) -> events.ReplyFinished:
    token_ms, synthesis_ms = reply.model_first_token_ms, reply.synthesis_first_audio_ms
    return events.ReplyFinished(
        answer_to=reply.question.turn.seq,
        outcome=_outcome(reply),
        asked_at=None if reply.spoken is None else reply.spoken.ended_at,
        begun_at=reply.begun_at,
        first_token_at=None if token_ms is None else reply.begun_at + token_ms / 1000,
        synthesis_s=None if synthesis_ms is None else synthesis_ms / 1000,
        first_audio_at=reply.first_audio_at,
        ended_at=reply.ended_at,
        heard_words=reply.heard_words,
    )


def _outcome(reply: Reply) -> events.ReplyOutcome:
    if reply.skipped:
        return events.ReplyOutcome.SKIPPED
    if reply.life.fate is not Fate.RECORDED:
        return events.ReplyOutcome.GAVE_WAY
    if reply.lapse is Lapse.UNHEARD:
        return events.ReplyOutcome.UNSPOKEN
    if reply.failure is not None:
        return events.ReplyOutcome.FAILED
    if not reply.text:
        return events.ReplyOutcome.SILENT
    return events.ReplyOutcome.INTERRUPTED if reply.interrupted else events.ReplyOutcome.SPOKEN
