"""Reports a failed command: plain sentences on stderr and an exit status, without a traceback."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot.cli.output import say
from bot.errors import FENCED_STATUS, KNOWN_ERRORS, FencedError, first_cause
from config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

FAILED = 1
# Also for a wrong option: the user must change the command or the settings.
MISUSED = 2
# The voice, the rehearsal and reading screens are parts that one chooses.
INSTALL_PARTS = "In the checkout, run `make setup`, or `uv tool install '.[piper,rehearsal,screen]'`."
_PARTS = {"jiwer": "rehearsal", "whisper_normalizer": "rehearsal"}
# What shells report for Ctrl-C.
INTERRUPTED = 130

# What pydantic says of a wrong value, and what a person reads.
_PLAIN_WORDS = (
    (re.compile(r"\bInput should be "), "must be "),
    (re.compile(r", unable to parse \w+ as an? \w+"), ""),
    (re.compile(r"\bValue error, "), ""),
    (re.compile(r"(?<=\w)$"), "."),
)


def report_misuse(error: BaseException) -> int | None:
    """Print what is wrong with the command line and return the exit status; None if that is not the error's kind.

    A wrong option or command prints itself. Typer checks values with pydantic, whose words are made plain.
    """
    show = getattr(error, "show", None)
    if not callable(show):
        return None
    if isinstance(message := getattr(error, "message", None), str):
        for words, plain in _PLAIN_WORDS:
            message = words.sub(plain, message)
        error.message = message  # type: ignore[attr-defined]
    show()
    return MISUSED


def report_failure(error: BaseException) -> int:
    """Print `error` on stderr and return the exit status.

    An error that our packages do not raise on purpose is a bug. Only its type is printed, because its message may
    contain anything; `python -X dev -m bot` with the same arguments shows the traceback.
    """
    cause = first_cause(error)
    if isinstance(cause, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(cause, ConfigError):
        say("\n".join(("The settings cannot be used:", *(f"  - {problem}" for problem in cause.problems))), err=True)
        return MISUSED
    if isinstance(cause, KNOWN_ERRORS) or _is_rehearsal_error(cause):
        say(str(cause), err=True)
        return FENCED_STATUS if isinstance(cause, FencedError) else FAILED
    if sys.flags.dev_mode:
        raise error
    if isinstance(cause, ImportError):
        if (part := _PARTS.get((cause.name or "").partition(".")[0])) is not None:
            say(f"The part '{part}' of Roomtone is not installed. {INSTALL_PARTS}", err=True)
            return FAILED
        # Only libraries can be missing: if our own modules were, this one would not run.
        say(f"A library that Roomtone needs cannot be loaded: {cause}. Install it again: `make clean setup`.", err=True)
        return FAILED
    if isinstance(cause, OSError):
        say(f"The system reported an error: {cause.strerror or type(cause).__name__}{_about(cause)}.", err=True)
        return FAILED
    say(
        f"Something in Roomtone broke ({type(cause).__name__}). Please report it with what "
        "`python -X dev -m bot` with the same arguments prints.",
        err=True,
    )
    return FAILED


@contextmanager
def defects_logged() -> Iterator[None]:
    """Log a defect that ends the block, with its traceback, and raise it again: `report_failure` names only its type,
    and whoever starts the process again may not meet it.
    """
    try:
        yield
    except Exception as error:
        cause = first_cause(error)
        if not isinstance(cause, (*KNOWN_ERRORS, ConfigError, ImportError, OSError)):
            import structlog

            structlog.get_logger().exception("process_failed", error_class=type(cause).__name__)
        raise


def _is_rehearsal_error(error: BaseException) -> bool:
    """Check without importing `rehearsal`, which is optional and slow to import."""
    module = sys.modules.get("rehearsal.errors")
    return module is not None and isinstance(error, module.RehearsalError)


def _about(error: OSError) -> str:
    return f" ({error.filename})" if error.filename else ""
