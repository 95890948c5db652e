"""Our errors as messages: what fails in one process is raised in the other, as the same class with the same text."""

from __future__ import annotations

from dataclasses import dataclass

from bot.channel.port import ChatError
from bot.errors import BotError, SetupError
from bot.remote.messages.wire_text import WireText  # noqa: TC001 - pydantic reads the annotation
from bot.room.announcer import NotAnnouncedError
from bot.texts.text import Text, sentence_of
from compaction.errors import CompactionError, StaleOwnerError, StoreError
from voice.errors import LinkError, SynthesisError, VoiceError


class OtherProcessError(BotError):
    """The other process could not be asked, did not answer in time, or failed."""


class NotYetError(OtherProcessError):
    """The gateway process has just been started and cannot say yet whether it takes a room back: ask again soon."""


# An error is sent as the nearest of these that it is an instance of.
_CLASSES: dict[str, type[Exception]] = {
    known.__name__: known
    for known in (
        BotError,
        ChatError,
        CompactionError,
        LinkError,
        NotAnnouncedError,
        NotYetError,
        OtherProcessError,
        SetupError,
        StaleOwnerError,
        StoreError,
        SynthesisError,
        VoiceError,
    )
}


@dataclass(frozen=True, slots=True)
class WireError:
    """An error. `name`: of its class. `retryable`: of a `LinkError`."""

    name: str
    sentence: WireText
    retryable: bool = True


def error_to_wire(error: Exception) -> WireError:
    """Return an error as a message. One that is not ours says nothing but its class: its text is for nobody."""
    for cls in type(error).__mro__:
        if _CLASSES.get(cls.__name__) is cls:
            retryable = error.retryable if isinstance(error, LinkError) else True
            return WireError(cls.__name__, sentence_of(error), retryable)
    failed = Text("Another process of this bot failed ({error}); its log says why.", error=type(error).__name__)
    return WireError(OtherProcessError.__name__, failed)


def error_from_wire(found: WireError) -> Exception:
    """Return the error in a message. One of an unknown class is a `OtherProcessError`."""
    known = _CLASSES.get(found.name, OtherProcessError)
    if issubclass(known, LinkError):
        return known(found.sentence, retryable=found.retryable)
    return known(found.sentence)
