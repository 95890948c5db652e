"""A whole room in real time: the bot in the local Discord, with people who speak recordings all the time.

The bot has a process of its own, and only that process is sampled.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from benchmarks.child_process import child_process
from benchmarks.local_bot import bot_address
from benchmarks.recordings import load_recordings
from benchmarks.reply.measured_room import FIRST_PERSON_ID, LONG_ANSWER, SHORT_ANSWER, benchmark_guild, enter_person
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import FRAME_S, Clip, VoicedBounds
from rehearsal.people.person import ScriptedPerson
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer

PEOPLE = 3
# People pause between two utterances, and they do not all start at the same time.
_GAP_S, _STAGGER_S = 2.0, 1.3
# Loading the models takes ten seconds, and minutes on a machine that others use too.
START_TIMEOUT_S = 600.0
# Free memory is given back every minute (`bot.runtime_tuning`), and a sample is the least since the one before: in an
# hour there is one every 72 s.
SAMPLES = 50
LEAST_SAMPLE_S = 5.0
# The longest utterance is 30 s. It is said first, because it takes the most memory, which malloc keeps for the next.
LONGEST_S = 33.0


async def live_in_real_time(
    seconds: float,
    on_sample: Callable[[dict[str, float]], None] = lambda sample: None,
) -> list[dict[str, float]]:
    """Let people talk for so long, and return the samples of the bot's process.

    Raises AssertionError if nothing was heard or answered in the whole time, `BenchmarkError` if the process ends.
    """
    samples: list[dict[str, float]] = []
    every_s = max(LEAST_SAMPLE_S, seconds / SAMPLES)
    told: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        # Long sentences too: what they need of memory is to be given back.
        answers = itertools.cycle((SHORT_ANSWER, SHORT_ANSWER, LONG_ANSWER))
        model = await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=lambda call: next(answers))))
        discord = await stack.enter_async_context(LocalDiscord(guild=benchmark_guild(PEOPLE)))
        people = [await enter_person(discord, stack, FIRST_PERSON_ID + number) for number in range(PEOPLE)]
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-live-"))
        bot = await stack.enter_async_context(child_process("the bot", "tests.endurance.live_bot"))
        await bot.ask(
            "start", timeout_s=START_TIMEOUT_S, settings=_settings(model.base_url, folder), discord=bot_address(discord)
        )
        await asyncio.gather(*(person.meet(ROOMTONE_BOT_ID) for person in people))
        clips = [await asyncio.to_thread(Clip.load, each.path) for each in load_recordings(None).recordings]
        longest = without_pauses(clips, LONGEST_S)
        begun = time.monotonic()
        talkers = [
            asyncio.create_task(
                _talk(person, longest, clips[number::PEOPLE], _STAGGER_S * number), name=f"speaker-{number}"
            )
            for number, person in enumerate(people)
        ]
        try:
            while (lasted_s := time.monotonic() - begun) < seconds:
                await asyncio.sleep(min(every_s, seconds - lasted_s))
                for talker in talkers:
                    if talker.done():
                        talker.result()
                told = await bot.ask("sample")
                samples.append(told["sample"])
                on_sample(samples[-1])
                # The people and the server are not measured, but an hour of their records is of no use.
                model.calls.clear()
                for person in people:
                    person.forget_heard()
        finally:
            for talker in talkers:
                talker.cancel()
            await asyncio.wait(talkers)
    assert told["heard"], "nobody was heard; the first words take some seconds"
    assert told["answered"], "nobody was answered; people are, about once a minute"
    return samples


def _settings(model_url: str, folder: str) -> dict[str, object]:
    """Return the settings of an ordinary bot whose language model is the local server."""
    return {
        "llm.base_url": model_url,
        "llm.model": MODEL,
        "tuning.summariser": "extractive",
        # People ask all the time. With the usual ceilings the bot would be silent from the twentieth minute on.
        "participation.max_calls_per_hour": 0,
        "participation.max_tokens_per_hour": 0,
        "participation.max_spoken_s_per_hour": 0,
        # As many as are held, half a kilobyte each, are there within the warm-up and not after weeks.
        "tuning.vectors_in_memory": 500,
        "storage.data_dir": folder,
        "storage.database_url": None,
        "web.port": 0,
    }


def without_pauses(clips: Sequence[Clip], seconds: float) -> Clip:
    """Return the clips as one, without the silence around each: at least `seconds` long if the clips are."""
    packets: list[bytes] = []
    for clip in clips:
        packets += clip.packets[clip.voiced.first : clip.voiced.last + 1]
        if len(packets) * FRAME_S >= seconds:
            break
    return Clip("without pauses", tuple(packets), VoicedBounds(0, len(packets) - 1))


async def _talk(person: ScriptedPerson, first: Clip, clips: Sequence[Clip], begin_after_s: float) -> None:
    await asyncio.sleep(begin_after_s)
    for clip in itertools.chain((first,), itertools.cycle(clips)):
        await person.say(clip)
        await asyncio.sleep(_GAP_S)
