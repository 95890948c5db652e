"""/recap on the local Discord, by people with and without permission; with a model, a failing one and none."""

from __future__ import annotations

from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from bot.discord.commands.sessions import NO_SESSION, NOTHING_TO_TELL, add_recap
from bot.memory.digests import Digests
from bot.store.history import SessionHistory
from compaction.errors import CompletionError
from compaction.model import Fact, FactKind
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold
from rehearsal.discord.limits import check_embeds
from tests.bot.discord.remembered import ADA, BEN, CHLOE, COMMITTEE, LOUNGE, Remembered, remembered, seen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from bot.discord.client import AddCommands
    from bot.memory.session_reader import SessionReader
    from compaction.summary.port import FoldRequest, Summariser
    from tests.bot.evening import Evening


NOTHING = cast("Any", object())


class ScriptedModel:
    """A summariser that answers as the test says, and records what it was given."""

    name, model = "llm", "scripted"

    def __init__(self) -> None:
        self.requests: list[FoldRequest] = []
        self.failure: CompletionError | None = None
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def fold(self, request: FoldRequest) -> Fold:
        """Return one gist, one decision and one question, or fail."""
        self.requests.append(request)
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.failure is not None:
            raise self.failure
        seq = request.turns[-1].seq
        decided = Fact((seq,), "Ben brings *the* map.", FactKind.DECISION, speaker="Ben", at=1.77e9)
        asked = Fact((seq,), "Who pays, <@2001>?", FactKind.OPEN, speaker="Ben", at=1.77e9)
        return Fold("They planned the trip.", (decided, asked), "They planned the trip.", "fold.v1")


def commands_with(model: Summariser) -> Callable[[Evening, SessionReader], Sequence[AddCommands]]:
    async def summariser_of(_: int) -> Summariser:
        return model

    def commands(evening: Evening, reader: SessionReader) -> Sequence[AddCommands]:
        digests = Digests(reader, SessionHistory(evening.database), summariser_of=summariser_of)
        return [partial(add_recap, reader=reader, digests=digests, catch_up=NOTHING, zone=UTC)]

    return commands


async def an_evening(here: Remembered) -> None:
    """Let Ada and Ben plan a trip."""
    await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
    await here.say(BEN, "Who brings the map, <@2001>?")
    for number in range(10):
        await here.say((ADA, BEN)[number % 2], f"The parcel {number} goes into shed {5000 + number}.")


async def test_people_read_what_it_was_about(tmp_path: Path) -> None:
    """The embed has the topics, decisions, open questions and people, escaped, in their language."""
    async with remembered(tmp_path, commands_with(ScriptedModel())) as here:
        assert (await here.use(BEN, "recap")).content == NO_SESSION
        await an_evening(here)
        reply = await here.use(BEN, "recap")
        check_embeds(reply.payload["embeds"])
        told = seen(reply)
        assert told.startswith("What it was about in Evening\n<t:")
        assert "people spoke 12 times." in told
        assert "They planned the trip." in told
        assert "Decisions\n- <t:" in told
        assert "Ben brings \\*the\\* map." in told
        assert "Who pays, \\<@\u200b2001\\>?" in told
        assert told.endswith("Who was there\nAda, Ben")
        assert "Offene Fragen" in seen(await here.use(CHLOE, "recap"))
        assert here.local.messages == ()


async def test_without_a_model_there_are_no_guesses(tmp_path: Path) -> None:
    """The embed has when it was and how long, what was said last, how to search, and who was there."""
    async with remembered(tmp_path, commands_with(ExtractiveSummariser())) as here:
        await an_evening(here)
        told = seen(await here.use(BEN, "recap"))
        assert "(1 minute); people spoke 12 times.\n/recall finds what was said" in told
        assert "Said last\n- <t:" in told
        assert told.endswith("Who was there\nAda, Ben")
        assert "Decisions" not in told
        assert "Open questions" not in told


async def test_a_model_is_asked_only_for_what_is_not_folded(tmp_path: Path) -> None:
    """A few turns need no call, many one; if it fails, the recap is made without."""
    model = ScriptedModel()
    async with remembered(tmp_path, commands_with(model)) as here:
        await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
        assert "people spoke 1 time." in seen(await here.use(BEN, "recap"))
        assert model.requests == []
        await an_evening(here)
        told = seen(await here.use(BEN, "recap"))
        assert "They planned the trip." in told
        assert "Ben brings \\*the\\* map." in told
        assert [len(request.turns) for request in model.requests] == [13]
        model.failure = CompletionError("The model is down.", retryable=True)
        told = seen(await here.use(BEN, "recap"))
        assert "people spoke 13 times." in told
        assert "They planned the trip." not in told


async def test_words_that_are_withheld_are_neither_shown_nor_sent(tmp_path: Path) -> None:
    """Who opted out is in no recap, and no model reads them; if they opt out meanwhile, what it wrote is dropped."""
    model = ScriptedModel()
    async with remembered(tmp_path, commands_with(model)) as here:
        for number in range(12):
            await here.say(BEN, f"My aunt in Zanzibarq has {number + 20} parrots, I promise.")
            await here.say(ADA, f"The parcel {number} goes into shed {5000 + number}.")

        async def opt_out() -> None:
            here.withheld.add(str(BEN))

        model.meanwhile = opt_out
        told = seen(await here.use(ADA, "recap"))
        assert "Zanzibarq" not in told
        assert "They planned the trip." not in told
        assert told.endswith("Who was there\nAda")
        told = seen(await here.use(ADA, "recap"))
        assert "They planned the trip." in told
        sent = model.requests[-1]
        assert "Zanzibarq" not in str(sent)
        here.withheld.add(str(ADA))
        assert (await here.use(ADA, "recap")).content == NOTHING_TO_TELL


async def test_what_was_folded_is_used_and_left_out_if_it_may_hold_withheld_words(tmp_path: Path) -> None:
    """The topics of an hour are those of its segments; once somebody opts out, they are made anew from the others."""
    async with remembered(tmp_path, commands_with(ExtractiveSummariser())) as here:
        for number in range(75):
            await here.say((ADA, BEN)[number % 2], f"Then we decided that parcel {number} goes to Lisbon by train.")
            here.evening.memory.context(max_input_tokens=20_000)
            await here.evening.memory.settle()
        assert len(here.evening.memory.segments) >= 2
        reply = await here.use(ADA, "recap")
        check_embeds(reply.payload["embeds"])
        assert "people spoke 75 times" in seen(reply)
        here.withheld.add(str(BEN))
        told = seen(await here.use(ADA, "recap"))
        assert "people spoke 38 times" in told
        assert "Ben" not in told


async def test_who_left_reads_and_has_summarised_only_what_they_heard(tmp_path: Path) -> None:
    """The model gets none of the other turns, and the gist of a segment with such turns is not shown."""
    model = ScriptedModel()
    async with remembered(tmp_path, commands_with(model), present=(ADA, BEN)) as here:
        for number in range(12):
            await here.say((ADA, BEN)[number % 2], f"The parcel {number} goes into shed {5000 + number}.")
        here.evening.clock.advance(4.0)
        await here.go(BEN)
        for number in range(12):
            await here.say(ADA, f"Ben's present {number} is in the Zanzibarq box.")
        told = seen(await here.use(BEN, "recap"))
        assert "people spoke 12 times" in told
        assert "Zanzibarq" not in str(model.requests)
        assert "people spoke 24 times" in seen(await here.use(ADA, "recap"))
        assert "Zanzibarq" in str(model.requests[-1])


async def test_who_was_not_there_reads_nothing(tmp_path: Path) -> None:
    """A session that somebody has not attended is unknown to them, also by its id."""
    commands = commands_with(ExtractiveSummariser())
    async with remembered(tmp_path, commands, channel=COMMITTEE, present=(ADA,)) as here:
        await an_evening(here)
        assert "Committee" in seen(await here.use(ADA, "recap"))
        for options in ({}, {"session": "evening"}):
            assert (await here.use(BEN, "recap", channel_id=LOUNGE, **options)).content == NO_SESSION
        assert await here.local.suggest(BEN, "recap", "session") == []
        assert len(await here.local.suggest(ADA, "recap", "session")) == 1
