"""/recap, also with `what:missed` and its button, and /transcript on the local Discord: who reads what of which
session.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import insert

from bot.brain.tools.memory import NOTHING_MISSED
from bot.channel.port import Person
from bot.discord.commands.sessions import (
    NEVER_AWAY,
    NO_SESSION,
    NOTHING_READABLE,
)
from bot.memory.retention import DAY_S
from bot.memory.session_views import SessionViews
from bot.store.attendance import AttendanceStore, Presence
from bot.store.tables import sessions
from compaction.errors import CompletionError, StoreError
from compaction.model import Fact, FactKind, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.summary.port import Fold, FoldRequest
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from tests.bot.discord.client import room_channel_in
from tests.bot.discord.remembered import (
    ADA,
    BEN,
    CHLOE,
    GUILD,
    LOUNGE,
    NIGHT,
    Remembered,
    catching_up,
    commands_with,
    remembered,
    seen,
)
from tests.patience import settle


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
        told = seen(reply)
        assert told.startswith("What people talked about in Evening\n<t:")
        assert "People spoke 12 times." in told
        assert "They planned the trip." in told
        assert "For you\n- <t:" in told
        assert "Ben brings \\*the\\* map." in told
        assert "Who pays, \\<@\u200b2001\\>?" in told
        assert told.endswith("Who was there, and how long they spoke\nAda, Ben")
        assert "Offene Fragen" in seen(await here.use(CHLOE, "recap"))
        assert here.local.messages == ()


async def test_a_model_is_asked_only_for_what_is_not_folded(tmp_path: Path) -> None:
    """A few turns need no call, many one; if it fails, the recap is made without."""
    model = ScriptedModel()
    async with remembered(tmp_path, commands_with(model)) as here:
        await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
        assert "People spoke 1 time." in seen(await here.use(BEN, "recap"))
        assert model.requests == []
        await an_evening(here)
        told = seen(await here.use(BEN, "recap"))
        assert "They planned the trip." in told
        assert "Ben brings \\*the\\* map." in told
        assert [len(request.turns) for request in model.requests] == [13]
        model.failure = CompletionError("The model is down.", retryable=True)
        told = seen(await here.use(BEN, "recap"))
        assert "People spoke 13 times." in told
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
        assert told.endswith("Who was there, and how long they spoke\nAda")
        told = seen(await here.use(ADA, "recap"))
        assert "They planned the trip." in told
        sent = model.requests[-1]
        assert "Zanzibarq" not in str(sent)
        here.withheld.add(str(ADA))
        assert (await here.use(ADA, "recap")).content == NOTHING_READABLE


async def test_what_was_folded_is_used_and_left_out_if_it_may_hold_withheld_words(tmp_path: Path) -> None:
    """The topics of an hour are those of its segments; once somebody opts out, they are made anew from the others."""
    async with remembered(tmp_path, commands_with(None)) as here:
        for number in range(75):
            await here.say((ADA, BEN)[number % 2], f"Then we decided that parcel {number} goes to Lisbon by train.")
            if number in {62, 74}:
                here.evening.timeline.context(max_input_tokens=20_000)
                await here.evening.timeline.settle()
        assert len(here.evening.timeline.compactor.segments) >= 2
        reply = await here.use(ADA, "recap")
        assert "People spoke 75 times" in seen(reply)
        here.withheld.add(str(BEN))
        told = seen(await here.use(ADA, "recap"))
        assert "People spoke 38 times" in told
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
        assert "People spoke 12 times" in told
        assert "Zanzibarq" not in str(model.requests)
        assert "People spoke 24 times" in seen(await here.use(ADA, "recap"))
        assert "Zanzibarq" in str(model.requests[-1])


async def moves(here: Remembered, person: int, what: str) -> None:
    """Let somebody come or leave, as the room records it."""
    name = {ADA: "Ada", BEN: "Ben", CHLOE: "Chloe"}[person]
    here.evening.clock.advance(4.0)
    await (here.go if what == "left" else here.come)(person)
    await here.say(person, f"{name} {what} the channel.", kind=TurnKind.MEMBERSHIP)


async def is_there(here: Remembered, person: int) -> None:
    """Let Discord show somebody in the channel."""
    before = len(here.rooms.movements)
    await here.local.join(person, channel_id=LOUNGE)
    await settle(lambda: len(here.rooms.movements) > before)


@pytest_asyncio.fixture
async def here(tmp_path: Path) -> AsyncIterator[Remembered]:
    """An evening that people can catch up with."""
    async with catching_up(tmp_path) as opened:
        yield opened


async def test_who_comes_back_reads_what_was_said_meanwhile(here: Remembered) -> None:
    """It is from leaving to coming back, without what was said before and after, and ends with the last words."""
    await here.say(BEN, "We decided to paint the boat green.")
    await moves(here, BEN, "left")
    await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
    await here.say(CHLOE, "Who brings the map?")
    await moves(here, BEN, "joined")
    await is_there(here, BEN)
    await is_there(here, CHLOE)
    await here.say(ADA, "We decided that the parrot stays at home.")
    reply = await here.use(BEN, "recap", what="missed")
    told = seen(reply)
    assert told.startswith("While you were away from Evening\n<t:")
    assert "People spoke 2 times" in told
    assert "**Ada:** We decided to take the train to Lisbon on Friday." in told
    assert "Said last\n- <t:" in told
    assert "boat" not in told
    assert "parrot" not in told
    assert here.local.messages == ()
    # Chloe was there all the time; with minutes she reads about them, in her language.
    assert (await here.use(CHLOE, "recap", what="missed")).content.startswith("Du warst die ganze Zeit da.")
    assert "Zuletzt in Evening" in seen(await here.use(CHLOE, "recap", minutes=1))


async def test_who_comes_back_is_not_quoted_what_no_model_has_read(tmp_path: Path) -> None:
    """It may have been told in confidence. One word is enough to ask a model, which fails here at first."""
    model = ScriptedModel()
    model.failure = CompletionError("Away.", retryable=False)
    async with remembered(tmp_path, commands_with(model)) as here:
        await moves(here, BEN, "left")
        await here.say(ADA, "Ben does not know it yet: we decided on Lisbon.")
        await is_there(here, BEN)
        assert "Lisbon" not in seen(await here.use(BEN, "recap", what="missed"))
        model.failure = None
        assert "Lisbon" in seen(await here.use(BEN, "recap", what="missed"))
        assert len(model.requests) == 2


async def test_who_asks_right_after_coming_back_reads_what_was_said(here: Remembered) -> None:
    """A return is recorded a moment later; whoever has left and is there again was away."""
    await here.say(BEN, "We decided to paint the boat green.")
    await moves(here, BEN, "left")
    await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
    await is_there(here, BEN)
    told = seen(await here.use(BEN, "recap", what="missed"))
    assert "Lisbon" in told
    assert "boat" not in told


async def test_who_comes_late_reads_all_of_it_and_who_is_away_nothing(tmp_path: Path) -> None:
    """In the channel, who was never seen to come was there."""
    async with catching_up(tmp_path, present=(ADA, CHLOE)) as here:
        await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
        await here.say(CHLOE, "Who brings the map?")
        assert (await here.use(BEN, "recap", what="missed")).content == NO_SESSION
        await is_there(here, BEN)
        assert (await here.use(BEN, "recap", what="missed")).content == NEVER_AWAY
        await moves(here, BEN, "joined")
        assert "People spoke 2 times" in seen(await here.use(BEN, "recap", what="missed"))
        await here.local.leave(BEN)
        await settle(lambda: len(here.rooms.movements) > 1)
        await moves(here, BEN, "left")
        await here.say(ADA, "Now about his birthday.")
        assert (await here.use(BEN, "recap", what="missed")).content == NOTHING_MISSED


async def test_the_offer_is_a_quiet_message_and_only_who_presses_reads_on(
    here: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It calls nobody. Whoever presses gets their own catch-up, which only they see, and not all the time."""
    for person in (BEN, CHLOE):
        await moves(here, person, "left")
    await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
    for person in (BEN, CHLOE):
        await is_there(here, person)
    room_channel = room_channel_in(here.client, LOUNGE)
    assert await room_channel.offer_catch_up(Person(BEN, "*Ben* <@2001>", is_bot=False), minutes=12)
    (offer,) = here.local.messages
    assert (offer.channel_id, offer.author_id) == (LOUNGE, ROOMTONE_BOT_ID)
    assert offer.content == "\\*Ben\\* \\<@\u200b2001\\>, you were away for 12 minutes."
    ((button,),) = (row["components"] for row in offer.payload["components"])
    assert (button["label"], bool(offer.payload["flags"])) == ("What did I miss?", True)
    for _ in range(5):
        pressed = await here.local.press(BEN, offer.id, button["custom_id"])
        assert all(reply.ephemeral for reply in pressed.replies)
        assert "Lisbon" in seen(pressed.replies[0])
    refused = (await here.local.press(BEN, offer.id, button["custom_id"])).content
    assert re.fullmatch(r"Please wait \d+ seconds, then try again\.", str(refused))
    assert "Lisbon" in seen((await here.local.press(CHLOE, offer.id, button["custom_id"])).replies[0])

    async def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(SessionViews, "find", fail)
    assert (await here.use(ADA, "recap", what="missed")).content.startswith("I could not do that. The disk is full.")


async def test_members_get_the_file_in_their_language(here: Remembered) -> None:
    """Who may enter the channel gets a file that only they see, in each format; the sentence is in their language."""
    assert (await here.use(BEN, "transcript")).content == NO_SESSION
    await here.say(ADA, "The gate code is 4411.")
    await here.say(BEN, "Good.")
    told = seen(await here.use(BEN, "transcript"))
    assert told.startswith("This is the session in Evening that began <t:")
    assert "2 lines." in told
    assert "(roomtone-evening.md)" in told
    assert "2 Zeilen" in seen(await here.use(CHLOE, "transcript", format="json"))
    for form, name in (("json", "evening.json"), ("srt", "evening.srt"), ("webvtt", "evening.vtt")):
        assert name in seen(await here.use(ADA, "transcript", format=form))
    assert here.local.messages == ()


async def test_words_of_an_age_restricted_channel_are_read_in_one_alone(tmp_path: Path) -> None:
    """Minors have the permissions to enter it, and Discord keeps them out. So whoever may enter reads its words where
    the same restriction holds.
    """
    async with catching_up(tmp_path, channel=NIGHT) as here:
        await here.say(ADA, "The gate code is 4411.")
        for typed_in in (LOUNGE, here.local.guild.text_channel.id):
            assert (await here.use(BEN, "transcript", channel_id=typed_in)).content == NO_SESSION
        assert "(roomtone-evening.md)" in seen(await here.use(BEN, "transcript", channel_id=NIGHT))


async def test_an_older_session_is_found_by_what_somebody_types(here: Remembered) -> None:
    """Discord shows 25 choices. What is typed is looked for in the sessions before these too."""
    await here.say(ADA, "The gate code is 4411.")
    ((name, value),) = await here.local.suggest(BEN, "transcript", "session", "even")
    assert (name.endswith(" · Evening"), value) == (True, "evening")
    assert await here.local.suggest(BEN, "transcript", "session", "stairs") == []
    for number in range(30):
        at, name = here.evening.clock.now() + number * DAY_S, SessionId(f"day-{number}")
        session = {"id": name, "guild_id": GUILD.id, "channel_id": LOUNGE, "started_at": at, "ended_at": at + 60.0}
        async with here.evening.database.writing() as connection:
            await connection.execute(insert(sessions).values(session))
        turn = Turn(Seq(0), TurnKind.SPEECH, at, at + 2.0, (TurnPart(str(ADA), "Ada", "Hello."),))
        await here.evening.store.append_turn(name, turn)
        await AttendanceStore(here.evening.database).add(name, [Presence(str(BEN), at, joined=True)])
    newest = await here.local.suggest(BEN, "transcript", "session")
    assert [value for _, value in newest] == [f"day-{number}" for number in range(29, 4, -1)]
    day = datetime.fromtimestamp(here.evening.clock.now() + DAY_S, UTC)
    found = await here.local.suggest(BEN, "transcript", "session", f"{day:%Y-%m-%d}")
    assert [value for _, value in found] == ["day-1"]


async def test_a_failing_store_is_a_sentence(here: Remembered, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person reads what failed; the choices are empty."""

    async def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    await here.say(BEN, "Hello.")
    for method in ("find", "readable"):
        monkeypatch.setattr(f"bot.memory.session_views.SessionViews.{method}", fail)
    assert (await here.use(BEN, "transcript")).content.startswith("I could not do that. The disk is full.")
    assert await here.local.suggest(BEN, "transcript", "session") == []
