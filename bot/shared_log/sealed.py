"""Seals what is asked and answered, with a key from the bot's token, which all its processes have.

Any user of a PostgreSQL database may hear and send notifications there, also one that may read none of its tables. So
they are encrypted and authenticated: such a user learns nothing of the log, and whatever he sends is not opened. A
request that he repeats is refused (`bot.shared_log.shared_log`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from bot.remote.messages.frames import MalformedError, adapter_of, content_of
from bot.shared_log.messages import MOST_LINE_CHARS
from bot.store.dialects.port import MOST_NOTIFICATION_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.logs.reader import Event
    from bot.shared_log.messages import LogAnswer, LogRequest

# What one text becomes when it is opened. Ours are smaller: `fitting`.
_MOST_BYTES: Final = 1 << 19
# Of one answer before it is compressed, to about an eighth.
_MOST_ANSWER_CHARS: Final = 48_000
_MOST_ANSWER_LINES: Final = 200
# What is left of a line that is too long for an answer.
_KEPT_KEYS: Final = ("timestamp", "level", "event", "session_id", "shard", "guild_id", "machine")
_KEPT_CHARS: Final = 200


class Seal:
    """Seals and opens messages for one purpose: what was sealed for another is not opened."""

    def __init__(self, token: str, purpose: str) -> None:
        self._box = SecretBox(hashlib.sha256(f"roomtone log {purpose}\0{token}".encode()).digest())

    def sealed(self, message: LogRequest | LogAnswer) -> str | None:
        """Return a message as text for a notification, or None if it is too long."""
        kind: Any = type(message)
        content = zlib.compress(adapter_of(kind).dump_json(message))
        text = base64.b64encode(self._box.encrypt(content)).decode("ascii")
        return text if len(text) <= MOST_NOTIFICATION_CHARS else None

    def opened(self, text: str, kind: Any) -> Any:
        """Return the message in a text. Raises `MalformedError` if it is not sealed with this key, or is none."""
        try:
            opening = zlib.decompressobj()
            content = opening.decompress(
                self._box.decrypt(base64.b64decode(text.encode("ascii"), validate=True)), _MOST_BYTES
            )
        except (UnicodeError, ValueError, binascii.Error, CryptoError, zlib.error):
            raise MalformedError("a text that is not sealed with the bot's token") from None
        if not opening.eof:
            raise MalformedError("a text that is too long")
        try:
            return content_of(content.decode(), kind)
        except UnicodeError:
            raise MalformedError("a text that is none") from None


def request_seal(token: str) -> Seal:
    """Return the seal of requests."""
    return Seal(token, "request")


def answer_seal(token: str, tail: str) -> Seal:
    """Return the seal of the answers to one tail."""
    return Seal(token, f"answer {tail}")


def fitting(lines: Sequence[str], seal: Callable[[tuple[str, ...]], str | None]) -> tuple[int, str]:
    """Return how many of the lines, of which there is one at least, go into one text, and the text. `seal`: returns
    None if they do not.
    """
    count = chars = 0
    while count < min(len(lines), _MOST_ANSWER_LINES) and (count == 0 or chars <= _MOST_ANSWER_CHARS):
        chars += len(lines[count])
        count += 1
    while count > 1:
        text = seal(tuple(lines[:count]))
        if text is not None:
            return count, text
        count //= 2
    text = seal(tuple(lines[:1])) or seal((shortened(json.loads(lines[0])),))
    assert text is not None, "a shortened line fits"
    return 1, text


def shortened(event: Event) -> str:
    """Return the line of an event that is too long: what it is, and how long it was."""
    kept = {key: event[key] for key in _KEPT_KEYS if key in event}
    kept = {key: value[:_KEPT_CHARS] if isinstance(value, str) else value for key, value in kept.items()}
    kept = {key: value for key, value in kept.items() if isinstance(value, str | int | float | None)}
    return json.dumps({**kept, "cut_chars": len(json.dumps(event))})[:MOST_LINE_CHARS]
