"""The errors of the bot, named by who must act on them."""

from __future__ import annotations

import errno
import os
import socket
from typing import overload

from bot.texts.text import Text, sentence_of
from compaction.errors import CompactionError
from voice.errors import VoiceError

# The exit status of a bot whose shards another process has taken (`FencedError`).
FENCED_STATUS = 75


class BotError(Exception):
    """Base of the errors of this package. The message is a plain sentence that says what to do.

    The store raises `compaction.errors.StoreError` instead, because `compaction` owns the store's port.
    """


class SetupError(BotError):
    """Something that the bot needs is missing or unusable: the operator must install or configure it."""


class FencedError(BotError):
    """Another process serves the shards of this one: it has ended itself."""


class ModelError(SetupError):
    """A model could not be downloaded or used."""


class ModelSourceError(ModelError):
    """A model could not be fetched from one of its sources: network, mirror, disk or the file itself."""


# Errors with a plain sentence for people. Any other one is a defect.
KNOWN_ERRORS = (BotError, VoiceError, CompactionError)


@overload
def first_cause(error: Exception) -> Exception: ...
@overload
def first_cause(error: BaseException) -> BaseException: ...
def first_cause(error: BaseException) -> BaseException:
    """Return the first error inside a (nested) exception group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def crash_sentence(error: BaseException) -> Text:
    """Return what people read of an error that ended something: its sentence, or for a defect none of its words, which
    may be anything.
    """
    return sentence_of(error) if isinstance(error, KNOWN_ERRORS) else Text("Something went wrong inside me.")


# The network of this machine is off: no way to anywhere, or no name is found.
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


def seems_offline(error: BaseException | None) -> bool:
    """Return whether a request failed because nothing beyond this machine is found from it."""
    while error is not None:
        if isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno in _NO_WAY):
            return True
        error = error.__cause__ or error.__context__
    return False


def why_not_listening(error: OSError) -> str:
    """Return why a port could not be opened, without the address.

    asyncio's own sentence quotes the address, and the log withholds what is quoted.
    """
    if error.errno is None:
        # From Python 3.13 on asyncio says it so if no address is this machine's.
        return os.strerror(errno.EADDRNOTAVAIL)
    if isinstance(error, socket.gaierror):
        # A name that is not found has a number of its own kind.
        return error.strerror or type(error).__name__
    return os.strerror(error.errno)
