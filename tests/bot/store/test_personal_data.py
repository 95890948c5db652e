"""What is stored of a person is theirs to see; what the bot repeated of somebody who has opted out is not."""

from __future__ import annotations

from typing import Any, cast

from bot.store.attendance import AttendanceStore, Presence
from bot.store.personal_data import PersonalDataStore
from bot.store.reminders import Reminder, ReminderStore
from bot.store.servers import OptOutStore
from bot.store.speech_forgetting import SpeechForgetter
from compaction.model import Seq, TurnKind, TurnPart
from tests.bot.conftest import Place
from tests.bot.evening import CHANNEL, GUILD, Evening

ADA, BEN = "1001", "1002"


async def talk(evening: Evening, *said: tuple[str, str]) -> None:
    """Record turns: who spoke, and what. The bot answers the turn before."""
    asker = ""
    for person_id, text in said:
        at = evening.clock.now()
        by_bot = person_id == "assistant"
        await evening.timeline.append(
            TurnKind.ASSISTANT if by_bot else TurnKind.SPEECH,
            (TurnPart(person_id, f"name of {person_id}", text),),
            started_at=at,
            ended_at=at + 1.0,
            answers=Seq(evening.timeline.total_turns - 1) if by_bot else None,
            told_to=(asker,) if by_bot else (),
        )
        asker = person_id
        evening.clock.advance(2.0)


async def replies(evening: Evening, person_id: str) -> list[tuple[list[str], int]]:
    """Return, for each session in a person's file, the texts of the replies and how many are left out."""
    found: Any = (await PersonalDataStore(evening.database).of(person_id))["sessions"]
    return [([each["text"] for each in one["my_replies_to_you"]], one["my_replies_left_out"]) for one in found]


async def test_a_reply_that_may_repeat_who_opted_out_is_left_out(evening: Evening) -> None:
    """From their first turn on, until they opt in again. Their own file has all of it."""
    await talk(evening, (ADA, "Hello."), ("assistant", "Hello, Ada."), (BEN, "I live in Lisbon."))
    await talk(evening, (ADA, "Where does Ben live?"), ("assistant", "In Lisbon."))
    await talk(evening, (BEN, "And what am I?"), ("assistant", "A sailor."))
    opt_outs = OptOutStore(evening.database, evening.clock)
    assert await replies(evening, ADA) == [(["Hello, Ada.", "In Lisbon."], 0)]
    await opt_outs.put(GUILD, int(BEN), out=True)
    assert await replies(evening, ADA) == [(["Hello, Ada."], 1)]
    assert await replies(evening, BEN) == [(["A sailor."], 0)]
    await opt_outs.put(GUILD, int(BEN), out=False)
    assert await replies(evening, ADA) == [(["Hello, Ada.", "In Lisbon."], 0)]


async def test_a_reminder_that_may_repeat_who_opted_out_has_no_words(evening: Evening) -> None:
    """A model may have put Ben's into it, who was there."""
    await talk(evening, (ADA, "Remind me of what Ben said."))
    await AttendanceStore(evening.database).add(evening.session_id, [Presence(BEN, 0.0, joined=True)])
    mine = Reminder(evening.session_id, GUILD, CHANNEL, int(ADA), 9.0, "Ben lives in Lisbon.", "Ben")
    assert await ReminderStore(evening.database).add(mine, most=9)
    for out in (False, True):
        await OptOutStore(evening.database, evening.clock).put(GUILD, int(BEN), out=out)
        stored: Any = (await PersonalDataStore(evening.database).of(ADA))["your_reminders"]
        assert ("Ben" in str(stored)) is not out


async def test_an_opt_out_on_another_server_leaves_nothing_out(evening: Evening) -> None:
    """It holds on one server."""
    await talk(evening, (BEN, "I live in Lisbon."), (ADA, "Where does Ben live?"), ("assistant", "In Lisbon."))
    await OptOutStore(evening.database, evening.clock).put(GUILD + 1, int(BEN), out=True)
    assert await replies(evening, ADA) == [(["In Lisbon."], 0)]


async def test_a_reply_may_repeat_somebody_of_an_earlier_session(place: Place) -> None:
    """The bot finds what was said in other sessions of the server."""
    async with Evening(place, name="before", channel=702) as before:
        await talk(before, (BEN, "I live in Lisbon."))
        async with Evening(place, clock=before.clock) as evening:
            await talk(evening, (ADA, "Where does Ben live?"), ("assistant", "In Lisbon."))
            await OptOutStore(evening.database, evening.clock).put(GUILD, int(BEN), out=True)
            assert await replies(evening, ADA) == [([], 1)]


async def test_an_id_is_found_whatever_its_letters(evening: Evening) -> None:
    """An imported session may have any text for one. It is stored as JSON, where some letters are written otherwise.
    Nobody else's is taken for it.
    """
    odd, other = 'Zoë "50 %" \\ _', 'Zoë "50 !" \\ x'
    await talk(evening, (odd, "I live in Lisbon."), (other, "I live in Oslo."), ("assistant", "In Oslo."))
    (session,) = cast("Any", (await PersonalDataStore(evening.database).of(odd))["sessions"])
    assert [each["text"] for each in session["what_you_said"]] == ["I live in Lisbon."]
    forgetter = SpeechForgetter(evening.database, evening.clock)
    found = await forgetter.find_by_id(odd)
    assert found is not None
    assert (found.turn_count, found.sessions) == (1, (evening.session_id,))
    assert await forgetter.find_by_id("Zo") is None
