"""Plays a situation in writing through the real room, and returns what the model is sent for its questions."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from bot import events
from bot.channel.port import Person
from bot.screen.messages import ANY_SURFACE, format_share_start
from bot.screen.sharer import Sharer, ShareRecorder
from bot.words import Words
from compaction.model import TurnKind, TurnPart
from compaction.ports import Embedder
from compaction.session import SessionTimeline
from rehearsal.roomtone.written.channel import speech_duration_s
from rehearsal.roomtone.written.room import AFTER_SPEECH_S, WrittenRoom
from rehearsal.roomtone.written.scripted_model import RecordedSummariser, SentMessages, WrittenModel
from rehearsal.roomtone.written.services import written_settings
from rehearsal.runner.play import ScenarioRun
from rehearsal.runner.ports import RunError
from rehearsal.script.scenario import AFTER_VOICE, FIRST_PERSON_ID, BotSpec, JoinStep, PersonSpec, SayStep, Scenario
from rehearsal.script.situation import (
    SituationFile,
    SituationNote,
    SituationQuestion,
    SituationScript,
    SituationTurn,
)
from voice.screen.notes import ScreenNote, ScreenNoteReason
from voice.screen.port import VisionSource

# Nobody is shown it.
_ANSWER = "All right."
# What is said next began later than what was seen, though the room counts the moment before it too.
_BEFORE_SPEECH_S = 1.0
# How much two lines overlap that are spoken at the same time.
_OVERLAP_S = 0.5
# How long what the file says may take in the room.
_PATIENCE_S = 60.0


class _Typed:
    """What the asker types (`bot.channel.port.TypedMessage`)."""

    recording = None

    def __init__(self, person: Person, text: str) -> None:
        self.person, self.text = person, text

    async def answer(self, text: str) -> bool:
        """Take the answer, which nobody reads."""
        return bool(text)


@dataclass(frozen=True, slots=True)
class PlayedQuestion:
    """What the model is sent for a question (`first`), and once it has searched the memory for it (`last`; the first
    where it may not search). `failed`: why folds failed before.
    """

    first: SentMessages
    last: SentMessages
    failed: tuple[str, ...]


async def play_situation(
    file: SituationFile,
    overrides: Mapping[str, object] = MappingProxyType({}),
    *,
    embedder: Embedder | None = None,
) -> tuple[PlayedQuestion, ...]:
    """Play a situation, and ask its questions. `overrides`: settings by dotted name. `embedder`: takes no virtual time;
    None: search is by words alone. It needs the loop of `run_virtually`.

    The talk is played once. More than one question is asked as after a restart: each of a copy of what is stored.
    Raises `ScenarioError` with the line at which the room does something else than the file says.
    """
    situation, more = file.situation, file.situation.more_questions
    with TemporaryDirectory(prefix="roomtone-situation-") as folder:
        copies = [Path(folder) / str(number) for number, _ in enumerate(more)]
        player = _SituationPlayer(file, situation, overrides, embedder, Path(folder) / "talk", situation.begins_at)
        played = [await player.play(copies)]
        for question, copy in zip(more, copies, strict=True):
            here = {"people": situation.everybody, "joins_late": None}
            # The copy begins where the talk ends.
            at_s = max(0.0, situation.begins_at + question.at_s - player.asked_at)
            asked = question.model_copy(update={"at_s": at_s})
            alone = situation.model_copy(update={**here, "history": (), "note": (), "question": asked})
            asking = _SituationPlayer(file, alone, overrides, embedder, copy, player.asked_at)
            played.append(await asking.play())
    return tuple(played)


class _SituationPlayer:
    """Plays one situation: the lines of people are steps of a scenario, those of the bot are what its model says."""

    def __init__(
        self,
        file: SituationFile,
        situation: SituationScript,
        overrides: Mapping[str, object],
        embedder: Embedder | None,
        folder: Path,
        begins_at: float,
    ) -> None:
        self._file, self._situation, self._folder = file, situation, folder
        self.asked_at = begins_at
        self._lines: tuple[SituationTurn, ...] = (*self._situation.history, self._situation.question)
        spoken = [at for at, line in enumerate(self._lines) if line.speaker != self._situation.bot]
        # The number of each line's step.
        self._numbers = {at: number for number, at in enumerate(spoken)}
        scenario = self._scenario()
        self._model = WrittenModel(embedder=embedder)
        if file.folds is not None:
            self._model.summariser = RecordedSummariser(file.folds)
        settings = written_settings(scenario, overrides)
        self._room = WrittenRoom(scenario, settings, data_dir=folder, model=self._model, begins_at=begins_at)
        self._run = ScenarioRun(scenario, self._room, self._room, self._room.start)
        self._people = {person.name: person for person in self._room.people.values()}
        self._replies = 0
        self._sharers: dict[str, Sharer] = {}

    def _scenario(self) -> Scenario:
        situation = self._situation
        people = tuple(
            PersonSpec(key=name, name=name, id=FIRST_PERSON_ID + number, present=name != situation.joins_late)
            for number, name in enumerate(situation.everybody)
        )
        steps = tuple(self._step(at) for at in self._numbers)
        return Scenario(title=situation.id, written=True, bot=BotSpec(name=situation.bot), people=people, steps=steps)

    def _step(self, at: int) -> SayStep | JoinStep:
        line, before = self._lines[at], self._lines[at - 1] if at else None
        if line.event:
            return JoinStep(who=line.speaker, join=True)
        ended_at = 0.0 if before is None else before.at_s + speech_duration_s(before.text)
        when: dict[str, Any] = {"gap_s": max(0.0, line.at_s - ended_at - AFTER_SPEECH_S)}
        if before is not None and before.interrupted:
            when = {"after": AFTER_VOICE, "gap_s": speech_duration_s(before.text)}
        elif before is not None and line.overlaps_previous:
            when = {"overlap_s": _OVERLAP_S}
        return SayStep(who=line.speaker, say=line.text, **when)

    async def play(self, copies: Sequence[Path] = ()) -> PlayedQuestion:
        """Play the talk, copy what is stored to `copies`, and ask the question."""
        notes, at = list(self._situation.note), 0
        async with self._room:
            await self._run.begin()
            timeline = self._model.timeline
            assert timeline is not None, "the room is open"
            while at < len(self._lines):
                while notes and notes[0].after_turn <= at:
                    await self._see(notes.pop(0), timeline)
                if at == len(self._lines) - 1:
                    await timeline.settle()
                    self.asked_at = self._room.clock.now()
                    for copy in copies:
                        shutil.copytree(self._folder, copy)
                at = await self._play_from(at)
        calls = self._model.endpoint.calls
        failed = tuple(each.reason for each in self._run.record.failed_compactions)
        return PlayedQuestion(calls[0], calls[-1], failed)

    async def _play_from(self, at: int) -> int:
        """Play the line at `at` with those that are spoken over it and the bot's reply; return which line is next."""
        first, bot, end = self._lines[at], self._situation.bot, at + 1
        while end < len(self._lines) and self._lines[end].overlaps_previous and self._lines[end].speaker != bot:
            end += 1
        said, reply = self._lines[at:end], self._reply_at(end)
        replies = {line.text: reply.full_text or reply.text for line in said} if reply else {}
        if reply is not None:
            end += 1
            if reply.interrupted and end < len(self._lines):
                if second := self._reply_at(end + 1):
                    replies[self._lines[end].text] = second.full_text or second.text
                end += 2 if second else 1
        self._model.endpoint.replies = replies
        self._replies += sum(line.speaker == bot for line in self._lines[at:end])
        numbers = [self._numbers[each] for each in range(at, end) if each in self._numbers]
        try:
            if isinstance(first, SituationQuestion):
                await self._ask(first, numbers, at)
            else:
                await self._run.perform(numbers)
                what = f'"{first.text}" is not heard and answered as the file says'
                await self._until(self._is_heard_and_answered, what, at)
        except RunError as error:
            raise self._file.error(at, str(error).rstrip(".")) from error
        return end

    def _reply_at(self, at: int) -> SituationTurn | None:
        """Return the bot's line at `at`, if there is one."""
        is_reply = at < len(self._lines) and self._lines[at].speaker == self._situation.bot
        return self._lines[at] if is_reply else None

    def _is_heard_and_answered(self) -> bool:
        record = self._run.record
        return record.all_lines_heard and len(record.replies) >= self._replies

    async def _until(self, holds: Callable[[], bool], missed: str, at: int) -> None:
        """Wait until `holds`. Raises `ScenarioError` if that takes too long, or if a step has waited in vain."""
        record = self._run.record
        if not await record.wait_until(holds, timeout_s=_PATIENCE_S) or record.failed_waits:
            raise self._file.error(at, next(iter(record.failed_waits), missed))

    async def _ask(self, question: SituationQuestion, numbers: list[int], at: int) -> None:
        """Ask the question and wait until the model is asked."""
        endpoint = self._model.endpoint
        endpoint.calls.clear()
        endpoint.answered = False
        endpoint.query = question.text
        endpoint.replies = {question.text: _ANSWER}
        self._room.ears.language = question.language
        if question.typed:
            await self._room.take_typed(_Typed(self._people[question.speaker], question.text))
        else:
            await self._run.perform(numbers)
        await self._until(lambda: endpoint.answered, "the bot does not think about the question", at)

    async def _see(self, note: SituationNote, timeline: SessionTimeline) -> None:
        """Let the bot see a screen; the first time, the person has just begun to share it."""
        clock, person = self._room.clock, self._people[note.who]
        sharer = self._sharers.get(note.who)
        why = ScreenNoteReason.CUT
        if sharer is None:
            sharer, why = Sharer(person, note.who), ScreenNoteReason.SHARE_START
            self._sharers[note.who] = sharer
            part = TurnPart(str(person.id), person.name, format_share_start(person.name, ANY_SURFACE))
            await timeline.append(TurnKind.MEMBERSHIP, (part,), started_at=clock.now(), ended_at=clock.now())
        recorder = ShareRecorder(
            timeline,
            guild_id=self._room.channel.guild_id,
            clock=clock,
            observe=events.ignore_event,
            words=Words(),
        )
        await recorder.take_note(sharer, ScreenNote(clock.now(), note.text, why, VisionSource.MODEL, ""))
        await asyncio.sleep(_BEFORE_SPEECH_S)
