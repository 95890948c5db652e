"""A digest as Discord shows it: within its limits, escaped, and as a quiet message in a channel."""

from __future__ import annotations

import discord
import pytest

from bot.discord.connection import connected
from bot.discord.digest_embed import RECAP, digest_embed
from compaction.memory.digest import MOST_ABOUT, MOST_FACTS, Digest, DigestLine
from compaction.model import Seq
from rehearsal.discord.guild.spec import GuildSpec
from rehearsal.discord.limits import check_embeds
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import FakeSupervisor, settings_for

AT = 1_769_889_600.0


async def test_a_recap_is_a_quiet_embed_in_the_servers_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session was about is one message that calls nobody, in the language of the server. A refusal is told."""
    line = DigestLine(AT, "Who brings **the** map, @everyone?", "Ben")
    digest = Digest(AT, AT + 3_600, 12, ("Ada", "Ben"), open=(line,))
    async with (
        LocalDiscord(guild=GuildSpec(locale="de")) as local,
        connected(settings_for(local), FakeSupervisor()) as client,
    ):
        place = client.place(local.guild.id, 600)
        assert place is not None
        assert await place.write_recap(digest)
        (message,) = local.messages
        (embed,) = message.payload["embeds"]
        assert (embed["title"], message.channel_id) == ("Worum es in Evening ging", 600)
        assert message.payload["flags"] & discord.MessageFlags.suppress_notifications.flag
        assert embed["fields"][0] == {
            "name": "Offene Fragen",
            "value": f"- <t:{AT:.0f}:t> **Ben:** Who brings \\*\\*the\\*\\* map, @\u200beveryone?",
            "inline": False,
        }

        assert await place.renew_recap(message.id, Digest(AT, AT + 60, 6, ("Ada",)))
        (message,) = local.messages
        (embed,) = message.payload["embeds"]
        assert [field["value"] for field in embed["fields"]] == ["Ada"]
        assert embed["description"].endswith("\n/suche findet wörtlich, was gesagt wurde.")
        assert await place.renew_recap(message.id, None)
        assert local.messages == ()
        # Somebody else has deleted it.
        assert await place.renew_recap(message.id, digest)

        async def refuse(*_: object, **__: object) -> None:
            raise TimeoutError

        monkeypatch.setattr(discord.VoiceChannel, "send", refuse)
        assert await place.write_recap(digest) is None
        monkeypatch.setattr(discord.PartialMessage, "edit", refuse)
        assert not await place.renew_recap(message.id, digest)


def test_each_line_leads_to_its_place_on_the_dashboard() -> None:
    """If people can reach it."""
    line = DigestLine(AT, "We rent the cabin.", seq=Seq(7))
    for page, link in (("https://a.example/#/history/s", " [↗](https://a.example/#/history/s/turn/7)"), ("", "")):
        digest = Digest(AT, AT + 3_600, 1, to_do=(line,), page=page)
        embed = digest_embed(digest, "en-US", title=RECAP.fill(channel="c"))
        (field,) = embed.fields
        assert (field.name, field.value) == ("To do", f"- <t:{AT:.0f}:t>{link} We rent the cabin.")
        assert "(60 minutes); people spoke 1 time." in str(embed.description)


@pytest.mark.parametrize("language", ["en-US", "de"])
def test_the_longest_digest_fits(language: str) -> None:
    """However much was said by however many people with however many signs, Discord takes the embed."""
    line = DigestLine(AT, "_(" * 200, "[" * 32)
    lines = (line,) * MOST_FACTS
    digest = Digest(AT, AT, 1, ("*" * 32,) * 99, (line,) * MOST_ABOUT, lines, lines, lines, lines)
    embed = digest_embed(digest, language, title=RECAP.fill(channel="*" * 100))
    check_embeds([embed.to_dict()])
    assert "more line" in str(embed.to_dict()) or "noch" in str(embed.to_dict())


def test_one_line_that_is_too_long_is_counted() -> None:
    """A line that does not fit is not cut in the middle of an escape; the embed says that there is more."""
    line = DigestLine(AT, "word " * 400, "Ada")
    embed = digest_embed(Digest(AT, AT, 1, ("Ada",), (), (line,)), "en-US", title=RECAP.fill(channel="c"))
    assert embed.fields[0].value == "- … 1 more line."
