"""Who asks, and which tools run for whom. Pure, and independent of the model: no prompt can change the answer.

Whatever reaches a model as text may hold instructions: speech, files, screens, the answers of servers. So a tool runs
with the rights of the person who asked, and one that does more than an answer does waits for that person's press
(`frozen_calls`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.channel.port import TypedMessage


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asked the question. `present`: in the voice channel now, and not a bot. `roles`: ids of theirs.
    `typed`: the message in which they asked, if they did not say it.
    """

    user_id: int | None = None
    name: str = ""
    present: bool = False
    roles: frozenset[int] = frozenset()
    typed: TypedMessage | None = None


# The asker of an unasked reply, in which the bot speaks on its own.
NOBODY = Asker()


def anybody(_: Asker) -> bool:
    """Permit a tool for everybody, and also when the bot speaks unasked."""
    return True


def whoever_is_present(asker: Asker) -> bool:
    """Permit a tool for people who are in the voice channel now."""
    return asker.present
