"""Plays a situation in writing through the real room, and returns the messages that the model gets for its question."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from bot.screen.messages import ANY_SURFACE, format_share_start
from bot.screen.sharer import Sharer, ShareRecorder
from compaction.model import TurnKind, TurnPart
from rehearsal.roomtone.written.channel import speech_duration_s
from rehearsal.roomtone.written.player import AFTER_SPEECH_S, ScenarioEndedError, open_player
from rehearsal.roomtone.written.scripted_model import RecordedSummariser, WrittenModel
from rehearsal.roomtone.written.services import written_settings
from rehearsal.script.scenario import AFTER_VOICE, FIRST_PERSON_ID, BotSpec, JoinStep, PersonSpec, SayStep, Scenario
from rehearsal.script.situation import SituationQuestion
from voice.screen.notes import ScreenNote, ScreenNoteReason
from voice.screen.port import VisionSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.channel.port import Person
    from bot.llm.port import ChatMessage
    from rehearsal.roomtone.written.player import WrittenPlayer
    from rehearsal.script.situation import SituationFile, SituationNote, SituationScript, SituationTurn

# Nobody is shown it.
_ANSWER = "All right."
# What is said next began later than what was seen, though the room counts the moment before it too.
_BEFORE_SPEECH_S = 1.0
# How much two lines overlap that are spoken at the same time.
_OVERLAP_S = 0.5


class _Typed:
    """What the asker types (`bot.channel.port.TypedMessage`)."""

    recording = None

    def __init__(self, person: Person, text: str) -> None:
        self.person, self.text = person, text

    async def answer(self, text: str) -> bool:
        """Take the answer, which nobody reads."""
        return bool(text)


async def play_situation(
    file: SituationFile, overrides: Mapping[str, object] = MappingProxyType({})
) -> tuple[ChatMessage, ...]:
    """Play a situation, and return the messages that the model gets for its question. `overrides`: settings by dotted
    name.

    Raises `ScenarioError` with the line at which the room does something else than the file says.
    """
    scenario, model = _scenario(file.situation), WrittenModel()
    if file.folds is not None:
        model.summariser = RecordedSummariser(file.folds)
    settings = written_settings(scenario, overrides)
    async with open_player(scenario, settings, model=model, begins_at=file.situation.begins_at) as player:
        return await _SituationPlayer(file, player, model).play()


def _scenario(situation: SituationScript) -> Scenario:
    """Return a scenario with the people of a situation. It has one step, because there is none without."""
    people = tuple(
        PersonSpec(key=name, name=name, id=FIRST_PERSON_ID + number, present=name != situation.joins_late)
        for number, name in enumerate(situation.everybody)
    )
    asked = SayStep(who=situation.question.speaker, say=situation.question.text)
    return Scenario(title=situation.id, written=True, bot=BotSpec(name=situation.bot), people=people, steps=(asked,))


class _SituationPlayer:
    """Plays one situation with the player of its room."""

    def __init__(self, file: SituationFile, player: WrittenPlayer, model: WrittenModel) -> None:
        self._file, self._situation = file, file.situation
        self._player, self._model = player, model
        self._lines: Sequence[SituationTurn] = (*self._situation.history, self._situation.question)
        # When the last line ended, in the seconds of the talk.
        self._ended_at = 0.0
        self._replies = 0
        self._sharers: dict[str, Sharer] = {}

    async def play(self) -> tuple[ChatMessage, ...]:
        """Play the talk and the question; return what the model was sent for that."""
        notes, at = list(self._situation.note), 0
        await self._player.begin()
        while at < len(self._lines):
            while notes and notes[0].after_turn <= at:
                await self._see(notes.pop(0))
            try:
                played = await self._play_from(at)
            except ScenarioEndedError as error:
                raise self._file.error(at, str(error).rstrip(".")) from error
            if failed := self._player.record.failed_waits:
                raise self._file.error(at, f"the room {failed[0]}")
            at += played
        return tuple(self._model.endpoint.sent[0])

    async def _play_from(self, at: int) -> int:
        """Play the line at `at` with those that are spoken over it and the bot's reply; return how many these are."""
        first, bot = self._lines[at], self._situation.bot
        if first.event:
            await self._player.perform([(at, JoinStep(who=first.speaker, join=True))])
            return 1
        end = at + 1
        while end < len(self._lines) and self._lines[end].overlaps_previous and self._lines[end].speaker != bot:
            end += 1
        steps = [self._said(line) for line in self._lines[at:end]]
        said, reply = self._lines[at:end], self._reply_at(end)
        self._model.endpoint.replies = {line.text: reply.full_text or reply.text for line in said} if reply else {}
        if reply is not None:
            end += 1
            if reply.interrupted and end < len(self._lines):
                self._player.breaks_off_after_s = speech_duration_s(reply.text)
                steps.append(SayStep(who=self._lines[end].speaker, say=self._lines[end].text, after=AFTER_VOICE))
                if second := self._reply_at(end + 1):
                    self._model.endpoint.replies[self._lines[end].text] = second.full_text or second.text
                end += 2 if second else 1
        self._replies += sum(line.speaker == bot for line in self._lines[at:end])
        if isinstance(first, SituationQuestion):
            await self._ask(first, steps)
        else:
            await self._player.perform(list(enumerate(steps, at)))
            await self._player.until(
                lambda: len(self._player.record.replies) >= self._replies, f'the answer to "{first.text}"'
            )
        last = self._lines[end - 1]
        self._ended_at = last.at_s + speech_duration_s(last.text)
        return end - at

    def _reply_at(self, at: int) -> SituationTurn | None:
        """Return the bot's line at `at`, if there is one."""
        is_reply = at < len(self._lines) and self._lines[at].speaker == self._situation.bot
        return self._lines[at] if is_reply else None

    def _said(self, line: SituationTurn) -> SayStep:
        if line.overlaps_previous:
            return SayStep(who=line.speaker, say=line.text, overlap_s=_OVERLAP_S)
        return SayStep(who=line.speaker, say=line.text, gap_s=max(0.0, line.at_s - self._ended_at - AFTER_SPEECH_S))

    async def _ask(self, question: SituationQuestion, steps: Sequence[SayStep]) -> None:
        """Ask the question and wait until the model is asked."""
        assert self._model.timeline is not None, "the room is open"
        await self._model.timeline.settle()
        endpoint = self._model.endpoint
        endpoint.sent.clear()
        endpoint.replies = {question.text: _ANSWER}
        self._player.ears.language = question.language
        if question.typed:
            await self._player.take_typed(_Typed(self._player.people[question.speaker], question.text))
        else:
            await self._player.perform(list(enumerate(steps)))
        await self._player.until(lambda: bool(endpoint.sent), "the bot to think about the question")

    async def _see(self, note: SituationNote) -> None:
        """Let the bot see a screen; the first time, the person has just begun to share it."""
        timeline, clock, person = self._model.timeline, self._player.clock, self._player.people[note.who]
        assert timeline is not None, "the room is open"
        sharer = self._sharers.get(note.who)
        why = ScreenNoteReason.CUT
        if sharer is None:
            sharer, why = Sharer(person, note.who), ScreenNoteReason.SHARE_START
            self._sharers[note.who] = sharer
            part = TurnPart(str(person.id), person.name, format_share_start(person.name, ANY_SURFACE))
            await timeline.append(TurnKind.MEMBERSHIP, (part,), started_at=clock.now(), ended_at=clock.now())
        recorder = ShareRecorder(
            timeline,
            guild_id=self._player.channel.guild_id,
            clock=clock,
            on_turn=lambda _: None,
            on_note=lambda _: None,
            excludes=lambda _: False,
        )
        await recorder.take_note(sharer, ScreenNote(clock.now(), note.text, why, VisionSource.MODEL, ""))
        await self._player.rest(_BEFORE_SPEECH_S)
