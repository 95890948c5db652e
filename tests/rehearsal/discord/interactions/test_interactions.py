"""Slash commands travel from a person to the bot and back, under Discord's rules."""

from __future__ import annotations

import asyncio

import discord
import pytest
from discord import app_commands

from rehearsal.discord import LocalDiscord
from rehearsal.errors import LocalDiscordError
from tests.rehearsal.discord.stock import StockBot, stock_bot, until

BOT, ADA, BEN = 1001, 2001, 2002


def _commands(bot: StockBot) -> None:
    """Register commands with options, one that never answers, and one for moderators."""
    tree = bot.tree

    @tree.command(name="greet", description="Greets somebody.")
    @app_commands.choices(tone=[app_commands.Choice(name="Warm", value="warm")])
    async def greet(interaction: discord.Interaction, who: discord.Member, times: int, tone: str = "warm") -> None:
        raise AssertionError("nobody uses it rightly")

    @tree.command(name="mute", description="Never answers.")
    async def mute(interaction: discord.Interaction) -> None:
        await asyncio.Event().wait()

    @tree.command(name="kick", description="For moderators.")
    @app_commands.default_permissions(kick_members=True)
    async def kick(interaction: discord.Interaction) -> None:
        assert isinstance(interaction.user, discord.Member)
        await interaction.response.send_message(str(interaction.permissions.kick_members))

    memory = app_commands.Group(name="memory", description="The memory.")

    @memory.command(name="keep", description="Keeps.")
    async def keep(
        interaction: discord.Interaction, days: app_commands.Range[int, 1, 30], why: app_commands.Range[str, 2, 5]
    ) -> None:
        raise AssertionError("nobody uses it rightly")

    @memory.command(name="search", description="Searches.")
    async def search(interaction: discord.Interaction, words: str, channel: discord.VoiceChannel) -> None:
        raise AssertionError("nobody uses it rightly")

    tree.add_command(memory)


async def test_a_bot_that_does_not_answer_is_reported() -> None:
    """A command without an answer raises an error after the timeout (three seconds by default, as in Discord)."""
    async with LocalDiscord(response_timeout_s=0.05) as local, stock_bot(local, BOT, prepare=_commands):
        with pytest.raises(LocalDiscordError, match="/mute had 0"):
            await local.invoke(ADA, "mute")


async def test_commands_that_do_not_fit_are_plain_sentences(local: LocalDiscord) -> None:
    """The error for an unknown command, subcommand or option lists the valid ones."""
    with pytest.raises(LocalDiscordError, match=r"/status.*none"):
        await local.invoke(ADA, "status")
    async with stock_bot(local, BOT, prepare=_commands):
        assert (await local.invoke(ADA, "kick")).content == "True"
        # Discord would hide it.
        with pytest.raises(LocalDiscordError, match=r"permission.*/kick"):
            await local.invoke(BEN, "kick")
        mistakes: dict[str, tuple[str, dict[str, object], str]] = {
            "/nope": ("nope", {}, "Registered commands: /greet"),
            "subcommand": ("memory", {}, "needs one of its subcommands: keep, search"),
            "other subcommand": ("memory forget", {}, "has no subcommand 'forget'"),
            "missing": ("greet", {"who": BEN}, "needs the option 'times'"),
            "unknown": ("greet", {"when": 1}, "has no option 'when'"),
            "type": ("greet", {"who": BEN, "times": "many"}, "times takes a value of type integer"),
            "choice": ("greet", {"who": BEN, "times": 1, "tone": "cold"}, "tone is one of warm"),
            "stranger": ("greet", {"who": 9, "times": 1}, "User 9 is not a member"),
            "channel": ("memory search", {"words": "x", "channel": 9}, "no channel 9"),
            "too few": ("memory keep", {"days": 0, "why": "law"}, "days takes at least 1, not 0"),
            "too many": ("memory keep", {"days": 31, "why": "law"}, "days takes at most 30, not 31"),
            "too short": ("memory keep", {"days": 30, "why": "x"}, "why takes at least 2 characters, not 1"),
            "too long": ("memory keep", {"days": 1, "why": "reasons"}, "why takes at most 5 characters, not 7"),
        }
        for name, options, says in mistakes.values():
            with pytest.raises(LocalDiscordError, match=says):
                await local.invoke(ADA, name, options)
    await until(lambda: not any(member["online"] for member in local.status()["members"]), "the bot's end")
    with pytest.raises(LocalDiscordError, match="offline"):
        await local.invoke(ADA, "greet", {"who": BEN, "times": 1})


class _Pages(discord.ui.View):
    """Two buttons: one turns the page, the other answers anew and is gone then."""

    @discord.ui.button(label="Next", custom_id="next")
    async def turn(self, interaction: discord.Interaction, _: discord.ui.Button[_Pages]) -> None:
        """Show the second page."""
        self.tell.disabled = True
        await interaction.response.edit_message(content="page 2", view=self)

    @discord.ui.button(label="Tell", custom_id="tell")
    async def tell(self, interaction: discord.Interaction, _: discord.ui.Button[_Pages]) -> None:
        """Answer with a message."""
        await interaction.response.send_message("told", ephemeral=True)


def _paged(bot: StockBot) -> None:
    @bot.tree.command(name="pages", description="Has buttons.")
    async def pages(interaction: discord.Interaction) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        await interaction.followup.send("page 1", view=_Pages())


async def test_buttons_turn_pages_for_the_person_who_sees_them(local: LocalDiscord) -> None:
    """A press edits the message or answers anew; a button that is disabled, unknown or not seen cannot be pressed."""
    async with stock_bot(local, BOT, prepare=_paged):
        shown = await local.invoke(ADA, "pages")
        number = int(shown.replies[0].payload["id"])
        assert (await local.press(ADA, number, "tell")).content == "told"
        with pytest.raises(LocalDiscordError, match="2001"):
            await local.press(BEN, number, "next")
        turned = await local.press(ADA, number, "next")
        assert [(reply.kind, reply.content, reply.ephemeral) for reply in turned.replies] == [("edit", "page 2", True)]
        with pytest.raises(LocalDiscordError, match=r"'tell'.*next"):
            await local.press(ADA, number, "tell")
        with pytest.raises(LocalDiscordError, match="message 5"):
            await local.press(ADA, 5, "next")
