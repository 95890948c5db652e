"""/recap with `what:missed`, and its button: who comes back reads what they missed, and nobody else does."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING

from bot.channel.port import Person
from bot.discord.admission import Verdict
from bot.discord.commands.sessions import NEVER_AWAY, NO_SESSION, NOTHING_MISSED, CatchUp, add_recap
from bot.discord.connection import connected
from bot.memory.digests import Digests
from bot.memory.session_reader import SessionReader
from bot.store.history import SessionHistory
from bot.store.sessions import Sessions
from compaction.errors import StoreError
from compaction.model import TurnKind
from compaction.summary.extractive import ExtractiveSummariser
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.remembered import ADA, BEN, CHLOE, COMMITTEE, GUILD, LOUNGE, Remembered, seen
from tests.bot.discord.test_client import FakeSupervisor, settings_for, settle
from tests.bot.evening import Evening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    import pytest

    from compaction.summary.port import Summariser


@asynccontextmanager
async def catching_up(
    folder: Path, *, channel: int = LOUNGE, present: Sequence[int] = (ADA, BEN, CHLOE)
) -> AsyncIterator[Remembered]:
    """Start a local Discord with an evening, the command and the button. `present`: who is there from the beginning."""
    withheld: set[str] = set()

    async def who(_: int) -> frozenset[str]:
        return frozenset(withheld)

    async def summariser_of(_: int) -> Summariser:
        return ExtractiveSummariser()

    async with Evening(folder / "roomtone.db", channel=channel, guild=GUILD.id) as evening:
        reader = SessionReader(Sessions(evening.database, evening.clock), evening.store, withheld=who)
        digests = Digests(reader, SessionHistory(evening.database), summariser_of=summariser_of)
        catch_up = CatchUp(reader, digests, now=evening.clock.now)
        supervisor = FakeSupervisor()

        add = partial(add_recap, reader=reader, digests=digests, catch_up=catch_up, zone=UTC)
        async with (
            LocalDiscord(guild=GUILD) as local,
            connected(settings_for(local), supervisor, [add], catch_up=catch_up) as client,
        ):
            here = Remembered(local, client, supervisor, evening, withheld)
            await here.come(*present)
            yield here


async def moves(here: Remembered, person: int, what: str) -> None:
    """Let somebody come or leave, as the room records it."""
    name = {ADA: "Ada", BEN: "Ben", CHLOE: "Chloe"}[person]
    await (here.go if what == "left" else here.come)(person)
    await here.say(person, f"{name} {what} the channel.", kind=TurnKind.MEMBERSHIP)


async def is_there(here: Remembered, person: int) -> None:
    """Let Discord show somebody in the channel."""
    before = len(here.supervisor.movements)
    await here.local.join(person, channel_id=LOUNGE)
    await settle(lambda: len(here.supervisor.movements) > before)


async def test_who_comes_back_reads_what_was_said_meanwhile(tmp_path: Path) -> None:
    """It is from leaving to coming back, without what was said before and after, and ends with the last words."""
    async with catching_up(tmp_path) as here:
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
        assert "people spoke 2 times" in told
        assert "**Ada:** We decided to take the train to Lisbon on Friday." in told
        assert "Said last\n- <t:" in told
        assert "boat" not in told
        assert "parrot" not in told
        assert here.local.messages == ()
        # Chloe was there all the time; with minutes she reads about them, in her language.
        assert (await here.use(CHLOE, "recap", what="missed")).content.startswith("Du warst die ganze Zeit da.")
        assert "Zuletzt in Evening" in seen(await here.use(CHLOE, "recap", minutes=1))


async def test_who_asks_right_after_coming_back_reads_what_was_said(tmp_path: Path) -> None:
    """A return within a minute of leaving is recorded later; whoever has left and is there again was away."""
    async with catching_up(tmp_path) as here:
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
        assert "people spoke 2 times" in seen(await here.use(BEN, "recap", what="missed"))
        await here.local.leave(BEN)
        await settle(lambda: len(here.supervisor.movements) > 1)
        await moves(here, BEN, "left")
        await here.say(ADA, "Now about his birthday.")
        assert (await here.use(BEN, "recap", what="missed")).content == NOTHING_MISSED


async def test_nobody_catches_up_with_a_channel_where_they_were_not(tmp_path: Path) -> None:
    """Nor with withheld words."""
    async with catching_up(tmp_path, channel=COMMITTEE, present=(ADA, CHLOE)) as here:
        await here.say(CHLOE, "My aunt lives in Zanzibarq, I promise.")
        assert (await here.use(BEN, "recap", what="missed", channel_id=LOUNGE)).content == NO_SESSION
        assert "Zanzibarq" in seen(await here.use(ADA, "recap", what="missed"))
        here.withheld.add(str(CHLOE))
        assert (await here.use(ADA, "recap", what="missed")).content == NOTHING_MISSED


async def test_the_offer_is_a_quiet_message_and_only_who_presses_reads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It calls nobody. Whoever presses gets their own catch-up, which only they see, and not all the time."""
    async with catching_up(tmp_path) as here:
        await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
        place = here.client.place(GUILD.id, LOUNGE)
        assert place is not None
        assert await place.offer_catch_up(Person(BEN, "*Ben* <@2001>", is_bot=False), minutes=12)
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

        monkeypatch.setattr(SessionReader, "find", fail)
        assert (await here.use(ADA, "recap", what="missed")).content.startswith(
            "I could not read it now. The disk is full."
        )


async def test_a_press_goes_through_the_checks_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a server that the bot does not serve, the button below an old offer shows nothing."""
    async with catching_up(tmp_path) as here:
        await here.say(ADA, "We decided to take the train to Lisbon on Friday.")
        place = here.client.place(GUILD.id, LOUNGE)
        assert place is not None
        assert await place.offer_catch_up(Person(BEN, "Ben", is_bot=False), minutes=12)
        (offer,) = here.local.messages
        ((button,),) = (row["components"] for row in offer.payload["components"])

        async def uninvited(*_: object) -> Verdict:
            return Verdict.UNINVITED

        monkeypatch.setattr(here.client.admission, "check", uninvited)
        pressed = await here.local.press(BEN, offer.id, button["custom_id"])
        assert [reply.content for reply in pressed.replies] == [Verdict.UNINVITED.sentence]
