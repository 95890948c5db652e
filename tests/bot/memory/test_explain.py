"""Explaining a reply: the rebuilt prompt equals the sent one word for word, or the reason for the
difference is given.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from bot.brain.context import build_context_messages
from bot.brain.recall_quotes import QuoteFinder
from bot.brain.responder import ModelResponder
from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.permission import anybody
from bot.brain.tools.tool import RoomTool
from bot.brain.tools.toolbox import Toolbox
from bot.guild import PromptPolicy
from bot.llm.factory import open_model
from bot.llm.settings import LlmSettings
from bot.memory.explain import Explainer, Explanation
from bot.memory.prompt_records import reply_records
from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.memory.replay import SESSION, replay
from bot.memory.retention import DAY_S, Retention
from bot.memory.transcript import NoteLine, SaidLine
from bot.realtime.items import Items, ReplyMaterial
from bot.room.conversation.prompt import record_call
from bot.settings import RecallSettings
from bot.store.database import open_database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.sessions import Sessions
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.turns import SqlTurnStore
from compaction.budget.tool_outputs import ToolOutputOptions
from compaction.budget.trim import TrimOptions
from compaction.context.record import read_call, read_record
from compaction.model import Mode, Note, NoteId, Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, PayloadPart, text_digest
from compaction.settings import BudgetSettings, CompactionSettings, TierSettings
from compaction.summary.extractive import ExtractiveSummariser
from rehearsal.servers.chat import ChatBehaviour, ChatCall, LocalChatServer, ScriptedToolCall, ToolCallAnswer
from tests.bot.evening import CHANNEL, GUILD, HERE, Evening
from tests.fakes.clock import FakeClock
from tests.fakes.labelling_summariser import LabellingSummariser
from tests.fakes.realtime import FakeRealtime
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.brain.context import ModelContext
    from tests.bot.conftest import Place

EAST = timezone(timedelta(hours=5, minutes=30))
SYSTEM = ("You take part.", "House rules: be kind.")


class Replies:
    """Builds prompts as a room does, and keeps each with its log line. If `logged`, the log lines are not captured."""

    def __init__(self, evening: Evening, *, logged: bool = False) -> None:
        self._evening = evening
        self._logged = logged
        self.sent: list[ModelContext] = []
        self.lines: list[dict[str, object]] = []
        vectors = VectorStore(evening.database)
        recall = Recall(SqlRecallIndex(evening.database, vectors), evening.store)
        room = RoomRecall(recall, RecallScope(evening.session_id, GUILD, CHANNEL))
        patient = RecallSettings().model_copy(update={"wait_ms": 1_000 * PATIENCE_S})
        self._quoting = QuoteFinder(recall, room, patient, max_input_tokens=evening.max_input_tokens, zone=EAST)

    async def ask(self, question: str, speaker: str = "Bob") -> ModelContext:
        """Let somebody ask a question, and build the prompt for the answer as a room does."""
        evening = self._evening
        turn = await evening.say(question, speaker)
        quotes = await self._quoting.find(turn, evening.memory)
        section = evening.people.section(HERE, [("id-Ada", "Ada"), ("id-Bob", "Bob")])
        with nullcontext(()) if self._logged else capture_logs() as logs:
            context = evening.asks(turn, system=SYSTEM, zone=EAST, quotes=quotes, participants=section)
        evening.upkeep.on_payload_sent(context.parts)
        self.sent.append(context)
        for line in logs:
            if line["event"] == "model_context_built":
                self.lines.append({**line, "timestamp": "2026-11-20T05:00:00+00:00"})
        await evening.memory.settle()
        await evening.say("I think so.", "Roomtone", kind=TurnKind.ASSISTANT)
        return context

    async def explained(self, number: int) -> Explanation:
        """Explain the reply with this number."""
        record = read_record(self.lines[number])
        assert record is not None
        return await Explainer(self._evening.database, self._evening.store).explain(record)


def words(payload: tuple[PayloadPart, ...]) -> list[tuple[str, str]]:
    """Return role and content of each part, as a model gets them."""
    return [(part.role, part.content) for part in payload]


async def an_evening(evening: Evening, *, logged: bool = False) -> Replies:
    """Play 140 turns with notes of shared screens, personal facts, and a question after every 19 turns."""
    replies = Replies(evening, logged=logged)
    await evening.say("I live in Lisbon, and the gate code is 4411.")
    await evening.say("My dog is called Bruno.", "Bob")
    for number in range(7):
        await evening.talk(19)
        note = Note(NoteId(f"n{number}"), evening.clock.now(), "Cy", f"A map of harbour {number}.")
        await evening.memory.add_note(note)
        await evening.upkeep.run_once()
        await replies.ask("In which shed is parcel 12?" if number % 2 else "What do you think of that?")
    await evening.upkeep.run_once()
    return replies


@pytest.mark.slow
@pytest.mark.asyncio
async def test_every_payload_of_an_evening_comes_out_word_for_word(place: Place) -> None:
    """Every prompt of a session is rebuilt exactly, with all kinds of parts, although the memory has changed since."""
    async with Evening(place) as evening:
        replies = await an_evening(evening)
        kinds: set[PartKind] = set()
        for number, sent in enumerate(replies.sent):
            explained = await replies.explained(number)
            assert words(explained.rebuilt.payload) == words(sent.parts)
            assert [part.kind for part in explained.rebuilt.payload] == [part.kind for part in sent.parts]
            assert explained.rebuilt.exact is True
            assert explained.rebuilt.lost == ()
            assert {
                kind: sum(p.tokens for p in sent.parts if p.kind.value == kind) for kind in explained.record.tokens
            } == (explained.record.tokens)
            kinds |= {part.kind for part in sent.parts}
        assert kinds == {
            PartKind.SYSTEM,
            PartKind.SUMMARY,
            PartKind.TURN,
            PartKind.NOTE,
            PartKind.RECALL,
            PartKind.CURRENT,
        }


@pytest.mark.slow
@pytest.mark.asyncio
async def test_what_was_evicted_is_told_as_it_was(place: Place) -> None:
    """If turns were evicted from a prompt, the rebuilt prompt has the note about them, and the record their range and
    reason.
    """
    async with Evening(place, max_input_tokens=900) as evening:
        replies = await an_evening(evening)
        evicted = [line for line in replies.lines if line["eviction"]]
        assert evicted
        for number, sent in enumerate(replies.sent):
            explained = await replies.explained(number)
            assert words(explained.rebuilt.payload) == words(sent.parts)
            assert explained.rebuilt.exact is True
        record = read_record(evicted[-1])
        assert record is not None
        assert record.evicted is not None
        assert record.eviction is not None
        assert "messages evicted" in record.eviction
        assert record.max_input_tokens == 900


@pytest.mark.slow
@pytest.mark.asyncio
async def test_each_fact_behind_the_summary_leads_to_who_said_it(place: Place) -> None:
    """For sent summaries and for the current one."""
    async with Evening(place) as evening:
        replies = await an_evening(evening)
        explained = await replies.explained(5)
        assert explained.summary
        assert explained.facts
        for traced in explained.facts:
            (turn,) = traced.turns
            (said,) = turn.parts
            assert traced.segment.start <= turn.seq < traced.segment.end
            assert traced.fact.text.startswith(f'{said.speaker}: "')
        assert [traced.turns[0].seq for traced in explained.facts if "4411" in traced.fact.text] == [0]
        now = await Explainer(evening.database, evening.store).facts_now(evening.session_id)
        assert len(now) >= len(explained.facts)


@pytest.mark.asyncio
async def test_what_is_gone_since_is_said(place: Place) -> None:
    """If turns, facts, notes, prompts or summaries were deleted since, the explanation names them and is not exact."""
    async with Evening(place, summariser=LabellingSummariser()) as evening:
        replies = await an_evening(evening)
        number = len(replies.sent) - 1
        record = read_record(replies.lines[number])
        assert record is not None
        assert record.seq_from is not None
        async with evening.database.writing() as connection:
            await connection.execute(
                text("UPDATE turns SET parts = '[]', tombstone = TRUE WHERE seq = :seq"), {"seq": record.seq_from}
            )
            for table in ("person_facts", "notes", "prompts"):
                await connection.execute(text(f"DELETE FROM {table}"))
            await connection.execute(text("UPDATE landings SET summary = NULL"))
        rebuilt = (await replies.explained(number)).rebuilt
        assert rebuilt.exact is False
        told = " ".join(rebuilt.lost)
        for hint in ("forgotten", "deleted since", "on screen", "System prompts", "The summary of revision"):
            assert hint in told


@pytest.mark.asyncio
async def test_a_replays_last_payload_comes_out_word_for_word(place: Place) -> None:
    """The last prompt of `roomtone replay` is rebuilt exactly; its clock and session are those of the transcript."""
    lines = [
        NoteLine(f"A map of harbour {number}.", "Cy", 1_000_000_000.0 + 4 * number)
        if number % 40 == 39
        else SaidLine(("Ada", "Bo")[number % 2], f"I put parcel {number} into shed {number % 7}.", 1e9 + 4 * number)
        for number in range(140)
    ]
    async with open_database(place, synchronous="normal") as database:
        store = SqlTurnStore(database, FakeClock())
        with capture_logs() as logs:
            result = await replay(
                lines,
                store=store,
                summariser=ExtractiveSummariser(),
                settings=CompactionSettings(),
                mode=Mode.SUMMARY,
                system=["You are in a room."],
                max_input_tokens=30_000,
                zone=UTC,
                on_event=lambda event: None,
                on_line=lambda: None,
            )
        record = read_record([line for line in logs if line["event"] == "model_context_built"][-1])
        assert record is not None
        assert record.session_id == SESSION
        explained = await Explainer(database, store).explain(record, prompts=["You are in a room."])
        assert words(explained.rebuilt.payload) == words(result.payload)
        assert explained.rebuilt.exact is True


@pytest.mark.asyncio
async def test_what_was_condensed_is_shown_as_it_was_sent(place: Place) -> None:
    """A summary of the turns that did not fit into a prompt is stored, and deleted when something is forgotten."""
    async with Evening(place) as evening:
        for number in range(100):
            await evening.say(f"The gate code of house number {number} is {4_000 + number}.", "Cy")
        question = await evening.say("Where is the key?", "Bob")
        policy = PromptPolicy(
            Mode.SUMMARY,
            5_000,
            enforced=True,
            trim=TrimOptions(tool_outputs=ToolOutputOptions(count=len)),
            summarise_dropped=True,
        )
        with capture_logs() as logs:
            sent = build_context_messages(
                evening.memory,
                question,
                system=SYSTEM,
                max_input_tokens=5_000,
                now=evening.clock.now(),
                zone=EAST,
                policy=policy,
            )
        evening.upkeep.on_payload_sent(sent.parts)
        await evening.upkeep.run_once()
        (line,) = [each for each in logs if each["event"] == "model_context_built"]
        record = read_record(line)
        assert record is not None
        explainer = Explainer(evening.database, evening.store)
        explained = await explainer.explain(record)
        assert words(explained.rebuilt.payload) == words(sent.parts)
        assert explained.rebuilt.exact is True
        assert any("Of what is left out below" in part.content for part in explained.rebuilt.payload)
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (cy,) = await forgetting.find("Cy")
        await forgetting.forget(cy)
        gone = (await explainer.explain(record)).rebuilt
        assert gone.exact is False
        assert any(sentence.startswith("What was sent as summary is not stored any more") for sentence in gone.lost)


@pytest.mark.asyncio
async def test_a_spoken_reply_is_explained_too(place: Place) -> None:
    """The instructions and items for a speech-to-speech model are rebuilt exactly, as of the turn that was answered."""
    async with Evening(place, summariser=LabellingSummariser()) as evening:
        await evening.say("I live in Lisbon, and the gate code is 4411.")
        await evening.talk(70)
        await evening.upkeep.run_once()
        await evening.memory.add_note(Note(NoteId("n1"), evening.clock.now(), "Cy", "A map of the harbour."))
        items = Items(
            evening.memory,
            tuple,
            instructions=SystemPrompt("Roomtone", "Be kind."),
            introductions=lambda: evening.upkeep.introductions(HERE, [("id-Ada", "Ada"), ("id-Bob", "Bob")]),
            max_input_tokens=evening.max_input_tokens,
            zone=EAST,
        )
        session = FakeRealtime(items.brief, lambda event: None)
        session.connect()
        question = await evening.say("What was the gate code?", "Bob")
        items.guild_instructions = "You are a dry old innkeeper."
        items.for_reply = ReplyMaterial(
            instructions=("Nobody said your name.",),
            recalled=("[10:30] From memory, turn 0, Ada: The gate code is 4411.",),
            recalled_earlier=("[3 May, 10:30] From memory, Ada: The gate is blue.",),
        )
        with capture_logs() as logs:
            sent = items.refresh(session, answer_to=question.seq)
        evening.upkeep.on_payload_sent(sent)
        await evening.upkeep.run_once()
        (line,) = [each for each in logs if each["event"] == "model_context_built"]
        record = read_record(line)
        assert record is not None
        assert (record.answer_to, record.spoken) == (question.seq, True)
        explained = await Explainer(evening.database, evening.store).explain(record)
        assert words(explained.rebuilt.payload) == words(sent)
        assert (explained.rebuilt.exact, explained.rebuilt.lost) == (True, ())
        told = " ".join(part.content for part in explained.rebuilt.payload)
        named = ("Be kind.", "innkeeper", "Nobody said your name.", "Ada, who has said: I live in Lisbon")
        for expected in (*named, "harbour", "turn 0, Ada", "The gate is blue.", "parcel 69"):
            assert expected in told
        assert explained.summary, "where the summary comes from is told too"


@pytest.mark.asyncio
async def test_each_call_is_explained_as_the_server_got_it(place: Place) -> None:
    """Every message that the server received is shown: also the tool's output in the second call, and what the budget
    cut to fit a small model. After something was forgotten, what is missing is named as missing.
    """

    async def read(_: Mapping[str, object]) -> str:
        return "The parcel is blue. " * 400

    toolbox = Toolbox(
        [RoomTool("read_attachment", "Reads.", {"type": "object", "properties": {}}, read, asks=False, permits=anybody)]
    )

    def answer(call: ChatCall) -> ToolCallAnswer | str:
        last = call.messages[-1]
        return "It is blue." if last["role"] != "user" else ToolCallAnswer((ScriptedToolCall("read_attachment"),))

    limits = BudgetSettings(max_context_tokens=3_000, reserved_output_tokens=100)
    async with (
        Evening(place) as evening,
        LocalChatServer(ChatBehaviour(answer=answer)) as server,
        open_model(LlmSettings(base_url=server.base_url, model="local-chat"), limits) as model,
    ):
        for number in range(30):
            await evening.say(f"The gate code of house number {number} is {4_000 + number}.", "Cy")
        question = await evening.say("What does the file say?", "Bob")
        with capture_logs() as logs:
            context = build_context_messages(
                evening.memory,
                question,
                system=SYSTEM,
                max_input_tokens=2_900,
                now=evening.clock.now(),
                zone=EAST,
                toolbox=toolbox,
            )
            context = replace(context, on_sent=partial(record_call, evening.memory, evening.upkeep, context))
            said = [piece async for piece in ModelResponder(model, max_output_tokens=50).respond(context)]
        assert "".join(said).endswith("It is blue.")
        evening.upkeep.on_payload_sent(context.parts)
        await evening.upkeep.run_once()
        (built,) = [line for line in logs if line["event"] == "model_context_built"]
        record = read_record(built)
        calls = [found for line in logs if (found := read_call(line)) is not None]
        assert record is not None
        assert len(calls) == len(server.calls) == 2
        explainer = Explainer(evening.database, evening.store)
        explained = await explainer.explain(record, calls=calls)
        for call, got in zip(explained.calls, server.calls, strict=True):
            assert call.exact
            shown = [json.loads(message.text or "") for message in call.messages]
            assert [(each["role"], each["content"]) for each in shown] == [
                (each["role"], each.get("content") or "") for each in got.messages
            ]
        first, second = explained.calls
        assert sum(not message.is_part for message in first.messages) <= 1
        assert any("characters left out" in (message.text or "") for message in second.messages), "it was cut"
        assert not all(message.is_part for message in second.messages)
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (cy,) = await forgetting.find("Cy")
        await forgetting.forget(cy)
        assert not any(call.exact for call in (await explainer.explain(record, calls=calls)).calls)


@pytest.mark.asyncio
async def test_call_of_a_reply_that_was_given_up_is_explained(place: Place) -> None:
    """A reply that was begun before the person had finished is given up when they go on. Its call left the process, so
    it is shown with what it said, though the turn was recorded with other words.
    """
    async with Evening(place) as evening:
        await evening.say("The lantern is Cy's.", "Ada")
        early = Turn(
            Seq(evening.memory.total_turns),
            TurnKind.SPEECH,
            evening.clock.now(),
            evening.clock.now(),
            (TurnPart("id-Bob", "Bob", "Who brings it."),),
        )
        with capture_logs() as logs:
            given_up = evening.asks(early, system=SYSTEM, zone=EAST)
            record_call(evening.memory, evening.upkeep, given_up, given_up.messages)
            question = await evening.say("Who brings it on Saturday?", "Bob")
            answered = evening.asks(question, system=SYSTEM, zone=EAST)
            for _ in range(2):
                record_call(evening.memory, evening.upkeep, answered, answered.messages)
        assert question.seq == early.seq
        evening.upkeep.on_payload_sent(answered.parts)
        await evening.upkeep.run_once()
        found = reply_records([each for line in logs if (each := read_record(line) or read_call(line))], early.seq)
        assert found is not None
        explained = await Explainer(evening.database, evening.store).explain(
            found.record, calls=found.calls, earlier=found.earlier
        )
    assert [(call.exact, call.given_up) for call in explained.calls] == [(True, True), (True, False), (True, False)]
    first, *others = explained.calls
    assert all(message.is_part for call in others for message in call.messages)
    shown = [json.loads(message.text or "")["content"] for message in first.messages]
    assert shown == [message.content for message in given_up.messages]
    assert any("Who brings it." in (message.text or "") for message in first.messages if not message.is_part)


@pytest.mark.asyncio
async def test_a_reply_is_explained_exactly_as_long_as_it_is_kept(place: Place) -> None:
    """Its prompt was sent in another session too. It stays when that is deleted, and when retention takes what is
    older; it goes with the last session.
    """
    clock = FakeClock()
    async with (
        Evening(place, clock=clock) as evening,
        Evening(place, name="other", clock=clock, channel=CHANNEL + 1) as other,
    ):
        replies = Replies(evening)
        for room, asked in ((evening, replies), (other, Replies(other))):
            await asked.ask("What do you think of that?")
            await room.upkeep.run_once()
        sessions = Sessions(evening.database, clock)
        assert await sessions.delete(other.session_id)
        clock.advance(29 * DAY_S)
        await Retention(evening.database, TierSettings(), clock=clock).enforce()
        explained = await replies.explained(0)
        assert explained.rebuilt.exact
        assert words(explained.rebuilt.payload) == words(replies.sent[0].parts)
        assert await sessions.delete(evening.session_id)
        assert await evening.prompts.prompts_by_digest(map(text_digest, SYSTEM)) == {}
