"""What a failure looks like on the command line: plain sentences on stderr and an exit status, no traceback."""

from __future__ import annotations

import sys

import structlog

from bot.errors import BotError
from compaction.errors import CompactionError
from config.errors import ConfigError
from voice.errors import VoiceError

log = structlog.get_logger()

FAILED = 1
# As for a wrong option: the person must change what they wrote.
MISUSED = 2
# What shells report for Ctrl-C.
INTERRUPTED = 130

_OURS = (BotError, VoiceError, CompactionError)


def report_failure(error: BaseException) -> int:
    """Say `error` on stderr and return the exit status.

    What none of our packages raises on purpose is a mistake of ours: it is told by its type alone, since its
    message may hold anything, and `python -X dev -m bot` with the same words shows where it is.
    """
    cause = first_cause(error)
    if isinstance(cause, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(cause, ConfigError):
        _say("The settings cannot be used:", *(f"  - {problem}" for problem in cause.problems))
        return MISUSED
    if isinstance(cause, _OURS) or _is_rehearsal_error(cause):
        _say(*str(cause).splitlines())
        return FAILED
    if sys.flags.dev_mode:
        raise error
    if isinstance(cause, ImportError):
        # Which library, and why not: our own modules are all there, or this one would not run.
        _say(f"A library that Roomtone needs cannot be loaded: {cause}. Install it anew: `make clean setup`.")
        return FAILED
    if isinstance(cause, OSError):
        _say(f"The machine refused: {cause.strerror or type(cause).__name__}{_about(cause)}.")
        return FAILED
    _say(
        f"Something in Roomtone broke ({type(cause).__name__}). Please report it with what "
        "`python -X dev -m bot` and the same words print."
    )
    return FAILED


def first_cause(error: BaseException) -> BaseException:
    """Return the first error inside a task group's."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_rehearsal_error(error: BaseException) -> bool:
    """Judge without importing the rehearsal, an optional part whose imports are slow."""
    module = sys.modules.get("rehearsal.errors")
    return module is not None and isinstance(error, module.RehearsalError)


def _about(error: OSError) -> str:
    return f" ({error.filename})" if error.filename else ""


def _say(*lines: str) -> None:
    for line in lines:
        sys.stderr.write(f"{line}\n")
