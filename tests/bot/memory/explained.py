"""An evening with replies that can be explained."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta, timezone

from bot.brain.context import ModelContext, QuoteFinder
from bot.conversation.prompt import sent_prompt
from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from compaction.model import Note, NoteId, TurnKind
from compaction.payload import PayloadPart
from tests.bot.evening import CHANNEL, GUILD, HERE, Evening
from tests.patience import PATIENCE_S

EAST = timezone(timedelta(hours=5, minutes=30))
SYSTEM = ("You take part.", "House rules: be kind.")


class Replies:
    """Builds and sends prompts as a room does."""

    def __init__(self, evening: Evening) -> None:
        self._evening = evening
        self.sent: list[ModelContext] = []
        vectors = VectorStore(evening.database)
        recall = Recall(SqlRecallIndex(evening.database, vectors), evening.store)
        room = RoomRecall(recall, RecallScope(evening.session_id, GUILD, CHANNEL))
        self._quoting = QuoteFinder(room, within_s=PATIENCE_S, max_input_tokens=evening.max_input_tokens, zone=EAST)

    async def ask(self, question: str, speaker: str = "Bob") -> ModelContext:
        """Let somebody ask a question, and send the prompt for the answer as a room does."""
        evening = self._evening
        turn = await evening.say(question, speaker)
        quotes = await self._quoting.find(turn, evening.timeline)
        section = evening.people.section(HERE, [("id-Ada", "Ada"), ("id-Bob", "Bob")])
        context = evening.asks(turn, system=SYSTEM, zone=EAST, quotes=quotes, participants=section)
        evening.upkeep.on_payload_sent(context.parts)
        send(evening, context, context.parts)
        self.sent.append(context)
        await evening.timeline.settle()
        await evening.say("I think so.", "Roomtone", kind=TurnKind.ASSISTANT)
        return context


def send(evening: Evening, context: ModelContext, parts: Sequence[PayloadPart]) -> None:
    """Send a model call, as far as the memory is told of it."""
    evening.upkeep.on_prompt_sent(sent_prompt(context, parts, evening.session_id, at=evening.clock.now()))


async def explained_evening(evening: Evening) -> Replies:
    """Play 90 turns with notes of shared screens, personal facts, and a question after every 19 turns."""
    replies = Replies(evening)
    await evening.say("I live in Lisbon, and the gate code is 4411.")
    await evening.say("My dog is called Bruno.", "Bob")
    for number in range(4):
        await evening.talk(19)
        note = Note(NoteId(f"n{number}"), evening.clock.now(), "Cy", f"A map of harbour {number}.")
        await evening.timeline.add_note(note)
        await evening.upkeep.run_once()
        await replies.ask("In which shed is parcel 12?" if number % 2 else "What do you think of that?")
    await evening.upkeep.run_once()
    return replies
