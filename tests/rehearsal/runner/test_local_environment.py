"""The real environment: people join the local Discord and hear what the bot says."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import discord

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.people.clip import Clip
from rehearsal.people.person import ScriptedPerson
from rehearsal.runner.local_environment import LocalEnvironment, open_local_environment
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import stock_bot, until
from tests.rehearsal.simulated import scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.script.scenario import Scenario


def hello() -> Scenario:
    """Return a scenario in which Mira says what Ada says in the bundled scenario `hello`."""
    clip = load_scenario(bundled_scenarios()["hello"]).says[0].audio
    return scenario({"who": "mira", "say": "hello", "audio": clip})


def bot_person(environment: LocalEnvironment) -> ScriptedPerson:
    """Return a person who joins in place of the bot."""

    async def join() -> Mapping[str, object]:
        found = await environment.discord.join(ROOMTONE_BOT_ID)
        return {"state": found.state, "server": found.server}

    tls = ssl.create_default_context(cafile=str(environment.addresses.certificate_path))
    return ScriptedPerson(user_id=ROOMTONE_BOT_ID, name="Roomtone", join=join, tls=tls)


async def test_what_the_bot_says_is_heard_and_outlives_the_listener() -> None:
    """Listeners hear the bot through the real protocol. What they heard can still be read after they have left."""
    made = hello()
    clip = made.says[0].audio
    assert clip is not None
    async with open_local_environment(made) as environment:
        mira, jonas = made.person("mira").id, made.person("jonas").id
        for user_id in (mira, jonas):
            await environment.enter(user_id)
        async with bot_person(environment) as bot:
            await environment.meet(mira)
            speech, said = await asyncio.gather(environment.say(mira, clip), bot.say(Clip.load(clip)))
            heard_mira = bot.heard(mira).first_voiced_at(since=speech.started_at)
            await bot.wait_for_quiet(mira, quiet_s=0.3, timeout_s=PATIENCE_S)
            # On a busy machine it is heard later.
            over_at = said.speech_ended_at + PATIENCE_S
            for listener in (mira, jonas):
                await until(lambda: len(environment.heard(listener, said.started_at, over_at)) > 16_000, "the bot")  # noqa: B023
        await environment.leave(jonas)
        assert heard_mira is not None
        assert heard_mira >= speech.voice_started_at - 0.1
        assert speech.voice_ended_at - speech.started_at >= environment.speech_s(clip) - 0.5
        for listener in (mira, jonas):
            voiced = environment.voiced(listener, said.started_at, over_at)
            assert voiced is not None
            assert voiced[0] >= said.speech_started_at - 0.5
            assert len(environment.heard(listener, said.started_at, over_at)) > 16_000
        assert environment.voiced(mira, over_at, over_at + 8) is None


async def test_messages_have_the_texts_of_their_embeds() -> None:
    """What the bot writes into an embed is seen by people, so an expectation sees it too."""
    async with open_local_environment(hello()) as environment, stock_bot(environment.discord, ROOMTONE_BOT_ID) as bot:
        channel = bot.get_channel(environment.discord.guild.text_channel.id)
        assert isinstance(channel, discord.TextChannel)
        embed = discord.Embed(title="This session", description="Ada spoke.")
        embed.add_field(name="who", value="Ada 1").set_footer(text="so far")
        await channel.send(embed=embed)
        await channel.send("Good evening.")
        assert environment.messages == ("This session\nAda spoke.\nwho\nAda 1\nso far", "Good evening.")
