"""How both ends of a link on one machine prove that they have its token, which itself is never sent.

Nobody else reads what goes over the machine's own address. But any program of any user may listen at the port of a
gateway process that was killed, and rooms that run on would tell it what people say. So the gateway process proves
itself too: the request of a room's process has a number that is used once, with a code made of it and the token, and
the first word that it is answered with is the other side's code. Between machines TLS does all that
(`link_encryption`).
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import Final

# The header of the request.
AUTHORIZATION: Final = "Authorization"
_NUMBER_BYTES: Final = 16
_HEADER: Final = re.compile(r"Roomtone ([0-9a-f]{32}) ([0-9a-f]{64})", re.ASCII)


def new_number() -> str:
    """Return the number of one request."""
    return secrets.token_hex(_NUMBER_BYTES)


def room_proof(token: str, number: str) -> str:
    """Return the value of the header with which a room's process proves that it has the token."""
    return f"Roomtone {number} {_code(token, 'room', number)}"


def proven_number(header: str, token: str) -> str | None:
    """Return the number of a request whose header proves the token; None: it does not."""
    found = _HEADER.fullmatch(header)
    if found is None or not token or not hmac.compare_digest(found[2], _code(token, "room", found[1])):
        return None
    return found[1]


def gateway_proof(token: str, number: str) -> str:
    """Return the word with which the gateway process proves to who has sent this number that it has the token."""
    return _code(token, "gateway", number)


def is_gateway_proof(word: str, token: str, number: str) -> bool:
    """Return whether a word proves that the other side has the token."""
    return hmac.compare_digest(word.encode("utf-8", "replace"), gateway_proof(token, number).encode())


def _code(token: str, side: str, number: str) -> str:
    """Each side has codes of its own, so what one side says cannot be sent back to it as the other's."""
    return hmac.new(token.encode(), f"{side} {number}".encode(), "sha256").hexdigest()
