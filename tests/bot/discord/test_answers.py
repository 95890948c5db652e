"""Answers on the local Discord: in the language of the person, digests of sessions, and those of commands whose
database or room answers late. The local Discord waits as long as Discord does.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import re
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import discord
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channel.port import RECAP, Card, ChatError
from bot.discord import admission, answers
from bot.discord.answers import Answer, answer_when_known, digest_embed, embed_in
from bot.discord.commands.participation import add_participation_commands
from bot.discord.commands.privacy import add_privacy_commands
from bot.discord.connection import connected
from bot.discord.posting import message_parts
from bot.server_settings import MemoryServerSettings, ServerSettings
from bot.texts.text import Text, verbatim
from compaction.memory.digest import MOST_FACTS, Digest, DigestLine, DigestPerson
from compaction.model import Seq
from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.discord.limits import check_request
from tests.bot.discord.client import ADA, BEN, FakeRooms, online, room_channel_in, settings_for
from tests.bot.discord.commands.local_server import participation_with
from tests.bot.discord.remembered import seen
from tests.fakes.choices import FakeOptOuts
from tests.patience import PATIENCE_S, patiently, settle

if TYPE_CHECKING:
    from bot.discord.client import AddCommands
    from rehearsal.discord.server import LocalDiscord

GERMAN = GuildSpec(
    people=(Member(ADA, "Ada", moderator=True, locale="de"), Member(BEN, "Ben", locale="en-GB")), locale="de"
)


async def test_people_read_their_own_language_and_channels_the_servers() -> None:
    """An answer follows the Discord of the person, and what is written into a channel follows the server."""
    async with online(GERMAN) as (local, client, _):
        answers = {}
        for person in (ADA, BEN):
            result = await local.invoke(person, "join")
            await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
            answers[person] = result.replies[0].content
        assert "Sprachkanal" in answers[ADA]
        assert "voice channel" in answers[BEN]
        room_channel = room_channel_in(client, 600)
        await room_channel.write(Text("I can speak again."))
        await settle(lambda: local.messages)
        assert local.messages[0].content == "Ich kann wieder sprechen."


def test_an_embed_fits_discords_limits() -> None:
    """Parts that are too long are cut, an empty field gets a dash, and the 26th field is left out."""
    fields = [(verbatim("n" * 300), verbatim("v" * 2_000)), *[(verbatim("x"), verbatim(""))] * 30]
    embed = embed_in("de", title=Text("Hear me"), text=verbatim("t" * 5_000), fields=fields)
    assert isinstance(embed, discord.Embed)
    assert (embed.title, len(embed.description or ""), len(embed.fields)) == ("Hör mich", 4_096, 25)
    assert (len(embed.fields[0].name or ""), len(embed.fields[0].value or "")) == (256, 1_024)
    assert embed.fields[1].value == "–"


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 12))
def test_a_long_text_is_parted_at_lines_or_words_and_nothing_is_lost(text: str, most: int) -> None:
    """Each part fits; only white space is left out between them; a word is cut only if it is too long itself."""
    parts = message_parts(text, most_chars=most)
    assert all(len(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
    for before, after in itertools.pairwise(parts):
        assert before.strip()
        assert after.strip()


def test_a_text_that_fits_is_one_message() -> None:
    """Also an empty one, for an answer that is an embed alone."""
    assert [message_parts(text) for text in ("", "Yes.", "x" * 2_000)] == [[""], ["Yes."], ["x" * 2_000]]
    assert message_parts("One line.\nAnother one.", most_chars=15) == ["One line.", "Another one."]


AT = 1_769_889_600.0


@pytest.mark.parametrize("local_guild", [GuildSpec(locale="de")])
async def test_a_recap_is_a_quiet_embed_in_the_servers_language(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a session was about is one message that calls nobody, in the language of the server. A refusal is told."""
    line = DigestLine(AT, "Who brings **the** map, @everyone?", "Ben")
    digest = Digest(AT, AT + 3_600, 12, (DigestPerson("Ada", 65.0), DigestPerson("Ben")), open=(line,))
    async with connected(settings_for(local), FakeRooms()) as client:
        room_channel = room_channel_in(client, 600)
        posts = room_channel.posts
        posted = await posts.begin(Card(RECAP.fill(channel=room_channel.name)))
        assert local.messages[0].payload["flags"] & discord.MessageFlags.suppress_notifications.flag
        assert await posts.fill(posted, digest)
        (message,) = local.messages
        (embed,) = message.payload["embeds"]
        assert (embed["title"], message.channel_id) == ("Worüber ihr in Evening geredet habt", 600)
        # No name of a month, which Discord would write in the language of each reader's client.
        assert set(re.findall(r"<t:\d+:(\w)>", embed["description"])) == {"d", "t"}
        assert embed["fields"][0] == {
            "name": "Offene Fragen",
            "value": f"- <t:{AT:.0f}:t> **Ben:** Who brings \\*\\*the\\*\\* map, @\u200beveryone?",
            "inline": False,
        }

        await posts.fill(posted, Digest(AT, AT + 60, 6, (DigestPerson("Ada"),)))
        (message,) = local.messages
        (embed,) = message.payload["embeds"]
        assert [field["value"] for field in embed["fields"]] == ["Ada"]
        assert embed["description"].endswith("\nUm die genauen Worte zu finden, benutze /suche.")
        assert await posts.delete(posted)
        assert local.messages == ()
        # Somebody else has deleted it.
        assert not await posts.fill(posted, digest)

        async def refuse(*_: object, **__: object) -> None:
            raise TimeoutError

        monkeypatch.setattr(client.http, "edit_message", refuse)
        with pytest.raises(ChatError):
            await posts.fill(posted, digest)


def test_each_line_leads_to_its_place_on_the_dashboard() -> None:
    """If people can reach it."""
    line = DigestLine(AT, "We rent the cabin.", seq=Seq(7))
    for page, link in (("https://a.example/#/history/s", " [↗](https://a.example/#/history/s/turn/7)"), ("", "")):
        digest = Digest(AT, AT + 3_600, 1, to_do=(line,), page=page)
        embed = digest_embed(digest, "en-US", title=RECAP.fill(channel="c"))
        (field,) = embed.fields
        assert (field.name, field.value) == ("To do", f"- <t:{AT:.0f}:t>{link} We rent the cabin.")
        assert "(60 minutes). People spoke 1 time." in str(embed.description)


@pytest.mark.parametrize("sign", ["*", "\N{FIRE}"])
@pytest.mark.parametrize("language", ["en-US", "de"])
def test_the_longest_digest_fits(language: str, sign: str) -> None:
    """However much was said by however many people with however many signs, Discord takes the embed, also if it counts
    an emoji as two characters.
    """
    line = DigestLine(AT, f"{sign}(" * 200, sign * 32)
    lines = (line,) * MOST_FACTS
    people = (DigestPerson(sign * 32, 3_600.0),) * 99
    digest = Digest(AT, AT, 1, people, lines, lines, lines, lines, lines, lines)
    embed = digest_embed(digest, language, title=RECAP.fill(channel=sign * 100))
    check_request("POST /channels/{}/messages", {"embeds": [embed.to_dict()]})
    texts = [embed.title, embed.description, *(text for field in embed.fields for text in (field.name, field.value))]
    assert sum(len(str(text).encode("utf-16-le")) // 2 for text in texts) <= 6_000
    assert "more line" in str(embed.to_dict()) or "noch" in str(embed.to_dict())


def test_one_line_that_is_too_long_is_counted() -> None:
    """A line that does not fit is not cut in the middle of an escape; the embed says that there is more."""
    line = DigestLine(AT, "word " * 400, "Ada")
    embed = digest_embed(Digest(AT, AT, 1, decisions=(line,)), "en-US", title=RECAP.fill(channel="c"))
    assert embed.fields[0].value == "- … 1 more line."


# The tests give it more.
CHECK_S = admission.CHECK_TIMEOUT_S


class BusyStore(MemoryServerSettings):
    """Stands for all stores. It answers only once Discord was told to wait."""

    def __init__(self, free: asyncio.Event) -> None:
        super().__init__()
        self.free = free

    async def forget_facts(self, guild_id: int | None, person_id: str) -> int:
        """Wait, and say how many facts are gone."""
        await self.free.wait()
        return 3

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        """Wait, and store."""
        await self.free.wait()
        await super().put(guild_id, settings, by=by)


class BusyOptOuts(FakeOptOuts):
    """Stores opt-outs once `free` is set."""

    def __init__(self, free: asyncio.Event) -> None:
        super().__init__()
        self._free = free

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Wait, and store."""
        await self._free.wait()
        await super().put(guild_id, person_id, out=out)


def commands_on(store: BusyStore) -> list[AddCommands]:
    """Return what adds the commands to a tree."""
    participation = participation_with(store, BusyOptOuts(store.free))
    records, facts = cast("Any", store), cast("Any", None)
    return [
        partial(add_participation_commands, participation=participation),
        partial(add_privacy_commands, records=records, people=records, facts=facts),
    ]


@pytest.mark.parametrize(
    ("command", "options", "told"),
    [
        ("opt-out", {}, "I no longer hear you"),
        ("silence", {}, "I am silent on this server until a server manager"),
        ("forget-me", {"sure": True, "what": "facts"}, "I have deleted all 3 things"),
    ],
)
async def test_who_uses_a_command_while_the_database_is_busy_is_answered(
    local: LocalDiscord, told_to_wait: asyncio.Event, command: str, options: dict[str, object], told: str
) -> None:
    """Discord is told in time that the answer comes later; then it has all of it, for the person alone."""
    store = BusyStore(told_to_wait)
    async with connected(settings_for(local), FakeRooms(), commands_on(store)):
        result = await local.invoke(ADA, command, options)
        assert result.deferred
        (reply,) = result.replies
        assert told in seen(reply)
        assert reply.ephemeral


async def test_what_somebody_wants_is_done_though_discord_does_not_take_the_delay() -> None:
    """An opt-out that is being stored is not given up because Discord is away for a moment."""
    free, sent = asyncio.Event(), list[str]()

    async def refuse(**_: object) -> None:
        free.set()
        raise ConnectionResetError

    async def send(text: str, **_: object) -> None:
        sent.append(text)

    async def work() -> Text:
        await free.wait()
        return Text("I can speak again.")

    response = SimpleNamespace(defer=refuse, send_message=send, is_done=lambda: False)
    await patiently(
        answer_when_known(
            cast(
                "Any",
                SimpleNamespace(
                    locale=discord.Locale.american_english,
                    response=response,
                    extras={},
                    created_at=discord.utils.snowflake_time(0),
                ),
            ),
            work(),
        )
    )
    assert sent == ["I can speak again."]


async def test_a_file_is_announced_before_it_is_sent() -> None:
    """A large one is longer on its way than Discord waits for the first answer."""
    done = list[str]()

    async def defer(**_: object) -> None:
        done.append("deferred")

    async def send(_: str, **how: object) -> None:
        done.append("file" if "file" in how else "text")

    async def work() -> Answer:
        return Answer(file=discord.File(io.BytesIO(b"x"), "x.txt"))

    interaction = SimpleNamespace(
        locale=discord.Locale.american_english,
        response=SimpleNamespace(defer=defer, is_done=lambda: bool(done)),
        followup=SimpleNamespace(send=send),
        extras={},
        created_at=discord.utils.utcnow(),
    )
    await answer_when_known(cast("Any", interaction), work())
    assert done == ["deferred", "file"]


@pytest.mark.parametrize(
    ("age_s", "expected"), [(-5.0, 1.0), (0.0, 1.0), (1.5, 1.0), (2.0, 0.5), (2.5, 0.0), (60.0, 0.0)]
)
def test_a_command_that_came_late_is_put_off_sooner(age_s: float, expected: float) -> None:
    """Its three seconds began when the person used it."""
    assert answers.patience_s(age_s) == expected


def test_a_check_and_the_work_after_it_leave_time_to_tell_discord() -> None:
    """Discord waits 3 s for the first answer; half a second is for the way there and back."""
    assert CHECK_S + answers.DEFER_AFTER_S <= 2.5


async def test_work_does_not_go_on_without_its_command() -> None:
    """A defect while Discord is told that the answer comes later ends the work: nobody would see what becomes of it."""
    ended = asyncio.Event()

    async def fail(**_: object) -> None:
        raise KeyError

    async def work() -> Text:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Text("I can speak again.")

    interaction = SimpleNamespace(
        response=SimpleNamespace(defer=fail), extras={}, created_at=discord.utils.snowflake_time(0)
    )
    with pytest.raises(KeyError):
        await answer_when_known(cast("Any", interaction), work())
    assert ended.is_set()
