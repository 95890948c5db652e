"""A local Discord with three members, used by the tests of scripted people."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import AsyncIterator

from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.people.person import ScriptedPerson, scripted_member
from tests.patience import settle

ADA, BEN, CLEO = 41_001, 41_002, 41_003
# Each clip ends with so many silence frames.
_CLOSING_FRAMES = 5
NAMES = {ADA: "Ada", BEN: "Ben", CLEO: "Cleo"}


class PeopleRoom:
    """A local Discord and the scripted people who can join it."""

    def __init__(self, discord: LocalDiscord) -> None:
        self.discord = discord
        self.tls = ssl.create_default_context(cafile=str(discord.certificate_path))

    def person(self, user_id: int) -> ScriptedPerson:
        """Return a person who has not joined yet."""
        return scripted_member(self.discord, user_id)

    @contextlib.asynccontextmanager
    async def two(self) -> AsyncIterator[tuple[ScriptedPerson, ScriptedPerson]]:
        """Let Ada and Ben join, and wait until they share keys."""
        async with self.person(ADA) as ada, self.person(BEN) as ben:
            await ada.meet(BEN)
            await ben.meet(ADA)
            yield ada, ben


async def heard_all(listener: ScriptedPerson, speaker: ScriptedPerson, clip: Clip) -> float:
    """Let `speaker` play the clip and return the share of its packets that `listener` heard."""
    before = len(listener.heard(speaker.user_id))
    began_at = time.monotonic()
    said = await speaker.say(clip)
    heard, expected = listener.heard(speaker.user_id), len(clip.packets) + _CLOSING_FRAMES
    # On a busy machine it pauses in the middle.
    await settle(lambda: len(heard) - before >= expected)
    voiced = heard.voiced_at(since=began_at)
    assert voiced is not None
    assert voiced[0] >= said.speech_started_at
    return (len(heard) - before) / expected
