"""What the gateway process and a room's process ask and tell each other about shared screens.

Pictures and what they show are not here: they have a websocket of their own for each page (`streams`), so that none of
them delays what is asked and told.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.remote.messages.frames import Notice, Request
from bot.remote.messages.wire_text import WireText

# -- what commands ask ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InviteSharer(Request[str]):
    """Answered with the token of a link."""

    guild_id: int
    user_id: int


@dataclass(frozen=True, slots=True)
class StopShares(Request[int]):
    """Answered with how many shares have ended."""

    guild_id: int
    user_id: int
    everybody: bool


@dataclass(frozen=True, slots=True)
class DescribeShares(Request[WireText]):
    """Who shares what."""

    guild_id: int


@dataclass(frozen=True, slots=True)
class LookAtScreen(Request[WireText]):
    """What a shared screen shows now. `whose`: the id of who shares it; None: the only one."""

    guild_id: int
    user_id: int
    question: str
    whose: int | None


# -- share pages ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AdmittedPage:
    """A page may share: the parts of `bot.web.port.Welcome`, and what identifies the page's link."""

    who: str
    room: str
    server: str
    bot: str
    reading: WireText
    resume_secret: str
    sharing: bool
    trouble: WireText
    link: str


@dataclass(frozen=True, slots=True)
class RefusedPage:
    """A page may not share. `reason`: one word for the page."""

    reason: str
    sentence: WireText


@dataclass(frozen=True, slots=True)
class AdmitPage(Request[AdmittedPage | RefusedPage]):
    """Somebody has opened a share page. `page`: the ticket of its stream, which names it from now on. `secret`: the
    token of its link or, if it `resumes`, its resume secret.
    """

    page: str
    secret: str
    resumes: bool


@dataclass(frozen=True, slots=True)
class StopPage(Request[None]):
    """End the share of a page."""

    page: str


@dataclass(frozen=True, slots=True)
class PageGone(Notice):
    """The connection of a page is over. Its share waits for a while for the page to come back."""

    page: str


@dataclass(frozen=True, slots=True)
class PageTold(Notice):
    """A message for a page, as in the protocol of share pages (`bot.web.socket`)."""

    page: str
    message: dict[str, WireText]
