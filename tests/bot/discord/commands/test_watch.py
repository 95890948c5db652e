"""/watch start, stop, status and look against the local Discord: only the person who asks sees the answer."""

from __future__ import annotations

from functools import partial

from bot.discord.commands.watch import LOCAL, add_watch_commands, escape_quote
from bot.screen.messages import ScreenError
from bot.texts.text import Text, verbatim
from bot.web.watching import WatchService
from rehearsal.discord.guild.spec import GuildSpec, Member
from tests.bot.discord.client import ADA, BEN
from tests.bot.discord.commands.local_server import answer_to, server_with
from tests.bot.discord.remembered import CHLOE

URL = "http://localhost:8095/share#abc.def"


class Desk(WatchService):
    """Stands for screen watching, and records the calls."""

    def __init__(self) -> None:
        self.stopped: list[tuple[int, bool]] = []
        self.is_empty = self.is_public = False
        self.asked: list[tuple[int, str, int | None]] = []
        self.refusal: str | None = None

    @property
    def is_local(self) -> bool:
        return not self.is_public

    async def link(self, guild_id: int, user_id: int) -> str:
        self._refuse()
        return URL

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        self.stopped.append((user_id, everybody))
        return 0 if self.is_empty else 2 if everybody else 1

    async def status(self, guild_id: int) -> Text:
        self._refuse()
        return verbatim("Ada has shared a window for 3 minutes.")

    async def look(self, guild_id: int, user_id: int, question: str, *, whose: int | None) -> Text:
        self._refuse()
        self.asked.append((user_id, question, whose))
        return verbatim("On Ada's screen (a window) now:\n**HP** 12 @everyone")

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise ScreenError(self.refusal)


async def test_a_link_for_the_asker_alone() -> None:
    """The answer has a link without preview, says how long the link is valid, and begins with that if it works only
    on this computer.
    """
    desk = Desk()
    async with server_with(partial(add_watch_commands, watching=desk)) as local:
        told = await answer_to(local, BEN, "watch start")
        assert f"<{URL}>" in told
        assert "within 5 minutes" in told
        assert told.startswith(LOCAL)
        desk.is_public = True
        assert LOCAL not in await answer_to(local, BEN, "watch start")
        desk.refusal = "Join Lounge first."
        assert await answer_to(local, BEN, "watch start") == "Join Lounge first."


async def test_stopping_is_for_oneself_and_for_all() -> None:
    """People can end their own shares, and who may send the bot away can end all."""
    desk = Desk()
    async with server_with(partial(add_watch_commands, watching=desk)) as local:
        assert await answer_to(local, BEN, "watch stop") == "I no longer watch the screen."
        assert await answer_to(local, ADA, "watch stop-all") == "I no longer watch the 2 screens."
        assert desk.stopped == [(BEN, False), (ADA, True)]
        desk.is_empty = True
        assert "do not share" in await answer_to(local, BEN, "watch stop")
        assert "Nobody" in await answer_to(local, ADA, "watch stop-all")


async def test_a_look_is_answered_without_markup() -> None:
    """Text from a screen is escaped, so that it mentions nobody and formats nothing. A vision model answers in the
    language of its question, so the usual one is in that of the person's Discord.
    """
    desk = Desk()
    people = (Member(ADA, "Ada", moderator=True), Member(BEN, "Ben"), Member(CHLOE, "Chloe", locale="de"))
    async with server_with(partial(add_watch_commands, watching=desk), GuildSpec(people=people)) as local:
        await answer_to(local, CHLOE, "watch look")
        assert desk.asked.pop() == (CHLOE, "Was ist auf dem Bildschirm?", None)
        told = await answer_to(local, BEN, "watch look", question="How is the health?")
        assert "\\*\\*HP\\*\\* 12" in told
        assert "@everyone" not in told
        await answer_to(local, BEN, "watch look", whose=ADA)
        assert desk.asked == [(BEN, "How is the health?", None), (BEN, "What is on the screen?", ADA)]
        assert await answer_to(local, BEN, "watch status") == "Ada has shared a window for 3 minutes."
        desk.refusal = "Nobody shares a screen now."
        assert "Nobody" in await answer_to(local, BEN, "watch look")
        assert "Nobody" in await answer_to(local, BEN, "watch status")


def test_a_long_screen_fits_a_message() -> None:
    """A long text is cut to fit a message, and ends with an ellipsis."""
    assert len(escape_quote("word " * 1000)) < 2000
    assert escape_quote("word " * 1000).endswith(" …")
