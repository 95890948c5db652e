"""What people in a room read when the bot understands nobody, may not speak, or is deafened, and when that is over.
Pure.
"""

from __future__ import annotations

from typing import Final

from bot.texts.text import Text

UNDERSTANDS_NOBODY: Final = Text(
    "I cannot understand you: my speech recogniser fails, and what you say is lost. I go on trying. /status says more."
)
UNDERSTANDS_AGAIN: Final = Text("My speech recogniser works again: I understand you.")
MUTED: Final = Text(
    "I am muted on this server, so nobody can hear me. I listen and answer nobody until somebody who may mute members "
    "unmutes me."
)
UNMUTED: Final = Text("I am no longer muted: I answer again.")
SUPPRESSED: Final = Text(
    "I may not speak here, so nobody can hear me. I listen and answer nobody until somebody gives me the permission "
    "Speak, or makes me a speaker of the stage."
)
UNSUPPRESSED: Final = Text("I may speak here now: I answer.")
DEAFENED: Final = Text(
    "I am deafened on this server, so Discord sends me no sound and I hear nobody, until somebody who may deafen "
    "members undoes that."
)
UNDEAFENED: Final = Text("I am no longer deafened: I hear you again.")
# What fails and works in turn must not fill the chat.
TELL_AGAIN_AFTER_S: Final = 600.0


class TroubleNotice:
    """Remembers what a room was told of one trouble. `begun`, `over`: what people read when it begins and ends."""

    def __init__(self, begun: Text, over: Text) -> None:
        self._begun = begun
        self._over = over
        self._told_at: float | None = None
        self._is_told = False

    def take_as_told(self) -> None:
        """Note that people have read of the trouble elsewhere: only its end is news."""
        self._is_told = True

    def next(self, *, is_there: bool, now: float) -> Text | None:
        """Return the sentence to write now, or None. `is_there`: the trouble is there. `now`: monotonic seconds."""
        if is_there == self._is_told:
            return None
        if not is_there:
            self._is_told = False
            return self._over
        if self._told_at is not None and now - self._told_at < TELL_AGAIN_AFTER_S:
            return None
        self._is_told, self._told_at = True, now
        return self._begun


class RoomTroubles:
    """The troubles of one room that people in its channel are told of."""

    def __init__(self) -> None:
        self._not_understanding = TroubleNotice(UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN)
        self._muted = TroubleNotice(MUTED, UNMUTED)
        self._suppressed = TroubleNotice(SUPPRESSED, UNSUPPRESSED)
        self._is_first = True
        self._deafened = TroubleNotice(DEAFENED, UNDEAFENED)

    def next(self, *, not_understanding: bool, muted: bool, suppressed: bool, deafened: bool, now: float) -> list[Text]:
        """Return the sentences to write now. `not_understanding`: the recogniser has failed several times in a row.

        `suppressed`: the bot is not muted, but may not speak. Who arrives in the audience of a stage says so there
        (`bot.discord.stage`).
        """
        if self._is_first and suppressed:
            self._suppressed.take_as_told()
        self._is_first = False
        told = (
            self._not_understanding.next(is_there=not_understanding, now=now),
            self._muted.next(is_there=muted, now=now),
            self._suppressed.next(is_there=suppressed, now=now),
            self._deafened.next(is_there=deafened, now=now),
        )
        return [sentence for sentence in told if sentence is not None]
